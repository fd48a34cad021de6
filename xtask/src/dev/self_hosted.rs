//! `cargo xtask bundle`: one folder with all that a machine needs to serve a deployment without Cloudflare and without
//! this checkout: docs/self-hosting.md.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};

use super::{
    CONFIG_FILE, DEPLOYMENT_FILE, Places, assignment, bundle,
    deployment::{Deployment, Variable},
    write_config,
};
use crate::{
    children,
    cli::{BundleArguments, Part},
    parts::{self, Options},
    progress,
    tools::Tools,
    workspace::Workspace,
};

/// The package and the program of the gateway.
const GATEWAY: &str = "conclave-gateway";

/// The profile it is built with.
const GATEWAY_PROFILE: &str = "gateway";

/// The units, each with the folders written as below.
const UNITS: &[(&str, &str)] = &[
    (
        "conclave-workerd.socket",
        include_str!("../../../gateway/systemd/conclave-workerd.socket"),
    ),
    (
        "conclave-workerd.service",
        include_str!("../../../gateway/systemd/conclave-workerd.service"),
    ),
    (
        "conclave-gateway.service",
        include_str!("../../../gateway/systemd/conclave-gateway.service"),
    ),
];

/// What stands in the units for the folder of the bundle and for that of the state.
const PREFIX_IN_UNITS: &str = "@PREFIX@";
const STATE_IN_UNITS: &str = "@STATE@";

/// Builds everything and writes the folder.
///
/// # Errors
///
/// A build fails, or the folder holds something else.
pub(crate) fn run(workspace: &Workspace, arguments: &BundleArguments) -> anyhow::Result<()> {
    let tools = Tools::ready(workspace)?;
    if !arguments.no_build {
        parts::build(workspace, &tools, &[Part::Worker, Part::Site], Options::default())?;
        progress::step("building the gateway");
        children::run(
            "cargo build of the gateway",
            workspace.cargo().args([
                "build",
                "--quiet",
                "--package",
                GATEWAY,
                "--profile",
                GATEWAY_PROFILE,
            ]),
        )?;
    }
    let gateway = workspace.target().join(GATEWAY_PROFILE).join(GATEWAY);

    let file = workspace.path(DEPLOYMENT_FILE);
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let mut deployment = Deployment::read(&text).with_context(|| format!("reading {}", file.display()))?;
    for line in &arguments.variables {
        let (name, value) = assignment(line).context("in a --var")?;
        deployment.set(&name, Variable::Text(value));
    }
    for name in &arguments.secrets {
        deployment.set(name, Variable::FromEnvironment);
    }

    let folder = empty(&arguments.folder)?;
    let modules = bundle::copy(workspace, &workspace.path(&deployment.main), &folder)?;
    let installed = Places {
        site: &arguments.installed_at.join("site"),
        state: &arguments.state.join("objects"),
    };
    write_config(&deployment, &modules, &installed, &folder)?;
    if let Some(assets) = &deployment.assets {
        copy_folder(&workspace.path(&assets.directory), &folder.join("site"))?;
    }
    let programs = folder.join("bin");
    fs::create_dir(&programs)?;
    for program in [tools.workerd()?, gateway] {
        let name = program.file_name().context("a program without a name")?;
        fs::copy(&program, programs.join(name)).with_context(|| format!("copying {}", program.display()))?;
    }
    let units = folder.join("systemd");
    fs::create_dir(&units)?;
    for (name, unit) in UNITS {
        let unit = unit
            .replace(PREFIX_IN_UNITS, &arguments.installed_at.to_string_lossy())
            .replace(STATE_IN_UNITS, &arguments.state.to_string_lossy());
        fs::write(units.join(name), unit)?;
    }
    progress::step(format_args!(
        "{} is whole: copy it to {}, and go on with docs/self-hosting.md",
        folder.display(),
        arguments.installed_at.display()
    ));
    Ok(())
}

/// Makes the folder, or empties it of an earlier bundle.
fn empty(folder: &Path) -> anyhow::Result<PathBuf> {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => {}
        Ok(false) => {
            ensure!(
                folder.join(CONFIG_FILE).exists(),
                "{} holds something else than an earlier bundle: name another folder",
                folder.display()
            );
            fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("reading {}", folder.display())),
    }
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    Ok(folder.canonicalize()?)
}

fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_holds_something_else_is_left_alone() -> anyhow::Result<()> {
        let folder = std::env::temp_dir().join(format!("conclave-bundle-folder-{}", std::process::id()));
        empty(&folder)?;
        fs::write(folder.join("letter"), "dear")?;
        let error = empty(&folder).expect_err("not ours");
        assert!(error.to_string().contains("another folder"), "{error}");
        assert!(folder.join("letter").exists());
        fs::write(folder.join(CONFIG_FILE), "")?;
        empty(&folder)?;
        assert!(!folder.join("letter").exists());
        fs::remove_dir_all(&folder)?;
        Ok(())
    }

    #[test]
    fn no_unit_keeps_a_place_to_be_filled() {
        for (name, unit) in UNITS {
            let filled = unit.replace(PREFIX_IN_UNITS, "/p").replace(STATE_IN_UNITS, "/s");
            assert!(!filled.contains('@'), "{name}");
        }
    }
}

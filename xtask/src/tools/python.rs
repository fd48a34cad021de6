//! Python with the packages that one of the tests' gRPC clients is made of: an environment of its own below target/.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

use super::{Version, debian};
use crate::{children, progress, stamp::Stamp, workspace::Workspace};

/// The packages, pinned.
const REQUIREMENTS: &str = "tests/support/callers/requirements.txt";

/// The least Python that the packages are published for.
const AT_LEAST: Version = Version(3, 10, 0);

/// What makes an environment, if it is there: it may be missing from a Python that the system brings.
const ENVIRONMENT_MODULES: &str = "import ensurepip, venv";

/// A Python that finds the packages. Quick when they are there.
///
/// # Errors
///
/// There is no Python and none can be installed, or the packages cannot be.
pub(crate) fn with_packages(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let folder = workspace.target().join("python");
    let python = folder.join("bin/python");
    let stamp = Stamp::new(workspace, "python", &[REQUIREMENTS], &[])?;
    if stamp.holds(&[&python]) {
        return Ok(python);
    }
    stamp.forget()?;
    let system = find_or_install()?;
    progress::step("installing Python packages for a client of the tests");
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("removing {}", folder.display()));
        }
        _ => {}
    }
    children::run(
        "python -m venv",
        Command::new(&system).args(["-m", "venv"]).arg(&folder),
    )?;
    children::run(
        "pip install",
        Command::new(&python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--only-binary=:all:",
            ])
            .arg("--requirement")
            .arg(workspace.path(REQUIREMENTS)),
    )
    .context("the Python packages could not be installed; a reachable package index is needed")?;
    stamp.keep()?;
    Ok(python)
}

fn find_or_install() -> anyhow::Result<PathBuf> {
    if let Some(found) = find() {
        return Ok(found);
    }
    if !debian::can_install() {
        bail!(
            "the client tests need Python {AT_LEAST} or newer with its venv module: install it (on Debian `apt-get install python3 python3-venv`)"
        );
    }
    debian::install("Python", &["python3", "python3-venv"])?;
    find().with_context(|| format!("apt-get installed python3, and no Python {AT_LEAST} with venv is found"))
}

/// A Python that is new enough and can make environments.
fn find() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join("python3"))
        .filter(|file| file.is_file())
        .find(|file| is_usable(file))
}

fn is_usable(python: &Path) -> bool {
    let version = children::output(Command::new(python).arg("--version"))
        .and_then(|text| Version::parse(text.strip_prefix("Python ")?));
    version >= Some(AT_LEAST)
        && children::output(Command::new(python).args(["-c", ENVIRONMENT_MODULES])).is_some()
}

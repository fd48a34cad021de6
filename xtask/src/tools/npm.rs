//! npm packages: installed when the lock file changed, and the native programs inside them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;

use super::Found;
use crate::{children, progress, stamp::Stamp, workspace::Workspace};

/// The packages `doctor` speaks of: those that builds and tests run directly.
const SPOKEN_OF: &[&str] = &[
    "workerd",
    "wrangler",
    "esbuild",
    "binaryen",
    "typescript",
    "playwright-core",
];

/// What npm needs to be told so that it neither phones home nor asks.
const QUIET: &[&str] = &["--no-audit", "--no-fund", "--loglevel=error"];

/// Installs the packages of the root `package.json` if they are missing or the lock file changed.
///
/// # Errors
///
/// npm is missing or does not succeed.
pub(super) fn install(workspace: &Workspace) -> anyhow::Result<()> {
    let stamp = Stamp::new(workspace, "npm", &["package.json", "package-lock.json"], &[])?;
    let modules = workspace.path("node_modules");
    if stamp.holds(&[&modules]) {
        return Ok(());
    }
    stamp.forget()?;
    let locked = workspace.path("package-lock.json").exists();
    // A clean install is exact, but begins by removing what is there: only for a checkout that has nothing yet.
    let verb = if locked && !modules.exists() {
        "ci"
    } else {
        "install"
    };
    progress::step(format_args!("npm {verb}"));
    children::run(
        &format!("npm {verb}"),
        Command::new("npm")
            .arg(verb)
            .args(QUIET)
            .current_dir(workspace.root()),
    )
    .context(
        "the npm packages could not be installed; Node with npm and a reachable npm registry are needed",
    )?;
    // npm may have completed the lock file, so the stamp is taken anew.
    Stamp::new(workspace, "npm", &["package.json", "package-lock.json"], &[])?.keep()
}

/// A native program that npm puts into a package of its own for each platform, as `SCOPE/linux-x64/bin/…`.
///
/// `scope` may end in a name (`@cloudflare/workerd`), which a hyphen then joins to the platform. `x64` is how that
/// maker spells the 64-bit Intel architecture.
pub(super) fn platform_binary(root: &Path, scope: &str, x64: &str, program: &str) -> anyhow::Result<PathBuf> {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let architecture = match std::env::consts::ARCH {
        "x86_64" => x64,
        "aarch64" => "arm64",
        other => other,
    };
    let joint = if scope.contains('/') { '-' } else { '/' };
    let path = root
        .join("node_modules")
        .join(format!("{scope}{joint}{system}-{architecture}"))
        .join(program);
    anyhow::ensure!(
        path.exists(),
        "{} is missing: remove node_modules and run this again; if it stays missing, npm has no such program for {system} on {architecture}",
        path.display()
    );
    Ok(path)
}

/// What is here of the packages that are run directly.
pub(super) fn survey(workspace: &Workspace) -> Vec<Found> {
    let wanted = package_json(&workspace.path("package.json")).unwrap_or_default();
    SPOKEN_OF
        .iter()
        .filter_map(|name| {
            let wanted = wanted.get("devDependencies")?.get(name)?.as_str()?.to_owned();
            let installed = package_json(&workspace.path("node_modules").join(name).join("package.json"));
            let found = installed.and_then(|package| Some(package.get("version")?.as_str()?.to_owned()));
            let remedy = (found.as_ref() != Some(&wanted)).then(|| "npm install".to_owned());
            Some(Found {
                name,
                wanted,
                found,
                remedy,
            })
        })
        .collect()
}

fn package_json(path: &Path) -> Option<serde_json::Value> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::package_json;
    use crate::workspace::Workspace;

    /// The place a package at `place` finds `name` in, by the rule of Node: its own folder, then each one above it.
    fn resolves(packages: &Map<String, Value>, place: &str, name: &str) -> bool {
        let mut folder = place;
        loop {
            let joint = if folder.is_empty() { "" } else { "/" };
            if packages.contains_key(&format!("{folder}{joint}node_modules/{name}")) {
                return true;
            }
            if folder.is_empty() {
                return false;
            }
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }

    // An install over packages that are there completes the lock file silently; a clean one, in CI, refuses it.
    #[test]
    fn the_lock_file_has_every_package_that_another_one_asks_for() {
        let lock = package_json(&Workspace::here().path("package-lock.json")).expect("the lock file is JSON");
        let packages = lock
            .get("packages")
            .and_then(Value::as_object)
            .expect("it lists packages");
        let mut asked = 0;
        for (place, package) in packages {
            for kind in ["dependencies", "optionalDependencies"] {
                for name in package
                    .get(kind)
                    .and_then(Value::as_object)
                    .into_iter()
                    .flat_map(Map::keys)
                {
                    asked += 1;
                    assert!(
                        resolves(packages, place, name),
                        "{place} asks for {name}, which the lock file lacks: npm knew no such package when it was locked; \
                         choose a release of {place} that does not ask for it"
                    );
                }
            }
        }
        assert!(
            asked > 0,
            "the lock file's form is not the one that this test reads"
        );
    }
}

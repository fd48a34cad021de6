//! What the Rust toolchain in use may lack: the wasm32 target, the formatter and the linter.

use std::{fs, process::Command};

use super::{Found, WASM_TARGET};
use crate::{children, progress, workspace::Workspace};

/// The components that checks need, each with the cargo command it brings.
const COMPONENTS: &[(&str, &str)] = &[("rustfmt", "fmt"), ("clippy", "clippy")];

/// Adds the wasm32 target if the toolchain lacks it.
///
/// # Errors
///
/// It cannot be added.
pub(super) fn install_target(workspace: &Workspace) -> anyhow::Result<()> {
    if has_target(workspace) {
        return Ok(());
    }
    add(workspace, "target", WASM_TARGET)
}

/// Adds the formatter and the linter if the toolchain lacks them.
///
/// # Errors
///
/// One cannot be added.
pub(super) fn install_checkers(workspace: &Workspace) -> anyhow::Result<()> {
    for (component, command) in COMPONENTS {
        if !has_command(workspace, command) {
            add(workspace, "component", component)?;
        }
    }
    Ok(())
}

/// What is here.
pub(super) fn survey(workspace: &Workspace) -> Vec<Found> {
    let there = has_target(workspace);
    let target = Found {
        name: "rust target",
        wanted: WASM_TARGET.to_owned(),
        found: there.then(|| WASM_TARGET.to_owned()),
        remedy: (!there).then(|| format!("rustup target add {WASM_TARGET}")),
    };
    let components = COMPONENTS.iter().map(|(component, command)| {
        let there = has_command(workspace, command);
        Found {
            name: component,
            wanted: "the toolchain's".to_owned(),
            found: there.then(|| "the toolchain's".to_owned()),
            remedy: (!there).then(|| format!("rustup component add {component}")),
        }
    });
    std::iter::once(target).chain(components).collect()
}

fn add(workspace: &Workspace, kind: &str, name: &str) -> anyhow::Result<()> {
    progress::step(format_args!("adding the Rust {kind} {name}"));
    children::run(
        &format!("rustup {kind} add {name}"),
        Command::new("rustup")
            .args([kind, "add", name])
            .current_dir(workspace.root()),
    )
    .map_err(|error| {
        error.context(format!(
            "the Rust {kind} {name} is missing and could not be added; add it the way Rust was installed here"
        ))
    })
}

fn has_command(workspace: &Workspace, command: &str) -> bool {
    let mut cargo = Command::new("cargo");
    children::output(cargo.args([command, "--version"]).current_dir(workspace.root())).is_some()
}

/// The target's own standard library is what is needed, however it came here.
fn has_target(workspace: &Workspace) -> bool {
    let mut rustc = Command::new("rustc");
    rustc
        .args(["--print", "target-libdir", "--target", WASM_TARGET])
        .current_dir(workspace.root());
    let Some(folder) = children::output(&mut rustc) else {
        return false;
    };
    let is_core = |file: fs::DirEntry| file.file_name().to_string_lossy().starts_with("libcore-");
    fs::read_dir(folder).is_ok_and(|mut files| files.any(|file| file.is_ok_and(is_core)))
}

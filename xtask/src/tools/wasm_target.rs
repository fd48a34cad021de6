//! The wasm32 target of the Rust toolchain in use.

use std::process::Command;

use super::{Found, WASM_TARGET};
use crate::{children, progress, workspace::Workspace};

/// Adds the target if the toolchain lacks it.
///
/// # Errors
///
/// rustup is missing or cannot add it.
pub(super) fn install(workspace: &Workspace) -> anyhow::Result<()> {
    if is_there(workspace) {
        return Ok(());
    }
    progress::step(format_args!("adding the Rust target {WASM_TARGET}"));
    children::run(
        "rustup target add",
        Command::new("rustup").args(["target", "add", WASM_TARGET]).current_dir(workspace.root()),
    )
    .map_err(|error| {
        error.context(format!(
            "the Rust target {WASM_TARGET} is missing and could not be added; add it by the way Rust was installed here"
        ))
    })
}

/// What is here.
pub(super) fn survey(workspace: &Workspace) -> Found {
    let there = is_there(workspace);
    Found {
        name: "rust target",
        wanted: WASM_TARGET.to_owned(),
        found: there.then(|| WASM_TARGET.to_owned()),
        remedy: (!there).then(|| format!("rustup target add {WASM_TARGET}")),
    }
}

/// The target's own standard library is what is needed, however it came here.
fn is_there(workspace: &Workspace) -> bool {
    children::output(
        Command::new("rustc")
            .args(["--print", "target-libdir", "--target", WASM_TARGET])
            .current_dir(workspace.root()),
    )
    .is_some_and(|folder| {
        std::fs::read_dir(folder).is_ok_and(|mut files| {
            files
                .any(|file| file.is_ok_and(|file| file.file_name().to_string_lossy().starts_with("libcore-")))
        })
    })
}

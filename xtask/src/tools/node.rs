//! Node: the machine's own if it is new enough, otherwise the one that the npm package `node` brings.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;

use super::{Found, NODE_AT_LEAST, Version};
use crate::{children, workspace::Workspace};

/// Where the npm package puts its Node, below the root.
const FROM_NPM: &str = "node_modules/node/bin/node";

/// A Node that is new enough.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    program: PathBuf,
    path: OsString,
}

impl Node {
    /// A command that runs Node, and lets what it starts find the same Node first.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("PATH", &self.path);
        command
    }
}

/// Finds a Node that is new enough.
///
/// # Errors
///
/// There is none.
pub(super) fn find(workspace: &Workspace) -> anyhow::Result<Node> {
    let brought = workspace.path(FROM_NPM);
    let (program, version) = best(&brought).with_context(|| {
        format!("Node is missing: install Node {NODE_AT_LEAST} or newer, or any Node with npm, from which the rest follows")
    })?;
    anyhow::ensure!(
        version >= NODE_AT_LEAST,
        "Node {version} is too old and the npm package `node` brought none ({}); install Node {NODE_AT_LEAST} or newer",
        brought.display()
    );
    let mut folders = Vec::new();
    if program == brought {
        folders.extend(brought.parent().map(Path::to_owned));
    }
    folders.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    Ok(Node {
        path: std::env::join_paths(folders).context("PATH holds a folder that cannot stand in it")?,
        program,
    })
}

/// What is here.
pub(super) fn survey(workspace: &Workspace) -> Found {
    let best = best(&workspace.path(FROM_NPM));
    let fits = best
        .as_ref()
        .is_some_and(|(_, version)| *version >= NODE_AT_LEAST);
    Found {
        name: "node",
        wanted: format!(">= {NODE_AT_LEAST}"),
        found: best.map(|(program, version)| format!("{version} ({})", program.display())),
        remedy: (!fits)
            .then(|| format!("npm install, which brings one, or install Node {NODE_AT_LEAST} or newer")),
    }
}

/// The machine's Node if it is new enough, otherwise the newer of the two.
fn best(brought: &Path) -> Option<(PathBuf, Version)> {
    let machines = version(Path::new("node")).map(|version| (PathBuf::from("node"), version));
    match machines {
        Some(found) if found.1 >= NODE_AT_LEAST => Some(found),
        older => version(brought)
            .map(|version| (brought.to_owned(), version))
            .or(older),
    }
}

fn version(program: &Path) -> Option<Version> {
    children::output(Command::new(program).arg("--version")).and_then(|text| Version::parse(&text))
}

//! The tools that builds and tests use: which versions are wanted, where they lie, and how they come here.
//!
//! npm packages are pinned by the root `package.json` and its lock; the table below pins the rest. Everything comes from
//! package registries, because on some machines nothing else can be reached.

pub(crate) mod debian;
mod node;
mod npm;
pub(crate) mod python;
mod rust;

use std::path::{Path, PathBuf};

pub(crate) use node::Node;

use crate::workspace::Workspace;

/// The least Node that wrangler and the tests run on. An older one is replaced by the npm package `node`.
pub(crate) const NODE_AT_LEAST: Version = Version(22, 12, 0);

/// What Rust compiles the Worker and the browser library for.
pub(crate) const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// A dotted version, as far as it is compared here.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32, pub(crate) u32);

impl Version {
    /// Reads `v22.12.0` or `22.12.0`; a suffix after the third number is ignored.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().trim_start_matches('v').splitn(3, '.').map(|part| {
            let digits = part
                .find(|letter: char| !letter.is_ascii_digit())
                .unwrap_or(part.len());
            part.get(..digits)?.parse().ok()
        });
        Some(Self(
            numbers.next()??,
            numbers.next()??,
            numbers.next().flatten().unwrap_or(0),
        ))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// The tools, all there.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    root: PathBuf,
    node: Node,
}

impl Tools {
    /// Installs what is missing and gives the tools. Quick when nothing is.
    ///
    /// # Errors
    ///
    /// Something is missing and cannot be installed; the message says what to do.
    pub(crate) fn ready(workspace: &Workspace) -> anyhow::Result<Self> {
        rust::install_target(workspace)?;
        npm::install(workspace)?;
        Ok(Self {
            root: workspace.root().to_owned(),
            node: node::find(workspace)?,
        })
    }

    /// Makes the formatter and the linter available too.
    ///
    /// # Errors
    ///
    /// One is missing and cannot be installed.
    pub(crate) fn with_checkers(&self, workspace: &Workspace) -> anyhow::Result<()> {
        rust::install_checkers(workspace)
    }

    /// The Node to run scripts with.
    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// A Node command that runs a program of an npm package, without npm in between.
    ///
    /// # Errors
    ///
    /// The package is not installed.
    pub(crate) fn node_script(&self, script: impl AsRef<Path>) -> anyhow::Result<std::process::Command> {
        let script = self.root.join("node_modules").join(script);
        anyhow::ensure!(
            script.exists(),
            "{} is missing: run `npm install` at the root",
            script.display()
        );
        let mut command = self.node.command();
        command.arg(script);
        Ok(command)
    }

    /// The native workerd.
    ///
    /// # Errors
    ///
    /// The package brings none for this machine.
    pub(crate) fn workerd(&self) -> anyhow::Result<PathBuf> {
        npm::platform_binary(&self.root, "@cloudflare/workerd", "64", "bin/workerd")
    }

    /// The native esbuild.
    ///
    /// # Errors
    ///
    /// The package brings none for this machine.
    pub(crate) fn esbuild(&self) -> anyhow::Result<PathBuf> {
        npm::platform_binary(&self.root, "@esbuild", "x64", "bin/esbuild")
    }

    /// The TypeScript compiler.
    ///
    /// # Errors
    ///
    /// It is not installed.
    pub(crate) fn tsc(&self) -> anyhow::Result<std::process::Command> {
        self.node_script("typescript/bin/tsc")
    }
}

/// One line of what `doctor` says about a tool.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The tool.
    pub(crate) name: &'static str,
    /// The version wanted, in words.
    pub(crate) wanted: String,
    /// The version found.
    pub(crate) found: Option<String>,
    /// What to do about it when it is missing or does not fit.
    pub(crate) remedy: Option<String>,
}

/// What is here, without installing anything.
pub(crate) fn survey(workspace: &Workspace) -> Vec<Found> {
    let mut found = rust::survey(workspace);
    found.push(node::survey(workspace));
    found.extend(npm::survey(workspace));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_with_and_without_a_v_and_compared_by_number() {
        assert_eq!(Version::parse("v22.12.0\n"), Some(Version(22, 12, 0)));
        assert_eq!(Version::parse("24.1.3-nightly"), Some(Version(24, 1, 3)));
        assert_eq!(Version::parse("22.9"), Some(Version(22, 9, 0)));
        assert!(Version::parse("22.9.0") < Some(NODE_AT_LEAST));
        assert_eq!(Version::parse("node"), None);
        assert_eq!(Version::parse(""), None);
    }
}

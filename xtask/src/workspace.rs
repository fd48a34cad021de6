//! Where things lie in the checkout. Every other module takes its paths from here.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// The root of the checkout and the folders that commands write below it.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The checkout this program was built from.
    pub(crate) fn here() -> Self {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self {
            root: manifest.parent().unwrap_or(manifest).to_owned(),
        }
    }

    /// The folder that holds the root `Cargo.toml`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A path below the root.
    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// Cargo's target folder, where everything that can be made again is kept.
    pub(crate) fn target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// Cargo, on this checkout and its target folder.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .current_dir(self.root())
            .env("CARGO_TARGET_DIR", self.target());
        command
    }
}

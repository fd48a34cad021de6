//! Remembers what a build was made from, so that an unchanged one is left as it is.

use std::{
    collections::hash_map::DefaultHasher,
    fs,
    hash::{Hash as _, Hasher as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;

/// A fingerprint of everything a build reads. It guards against needless work, not against forgery.
#[derive(Debug)]
pub(super) struct Stamp(DefaultHasher);

impl Stamp {
    /// Begins with what is not a file: versions and options.
    pub(super) fn new(settings: impl std::hash::Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        settings.hash(&mut hasher);
        Self(hasher)
    }

    /// Adds a file, by name and content.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub(super) fn file(&mut self, path: &Path) -> anyhow::Result<()> {
        path.hash(&mut self.0);
        fs::read(path)
            .with_context(|| format!("{} cannot be read", path.display()))?
            .hash(&mut self.0);
        Ok(())
    }

    /// Whether `directory` was finished from the same inputs.
    pub(super) fn matches(&self, directory: &Path) -> bool {
        fs::read_to_string(Self::path(directory)).is_ok_and(|stored| stored == self.text())
    }

    /// Marks `directory` as finished.
    ///
    /// # Errors
    ///
    /// When the mark cannot be written.
    pub(super) fn store(&self, directory: &Path) -> anyhow::Result<()> {
        let path = Self::path(directory);
        fs::write(&path, self.text()).with_context(|| format!("{} cannot be written", path.display()))
    }

    fn path(directory: &Path) -> PathBuf {
        directory.join(".stamp")
    }

    fn text(&self) -> String {
        format!("{:016x}\n", self.0.finish())
    }
}

//! The folder where objects keep their storage: one process at a time, and gone at the end where that was asked for.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, bail};

use crate::children;

/// A state folder that no other process uses.
#[derive(Debug)]
pub(super) struct State {
    folder: PathBuf,
    /// Held while this process lives.
    _lock: File,
}

impl State {
    /// Takes `folder`, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// It cannot be made, or another process uses it.
    pub(super) fn open(folder: &Path) -> anyhow::Result<Self> {
        let objects = folder.join("objects");
        fs::create_dir_all(&objects)
            .with_context(|| format!("the state folder {} cannot be made", objects.display()))?;
        let objects = objects.canonicalize()?;
        let lock =
            File::create(folder.join("lock")).with_context(|| format!("locking {}", folder.display()))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                folder: objects,
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => bail!(
                "another `cargo xtask dev` uses the state in {}: end it, or name another folder with --state, or use --fresh",
                folder.display()
            ),
            Err(TryLockError::Error(error)) => {
                Err(anyhow::Error::new(error).context(format!("locking {}", folder.display())))
            }
        }
    }

    /// Takes a new folder that is removed when this process ends.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub(super) fn fresh() -> anyhow::Result<Self> {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .context("the clock stands before 1970")?;
        let folder =
            std::env::temp_dir().join(format!("conclave-{}-{}", std::process::id(), since.as_nanos()));
        children::remove_at_end(&folder);
        Self::open(&folder)
    }

    /// The folder that workerd writes to, absolute.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_in_use_is_refused_and_free_again_when_let_go() -> anyhow::Result<()> {
        let folder = std::env::temp_dir().join(format!("conclave-state-test-{}", std::process::id()));
        let first = State::open(&folder)?;
        let error = State::open(&folder).expect_err("two users of one state");
        assert!(error.to_string().contains("--fresh"), "{error}");
        drop(first);
        State::open(&folder)?;
        fs::remove_dir_all(&folder)?;
        Ok(())
    }
}

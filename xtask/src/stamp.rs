//! Knowing that a step need not run: its inputs hash to what they hashed to when it last succeeded.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use crate::workspace::Workspace;

/// Folders that never hold an input.
const SKIPPED_FOLDERS: &[&str] = &["target", "node_modules", ".git", ".wrangler", "dist", "pkg"];

/// The stamp's name where it is kept [inside](Stamp::inside) what it speaks of.
pub(crate) const FILE_INSIDE: &str = ".stamp";

/// What a step was made from, and where that is remembered.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    file: PathBuf,
    value: String,
}

impl Stamp {
    /// The stamp of the step `name` for the present content of `inputs` (files or whole folders below the root; one
    /// that does not exist counts as empty) and of `words`, which hold whatever else its result depends on.
    ///
    /// # Errors
    ///
    /// An input cannot be read.
    pub(crate) fn new(
        workspace: &Workspace,
        name: &str,
        inputs: &[&str],
        words: &[&str],
    ) -> anyhow::Result<Self> {
        let mut hasher = DefaultHasher::new();
        words.hash(&mut hasher);
        for file in files(workspace, inputs)? {
            let content = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
            file.strip_prefix(workspace.root())
                .unwrap_or(&file)
                .hash(&mut hasher);
            content.hash(&mut hasher);
        }
        let file = workspace.target().join("stamps").join(name);
        Ok(Self {
            file,
            value: format!("{:016x}", hasher.finish()),
        })
    }

    /// The same stamp, kept inside `folder` itself: for a step whose output takes its place in one piece.
    pub(crate) fn inside(&self, folder: &Path) -> Self {
        Self {
            file: folder.join(FILE_INSIDE),
            value: self.value.clone(),
        }
    }

    /// Whether the step last succeeded with the same inputs and all its `outputs` still exist.
    pub(crate) fn holds(&self, outputs: &[&Path]) -> bool {
        outputs.iter().all(|output| output.exists())
            && fs::read_to_string(&self.file).is_ok_and(|value| value == self.value)
    }

    /// Forgets the last success, before a step that overwrites its outputs: it may be stopped half way.
    ///
    /// # Errors
    ///
    /// The stamp cannot be removed.
    pub(crate) fn forget(&self) -> anyhow::Result<()> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("removing {}", self.file.display()))
            }
            _ => Ok(()),
        }
    }

    /// Remembers that the step succeeded.
    ///
    /// # Errors
    ///
    /// The stamp cannot be written.
    pub(crate) fn keep(&self) -> anyhow::Result<()> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&self.file, &self.value).with_context(|| format!("writing {}", self.file.display()))
    }
}

/// Every file below `inputs`, in a fixed order.
///
/// # Errors
///
/// A folder cannot be read.
pub(crate) fn files(workspace: &Workspace, inputs: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for input in inputs {
        let path = workspace.path(input);
        collect(&path, &mut found).with_context(|| format!("reading {}", path.display()))?;
    }
    found.sort();
    Ok(found)
}

fn collect(path: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        // A file may go while the folder is read; an input that is not there is an empty one.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if metadata.is_file() {
        found.push(path.to_owned());
    } else if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = entry.file_name();
            if !SKIPPED_FOLDERS.iter().any(|skipped| name == *skipped) {
                collect(&entry.path(), found)?;
            }
        }
    }
    Ok(())
}

//! The built worker, as a runtime takes it: a copy of its own, whole.
//!
//! A build empties the worker's folder and fills it again. A runtime that is started at that moment, or has to be started
//! again, must find the last whole build all the same.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};

use super::runtime_config::Module;
use crate::{parts, progress, stamp::FILE_INSIDE as FINISHED_MARK, workspace::Workspace};

/// What modules are called.
const MODULE_EXTENSIONS: &[&str] = &["js", "mjs", "wasm"];

/// How often a build under way is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A file's name and content.
type File = (String, Vec<u8>);

/// Copies the worker whose entry is `main` below `folder`, into a folder named by its content. The entry comes first.
///
/// # Errors
///
/// There is no finished build and none is under way.
pub(super) fn copy(workspace: &Workspace, main: &Path, folder: &Path) -> anyhow::Result<Vec<Module>> {
    let source = main.parent().context("`main` names no file")?;
    let entry = main
        .file_name()
        .context("`main` names no file")?
        .to_string_lossy()
        .into_owned();
    let mut said = false;
    let files = loop {
        // Asked first: a build that ends in between has left a whole one.
        let is_building = parts::is_building(workspace)?;
        let files = whole(source)?.filter(|files| files.iter().any(|(name, _)| *name == entry));
        if let Some(files) = files {
            break files;
        }
        if !is_building {
            bail!(
                "{} is missing or not whole: run `cargo xtask build worker`",
                main.display()
            );
        }
        if !said {
            progress::step("waiting for the build of the worker");
            said = true;
        }
        thread::sleep(LOOK_EVERY);
    };
    write(&entry, files, folder)
}

/// The modules of a finished build; none while one is under way.
fn whole(source: &Path) -> anyhow::Result<Option<Vec<File>>> {
    let mark = source.join(FINISHED_MARK);
    let Ok(before) = fs::read(&mark) else {
        return Ok(None);
    };
    match read(source) {
        Ok(files) if fs::read(&mark).is_ok_and(|after| after == before) => Ok(Some(files)),
        // A build began while the files were read.
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(anyhow::Error::new(error).context(format!("reading {}", source.display()))),
    }
}

fn read(source: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(source)? {
        let path = entry?.path();
        let is_module = path
            .extension()
            .is_some_and(|extension| MODULE_EXTENSIONS.iter().any(|known| extension == *known));
        if let (true, Some(name)) = (is_module, path.file_name()) {
            files.push((name.to_string_lossy().into_owned(), fs::read(&path)?));
        }
    }
    files.sort();
    Ok(files)
}

fn write(entry: &str, mut files: Vec<File>, folder: &Path) -> anyhow::Result<Vec<Module>> {
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    let target = folder.join(format!("worker-{:016x}", hasher.finish()));
    fs::create_dir_all(&target).with_context(|| format!("making {}", target.display()))?;
    files.sort_by_key(|(name, _)| name != entry);
    let mut modules = Vec::new();
    for (name, content) in files {
        let file: PathBuf = target.join(&name);
        fs::write(&file, content).with_context(|| format!("writing {}", file.display()))?;
        modules.push(Module { name, file });
    }
    Ok(modules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_taken_whole_and_only_when_it_is_finished() -> anyhow::Result<()> {
        let root = std::env::temp_dir().join(format!("conclave-bundle-test-{}", std::process::id()));
        let (source, folder) = (root.join("worker"), root.join("dev"));
        fs::create_dir_all(&source)?;
        for name in ["a.wasm", "entry.js", "notes.txt"] {
            fs::write(source.join(name), name)?;
        }
        assert!(whole(&source)?.is_none());
        fs::write(source.join(FINISHED_MARK), "1")?;
        let files = whole(&source)?.context("a finished build")?;
        let modules = write("entry.js", files.clone(), &folder)?;
        let names: Vec<_> = modules.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(names, ["entry.js", "a.wasm"]);
        assert_eq!(fs::read(&modules[0].file)?, b"entry.js");
        // The same content lies at the same place, other content elsewhere.
        assert_eq!(write("entry.js", files, &folder)?, modules);
        fs::write(source.join("a.wasm"), "other")?;
        let other = write("entry.js", whole(&source)?.context("a finished build")?, &folder)?;
        assert_ne!(other, modules);
        fs::remove_dir_all(&root)?;
        Ok(())
    }
}

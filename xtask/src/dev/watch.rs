//! Noticing that sources changed.
//!
//! By looking at names, times and lengths a few times a second: a few hundred files take about a millisecond, and it
//! works on every file system.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

use crate::{stamp, workspace::Workspace};

/// How often the sources are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Waits until the sources differ from `seen` and have been still for one look, and gives what was seen then.
pub(super) fn wait_for_change(workspace: &Workspace, inputs: &[&str], seen: u64) -> u64 {
    let mut last = seen;
    loop {
        std::thread::sleep(LOOK_EVERY);
        let now = look(workspace, inputs);
        if now == last && now != seen {
            return now;
        }
        last = now;
    }
}

/// A number that changes when a source does.
pub(super) fn look(workspace: &Workspace, inputs: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    // A folder that cannot be read now is looked at again soon.
    for file in stamp::files(workspace, inputs).unwrap_or_default() {
        if let Ok(metadata) = file.metadata() {
            file.hash(&mut hasher);
            metadata.len().hash(&mut hasher);
            metadata.modified().ok().hash(&mut hasher);
        }
    }
    hasher.finish()
}

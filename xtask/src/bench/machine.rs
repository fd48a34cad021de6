//! What figures were measured on. Linux only; elsewhere the words are fewer.

use std::{fs, process::Command, thread};

use crate::{children, workspace::Workspace};

/// How much the machine had to do over the last minute: a number of processes that wanted a core.
pub(super) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// One paragraph: when, on what, and how busy it was.
pub(super) fn described(workspace: &Workspace, load_before: &str) -> String {
    let date = children::output(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"])).unwrap_or_default();
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let information = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = information
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("processor", |(_, model)| model);
    let runtime =
        children::output(Command::new(workspace.path("node_modules/workerd/bin/workerd")).arg("--version"));
    format!(
        "Measured {date} on {cores} cores ({model}), {}, load average {load_before} before and {} after.",
        runtime.unwrap_or_default(),
        load()
    )
}

//! The programs this one started, so that all of them end with it: on Ctrl-C, on SIGTERM, on an error and at the end.
//!
//! Each child leads a process group of its own, which is killed whole. A child that must not outlive even a killed
//! `xtask` goes through [`bound_to_this_process`].

use std::{
    collections::BTreeSet,
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

/// The hidden command by which this program becomes another one that dies with its parent.
pub(crate) const EXEC_COMMAND: &str = "internal-exec";

/// How often a running child is looked at.
const POLL: Duration = Duration::from_millis(20);

/// How often a command that runs long says that it still does.
const STILL_RUNNING: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Running {
    ending: bool,
    groups: BTreeSet<i32>,
    folders: BTreeSet<PathBuf>,
}

static RUNNING: Mutex<Running> = Mutex::new(Running {
    ending: false,
    groups: BTreeSet::new(),
    folders: BTreeSet::new(),
});

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends everything and leaves with `128 + signal` when this process is told to end.
///
/// # Errors
///
/// The signals cannot be watched.
pub(crate) fn end_with_signals() -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("watching for Ctrl-C")?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            end_all();
            std::process::exit(128 + signal);
        }
    })?;
    Ok(())
}

/// Kills every child with its group and removes the folders that were to go at the end. Nothing starts after it.
pub(crate) fn end_all() {
    let mut running = running();
    running.ending = true;
    for group in std::mem::take(&mut running.groups) {
        kill_group(group);
    }
    for folder in std::mem::take(&mut running.folders) {
        remove_folder(&folder);
    }
}

/// Removes `folder` and what is in it when this process ends, unless it is killed outright.
pub(crate) fn remove_at_end(folder: &Path) {
    running().folders.insert(folder.to_owned());
}

fn kill_group(group: i32) {
    if let Some(group) = Pid::from_raw(group) {
        // A group that is gone already is what was wanted.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn remove_folder(folder: &Path) {
    // A process that was killed a moment ago may still be letting go of its files.
    for _ in 0..50 {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => thread::sleep(POLL),
            _ => return,
        }
    }
}

/// A child that is killed, with its group, when it is dropped.
pub(crate) struct Guarded {
    child: Child,
    group: i32,
}

impl Guarded {
    /// The exit status, once there is one.
    ///
    /// # Errors
    ///
    /// The operating system does not say.
    pub(crate) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// The child itself, to take its pipes.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        running().groups.remove(&self.group);
        kill_group(self.group);
        let _ = self.child.wait();
    }
}

/// Starts `command` in a group of its own.
///
/// # Errors
///
/// The program cannot be started.
pub(crate) fn start(command: &mut Command) -> anyhow::Result<Guarded> {
    let mut running = running();
    if running.ending {
        drop(running);
        // The thread that ends everything is about to leave; nothing may start beside it.
        loop {
            thread::park();
        }
    }
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start `{name}`"))?;
    let group = child.id().cast_signed();
    running.groups.insert(group);
    Ok(Guarded { child, group })
}

/// Runs `command` to its end. Its output goes to standard error, so that standard output stays readable by programs.
///
/// # Errors
///
/// It cannot be started or does not succeed; the message begins with `what`.
pub(crate) fn run(what: &str, command: &mut Command) -> anyhow::Result<()> {
    let status = finish(what, command.stdout(io::stderr()))?;
    anyhow::ensure!(
        status.success(),
        "{what} failed ({status}); its own words are above\n  it ran: {}",
        line(command)
    );
    Ok(())
}

/// Runs `command` to its end and gives its status.
///
/// # Errors
///
/// It cannot be started.
pub(crate) fn finish(what: &str, command: &mut Command) -> anyhow::Result<ExitStatus> {
    let mut child = start(command).with_context(|| format!("{what} failed"))?;
    let mut said = Instant::now();
    loop {
        if let Some(status) = child.try_wait().with_context(|| format!("waiting for {what}"))? {
            return Ok(status);
        }
        if said.elapsed() >= STILL_RUNNING {
            said = Instant::now();
            crate::progress::step(format_args!("still at it: {what}"));
        }
        thread::sleep(POLL);
    }
}

/// The standard output of `command`, trimmed, when it succeeds.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// `command` as a person would type it.
fn line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A command that runs `program` and is killed by the kernel when the thread that starts it ends, however it ends.
///
/// Only Linux can do that; elsewhere the child outlives a killed parent.
///
/// # Errors
///
/// This program does not find itself.
pub(crate) fn bound_to_this_process(program: &Path) -> anyhow::Result<Command> {
    let this = std::env::current_exe().context("finding this program")?;
    let mut command = Command::new(this);
    command
        .arg(EXEC_COMMAND)
        .arg(std::process::id().to_string())
        .arg(program);
    Ok(command)
}

/// The other half of [`bound_to_this_process`]: asks the kernel for the signal, then becomes the program.
pub(crate) fn become_program(parent: u32, words: &[std::ffi::OsString]) -> anyhow::Error {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        return anyhow::Error::new(error).context("asking to end with the parent");
    }
    // The parent may have died before the request; then no signal comes.
    if rustix::process::getppid()
        .map(Pid::as_raw_nonzero)
        .map(|pid| pid.get().cast_unsigned())
        != Some(parent)
    {
        return anyhow::anyhow!("the process that asked for this program is gone");
    }
    let Some((program, arguments)) = words.split_first() else {
        return anyhow::anyhow!("no program is named");
    };
    let error = Command::new(program).args(arguments).exec();
    anyhow::Error::new(error).context(format!("cannot start `{}`", program.to_string_lossy()))
}

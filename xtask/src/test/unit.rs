//! The layer that needs neither a runtime nor a browser: formatting, lints, requirements, and the tests of every crate.

use std::{
    io::{BufRead as _, BufReader, Read},
    process::{Command, Stdio},
    thread,
};

use anyhow::Context as _;

use super::counts::Counts;
use crate::{
    children, progress,
    requirements::Report,
    tools::{Tools, WASM_TARGET},
    workspace::Workspace,
};

/// The crates whose code is mostly wasm's: linted for it. What they have of native tests runs with all others.
const WASM_PACKAGES: &[&str] = &["conclave-edge", "conclave-web-client"];

/// Runs the layer. With a filter, only the tests themselves.
pub(super) fn run(workspace: &Workspace, tools: &Tools, filter: Option<&str>) -> anyhow::Result<Counts> {
    let mut counts = Counts::default();
    if filter.is_none() {
        tools.with_checkers(workspace)?;
        counts += check(workspace, "formatting", &["fmt", "--all", "--check"])?;
        let native: Vec<&str> = ["clippy", "--quiet", "--workspace", "--all-targets"]
            .into_iter()
            .chain(WASM_PACKAGES.iter().flat_map(|package| ["--exclude", package]))
            .chain(["--", "-D", "warnings"])
            .collect();
        counts += check(workspace, "lints of the native crates", &native)?;
        let wasm: Vec<&str> = ["clippy", "--quiet", "--target", WASM_TARGET]
            .into_iter()
            .chain(WASM_PACKAGES.iter().flat_map(|package| ["--package", package]))
            .chain(["--", "-D", "warnings"])
            .collect();
        counts += check(workspace, "lints of the wasm crates", &wasm)?;
        counts += types(workspace, tools)?;
        counts += requirements(workspace);
    }
    counts += crates(workspace, filter)?;
    Ok(counts)
}

/// One cargo command that passes or fails as a whole.
fn check(workspace: &Workspace, what: &str, arguments: &[&str]) -> anyhow::Result<Counts> {
    progress::step(what);
    let status = children::finish(what, workspace.cargo().args(arguments).stdout(std::io::stderr()))?;
    if !status.success() {
        progress::step(format_args!("FAILED: {what} (cargo {})", arguments.join(" ")));
    }
    Ok(Counts::one(status.success()))
}

/// The client's TypeScript surface, with the statements about its types.
fn types(workspace: &Workspace, tools: &Tools) -> anyhow::Result<Counts> {
    let config = workspace.path("web-client/tsconfig.types.json");
    if !config.exists() {
        return Ok(Counts::default());
    }
    let what = "types of the client's surface";
    progress::step(what);
    let status = children::finish(
        what,
        tools
            .tsc()?
            .arg("--project")
            .arg(&config)
            .stdout(std::io::stderr()),
    )?;
    if !status.success() {
        progress::step(format_args!("FAILED: {what}"));
    }
    Ok(Counts::one(status.success()))
}

fn requirements(workspace: &Workspace) -> Counts {
    progress::step("requirements");
    let faults =
        Report::make(workspace).map_or_else(|error| vec![format!("{error:#}")], |report| report.faults());
    for fault in &faults {
        progress::step(format_args!("FAILED: requirements: {fault}"));
    }
    Counts::one(faults.is_empty())
}

/// The tests of every native crate: by nextest where it is installed, which runs them side by side.
fn crates(workspace: &Workspace, filter: Option<&str>) -> anyhow::Result<Counts> {
    let has_nextest =
        children::output(Command::new("cargo-nextest").args(["nextest", "--version"])).is_some();
    if !has_nextest {
        progress::step("tests of the crates (cargo test)");
        let mut command = workspace.cargo();
        command
            .args(["test", "--quiet", "--no-fail-fast", "--workspace"])
            .args(filter);
        return counted("cargo test", &mut command, Counts::of_cargo_line);
    }
    progress::step("tests of the crates (cargo nextest)");
    let mut command = workspace.cargo();
    command
        .args([
            "nextest",
            "run",
            "--no-fail-fast",
            "--no-tests=pass",
            "--status-level=fail",
            "--workspace",
        ])
        .args(filter);
    let mut counts = counted("cargo nextest", &mut command, Counts::of_nextest_line)?;
    progress::step("examples in the documentation");
    let mut command = workspace.cargo();
    command
        .args(["test", "--quiet", "--doc", "--no-fail-fast", "--workspace"])
        .args(filter);
    counts += counted("cargo test --doc", &mut command, Counts::of_cargo_line)?;
    Ok(counts)
}

/// Runs a test runner, shows all that it prints, and counts by `read`. One that fails without a count is one failure.
fn counted(what: &str, command: &mut Command, read: fn(&str) -> Option<Counts>) -> anyhow::Result<Counts> {
    let mut child = children::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let output = child.child().stdout.take().context("its output is piped")?;
    let errors = child.child().stderr.take().context("its output is piped")?;
    let other = thread::spawn(move || relay(errors, read));
    let mut counts = relay(output, read);
    counts += other.join().unwrap_or_default();
    let status = child
        .child()
        .wait()
        .with_context(|| format!("waiting for {what}"))?;
    Ok(if status.success() {
        counts
    } else {
        counts.at_least_one_failure()
    })
}

fn relay(stream: impl Read, read: fn(&str) -> Option<Counts>) -> Counts {
    let mut counts = Counts::default();
    for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        eprintln!("{line}");
        counts += read(&without_colour(&line)).unwrap_or_default();
    }
    counts
}

/// `line` without the sequences that colour it.
fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            letters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(letter);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_left_out() {
        assert_eq!(
            without_colour("\u{1b}[32;1m     Summary\u{1b}[0m [ 1s]"),
            "     Summary [ 1s]"
        );
    }

    #[test]
    fn a_runner_that_fails_without_a_count_is_a_failure() -> anyhow::Result<()> {
        let counts = counted("false", &mut Command::new("false"), Counts::of_cargo_line)?;
        assert_eq!(
            counts,
            Counts {
                passed: 0,
                failed: 1,
                skipped: 0
            }
        );
        Ok(())
    }
}

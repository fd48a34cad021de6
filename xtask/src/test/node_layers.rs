//! The layers that Node's test runner runs: tests/platform, tests/clients and tests/browser.
//!
//! The tests start what they need themselves, by this program: its path is in the variable `CONCLAVE_XTASK`.

use std::{env, fs, path::PathBuf};

use anyhow::Context as _;

use super::counts::Counts;
use crate::{children, progress, tools::Tools, workspace::Workspace};

/// Names this program to the tests, which start deployments with it.
const XTASK_VARIABLE: &str = "CONCLAVE_XTASK";

/// How long one test may take before it counts as hung, in milliseconds.
const TEST_TIMEOUT_MS: u32 = 300_000;

/// What test files are called.
const TEST_SUFFIX: &str = ".test.mjs";

/// Runs the test files of `tests/FOLDER`. `variables` name to them the programs they need.
pub(super) fn run(
    workspace: &Workspace,
    tools: &Tools,
    folder: &str,
    filter: Option<&str>,
    variables: Vec<(&str, PathBuf)>,
) -> anyhow::Result<Counts> {
    let mut files: Vec<PathBuf> = fs::read_dir(workspace.path("tests").join(folder))
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    files.retain(|file| file.to_string_lossy().ends_with(TEST_SUFFIX));
    files.sort();
    if files.is_empty() {
        progress::step(format_args!("tests/{folder} holds no *{TEST_SUFFIX}"));
        return Ok(Counts::default());
    }
    progress::step(format_args!("tests/{folder}"));
    let reports = workspace.target().join("test-reports");
    fs::create_dir_all(&reports)?;
    let report = reports.join(format!("{folder}.tap"));
    // A report of an earlier run must not be taken for this one's.
    let _ = fs::remove_file(&report);

    let mut command = tools.node().command();
    command
        .current_dir(workspace.root())
        .env(
            XTASK_VARIABLE,
            env::current_exe().context("finding this program")?,
        )
        .args([
            "--test",
            "--test-concurrency=1",
            &format!("--test-timeout={TEST_TIMEOUT_MS}"),
        ])
        .args([
            "--test-reporter=spec",
            "--test-reporter-destination=stdout",
            "--test-reporter=tap",
        ])
        .arg(format!("--test-reporter-destination={}", report.display()));
    if let Some(filter) = filter {
        command.arg(format!("--test-name-pattern={}", literal_pattern(filter)));
    }
    command.envs(variables);
    let what = format!("the tests of tests/{folder}");
    let status = children::finish(&what, command.args(&files).stdout(std::io::stderr()))?;
    let counts = fs::read_to_string(&report)
        .unwrap_or_default()
        .lines()
        .filter_map(Counts::of_tap_line)
        .sum::<Counts>();
    Ok(if status.success() {
        counts
    } else {
        counts.at_least_one_failure()
    })
}

/// A pattern that matches exactly `text`.
fn literal_pattern(text: &str) -> String {
    text.chars()
        .flat_map(|letter| {
            let escape = (!letter.is_alphanumeric() && letter != ' ').then_some('\\');
            escape.into_iter().chain(std::iter::once(letter))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_taken_literally() {
        assert_eq!(literal_pattern("a.b (c) d"), "a\\.b \\(c\\) d");
    }
}

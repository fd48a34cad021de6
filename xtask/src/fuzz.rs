//! `cargo xtask fuzz`: looks for bytes that break a decoder, with libFuzzer.
//!
//! The decoders are safe Rust, so no sanitizer is needed, and coverage comes from flags of the stable compiler: neither a
//! nightly toolchain nor cargo-fuzz is. What is found is kept in target/fuzz; `--keep` takes the inputs that reach
//! something new into the committed corpus, which the tests of `conclave-fuzz` replay.

use std::{env, fs, path::PathBuf, process::Command};

use anyhow::{Context as _, ensure};

use crate::{children, cli::FuzzArguments, progress, workspace::Workspace};

/// What makes the compiler count which branches are taken and compare what is compared, for libFuzzer to see.
const COVERAGE_FLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// The longest input that is tried, in bytes.
const INPUT_BYTES_MAX: u32 = 8192;

/// How long one input may take, in seconds.
const INPUT_SECONDS_MAX: u32 = 10;

/// How much memory one target may take, in MiB.
const MEMORY_MIB_MAX: u32 = 1024;

/// Whether every target that was asked for held.
///
/// # Errors
///
/// The targets cannot be built or started, or there is none of that name.
pub(crate) fn run(workspace: &Workspace, arguments: &FuzzArguments) -> anyhow::Result<bool> {
    let all = targets(workspace)?;
    for asked in &arguments.targets {
        ensure!(
            all.contains(asked),
            "there is no target {asked}; there are {}",
            all.join(", ")
        );
    }
    let asked = if arguments.targets.is_empty() {
        &all
    } else {
        &arguments.targets
    };
    let binaries = build(workspace)?;
    let folder = workspace.target().join("fuzz");
    let mut all_held = true;
    for name in asked {
        let found = folder.join("corpus").join(name);
        let kept = workspace.path("fuzz/corpus").join(name);
        let artifacts = folder.join("artifacts").join(name);
        for folder in [&found, &kept, &artifacts] {
            fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        }
        let mut command = Command::new(binaries.join(name));
        command
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .arg(format!("-max_len={INPUT_BYTES_MAX}"))
            .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
            .arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"));
        if let Some(file) = &arguments.replay {
            command.arg(file);
        } else if arguments.keep {
            command.arg("-merge=1").args([&kept, &found]);
        } else {
            progress::step(format_args!("{name}, {} s", arguments.seconds));
            command
                .args(["-print_final_stats=1", "-verbosity=0"])
                .arg(format!("-max_total_time={}", arguments.seconds))
                .args([&found, &kept]);
        }
        if !children::finish(name, command.current_dir(workspace.root()))?.success() {
            all_held = false;
            progress::step(format_args!(
                "FAILED: {name}. The input is in {}; `cargo xtask fuzz {name} --replay FILE` runs it again",
                artifacts.display()
            ));
        }
    }
    Ok(all_held)
}

/// The names of the targets: of the files in fuzz/fuzz_targets.
fn targets(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let folder = workspace.path("fuzz/fuzz_targets");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Builds all targets and returns the folder that holds them.
fn build(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    progress::step("building the fuzz targets");
    // Named, so that the flags do not reach build scripts and macros, which run here without libFuzzer.
    let host = host()?;
    let target = workspace.target().join("fuzz/build");
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(workspace.root())
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_ENCODED_RUSTFLAGS", COVERAGE_FLAGS.join("\u{1f}"))
        .args([
            "build",
            "--quiet",
            "--release",
            "--manifest-path",
            "fuzz/Cargo.toml",
        ])
        .args(["--target", &host]);
    children::run("cargo build of the fuzz targets", &mut command)
        .context("libFuzzer is compiled from C++: a C++ compiler is needed")?;
    Ok(target.join(host).join("release"))
}

/// The platform that rustc compiles for unless told otherwise.
fn host() -> anyhow::Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    children::output(Command::new(rustc).arg("-vV"))
        .as_deref()
        .and_then(host_of)
        .context("rustc does not say what platform it compiles for")
}

fn host_of(version: &str) -> Option<String> {
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_platform_is_read_from_what_rustc_says_of_itself() {
        let version =
            "rustc 1.95.0 (abc 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\nrelease: 1.95.0\n";
        assert_eq!(host_of(version).as_deref(), Some("x86_64-unknown-linux-gnu"));
        assert_eq!(host_of("rustc 1.95.0"), None);
    }

    #[test]
    fn every_target_has_a_corpus() -> anyhow::Result<()> {
        let workspace = Workspace::here();
        for name in targets(&workspace)? {
            assert!(workspace.path("fuzz/corpus").join(&name).is_dir(), "{name}");
        }
        Ok(())
    }
}

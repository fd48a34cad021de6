//! `cargo xtask bench`: figures beside the floor they are measured against, family by family, and docs/benchmarks.md.
//!
//! - [`figure`]: what a family reports;
//! - [`machine`]: what it was measured on;
//! - [`page`]: the tables of docs/benchmarks.md.
//!
//! A family is a program that writes figures to its standard output, one JSON object a line. Those that need a
//! deployment are scripts in `bench/`, which start what they measure by this program, as the tests do; `conversation` is
//! the bench of its crate, and `verification` a script that runs a WebAssembly module.

mod figure;
mod machine;
mod page;

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::Context as _;
use figure::Figure;

use crate::{
    children,
    cli::{BenchArguments, Family, Part},
    parts::{self, Options},
    progress,
    test::chromium::{self, CHROMIUM_VARIABLE},
    tools::{Tools, WASM_TARGET},
    workspace::Workspace,
};

/// Names this program to the scripts, which start deployments with it.
const XTASK_VARIABLE: &str = "CONCLAVE_XTASK";

/// Names the module of `conclave-figures` to its script.
const FIGURES_VARIABLE: &str = "CONCLAVE_FIGURES";

/// The page the figures are written to.
const PAGE: &str = "docs/benchmarks.md";

impl Family {
    /// The name of its script, and of its table.
    fn name(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Query => "query",
            Self::Growth => "growth",
            Self::Streams => "streams",
            Self::Verification => "verification",
            Self::Conversation => "conversation",
            Self::Browser => "browser",
        }
    }

    /// The parts it measures.
    fn parts(self) -> &'static [Part] {
        match self {
            Self::Conversation | Self::Verification => &[],
            Self::Publish | Self::Query | Self::Growth | Self::Streams => &[Part::Worker],
            Self::Browser => &[Part::Worker, Part::Client, Part::Site],
        }
    }
}

/// Measures the families asked for. Whether every goal was met.
///
/// # Errors
///
/// A build, a family or the page fails.
pub(crate) fn run(workspace: &Workspace, arguments: &BenchArguments) -> anyhow::Result<bool> {
    let tools = Tools::ready(workspace)?;
    for family in &arguments.families {
        if !family.parts().is_empty() {
            parts::build(workspace, &tools, family.parts(), Options::default())?;
        }
    }
    let mut are_met = true;
    for family in &arguments.families {
        let (name, before) = (family.name(), machine::load());
        let figures = measure(workspace, &tools, *family, arguments.quick)
            .with_context(|| format!("measuring {name}"))?;
        are_met &= figures.iter().all(Figure::is_good_enough);
        println!("\n{}", page::table(&figures));
        if arguments.quick {
            continue;
        }
        let path = workspace.path(PAGE);
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let section = format!(
            "{}\n\n{}",
            machine::described(workspace, &before),
            page::table(&figures)
        );
        let written = page::replace(&text, name, &section)?;
        std::fs::write(&path, written).with_context(|| format!("writing {}", path.display()))?;
        progress::step(format_args!("{name} is written to {PAGE}"));
    }
    Ok(are_met)
}

fn measure(workspace: &Workspace, tools: &Tools, family: Family, quick: bool) -> anyhow::Result<Vec<Figure>> {
    let name = family.name();
    progress::step(format_args!("bench {name}"));
    let mut command = match family {
        Family::Conversation => program(workspace, name),
        Family::Verification => {
            let mut command = script(workspace, tools, name)?;
            command.env(FIGURES_VARIABLE, build_figures(workspace)?);
            command
        }
        Family::Browser => {
            let mut command = script(workspace, tools, name)?;
            command
                .env(FIGURES_VARIABLE, build_figures(workspace)?)
                .env(CHROMIUM_VARIABLE, chromium::find_or_install()?);
            command
        }
        Family::Publish | Family::Query | Family::Growth | Family::Streams => script(workspace, tools, name)?,
    };
    command.args(quick.then_some("--quick")).stdout(Stdio::piped());
    let mut running = children::start(&mut command)?;
    let output = running
        .child()
        .stdout
        .take()
        .context("the script's output cannot be read")?;
    let mut figures = Vec::new();
    for line in BufReader::new(output).lines() {
        let figure = Figure::read(&line?)?;
        progress::step(&figure);
        figures.push(figure);
    }
    let status = running.child().wait()?;
    anyhow::ensure!(status.success(), "the script failed ({status})");
    Ok(figures)
}

/// A family that measures a deployment: `bench/<name>.mjs`.
fn script(workspace: &Workspace, tools: &Tools, name: &str) -> anyhow::Result<Command> {
    let mut command = tools.node().command();
    command
        .current_dir(workspace.root())
        .env(
            XTASK_VARIABLE,
            env::current_exe().context("finding this program")?,
        )
        .arg(workspace.path("bench").join(format!("{name}.mjs")));
    Ok(command)
}

/// A family that is a native program: the bench `<name>` of `crates/<name>`, compiled as it is shipped.
fn program(workspace: &Workspace, name: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(workspace.root())
        .env("CARGO_TARGET_DIR", workspace.target())
        .args(["bench", "--quiet", "--package"])
        .arg(format!("conclave-{name}"))
        .args(["--bench", name, "--"]);
    command
}

/// Compiles `conclave-figures` as the Worker is compiled, and says where the module is.
fn build_figures(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(workspace.root())
        .env("CARGO_TARGET_DIR", workspace.target())
        .args([
            "build",
            "--quiet",
            "--release",
            "--lib",
            "--package",
            "conclave-figures",
        ])
        .args(["--target", WASM_TARGET]);
    children::run("cargo build of conclave-figures", &mut command)?;
    Ok(workspace
        .target()
        .join(WASM_TARGET)
        .join("release/conclave_figures.wasm"))
}

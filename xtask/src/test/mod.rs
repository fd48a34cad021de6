//! `cargo xtask test`: the layers of tests, in order, and one line that sums them up.
//!
//! - [`unit`]: what needs no runtime; [`node_layers`]: what Node's runner runs; [`chromium`]: the browser;
//! - [`counts`]: what the runners say of their outcome.

pub(crate) mod chromium;
mod counts;
mod node_layers;
mod unit;

use std::{io::Write as _, path::PathBuf};

use self::counts::Counts;
use crate::{
    children,
    cli::{Layer, Part, TestArguments},
    parts::{self, Options},
    progress,
    tools::{self, Tools},
    workspace::Workspace,
};

/// Names to the tests a Python that has grpcio.
const PYTHON_VARIABLE: &str = "CONCLAVE_PYTHON";

/// Names to the tests the program that calls with tonic.
const TONIC_VARIABLE: &str = "CONCLAVE_TONIC_CALLER";

/// The package and the program that calls with tonic.
const TONIC_PACKAGE: &str = "conclave-tonic-caller";

/// All layers, in the order they run: what fails soonest comes first.
const ALL: &[Layer] = &[Layer::Unit, Layer::Platform, Layer::Clients, Layer::Browser];

/// Runs the layers asked for, each to its end, and says whether all passed.
///
/// # Errors
///
/// A layer cannot be run at all.
pub(crate) fn run(workspace: &Workspace, arguments: &TestArguments) -> anyhow::Result<bool> {
    let tools = Tools::ready(workspace)?;
    let filter = arguments.filter.as_deref();
    let asked: &[Layer] = if arguments.layers.is_empty() {
        ALL
    } else {
        &arguments.layers
    };
    let mut summary = Vec::new();
    let mut is_built = false;
    for layer in ALL.iter().copied().filter(|layer| asked.contains(layer)) {
        let counts = if layer == Layer::Unit {
            unit::run(workspace, &tools, filter)
        } else {
            prepare(workspace, &tools, &mut is_built)
                .and_then(|()| run_in_node(workspace, &tools, layer, filter))
        };
        let counts = counts.unwrap_or_else(|error| {
            progress::failure(&error);
            Counts::default().at_least_one_failure()
        });
        progress::step(format_args!("{}: {counts}", name(layer)));
        summary.push((layer, counts));
    }
    let total: Counts = summary.iter().map(|(_, counts)| *counts).sum();
    let mut output = std::io::stdout().lock();
    for (layer, counts) in &summary {
        writeln!(output, "{}: {counts}", name(*layer))?;
    }
    writeln!(output, "{total}")?;
    output.flush()?;
    if total.passed + total.failed == 0 {
        progress::step("no test ran");
    }
    Ok(total.failed == 0 && total.passed > 0)
}

/// Builds the client that tonic is made into for the tests.
fn build_tonic_caller(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    progress::step("building the client that tonic is made into");
    let what = "cargo build of the tonic client";
    children::run(
        what,
        workspace
            .cargo()
            .args(["build", "--quiet", "--package", TONIC_PACKAGE]),
    )?;
    Ok(workspace.target().join("debug").join(TONIC_PACKAGE))
}

fn name(layer: Layer) -> &'static str {
    match layer {
        Layer::Unit => "unit",
        Layer::Platform => "platform",
        Layer::Clients => "clients",
        Layer::Browser => "browser",
    }
}

/// Builds all parts, and the worker with its test-only requests too, once for all layers.
fn prepare(workspace: &Workspace, tools: &Tools, is_built: &mut bool) -> anyhow::Result<()> {
    if !*is_built {
        parts::build(workspace, tools, &[], Options::default())?;
        parts::build_test_worker(workspace)?;
        *is_built = true;
    }
    Ok(())
}

fn run_in_node(
    workspace: &Workspace,
    tools: &Tools,
    layer: Layer,
    filter: Option<&str>,
) -> anyhow::Result<Counts> {
    let variables = match layer {
        Layer::Browser => {
            parts::build(workspace, tools, &[Part::StoreSuite], Options::default())?;
            vec![(chromium::CHROMIUM_VARIABLE, chromium::find_or_install()?)]
        }
        Layer::Clients => vec![
            (PYTHON_VARIABLE, tools::python::with_packages(workspace)?),
            (TONIC_VARIABLE, build_tonic_caller(workspace)?),
        ],
        Layer::Unit | Layer::Platform => Vec::new(),
    };
    node_layers::run(workspace, tools, name(layer), filter, variables)
}

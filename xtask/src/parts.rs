//! The three parts that are built, and the order between them: the site bundles the client.

use crate::{
    build::{self, WorkerArtifacts, WorkerOptions},
    cli::Part,
    client_build, progress, site_build,
    tools::Tools,
    workspace::Workspace,
};

/// How parts are built.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// With test-only features.
    pub(crate) test_build: bool,
    /// Unoptimised.
    pub(crate) debug: bool,
}

/// Builds `parts`; all of them when none is named.
///
/// # Errors
///
/// A step fails; the message says which.
pub(crate) fn build(
    workspace: &Workspace,
    tools: &Tools,
    parts: &[Part],
    options: Options,
) -> anyhow::Result<()> {
    let wanted = |part| parts.is_empty() || parts.contains(&part);
    if wanted(Part::Worker) {
        worker(workspace, options)?;
    }
    if wanted(Part::Client) || wanted(Part::Site) {
        client_build::client(workspace, tools, options.debug)?;
    }
    if wanted(Part::Site) {
        site_build::site(workspace, tools)?;
    }
    progress::step("built");
    Ok(())
}

/// Builds the worker.
///
/// # Errors
///
/// A step fails; the message says which.
pub(crate) fn worker(workspace: &Workspace, options: Options) -> anyhow::Result<WorkerArtifacts> {
    build::worker(
        workspace.root(),
        WorkerOptions {
            test_build: options.test_build,
            debug: options.debug,
        },
    )
}

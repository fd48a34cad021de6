//! The parts that are built, and the order between them: the site bundles the client, and its reference if there is one.

use std::fs::{self, File, TryLockError};

use anyhow::Context as _;

use crate::{
    build::{self, WorkerArtifacts, WorkerOptions},
    cli::Part,
    client_build, progress, reference_build, site_build, store_suite_build,
    tools::Tools,
    workspace::Workspace,
};

/// The descriptor set of the wire types, in the target folder.
const DESCRIPTORS: &str = "descriptors.binpb";

/// How parts are built.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// With test-only features.
    pub(crate) test_build: bool,
    /// Unoptimised.
    pub(crate) debug: bool,
}

/// Builds `parts`; all that are served when none is named.
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
    let _turn = take_turn(workspace)?;
    write_descriptors(workspace)?;
    let wanted = |part| parts.is_empty() || parts.contains(&part);
    if wanted(Part::Worker) {
        worker(workspace, options)?;
    }
    if wanted(Part::Client) || wanted(Part::Site) {
        client_build::client(workspace, tools, options.debug)?;
    }
    if wanted(Part::Reference) {
        reference_build::reference(workspace, tools)?;
    }
    if wanted(Part::Site) {
        site_build::site(workspace, tools)?;
    }
    if parts.contains(&Part::StoreSuite) {
        store_suite_build::store_suite(workspace)?;
    }
    progress::step("built");
    Ok(())
}

/// Writes the descriptor set of the wire types, from which the tests' clients make their types at run time.
fn write_descriptors(workspace: &Workspace) -> anyhow::Result<()> {
    let path = workspace.target().join(DESCRIPTORS);
    fs::write(&path, conclave_proto::FILE_DESCRIPTOR_SET)
        .with_context(|| format!("writing {}", path.display()))
}

/// Builds the worker for tests, beside the real one.
///
/// # Errors
///
/// A step fails; the message says which.
pub(crate) fn build_test_worker(workspace: &Workspace) -> anyhow::Result<()> {
    let _turn = take_turn(workspace)?;
    worker(
        workspace,
        Options {
            test_build: true,
            debug: false,
        },
    )?;
    Ok(())
}

/// Whether a process builds in this checkout at this moment.
///
/// # Errors
///
/// The lock cannot be opened.
pub(crate) fn is_building(workspace: &Workspace) -> anyhow::Result<bool> {
    Ok(matches!(
        lock_file(workspace)?.try_lock_shared(),
        Err(TryLockError::WouldBlock)
    ))
}

fn lock_file(workspace: &Workspace) -> anyhow::Result<File> {
    let folder = workspace.target();
    fs::create_dir_all(&folder)?;
    let path = folder.join("build.lock");
    File::create(&path).with_context(|| format!("making {}", path.display()))
}

/// Waits until no other process builds in this checkout: they would write the same files.
fn take_turn(workspace: &Workspace) -> anyhow::Result<File> {
    let lock = lock_file(workspace)?;
    if let Err(TryLockError::WouldBlock) = lock.try_lock() {
        progress::step("waiting for another build in this checkout");
        lock.lock().context("waiting for another build")?;
    }
    Ok(lock)
}

fn worker(workspace: &Workspace, options: Options) -> anyhow::Result<WorkerArtifacts> {
    build::worker(
        workspace,
        WorkerOptions {
            test_build: options.test_build,
            debug: options.debug,
        },
    )
}

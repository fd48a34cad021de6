//! The Worker and its objects, as the two files every Workers runtime loads.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use super::{
    glue,
    wasm::{self, Bindings, WasmCrate},
};
use crate::{progress, stamp::Stamp, workspace::Workspace};

/// The cargo feature of `conclave-edge` that adds requests which fail on purpose.
const TEST_FEATURE: &str = "test-panics";

/// The hand-written JavaScript, below `edge/js`. The first is the entry.
const SCRIPTS: [&str; 7] = [
    "entry.js",
    "credentials.js",
    "instance.js",
    "object.js",
    "http.js",
    "platform.js",
    "sql.js",
];

/// How the worker is built.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerOptions {
    /// With the requests that panic on purpose. Written beside the real build, so that it is never deployed.
    pub(crate) test_build: bool,
    /// Unoptimised: quicker to build, larger and slower to run.
    pub(crate) debug: bool,
}

/// A built worker.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "read by the commands that serve it")]
pub(crate) struct WorkerArtifacts {
    /// The folder that holds exactly the worker: `target/worker`, or `target/worker-test` for the test build.
    pub(crate) directory: PathBuf,
    /// The ES module that exports the fetch handler and the object classes. It imports `./index_bg.wasm`.
    pub(crate) entry: PathBuf,
    /// The WebAssembly module.
    pub(crate) wasm: PathBuf,
}

impl WorkerArtifacts {
    fn below(directory: PathBuf) -> Self {
        Self {
            entry: directory.join("entry.js"),
            wasm: directory.join("index_bg.wasm"),
            directory,
        }
    }
}

/// Builds the worker, or leaves it as it is if nothing it is made from changed.
///
/// # Errors
///
/// When a step fails; the message says which, and the step's own output came before it.
pub(crate) fn worker(workspace: &Workspace, options: WorkerOptions) -> anyhow::Result<WorkerArtifacts> {
    let root = workspace.root();
    let folder = if options.test_build {
        "worker-test"
    } else {
        "worker"
    };
    let artifacts = WorkerArtifacts::below(root.join("target").join(folder));
    let features: &[&str] = if options.test_build { &[TEST_FEATURE] } else { &[] };
    let compiled = WasmCrate {
        package: "conclave-edge",
        features,
        profile: "release",
        debug: options.debug,
    }
    .compile(root)?;

    let module = compiled.to_string_lossy();
    let stamp = Stamp::new(
        workspace,
        folder,
        &[&module, "package-lock.json", "edge/js", "xtask/src/build"],
        &[if options.debug { "debug" } else { "release" }],
    )?;
    if stamp
        .inside(&artifacts.directory)
        .holds(&[&artifacts.entry, &artifacts.wasm])
    {
        return Ok(artifacts);
    }

    let scripts = root.join("edge").join("js");
    let parts = root.join("target").join("worker-parts");
    assemble(&compiled, &scripts, &parts)?;
    // A build takes the last one's place only when it is whole: a runtime may be serving from there.
    let next = WorkerArtifacts::below(root.join("target").join("worker-next"));
    empty(&next.directory)?;
    bundle(root, &parts.join(SCRIPTS[0]), &next.entry, options.debug)?;
    let module = parts.join("index_bg.wasm");
    if options.debug {
        fs::copy(&module, &next.wasm).context("the module cannot be copied")?;
    } else {
        wasm::optimise(root, &module, &next.wasm)?;
    }
    stamp.inside(&next.directory).keep()?;
    empty(&artifacts.directory)?;
    fs::rename(&next.directory, &artifacts.directory).context("the build cannot be put in its place")?;
    let kib = |path: &Path| fs::metadata(path).map_or(0, |file| file.len().div_ceil(1024));
    progress::step(format_args!(
        "worker built: {} KiB of WebAssembly, {} KiB of JavaScript",
        kib(&artifacts.wasm),
        kib(&artifacts.entry)
    ));
    Ok(artifacts)
}

/// Puts the glue, watched, and the hand-written JavaScript side by side in `parts`.
fn assemble(compiled: &Path, scripts: &Path, parts: &Path) -> anyhow::Result<()> {
    Bindings {
        name: "index",
        replaceable_instance: true,
    }
    .write(compiled, parts)?;
    let glue_path = parts.join("index.js");
    let plain = fs::read_to_string(&glue_path).context("the glue cannot be read")?;
    fs::write(&glue_path, glue::watch_instance(&plain, "./instance.js")?)
        .context("the glue cannot be written")?;
    for script in SCRIPTS {
        fs::copy(scripts.join(script), parts.join(script))
            .with_context(|| format!("edge/js/{script} cannot be copied"))?;
    }
    Ok(())
}

/// Makes `directory` an empty folder.
fn empty(directory: &Path) -> anyhow::Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory)
            .with_context(|| format!("{} cannot be emptied", directory.display()))?;
    }
    fs::create_dir_all(directory).with_context(|| format!("{} cannot be made", directory.display()))
}

/// Joins the entry, the glue and what they import into one module. The WebAssembly stays a file of its own, because a
/// Worker may only compile what was uploaded.
fn bundle(root: &Path, entry: &Path, output: &Path, readable: bool) -> anyhow::Result<()> {
    let mut outfile = std::ffi::OsString::from("--outfile=");
    outfile.push(output);
    let mut arguments = vec![
        entry.as_os_str(),
        "--bundle".as_ref(),
        "--format=esm".as_ref(),
        "--target=esnext".as_ref(),
        "--external:./index_bg.wasm".as_ref(),
        "--external:cloudflare:*".as_ref(),
        "--log-level=warning".as_ref(),
        outfile.as_os_str(),
    ];
    if !readable {
        arguments.push("--minify-syntax".as_ref());
        arguments.push("--minify-whitespace".as_ref());
    }
    wasm::npm_tool(root, "esbuild", &arguments)
}

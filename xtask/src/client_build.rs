//! The npm package: the browser library as wasm with its glue, the TypeScript surface compiled beside it, packed.
//!
//! `target/client` is the package as it is packed, `target/npm/*.tgz` what `npm install` takes.

use std::{fs, path::Path};

use anyhow::Context as _;

use crate::{
    build::{self, WasmCrate},
    children, progress,
    stamp::Stamp,
    tools::Tools,
    workspace::Workspace,
};

/// The package's folder below the target folder.
pub(crate) const PACKAGE_FOLDER: &str = "client";

/// Where packed packages go, below the target folder.
const PACKED_FOLDER: &str = "npm";

/// The glue's name: `NAME.js` and `NAME_bg.wasm`. The TypeScript sources import it by that name.
const GLUE: &str = "conclave_web_client";

/// Everything the package is made from.
const INPUTS: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "package-lock.json",
    "proto",
    "crates",
    "web-client",
    "LICENSE",
    "xtask/src/client_build.rs",
    "xtask/src/build/wasm.rs",
];

/// Builds the package, or leaves it as it is if nothing it is made from changed.
///
/// # Errors
///
/// A step fails; the message says which.
pub(crate) fn client(workspace: &Workspace, tools: &Tools, debug: bool) -> anyhow::Result<()> {
    let package = workspace.target().join(PACKAGE_FOLDER);
    let packed = workspace.target().join(PACKED_FOLDER);
    let stamp = Stamp::new(
        workspace,
        "client",
        INPUTS,
        &[if debug { "debug" } else { "release" }],
    )?;
    if stamp.holds(&[&package, &packed]) {
        return Ok(());
    }
    stamp.forget()?;
    let dist = package.join("dist");
    empty(&package)?;
    fs::create_dir_all(&dist)?;
    wasm(workspace, &dist, debug)?;

    progress::step("compiling the client's TypeScript");
    children::run(
        "the TypeScript compiler",
        tools
            .tsc()?
            .arg("--project")
            .arg(workspace.path("web-client/tsconfig.json"))
            .arg("--outDir")
            .arg(&dist)
            .current_dir(workspace.root()),
    )?;
    if !debug {
        minify(workspace, &dist)?;
    }
    // A hand-written declaration is an input of the compiler, which does not copy it to its output.
    let declaration = format!("{GLUE}.d.ts");
    let declared = workspace.path("web-client/ts").join(&declaration);
    if declared.exists() {
        fs::copy(&declared, dist.join(&declaration))?;
    }
    for (from, name) in [
        ("web-client/package.json", "package.json"),
        ("web-client/README.md", "README.md"),
        ("LICENSE", "LICENSE"),
    ] {
        let from = workspace.path(from);
        if from.exists() {
            fs::copy(&from, package.join(name)).with_context(|| format!("copying {}", from.display()))?;
        }
    }

    empty(&packed)?;
    children::run(
        "npm pack",
        std::process::Command::new("npm")
            .args(["pack", "--silent", "--pack-destination"])
            .arg(&packed)
            .arg(&package)
            .current_dir(workspace.root()),
    )?;
    let size = fs::metadata(dist.join(format!("{GLUE}_bg.wasm"))).map_or(0, |file| file.len().div_ceil(1024));
    progress::step(format_args!(
        "client built and packed in target/{PACKED_FOLDER}: {size} KiB of WebAssembly"
    ));
    stamp.keep()
}

/// Writes every script in `folder` as short as it goes, each still a module of its own: what imports the package bundles it.
fn minify(workspace: &Workspace, folder: &Path) -> anyhow::Result<()> {
    let mut outdir = std::ffi::OsString::from("--outdir=");
    outdir.push(folder);
    let mut arguments = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "js") {
            arguments.push(path.into_os_string());
        }
    }
    arguments.extend(
        [
            "--minify",
            "--format=esm",
            "--target=es2022",
            "--allow-overwrite",
            "--log-level=warning",
        ]
        .map(Into::into),
    );
    arguments.push(outdir);
    let arguments: Vec<&std::ffi::OsStr> = arguments.iter().map(std::ffi::OsString::as_os_str).collect();
    build::npm_tool(workspace.root(), "esbuild", &arguments)
}

/// Compiles the library and writes its glue and its module into `dist`.
fn wasm(workspace: &Workspace, dist: &Path, debug: bool) -> anyhow::Result<()> {
    let compiled = WasmCrate {
        package: "conclave-web-client",
        features: &[],
        profile: "client",
        debug,
    }
    .compile(workspace.root())?;
    let glue = workspace.target().join("client-parts");
    empty(&glue)?;
    wasm_bindgen_cli_support::Bindgen::new()
        .input_path(&compiled)
        .out_name(GLUE)
        .web(true)?
        .typescript(false)
        .generate(&glue)
        .context("the client's glue cannot be written")?;
    let (script, module) = (format!("{GLUE}.js"), format!("{GLUE}_bg.wasm"));
    fs::copy(glue.join(&script), dist.join(&script)).context("copying the client's glue")?;
    if debug {
        fs::copy(glue.join(&module), dist.join(&module)).context("copying the client's module")?;
        return Ok(());
    }
    build::optimise(workspace.root(), &glue.join(&module), &dist.join(&module))
}

/// Makes `folder` an empty one.
///
/// # Errors
///
/// It cannot be removed or made.
pub(crate) fn empty(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("{} cannot be emptied", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))
}

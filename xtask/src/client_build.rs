//! The npm package: the browser library as wasm with its glue, the TypeScript surface compiled beside it, packed.
//!
//! `target/client-package` is the package as it is packed, `target/npm/*.tgz` what `npm install` takes.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use crate::{
    build::{self, Bindings, WasmCrate},
    children, progress,
    stamp::Stamp,
    tools::Tools,
    workspace::Workspace,
};

/// The package's folder below the target folder. Not `client`: cargo keeps what it builds for the host under the name of
/// the profile, and that must not be emptied.
pub(crate) const PACKAGE_FOLDER: &str = "client-package";

/// Where packed packages go, below the target folder.
const PACKED_FOLDER: &str = "npm";

/// The glue's name: `NAME.js` and `NAME_bg.wasm`. The TypeScript sources import it by that name.
const GLUE: &str = "conclave_web_client";

/// Where the optimised module and its glue are kept, below the target folder: they take minutes to make, so that a
/// change of the TypeScript must not make them again.
const MODULE_FOLDER: &str = "client-module";

/// What the module and its glue are made from, beside what cargo compiled.
const MODULE_INPUTS: &[&str] = &[
    "node_modules/binaryen/package.json",
    "xtask/src/client_build.rs",
    "xtask/src/build/wasm.rs",
];

/// What the package is made from, the module's stamp among it.
const PACKAGE_INPUTS: &[&str] = &[
    "target/stamps/client-module",
    "package-lock.json",
    "web-client/ts",
    "web-client/tsconfig.json",
    "web-client/package.json",
    "web-client/README.md",
    "LICENSE",
    "xtask/src/client_build.rs",
];

/// Builds the package, or leaves it as it is if nothing it is made from changed.
///
/// # Errors
///
/// A step fails; the message says which.
pub(crate) fn client(workspace: &Workspace, tools: &Tools, debug: bool) -> anyhow::Result<()> {
    let package = workspace.target().join(PACKAGE_FOLDER);
    let packed = workspace.target().join(PACKED_FOLDER);
    let module = module(workspace, debug)?;
    let stamp = Stamp::new(workspace, "client", PACKAGE_INPUTS, &[kind(debug)])?;
    if stamp.holds(&[&package, &packed]) {
        return Ok(());
    }
    stamp.forget()?;
    let dist = package.join("dist");
    empty(&package)?;
    fs::create_dir_all(&dist)?;
    for name in module_files() {
        fs::copy(module.join(&name), dist.join(&name))
            .with_context(|| format!("copying the client's {name}"))?;
    }

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

/// Writes every script below `folder` as short as it goes, each still a module of its own: what imports the package
/// bundles it.
fn minify(workspace: &Workspace, folder: &Path) -> anyhow::Result<()> {
    let mut arguments = Vec::new();
    scripts(folder, &mut arguments).with_context(|| format!("reading {}", folder.display()))?;
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
    for name in ["--outdir=", "--outbase="] {
        let mut argument = OsString::from(name);
        argument.push(folder);
        arguments.push(argument);
    }
    let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
    build::npm_tool(workspace.root(), "esbuild", &arguments)
}

/// The scripts in `folder` and in its folders.
fn scripts(folder: &Path, found: &mut Vec<OsString>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            scripts(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "js") {
            found.push(path.into_os_string());
        }
    }
    Ok(())
}

fn kind(debug: bool) -> &'static str {
    if debug { "debug" } else { "release" }
}

/// The glue and the module.
fn module_files() -> [String; 2] {
    [format!("{GLUE}.js"), format!("{GLUE}_bg.wasm")]
}

/// Compiles the library, and makes its glue and its optimised module if what cargo compiled is not what they were made
/// from. Returns the folder that holds both.
fn module(workspace: &Workspace, debug: bool) -> anyhow::Result<PathBuf> {
    let compiled = WasmCrate {
        package: "conclave-web-client",
        features: &[],
        profile: "client",
        debug,
    }
    .compile(workspace.root())?;
    let folder = workspace.target().join(MODULE_FOLDER);
    let [script, module] = module_files().map(|name| folder.join(name));
    let compiled_name = compiled.to_string_lossy();
    let inputs: Vec<&str> = MODULE_INPUTS.iter().copied().chain([&*compiled_name]).collect();
    let stamp = Stamp::new(workspace, "client-module", &inputs, &[kind(debug)])?;
    if stamp.holds(&[&script, &module]) {
        return Ok(folder);
    }
    stamp.forget()?;
    let bindings = Bindings {
        name: GLUE,
        replaceable_instance: false,
    };
    bindings.write(&compiled, &folder)?;
    if !debug {
        let plain = folder.join("plain.wasm");
        fs::rename(&module, &plain).context("setting the client's module aside")?;
        build::optimise(workspace.root(), &plain, &module)?;
    }
    stamp.keep()?;
    Ok(folder)
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

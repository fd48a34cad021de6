//! From a crate to an optimised WebAssembly module with its JavaScript glue.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

use crate::{children, progress};

/// The target every wasm crate is compiled for.
const TARGET: &str = "wasm32-unknown-unknown";

/// What `wasm-opt` may use, exactly what rustc emits for [`TARGET`]. Named one by one, because `--all-features` writes
/// modules that browsers refuse.
const WASM_FEATURES: &[&str] = &[
    "--enable-bulk-memory",
    "--enable-bulk-memory-opt",
    "--enable-call-indirect-overlong",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
];

/// A crate of this workspace that is compiled to WebAssembly.
#[derive(Clone, Debug)]
pub(crate) struct WasmCrate<'a> {
    /// The package's name in its manifest.
    pub(crate) package: &'a str,
    /// Cargo features to switch on.
    pub(crate) features: &'a [&'a str],
    /// The cargo profile it is compiled with when not unoptimised.
    pub(crate) profile: &'a str,
    /// Compile unoptimised.
    pub(crate) debug: bool,
}

impl WasmCrate<'_> {
    /// Compiles the crate and returns the module cargo wrote.
    ///
    /// # Errors
    ///
    /// When cargo cannot be run or the crate does not compile; cargo has printed why.
    pub(crate) fn compile(&self, root: &Path) -> anyhow::Result<PathBuf> {
        progress::step(format_args!("compiling {} for {TARGET}", self.package));
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(root).args([
            "build",
            "--quiet",
            "--lib",
            "--package",
            self.package,
            "--target",
            TARGET,
        ]);
        if !self.debug {
            cargo.args(["--profile", self.profile]);
        }
        if !self.features.is_empty() {
            cargo.arg("--features").arg(self.features.join(","));
        }
        let target = root.join("target");
        cargo.arg("--target-dir").arg(&target);
        let what = format!("compiling {}", self.package);
        let status = children::finish(&what, &mut cargo).context("cargo could not be run")?;
        if !status.success() {
            bail!("{} does not compile for {TARGET}", self.package);
        }
        let profile = if self.debug { "debug" } else { self.profile };
        let module = self.package.replace('-', "_") + ".wasm";
        Ok(target.join(TARGET).join(profile).join(module))
    }
}

/// How the glue is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bindings {
    /// The glue's name: `NAME.js` and `NAME_bg.wasm`.
    pub(crate) name: &'static str,
    /// Export `__wbg_reset_state`, which replaces the instance, and number the instances so that objects of an earlier
    /// one refuse to touch a later.
    pub(crate) replaceable_instance: bool,
}

impl Bindings {
    /// Writes the glue of `module` and the module it loads into `directory`, which is emptied first. The glue is an
    /// ES module that exports `initSync({ module })`.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written or the module was made by another version of wasm-bindgen.
    pub(crate) fn write(self, module: &Path, directory: &Path) -> anyhow::Result<()> {
        if directory.exists() {
            fs::remove_dir_all(directory)
                .with_context(|| format!("{} cannot be emptied", directory.display()))?;
        }
        fs::create_dir_all(directory).with_context(|| format!("{} cannot be made", directory.display()))?;
        wasm_bindgen_cli_support::Bindgen::new()
            .input_path(module)
            .out_name(self.name)
            .web(true)?
            .typescript(false)
            .reset_state_function(self.replaceable_instance)
            .generate(directory)
            .with_context(|| format!("the glue for {} cannot be written", module.display()))
    }
}

/// Runs one of the tools that npm installed, with the Node that npm installed.
///
/// # Errors
///
/// When the tool is missing or fails; it has printed why.
pub(crate) fn npm_tool(root: &Path, name: &str, arguments: &[&std::ffi::OsStr]) -> anyhow::Result<()> {
    let modules = root.join("node_modules");
    let tool = modules.join(".bin").join(name);
    if !tool.exists() {
        bail!("{name} is missing: run `npm install` in {}", root.display());
    }
    let mut path = vec![modules.join("node").join("bin")];
    path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let mut command = Command::new(&tool);
    command
        .current_dir(root)
        .args(arguments)
        .env("PATH", env::join_paths(path)?)
        .stdout(std::io::stderr());
    let status = children::finish(name, &mut command)
        .with_context(|| format!("{} could not be run", tool.display()))?;
    if !status.success() {
        bail!("{name} failed");
    }
    Ok(())
}

/// Shrinks `input` into `output` with binaryen.
///
/// # Errors
///
/// When `wasm-opt` is missing or refuses the module.
pub(crate) fn optimise(root: &Path, input: &Path, output: &Path) -> anyhow::Result<()> {
    progress::step(format_args!("optimising {}", output.display()));
    let mut arguments: Vec<&std::ffi::OsStr> = vec!["-Os".as_ref()];
    arguments.extend(WASM_FEATURES.iter().map(std::ffi::OsStr::new));
    arguments.extend([input.as_os_str(), "-o".as_ref(), output.as_os_str()]);
    npm_tool(root, "wasm-opt", &arguments)
}

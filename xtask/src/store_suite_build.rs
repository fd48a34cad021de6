//! The browser's store with the cases every store must pass, for the browser layer of the tests.
//!
//! `target/store-suite` holds the glue and the module, unoptimised. Nothing of it is in the package.

use crate::{
    build::{Bindings, WasmCrate},
    stamp::Stamp,
    workspace::Workspace,
};

/// The folder below the target folder, and the stamp's name. `tests/browser/store_suite.test.mjs` serves it.
const FOLDER: &str = "store-suite";

/// The cargo feature of the client that adds the cases.
const FEATURE: &str = "store-suite";

/// Builds it, or leaves it as it is if nothing it is made from changed.
///
/// # Errors
///
/// A step fails; the message says which.
pub(crate) fn store_suite(workspace: &Workspace) -> anyhow::Result<()> {
    let compiled = WasmCrate {
        package: "conclave-web-client",
        features: &[FEATURE],
        profile: "client",
        debug: true,
    }
    .compile(workspace.root())?;
    let folder = workspace.target().join(FOLDER);
    let compiled_name = compiled.to_string_lossy();
    let inputs = [
        &*compiled_name,
        "xtask/src/store_suite_build.rs",
        "xtask/src/build/wasm.rs",
    ];
    let stamp = Stamp::new(workspace, FOLDER, &inputs, &[])?.inside(&folder);
    if stamp.holds(&[]) {
        return Ok(());
    }
    let bindings = Bindings {
        name: "index",
        replaceable_instance: false,
    };
    bindings.write(&compiled, &folder)?;
    stamp.keep()
}

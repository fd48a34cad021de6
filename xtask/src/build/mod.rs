//! Turns the wasm crates into what the runtimes load. Design: docs/decisions/0001-worker-build.md.
//!
//! One crate becomes one module in four steps, none of which needs a tool from outside the package registries:
//! cargo compiles it ([`wasm`]), `wasm-bindgen-cli-support`, linked into this program, writes the glue, the glue is made
//! to watch the instance ([`glue`], the worker only), and binaryen's `wasm-opt` shrinks the result. [`worker`] adds the
//! JavaScript entry and bundles. Everything written lies below `target/`.

mod glue;
mod wasm;
mod worker;

#[allow(unused_imports, reason = "the client's build uses them")]
pub(crate) use wasm::{Bindings, WasmCrate, npm_tool, optimise};
pub(crate) use worker::{WorkerArtifacts, WorkerOptions, worker};

//! The Worker and its Durable Objects: a thin platform under `topiclog` and `registry`, without a rule of its own.
//!
//! Requests come in through the JavaScript of `edge/js`, which the runtimes load:
//!
//! - [`worker`]: one HTTP request to the Worker, in and out; [`body`] is what a stream sends;
//! - [`duplex`]: a stream whose client sends as well, and [`requests`] what that is;
//! - [`object`]: one Durable Object, whatever its role;
//! - [`platform`]: what `topiclog` needs of the machine, on [`sql`], [`timer`] and [`upstream`]; [`packed`] is how rows cross;
//! - [`admission`]: whether a request is admitted; [`recording`]: what is recorded of it; [`metrics`]: what an operator reads;
//! - [`chains`]: nodes of EVM chains;
//! - [`environment`]: the Worker's variables and bindings;
//! - [`runtime`]: every function of JavaScript this crate calls;
//! - [`failure`]: requests that fail on purpose, in test builds only.
//!
//! A panic anywhere loses the WebAssembly instance; `edge/js/instance.js` replaces it and fails what was going on.

mod admission;
mod body;
mod chains;
mod duplex;
mod environment;
#[cfg(feature = "test-panics")]
mod failure;
mod metrics;
mod object;
mod packed;
mod platform;
mod recording;
mod requests;
mod runtime;
mod sql;
mod timer;
mod upstream;
mod worker;

use std::panic;

use wasm_bindgen::prelude::wasm_bindgen;

/// Run once in every new instance: a panic says in the log where and why before it loses the instance.
#[wasm_bindgen(start)]
fn start() {
    panic::set_hook(Box::new(|panic| runtime::log_error(&panic.to_string())));
}

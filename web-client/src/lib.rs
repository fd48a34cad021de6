//! The browser library: a wasm shell over the conversation engine, its IndexedDB store and its transport.
//!
//! | module | what it is for |
//! | - | - |
//! | `exports` | what JavaScript calls; `ts/` makes the package's surface of it |
//! | `verifier` | an exported history, verified away from any endpoint |
//! | `endpoint` | the loop between the engine, the store and the deployment |
//! | `store` | one IndexedDB database per agent |
//! | `transport` | typed calls, the feed, publishing |
//! | `failure` | typed failures on their way to JavaScript |
//! | `observer` | what JavaScript hears without asking |
//! | `short_map` | a map of a few entries, small to download |
//! | `platform` | the browser's globals, time and chance |
//!
//! It holds no rule of a conversation and none of the wire: those are the engine's and `conclave-grpc-web`'s.

mod endpoint;
mod exports;
mod failure;
mod observer;
mod platform;
mod short_map;
mod store;
mod transport;
mod verifier;

pub use exports::{Core, inspect, open, restore};
pub use observer::Observer;
#[cfg(feature = "store-suite")]
pub use store::suite::{run_store_suite_case, store_suite_cases};
pub use transport::Transport;
pub use verifier::Verifier;

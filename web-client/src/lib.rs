//! The browser library: a wasm shell over the conversation engine, its IndexedDB store and its transport.

mod platform;
mod store;
mod transport;

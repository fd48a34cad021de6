#![forbid(unsafe_code)]
//! The backend: the sequencer, the topic shards, publish, reads and subscriptions.
//!
//! Written once, as single-threaded async code generic over a [`platform::Platform`]. Depends on `envelope` (what an
//! envelope is and whether it is admitted), `identity` (what an identity update has to be), `sql` (the database), `grpc-web` (status codes only) and `proto`. It knows
//! neither Cloudflare nor HTTP.
//!
//! - [`platform`]: what all of this needs of the machine beneath it;
//! - [`configuration`]: what an operator decides, and what of it is published;
//! - [`backend`]: the stateless half, run by the Worker: one RPC in, calls to objects, one answer out;
//! - [`chains`]: whom the Worker asks about wallets, by [`chain_routes`]; [`isolate`]: what a process keeps between requests;
//! - [`session`]: a client's stream, run by the Worker over message streams to the shards;
//! - [`shard`]: the object that stores and orders topics;
//! - [`sequencer`]: the object that hands out sequence ids;
//! - [`routing`], [`birth`]: which shard holds a topic, and what a deployment may never change;
//! - `keys`: what handles and identifiers lie under;
//! - [`answer`]: how objects answer calls;
//! - `planted`: steps done wrong on purpose, for the simulation alone (feature `planted-bugs`).

pub mod answer;
pub mod backend;
pub mod birth;
pub mod chain_routes;
pub mod chains;
pub mod configuration;
pub mod isolate;
mod keys;
#[cfg(feature = "planted-bugs")]
pub mod planted;
#[cfg(not(feature = "planted-bugs"))]
mod planted;
pub mod platform;
pub mod routing;
pub mod sequencer;
pub mod session;
pub mod shard;
mod status;
pub mod storage;

pub use backend::{Backend, CallContext, Reply};
pub use conclave_envelope::limits::TRANSPORT_CEILING_BYTES;
pub use configuration::Configuration;
pub use isolate::Isolate;
pub use sequencer::Sequencer;
pub use session::{Requests, StreamSession};
pub use shard::Shard;

/// The version of this build, as published.
pub const SERVER_VERSION: &str = env!("CARGO_PKG_VERSION");

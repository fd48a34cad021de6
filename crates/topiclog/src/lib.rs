#![forbid(unsafe_code)]
//! The backend: the sequencer, the topic shards, publish, reads and subscriptions.
//!
//! Written once, as single-threaded async code generic over a [`platform::Platform`]. Depends on `envelope` (what an
//! envelope is and whether it is admitted), `sql` (the database), `grpc-web` (status codes only) and `proto`. It knows
//! neither Cloudflare nor HTTP.

pub mod platform;

//! The deployment as the browser reaches it: typed calls, one long-lived stream, publishing. The bytes are carried by
//! `ts/transport`, which the package's other client uses too.
//!
//! No rule of a conversation is here: envelopes in, envelopes out, and what became of a call. May depend on: `platform`, the
//! engine's `binding` and `engine` types, the codes of `conclave-grpc-web`, `conclave-proto`.

mod back_off;
mod call;
mod feed;
mod plan;
mod publish;
mod reading;

pub(crate) use back_off::BackOff;
pub use call::Transport;
pub(crate) use call::{CallError, Deployment};
pub(crate) use feed::{FeedCommand, FeedEnvelope, FeedEvent, run_feed};
pub(crate) use publish::publish;

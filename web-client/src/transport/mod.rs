//! The deployment as the browser reaches it: gRPC-Web calls over `fetch`, one long-lived stream, publishing.
//!
//! No rule of a conversation is here: envelopes in, envelopes out, and what became of a call. May depend on: `platform`, the
//! engine's `binding` and `engine` types, `conclave-grpc-web`, `conclave-proto`.

mod back_off;
mod call;
mod feed;
mod publish;

pub(crate) use back_off::BackOff;
pub(crate) use call::{CallError, Deployment};
pub(crate) use feed::{FeedCommand, FeedEnvelope, FeedEvent, run_feed};
pub(crate) use publish::publish;

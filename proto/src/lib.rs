#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "the .proto files carry the documentation of the generated types"
)]
//! The wire types, generated from the `.proto` files beside this crate. A leaf: it depends on prost alone.
//!
//! - `xmtp.backend.v1`, as published, with the `xmtp.identity` and `xmtp.mls` types it imports;
//! - `conclave.registry.v1`, `conclave.router.v1` and `conclave.operator.v1`, ours;
//! - `conclave.internal.v1`, spoken between the Worker and its objects only;
//! - `grpc.health.v1` and `google.rpc`, standard.
//!
//! Bytes fields are [`bytes::Bytes`], so decoding a message shares its buffer.

use prost::Message;

mod generated {
    include!(concat!(env!("OUT_DIR"), "/_all.rs"));
}

pub use generated::{conclave, google, grpc, xmtp};

/// The file descriptor set of every `.proto` file here, for clients that build their types at run time.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.binpb"));

/// How many messages travel in each direction of an RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RpcKind {
    /// One request, one response.
    Unary,
    /// One request, any number of responses.
    ServerStream,
    /// Any number of requests, one response.
    ClientStream,
    /// Any number of each.
    BidirectionalStream,
}

/// One RPC: its path and its message types. Implemented by the types in the generated service modules.
pub trait Rpc {
    /// The HTTP path, `/package.Service/Method`.
    const PATH: &'static str;
    /// How many messages travel in each direction.
    const KIND: RpcKind;
    /// The request message.
    type Request: Message + Default;
    /// The response message.
    type Response: Message + Default;
}

//! The frames of a stream that carry no envelopes, encoded. Depends on the wire types alone.

use conclave_proto::xmtp::backend::v1::{
    self as wire, CatchupTarget, Ping, Pong, subscribe_response, subscribe_static_response,
};
use prost::Message as _;

/// The first frame of a static stream.
pub(super) fn static_started(keepalive_interval_ms: u32, targets: Vec<CatchupTarget>) -> Vec<u8> {
    of_static(subscribe_static_response::Response::Started(
        subscribe_static_response::Started {
            keepalive_interval_ms,
            targets,
        },
    ))
}

/// What breaks the silence on a static stream.
pub(super) fn keepalive() -> Vec<u8> {
    of_static(subscribe_static_response::Response::Keepalive(
        subscribe_static_response::Keepalive {},
    ))
}

/// The first frame of a bidirectional stream.
pub(super) fn started(keepalive_interval_ms: u32) -> Vec<u8> {
    of(subscribe_response::Response::Started(
        subscribe_response::Started {
            keepalive_interval_ms,
        },
    ))
}

/// What answers an update.
pub(super) fn applied(id: u64, added_targets: Vec<CatchupTarget>) -> Vec<u8> {
    of(subscribe_response::Response::Applied(
        subscribe_response::Applied { id, added_targets },
    ))
}

/// What breaks the silence on a bidirectional stream.
pub(super) fn ping(nonce: u64) -> Vec<u8> {
    of(subscribe_response::Response::Ping(Ping { nonce }))
}

/// What answers a client's Ping.
pub(super) fn pong(nonce: u64) -> Vec<u8> {
    of(subscribe_response::Response::Pong(Pong { nonce }))
}

fn of_static(response: subscribe_static_response::Response) -> Vec<u8> {
    wire::SubscribeStaticResponse {
        response: Some(response),
    }
    .encode_to_vec()
}

fn of(response: subscribe_response::Response) -> Vec<u8> {
    wire::SubscribeResponse {
        response: Some(response),
    }
    .encode_to_vec()
}

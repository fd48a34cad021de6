//! The requests that read: Query, QueryNewest, SubscribeStatic, and the frames of Subscribe.

use bytes::Bytes;
use conclave_envelope::{
    Limits,
    request::{NewestPlan, ReadPlan, StaticPlan, decode_frame, parse_update},
};
use conclave_proto::xmtp::backend::v1::subscribe_request::Request;

/// Any bytes give a plan within its bounds or a refusal.
pub fn run(data: &[u8]) {
    let limits = Limits::default();
    let encoded = Bytes::copy_from_slice(data);
    let _ = ReadPlan::decode(encoded.clone(), &limits);
    let _ = NewestPlan::decode(encoded.clone(), &limits);
    let _ = StaticPlan::decode(encoded.clone(), &limits);
    if let Ok(Some(Request::Update(update))) = decode_frame(encoded, &limits).map(|frame| frame.request) {
        let _ = parse_update(&update, 0, &limits);
    }
}

//! The requests that read: Query, QueryNewest, SubscribeStatic.

use bytes::Bytes;
use conclave_envelope::{
    Limits,
    request::{NewestPlan, ReadPlan, StaticPlan},
};

/// Any bytes give a plan within its bounds or a refusal.
pub fn run(data: &[u8]) {
    let limits = Limits::default();
    let encoded = Bytes::copy_from_slice(data);
    let _ = ReadPlan::decode(encoded.clone(), &limits);
    let _ = NewestPlan::decode(encoded.clone(), &limits);
    let _ = StaticPlan::decode(encoded, &limits);
}

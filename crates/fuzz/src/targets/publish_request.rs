//! A Publish request: framing of every kind, re-encoding, bounds.

use bytes::Bytes;
use conclave_envelope::{Limits, request::AdmittedPublish};
use conclave_proto::xmtp::backend::v1::ClientEnvelope;
use prost::Message as _;

/// What would be stored is its own re-encoding.
pub fn run(data: &[u8]) {
    let Ok(publish) = AdmittedPublish::decode(Bytes::copy_from_slice(data), &Limits::default()) else {
        return;
    };
    for (_, admitted) in publish.distinct() {
        let stored = admitted.stored_bytes();
        let envelope = ClientEnvelope::decode(stored.clone()).expect("stored bytes decode");
        assert_eq!(&Bytes::from(envelope.encode_to_vec()), stored);
    }
}

//! The keys that handles and identifiers lie under: each hashes to a shard like a topic. Depends on `identity` for their
//! one compared form.

use bytes::Bytes;
use conclave_identity::{
    Handle,
    lookup::{IdentifierKey, LookupKind},
};

/// The key of the claim on a handle.
pub(crate) fn of_handle(handle: &Handle) -> Bytes {
    tagged("handle", handle.as_str().as_bytes())
}

/// The key of the associations of an identifier.
pub(crate) fn of_identifier(identifier: &IdentifierKey) -> Bytes {
    let tag = match identifier.kind {
        LookupKind::Ethereum => "ethereum",
        LookupKind::Passkey => "passkey",
    };
    tagged(tag, &identifier.key)
}

/// No tag is the beginning of another one and its colon, so keys of different kinds differ.
fn tagged(tag: &str, content: &[u8]) -> Bytes {
    [tag.as_bytes(), b":", content].concat().into()
}

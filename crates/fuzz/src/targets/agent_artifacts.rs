//! Agent cards, signed messages and keys of the conversation's first layer.

use conclave_harness::{EncodedAgentCard, EncodedSignedMessage, PublicJwk, base64url};

/// Whatever is read is written back byte for byte.
pub fn run(data: &[u8]) {
    if let Ok(card) = EncodedAgentCard::from_canonical_bytes(data) {
        assert_eq!(card.to_canonical_bytes(), data);
    }
    if let Ok(message) = EncodedSignedMessage::from_canonical_bytes(data) {
        assert_eq!(message.to_canonical_bytes(), data);
    }
    if let Ok(key) = PublicJwk::from_canonical_bytes(data) {
        assert_eq!(key.to_canonical_bytes(), data);
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(bytes) = base64url::decode(text)
    {
        assert_eq!(base64url::encode(&bytes), text);
    }
}

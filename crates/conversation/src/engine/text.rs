//! Canonical values as the text that rows hold.

use conclave_harness::EncodedSignedMessage;

use crate::values::ClosedValue;

/// A value's canonical text.
pub(super) fn canonical(value: &impl ClosedValue) -> String {
    utf8(value.encode())
}

/// A signed message's canonical text.
pub(super) fn message_text(message: &EncodedSignedMessage) -> String {
    utf8(message.to_canonical_bytes())
}

/// Canonical JSON is UTF-8.
pub(super) fn utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("canonical JSON is UTF-8")
}

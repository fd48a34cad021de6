//! Sealed bodies of A's message number 3, and who can open them.

use super::hand_sealed::HandSealed;
use super::*;
use conclave_harness::sealed_body::open;
use serde_json::Value;

pub(crate) const PLAINTEXT: &[u8] = b"sealed outer body";

/// `body` in A's message number 3 to A.
pub(crate) fn to_a(body: &[u8]) -> SignedMessage {
    message_of_a(&[card_a().agent_id()], 3, body)
}

/// `body` in A's message number 3 to A and B.
pub(crate) fn to_a_and_b(body: &[u8]) -> SignedMessage {
    message_of_a(&[card_a().agent_id(), card_b().agent_id()], 3, body)
}

pub(crate) fn opens_for_a(message: &SignedMessage) -> bool {
    open(&card_a(), &key_a(), message).is_ok()
}

pub(crate) fn opens_for_b(message: &SignedMessage) -> bool {
    open(&card_b(), &key_b(), message).is_ok()
}

/// The two-recipient vector with one edit of its JSON.
pub(crate) fn edited(edit: impl Fn(&mut Value)) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(SEALED_BODY_A_B).unwrap();
    edit(&mut value);
    conclave_harness::canonical_json::encode(&value)
}

/// Another text of the same length: its first character changed.
pub(crate) fn damaged(text: &Value) -> Value {
    let text = text.as_str().unwrap();
    let first = if text.starts_with('A') { "B" } else { "A" };
    format!("{first}{}", &text[1..]).into()
}

pub(crate) fn honest(recipients: Vec<AgentCard>) -> HandSealed {
    HandSealed::honest(PLAINTEXT, recipients, card_a().agent_id(), message_id(3))
}

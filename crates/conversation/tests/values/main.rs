//! The values of a conversation, their hashes and certificates, what verification accepts and what it refuses.

mod addresses;
mod catch_up;
mod certificates;
mod corruption;
mod encoding;
mod framing;
mod hashes;
mod invitations;
mod memberships;
mod outer_messages;
mod projections;
mod records;
mod sizes;
mod vectors;

use conclave_conversation::test_support::history;
use conclave_conversation::values::ClosedValue;
use conclave_harness::canonical_json;
use serde_json::Value;

/// A value after a change to its JSON, if it still decodes.
fn try_tamper<V: ClosedValue>(value: &V, change: impl FnOnce(&mut Value)) -> Option<V> {
    let mut json = serde_json::to_value(value).expect("JSON");
    change(&mut json);
    V::decode_over(&history(), &canonical_json::encode(&json)).ok()
}

/// A value after a change to its JSON that leaves it well formed.
fn tamper<V: ClosedValue>(value: &V, change: impl FnOnce(&mut Value)) -> V {
    try_tamper(value, change).expect("still well formed")
}

/// The member at a JSON pointer.
fn at<'a>(json: &'a mut Value, pointer: &str) -> &'a mut Value {
    json.pointer_mut(pointer)
        .unwrap_or_else(|| panic!("no member {pointer}"))
}

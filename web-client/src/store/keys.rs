//! Keys and values as IndexedDB holds them: a key is an array of its parts, a value is a `Uint8Array`.
//!
//! IndexedDB orders numbers before strings before arrays, strings by UTF-16 code unit, and an array before every longer
//! one it is a prefix of; [`Key`] orders in the same way.

use conclave_conversation::store::{Key, KeyPart};
use js_sys::{Array, Uint8Array};
use wasm_bindgen::{JsCast as _, JsValue};
use web_sys::IdbKeyRange;

use super::failure::{StoreFailure, StoreFault};

/// The key as an array.
pub(super) fn to_js(key: &Key) -> Array {
    key.parts()
        .iter()
        .map(|part| match part {
            // At most 2^53 - 1, so a double holds it exactly.
            KeyPart::Number(number) => JsValue::from_f64(*number as f64),
            KeyPart::Text(text) => JsValue::from_str(text),
        })
        .collect()
}

/// The range of every key that begins with the parts of `prefix`.
pub(super) fn range_below(prefix: &Key) -> Result<IdbKeyRange, JsValue> {
    let lower = to_js(prefix);
    let upper = to_js(prefix);
    // An array comes after every number and string, so nothing with this prefix lies above it.
    upper.push(&Array::new());
    IdbKeyRange::bound_with_lower_open_and_upper_open(&lower, &upper, false, true)
}

/// The range of every key after this one, or of all.
pub(super) fn range_after(key: Option<&Key>) -> Result<IdbKeyRange, JsValue> {
    let lower = key.map_or_else(Array::new, to_js);
    // An array that begins with an array comes after every key of ours.
    let upper = Array::of1(&Array::new());
    IdbKeyRange::bound_with_lower_open_and_upper_open(&lower, &upper, key.is_some(), true)
}

/// Reads a key back.
pub(super) fn from_js(value: &JsValue) -> Result<Key, StoreFailure> {
    let parts: &Array = value.dyn_ref().ok_or_else(|| corrupt("a key is not an array"))?;
    parts
        .iter()
        .map(|part| part_from_js(&part))
        .collect::<Result<Vec<_>, _>>()
        .map(Key::new)
}

fn part_from_js(part: &JsValue) -> Result<KeyPart, StoreFailure> {
    if let Some(text) = part.as_string() {
        return Ok(KeyPart::Text(text));
    }
    part.as_f64()
        .and_then(whole_number)
        .map(KeyPart::Number)
        .ok_or_else(|| corrupt("a part of a key is neither a text nor a whole number"))
}

/// The number as a key part holds it, when it is one.
fn whole_number(number: f64) -> Option<u64> {
    let whole = number >= 0.0 && number.fract() == 0.0 && number <= KeyPart::NUMBER_MAX as f64;
    whole.then_some(number as u64)
}

/// A value's bytes.
pub(super) fn bytes_from_js(value: &JsValue) -> Result<Vec<u8>, StoreFailure> {
    value
        .dyn_ref::<Uint8Array>()
        .map(Uint8Array::to_vec)
        .ok_or_else(|| corrupt("a value is not a byte array"))
}

fn corrupt(message: &str) -> StoreFailure {
    StoreFailure::new(StoreFault::Corrupt, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_numbers_that_a_double_holds_exactly_are_key_parts() {
        assert_eq!(whole_number(0.0), Some(0));
        assert_eq!(
            whole_number(KeyPart::NUMBER_MAX as f64),
            Some(KeyPart::NUMBER_MAX)
        );
        for refused in [
            -1.0,
            0.5,
            f64::NAN,
            f64::INFINITY,
            KeyPart::NUMBER_MAX as f64 + 1.0,
        ] {
            assert_eq!(whole_number(refused), None, "{refused}");
        }
    }
}

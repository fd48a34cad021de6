//! Canonical JSON (RFC 8785, JCS): one spelling for each value, and a decoder that refuses every other (reference 1.1).
//!
//! The encoder is `serde_jcs`; `tests/rfc8785.rs` holds it to the RFC's vectors: members in UTF-16 order, numbers as
//! ECMAScript prints doubles. The decoder proves canonicity by encoding what it understood and comparing bytes, so a
//! duplicate name, a space, `1.0`, or an integer that no double holds is refused without a rule for each.

use serde::{Serialize, de::DeserializeOwned};

/// Container levels an artifact of this layer may have: the root counts one, a scalar none.
pub const DEPTH_MAX_IDENTITY: usize = 16;

/// The greatest depth any caller may allow. Parsing and printing recurse by level, and this many levels fit the
/// smallest stack we run on (a browser's wasm stack) many times over.
pub const DEPTH_MAX_CEILING: usize = 120;

/// What a decoder accepts before it looks at the meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole text.
    pub bytes_max: usize,
    /// Container levels; at most [`DEPTH_MAX_CEILING`] whatever is asked.
    pub depth_max: usize,
}

impl Limits {
    /// The limits of an identity artifact of so many bytes.
    pub const fn identity(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            depth_max: DEPTH_MAX_IDENTITY,
        }
    }
}

/// The canonical text of `value`.
///
/// # Panics
///
/// When `value` has no JSON form at all: a member name that is not text, a number that is not finite, or a `Serialize`
/// that fails. No type of ours does; use [`try_encode`] for a type that might.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    try_encode(value).expect("the value has a JSON form")
}

/// The canonical text of `value`, if it has one.
///
/// # Errors
///
/// [`CanonicalJsonError::NoJsonForm`] where [`encode`] panics.
pub fn try_encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalJsonError> {
    serde_jcs::to_vec(value).map_err(|error| CanonicalJsonError::NoJsonForm {
        message: error.to_string(),
    })
}

/// The value of the canonical text `bytes`.
///
/// `T` must describe the value completely: what it does not keep is missing when it is encoded again, and the text is
/// refused. Unknown members are thus refused even where `deny_unknown_fields` was forgotten.
///
/// # Errors
///
/// The first of the checks of reference 1.1 that fails, in their order.
pub fn decode<T: DeserializeOwned + Serialize>(
    bytes: &[u8],
    limits: Limits,
) -> Result<T, CanonicalJsonError> {
    if bytes.len() > limits.bytes_max {
        return Err(CanonicalJsonError::TooLong {
            bytes: bytes.len(),
            bytes_max: limits.bytes_max,
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| CanonicalJsonError::NotUtf8 {
        offset: error.valid_up_to(),
    })?;
    scan(text, limits.depth_max.min(DEPTH_MAX_CEILING))?;
    match serde_json::from_str::<T>(text) {
        Ok(value) => {
            compare(bytes, &try_encode(&value)?)?;
            Ok(value)
        }
        Err(error) => Err(explain(bytes, text, &error)),
    }
}

/// Says which check of reference 1.1 a text fails that is no `T`: that it is no JSON and that it is not canonical come
/// before that it has the wrong shape.
fn explain(bytes: &[u8], text: &str, typed: &serde_json::Error) -> CanonicalJsonError {
    match serde_json::from_str::<serde_json::Value>(text) {
        Err(error) => CanonicalJsonError::NotJson {
            message: error.to_string(),
        },
        Ok(value) => match try_encode(&value).and_then(|canonical| compare(bytes, &canonical)) {
            Err(error) => error,
            Ok(()) => CanonicalJsonError::Schema {
                message: typed.to_string(),
            },
        },
    }
}

fn compare(bytes: &[u8], canonical: &[u8]) -> Result<(), CanonicalJsonError> {
    if bytes == canonical {
        return Ok(());
    }
    let offset = bytes
        .iter()
        .zip(canonical)
        .take_while(|(met, wanted)| met == wanted)
        .count();
    Err(CanonicalJsonError::NotCanonical { offset })
}

/// Bounds the depth and finds lone surrogates without recursion, before anything that recurses sees the text.
///
/// It need not know JSON: where the text is JSON, brackets outside strings are exactly the container levels, and where
/// it is not, the parser refuses it, at a depth no greater than what was counted here.
fn scan(text: &str, depth_max: usize) -> Result<(), CanonicalJsonError> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut offset = 0;
    while offset < bytes.len() {
        match (in_string, bytes[offset]) {
            (true, b'\\') => {
                offset += escape_length(bytes, offset)?;
                continue;
            }
            (_, b'"') => in_string = !in_string,
            (false, b'{' | b'[') => {
                depth += 1;
                if depth > depth_max {
                    return Err(CanonicalJsonError::TooDeep { depth_max, offset });
                }
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        offset += 1;
    }
    Ok(())
}

/// How many bytes the escape at `offset` takes, a pair of surrogates being one.
fn escape_length(bytes: &[u8], offset: usize) -> Result<usize, CanonicalJsonError> {
    match unicode_escape(bytes, offset) {
        None => Ok(2),
        Some(0xd800..=0xdbff) => match unicode_escape(bytes, offset + 6) {
            Some(0xdc00..=0xdfff) => Ok(12),
            _ => Err(CanonicalJsonError::LoneSurrogate { offset }),
        },
        Some(0xdc00..=0xdfff) => Err(CanonicalJsonError::LoneSurrogate { offset }),
        Some(_) => Ok(6),
    }
}

/// The code unit of a well-formed `\uXXXX` at `offset`.
fn unicode_escape(bytes: &[u8], offset: usize) -> Option<u16> {
    let digits = bytes.get(offset..)?.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0_u16, |unit, digit| {
        let value = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(value).ok()?)
    })
}

/// Why bytes are not the canonical text of the value asked for. Offsets are in bytes from the start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalJsonError {
    /// Over the byte bound; nothing was read.
    #[error("{bytes} bytes of JSON, at most {bytes_max} are allowed")]
    TooLong {
        /// Bytes met.
        bytes: usize,
        /// Bytes allowed.
        bytes_max: usize,
    },
    /// Not UTF-8.
    #[error("not UTF-8 from byte {offset}")]
    NotUtf8 {
        /// The first byte that is not.
        offset: usize,
    },
    /// More container levels than allowed.
    #[error("more than {depth_max} levels of containers at byte {offset}")]
    TooDeep {
        /// Levels allowed.
        depth_max: usize,
        /// Where the level too many opens.
        offset: usize,
    },
    /// An escaped surrogate without its other half.
    #[error("a surrogate without its pair at byte {offset}")]
    LoneSurrogate {
        /// Where the escape starts.
        offset: usize,
    },
    /// Not exactly one JSON value, or a number beyond every double.
    #[error("not one JSON value: {message}")]
    NotJson {
        /// What the parser met, and where.
        message: String,
    },
    /// JSON, but not its canonical spelling, or with more in it than the value asked for keeps.
    #[error("not the canonical spelling from byte {offset}")]
    NotCanonical {
        /// The first byte that differs.
        offset: usize,
    },
    /// Canonical JSON of some other value than the one asked for.
    #[error("not the expected value: {message}")]
    Schema {
        /// Which member is wrong, and where.
        message: String,
    },
    /// A value of ours without a JSON form.
    #[error("no JSON form: {message}")]
    NoJsonForm {
        /// What has none.
        message: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::Value;

    const LIMITS: Limits = Limits::identity(1 << 20);

    fn value(text: &str) -> Result<Value, CanonicalJsonError> {
        decode(text.as_bytes(), LIMITS)
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Open {
        name: String,
    }

    // CONV-B02
    #[test]
    fn every_spelling_but_the_canonical_one_is_refused() {
        for text in [
            " {}",
            "{} ",
            "{\"a\":1,\"a\":1}",
            "{\"b\":1,\"a\":1}",
            "{\"a\": 1}",
            "1.0",
            "1e2",
            "-0",
            "1E2",
            "01",
            "1e21",
            "0.10",
            "\"\\u0041\"",
            "\"\\/\"",
            "\"\\u000A\"",
            "9007199254740993",
            "18446744073709551615",
            "0.1000000000000000055",
            "\"\\u00e4\"",
            "\"\\ud83d\\ude00\"",
        ] {
            assert!(
                matches!(
                    value(text),
                    Err(CanonicalJsonError::NotCanonical { .. } | CanonicalJsonError::NotJson { .. })
                ),
                "{text}: {:?}",
                value(text)
            );
        }
    }

    // CONV-B02
    #[test]
    fn numbers_are_the_doubles_ecmascript_prints() {
        for text in [
            "0",
            "1",
            "-1",
            "0.1",
            "1e+21",
            "100000000000000000000",
            "1e-7",
            "0.000001",
            "9007199254740992",
            "9007199254740994",
            "12345678901234567000",
            "18446744073709552000",
            "5e-324",
            "1.7976931348623157e+308",
            "2.2250738585072014e-308",
            "0.30000000000000004",
            "-9223372036854776000",
            "333333333.3333333",
        ] {
            assert_eq!(
                value(text).map(|value| encode(&value)),
                Ok(text.as_bytes().to_vec()),
                "{text}"
            );
        }
        for text in ["NaN", "Infinity", "-Infinity", "1e400", "+1", ".5", "5.", "0x10"] {
            assert!(
                matches!(value(text), Err(CanonicalJsonError::NotJson { .. })),
                "{text}"
            );
        }
    }

    // CONV-B02
    #[test]
    fn text_that_is_not_one_json_value_is_refused() {
        for text in [
            "",
            "{",
            "}",
            "{}{}",
            "nul",
            "\u{feff}{}",
            "{\"a\":1,}",
            "\"\n\"",
            "'a'",
            "\"\\x\"",
            "\"\\u12\"",
        ] {
            assert!(
                matches!(value(text), Err(CanonicalJsonError::NotJson { .. })),
                "{text}: {:?}",
                value(text)
            );
        }
        assert_eq!(
            decode::<Value>(b"\"\xff\"", LIMITS),
            Err(CanonicalJsonError::NotUtf8 { offset: 1 })
        );
    }

    // CONV-B02
    #[test]
    fn surrogates_without_their_pair_are_refused() {
        for text in [
            r#""\ud800""#,
            r#""a\udc00""#,
            r#""\ud800\ud800""#,
            r#"{"\uDBFF":1}"#,
            r#""\udc00\ud800""#,
        ] {
            assert!(
                matches!(value(text), Err(CanonicalJsonError::LoneSurrogate { .. })),
                "{text}"
            );
        }
        assert_eq!(value("\"\u{1f600}\""), Ok(Value::from("\u{1f600}")));
        assert_eq!(value(r#""\\ud800""#), Ok(Value::from("\\ud800")));
    }

    #[test]
    fn depth_counts_containers_and_ignores_brackets_in_strings() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(value(&nested(16)).is_ok());
        assert_eq!(
            value(&nested(17)),
            Err(CanonicalJsonError::TooDeep {
                depth_max: 16,
                offset: 16
            })
        );
        assert!(value("[\"[[[[[[[[[[[[[[[[[[[[\\\"[[[[[\"]").is_ok());
        let wide = format!("[{}]", vec!["[]"; 100].join(","));
        assert!(value(&wide).is_ok());
    }

    #[test]
    fn no_caller_can_allow_a_depth_that_endangers_the_stack() {
        let asked = Limits {
            bytes_max: 1 << 20,
            depth_max: usize::MAX,
        };
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(decode::<Value>(nested(DEPTH_MAX_CEILING).as_bytes(), asked).is_ok());
        for levels in [DEPTH_MAX_CEILING + 1, 400_000] {
            assert!(matches!(
                decode::<Value>(nested(levels).as_bytes(), asked),
                Err(CanonicalJsonError::TooDeep { .. })
            ));
        }
    }

    #[test]
    fn the_byte_bound_is_checked_before_anything_else() {
        let limits = Limits {
            bytes_max: 4,
            depth_max: 1,
        };
        assert!(decode::<Value>(b"\"ab\"", limits).is_ok());
        assert_eq!(
            decode::<Value>(b"\xff\xff\xff\xff\xff", limits),
            Err(CanonicalJsonError::TooLong {
                bytes: 5,
                bytes_max: 4
            })
        );
    }

    // CONV-B01
    #[test]
    fn a_member_the_type_does_not_keep_is_refused_even_by_an_open_type() {
        assert_eq!(
            decode::<Open>(br#"{"name":"a"}"#, LIMITS),
            Ok(Open { name: "a".into() })
        );
        assert_eq!(
            decode::<Open>(br#"{"more":1,"name":"a"}"#, LIMITS),
            Err(CanonicalJsonError::NotCanonical { offset: 2 })
        );
        assert!(matches!(
            decode::<Open>(br#"{"nome":"a"}"#, LIMITS),
            Err(CanonicalJsonError::Schema { .. })
        ));
    }

    #[test]
    fn a_value_without_a_json_form_is_an_error_of_try_encode() {
        assert!(matches!(
            try_encode(&f64::NAN),
            Err(CanonicalJsonError::NoJsonForm { .. })
        ));
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(|number| Value::from(number as f64)),
            any::<f64>()
                .prop_filter("finite", |number| number.is_finite())
                .prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::btree_map(".{0,6}", inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_survives_the_round_trip(value in json()) {
            let bytes = encode(&value);
            let decoded: Value = decode(&bytes, LIMITS).unwrap();
            prop_assert_eq!(encode(&decoded), bytes);
        }

        #[test]
        fn any_bytes_give_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode::<Value>(&bytes, LIMITS);
        }

        #[test]
        fn whatever_decodes_was_canonical(text in r#"[\[\]{}":,0-9a-e\\u.\-+ ]{0,16}"#) {
            if let Ok(value) = value(&text) {
                prop_assert_eq!(encode(&value), text.into_bytes());
            }
        }
    }
}

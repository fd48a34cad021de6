//! The decoder against every spelling but the canonical one.

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
    // A quarter of a browser's wasm stack.
    const STACK_BYTES: usize = 256 * 1024;
    let read = || {
        let asked = Limits {
            bytes_max: 1 << 20,
            depth_max: usize::MAX,
        };
        let nested = |open: &str, close: &str, levels: usize| {
            format!("{}1{}", open.repeat(levels), close.repeat(levels))
        };
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let deepest = nested(open, close, DEPTH_MAX_CEILING);
            let value = decode::<Value>(deepest.as_bytes(), asked).unwrap();
            assert_eq!(encode(&value), deepest.as_bytes());
            for levels in [DEPTH_MAX_CEILING + 1, 100_000] {
                assert!(matches!(
                    decode::<Value>(nested(open, close, levels).as_bytes(), asked),
                    Err(CanonicalJsonError::TooDeep { .. })
                ));
            }
        }
    };
    let reader = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(read);
    reader.unwrap().join().unwrap();
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
    let has_none = |encoded| matches!(encoded, Err(CanonicalJsonError::NoJsonForm { .. }));
    assert!(has_none(try_encode(&f64::NAN)));
    assert!(has_none(try_encode(&[1.0, f64::INFINITY])));
    assert!(has_none(try_encode(&std::collections::BTreeMap::from([(1, 2)]))));
    let twice = ["b", "a", "b"].map(|name| (name.to_owned(), Value::Null));
    assert!(has_none(try_encode(&Members(twice.to_vec()))));
}

/// An object whose members come in an order of their own.
#[derive(Debug)]
struct Members(Vec<(String, Value)>);

impl Serialize for Members {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
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

/// Members in any order, with names that UTF-8 and UTF-16 order differently and names that need escapes.
fn members() -> impl Strategy<Value = Vec<(String, Value)>> {
    let letter = proptest::sample::select(vec![
        'a',
        'b',
        '1',
        '"',
        '\\',
        '\n',
        '\u{1f}',
        '\u{e4}',
        '\u{e000}',
        '\u{ffff}',
        '\u{10000}',
    ]);
    let name =
        proptest::collection::vec(letter, 0..3).prop_map(|letters| letters.into_iter().collect::<String>());
    proptest::collection::hash_map(name, json(), 0..8).prop_map(|members| members.into_iter().collect())
}

proptest! {
    #[test]
    fn every_value_survives_the_round_trip(value in json()) {
        let bytes = encode(&value);
        let decoded: Value = decode(&bytes, LIMITS).unwrap();
        prop_assert_eq!(encode(&decoded), bytes);
    }

    #[test]
    fn the_encoder_writes_what_another_implementation_writes(value in json()) {
        prop_assert_eq!(encode(&value), serde_jcs::to_vec(&value).unwrap());
    }

    #[test]
    fn members_are_put_in_order_whatever_order_they_come_in(members in members()) {
        let sorted: serde_json::Map<String, Value> = members.iter().cloned().collect();
        prop_assert_eq!(encode(&Members(members)), serde_jcs::to_vec(&sorted).unwrap());
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

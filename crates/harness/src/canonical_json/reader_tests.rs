use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::scanner::LEVELS_MAX;
use super::*;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Shape {
    Nothing,
    One(u8),
    Two(i64, String),
    Named { text: String, more: Option<Box<Shape>> },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Everything {
    flag: bool,
    bytes: Vec<u8>,
    pair: (u32, f64),
    map: BTreeMap<String, Value>,
    shape: Shape,
    nothing: (),
    letter: char,
    maybe: Option<i16>,
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn everything() -> impl Strategy<Value = Everything> {
    let shape = prop_oneof![
        Just(Shape::Nothing),
        any::<u8>().prop_map(Shape::One),
        any::<(i64, String)>().prop_map(|(number, text)| Shape::Two(number, text)),
        any::<String>().prop_map(|text| Shape::Named {
            text,
            more: Some(Box::new(Shape::Nothing))
        }),
    ];
    let map = prop::collection::btree_map(any::<String>(), json(), 0..3);
    (any::<(bool, Vec<u8>, u32, i32, char, Option<i16>)>(), map, shape).prop_map(
        |((flag, bytes, whole, float, letter, maybe), map, shape)| Everything {
            flag,
            bytes,
            pair: (whole, f64::from(float)),
            map,
            shape,
            nothing: (),
            letter,
            maybe,
        },
    )
}

proptest! {
    #[test]
    fn what_another_implementation_writes_is_read_as_what_it_was(value in json(), pretty: bool) {
        let text = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
        let met = read::<Value>(&text).unwrap();
        prop_assert_eq!(&met, &serde_json::from_slice::<Value>(&text).unwrap());
    }

    #[test]
    fn every_kind_of_type_is_read(value in everything()) {
        let text = serde_json::to_vec(&value).unwrap();
        let met: Everything = read(&text).unwrap();
        prop_assert_eq!(met, serde_json::from_slice(&text).unwrap());
    }

    #[test]
    fn one_changed_byte_is_judged_as_another_implementation_judges_it(
        value in json(), place: prop::sample::Index, byte: u8,
    ) {
        let mut text = serde_json::to_vec(&value).unwrap();
        let place = place.index(text.len());
        text[place] = byte;
        prop_assert_eq!(read::<Value>(&text).ok(), serde_json::from_slice(&text).ok());
    }

    #[test]
    fn any_text_of_jsons_letters_is_judged_as_another_implementation_judges_it(
        text in r#"([\[\]{},:" \\n/u0-9a-fA-FeE.+-]|null|true|"a":|\\ud83d|\\ude00){0,14}"#,
    ) {
        prop_assert_eq!(read::<Value>(text.as_bytes()).ok(), serde_json::from_slice(text.as_bytes()).ok());
    }
}

#[test]
fn a_struct_is_no_array_and_levels_are_bounded() {
    #[derive(Debug, Deserialize)]
    struct One {
        _one: u8,
    }
    assert!(read::<One>(b"[1]").is_err());
    assert!(read::<One>(br#"{"_one":1}"#).is_ok());
    assert!(read::<One>(br#"{"_one":1,"_one":1}"#).is_err());
    let nested = |levels: usize| ["[".repeat(levels), "]".repeat(levels)].concat();
    assert!(read::<Value>(nested(usize::from(LEVELS_MAX)).as_bytes()).is_ok());
    assert!(read::<Value>(nested(usize::from(LEVELS_MAX) + 1).as_bytes()).is_err());
    assert!(read::<de::IgnoredAny>(nested(1_000_000).as_bytes()).is_err());
}

//! JSON in which no object repeats a member: two readers could take different ones. Depends on nothing.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};

/// A JSON value.
#[derive(Clone, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool,
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Object),
}

/// The members of an object.
pub(crate) type Object = BTreeMap<String, Json>;

impl Json {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The object these bytes are. `None` for anything else, for a repeated member at any depth, and for nesting deeper than
/// 127, which `serde_json` refuses.
pub(crate) fn object(bytes: &[u8]) -> Option<Object> {
    match serde_json::from_slice(bytes) {
        Ok(Json::Object(object)) => Some(object),
        _ => None,
    }
}

/// The list these bytes are, as [`object`].
pub(crate) fn list(bytes: &[u8]) -> Option<Vec<Json>> {
    match serde_json::from_slice(bytes) {
        Ok(Json::List(list)) => Some(list),
        _ => None,
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Json, E> {
        Ok(Json::Bool)
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "as every JSON reader that has only doubles"
    )]
    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Number(number as f64))
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "as every JSON reader that has only doubles"
    )]
    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json, E> {
        Ok(Json::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = access.next_element()? {
            list.push(value);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut object = Object::new();
        while let Some((name, value)) = access.next_entry()? {
            if object.insert(name, value).is_some() {
                return Err(A::Error::custom("a member is repeated"));
            }
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_is_read() {
        let read =
            object(br#"{"a":null,"b":true,"c":-1.5,"d":"\u00e9","e":[1,{"f":2}],"g":18446744073709551615}"#)
                .expect("an object");
        assert!(read["a"] == Json::Null);
        assert!(read["b"] == Json::Bool);
        assert!(read["c"] == Json::Number(-1.5));
        assert_eq!(read["d"].text(), Some("é"));
        assert!(matches!(&read["e"], Json::List(list) if list.len() == 2));
        assert!(list(b"[1, \"x\"]").is_some_and(|list| list[1].text() == Some("x")));
    }

    #[test]
    fn a_repeated_member_spoils_the_whole_at_any_depth() {
        assert!(object(br#"{"a":1,"a":1}"#).is_none());
        assert!(object(br#"{"a":1,"\u0061":2}"#).is_none());
        assert!(object(br#"{"x":[{"a":1,"a":1}]}"#).is_none());
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        for bytes in [
            &b""[..],
            b"[]",
            b"\"a\"",
            b"null",
            b"{",
            b"{}{}",
            b"{\"a\":1e400}",
            b"{\"a\":\"\xff\"}",
            b"{a:1}",
            b"\xef\xbb\xbf{}",
            deep.as_bytes(),
        ] {
            assert!(object(bytes).is_none(), "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}

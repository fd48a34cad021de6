//! The reader of JSON: from bytes to a value, by what its type says of itself.
//!
//! It reads all of RFC 8259, whitespace included; what is canonical is judged by the decoder around it. A type that is a
//! struct is read from an object and never from an array, a text from a text: code for the other forms is code that every
//! browser would download, for each type once more.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, Error as _, Visitor, value::BorrowedStrDeserializer};

/// Container levels that are read. Every caller bounds them further, or reads what this process wrote.
const LEVELS_MAX: u8 = 128;

/// The name of a newtype that wants the text of a value as it is written: it is given that by `visit_borrowed_str`.
pub const AS_WRITTEN: &str = "$conclave::as_written";

/// Why a text is not the JSON of a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ReadError {
    problem: Box<str>,
}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self {
            problem: problem.to_string().into(),
        }
    }
}

/// The value of a JSON text.
///
/// # Errors
///
/// The bytes are not exactly one JSON value, or not one of a `T`.
pub fn read<'de, T: de::Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, ReadError> {
    let mut reader = Reader {
        bytes,
        at: 0,
        levels_left: LEVELS_MAX,
    };
    let value = T::deserialize(&mut reader)?;
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.error("something follows the value")),
    }
}

struct Reader<'de> {
    bytes: &'de [u8],
    at: usize,
    levels_left: u8,
}

/// The beginning of a value; all of it unless it is a container.
enum Token<'de> {
    Null,
    Bool(bool),
    Text(Cow<'de, str>),
    Unsigned(u64),
    Negative(i64),
    Float(f64),
    Array,
    Object,
}

impl<'de> Reader<'de> {
    #[cold]
    fn error(&self, problem: &str) -> ReadError {
        ReadError::custom(format_args!("{problem} at byte {}", self.at))
    }

    /// The next byte that is no whitespace.
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn token(&mut self) -> Result<Token<'de>, ReadError> {
        match self.peek() {
            Some(b'"') => self.text().map(Token::Text),
            Some(b'{') => self.enter().map(|()| Token::Object),
            Some(b'[') => self.enter().map(|()| Token::Array),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'n') => self.word("null").map(|()| Token::Null),
            Some(b't') => self.word("true").map(|()| Token::Bool(true)),
            Some(b'f') => self.word("false").map(|()| Token::Bool(false)),
            _ => Err(self.error("no value")),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), ReadError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.error("no value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn enter(&mut self) -> Result<(), ReadError> {
        self.levels_left = self
            .levels_left
            .checked_sub(1)
            .ok_or_else(|| self.error("too many levels"))?;
        self.at += 1;
        Ok(())
    }

    /// Whether another element of the container that ends with `end` follows; its end is taken.
    fn has_next(&mut self, end: u8, is_first: &mut bool) -> Result<bool, ReadError> {
        let next = self.peek();
        if next == Some(end) {
            self.at += 1;
            self.levels_left += 1;
            return Ok(false);
        }
        if !std::mem::replace(is_first, false) {
            self.expect(b',')?;
        }
        Ok(true)
    }

    fn expect(&mut self, byte: u8) -> Result<(), ReadError> {
        if self.peek() != Some(byte) {
            return Err(self.error(match byte {
                b',' => "no comma",
                b':' => "no colon",
                b'"' => "no name of a member",
                _ => "no end of an object",
            }));
        }
        self.at += 1;
        Ok(())
    }

    fn digits(&mut self) -> Result<(), ReadError> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.error("no digit"));
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Token<'de>, ReadError> {
        let start = self.at;
        let is_negative = self.bytes[start] == b'-';
        self.at += usize::from(is_negative);
        let first = self.at;
        self.digits()?;
        if self.bytes[first] == b'0' && self.at > first + 1 {
            return Err(self.error("a number that begins with 0"));
        }
        let mut is_whole = true;
        if self.bytes.get(self.at) == Some(&b'.') {
            is_whole = false;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            is_whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        // Digits, signs, a point and an exponent.
        let text = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        if is_whole
            && !is_negative
            && let Ok(number) = text.parse()
        {
            return Ok(Token::Unsigned(number));
        }
        // The negative zero is a number of its own, and no integer.
        if is_whole
            && text != "-0"
            && let Ok(number) = text.parse()
        {
            return Ok(Token::Negative(number));
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Token::Float(number)),
            _ => Err(self.error("a number out of range")),
        }
    }

    fn text(&mut self) -> Result<Cow<'de, str>, ReadError> {
        self.expect(b'"')?;
        let mut start = self.at;
        let mut whole = String::new();
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    let last = self.piece(start)?;
                    self.at += 1;
                    return Ok(if whole.is_empty() {
                        Cow::Borrowed(last)
                    } else {
                        Cow::Owned(whole + last)
                    });
                }
                Some(b'\\') => {
                    whole.push_str(self.piece(start)?);
                    whole.push(self.escaped()?);
                    start = self.at;
                }
                Some(byte) if *byte >= 0x20 => self.at += 1,
                Some(_) => return Err(self.error("a control character in a text")),
                None => return Err(self.error("a text without an end")),
            }
        }
    }

    fn piece(&self, start: usize) -> Result<&'de str, ReadError> {
        std::str::from_utf8(&self.bytes[start..self.at]).map_err(|_| self.error("no UTF-8"))
    }

    /// The character of the escape that begins here.
    fn escaped(&mut self) -> Result<char, ReadError> {
        let kind = self.bytes.get(self.at + 1).copied();
        self.at += 2;
        Ok(match kind {
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'u') => return self.code_point(),
            _ => return Err(self.error("no such escape")),
        })
    }

    fn code_point(&mut self) -> Result<char, ReadError> {
        let first = self.unit()?;
        let scalar = match first {
            0xd800..=0xdbff if self.bytes[self.at..].starts_with(b"\\u") => {
                self.at += 2;
                let second = self.unit()?;
                (0xdc00..=0xdfff)
                    .contains(&second)
                    .then(|| 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
            }
            _ => Some(first),
        };
        scalar
            .and_then(char::from_u32)
            .ok_or_else(|| self.error("half of a surrogate pair"))
    }

    fn unit(&mut self) -> Result<u32, ReadError> {
        let digits = self.bytes.get(self.at..self.at + 4);
        let unit = digits.and_then(|digits| {
            digits.iter().try_fold(0, |unit, digit| {
                Some(unit << 4 | char::from(*digit).to_digit(16)?)
            })
        });
        self.at += 4;
        unit.ok_or_else(|| self.error("an escape without four digits"))
    }

    /// Reads over one value.
    fn skip(&mut self) -> Result<(), ReadError> {
        let mut is_first = true;
        match self.token()? {
            Token::Array => {
                while self.has_next(b']', &mut is_first)? {
                    self.skip()?;
                }
            }
            Token::Object => {
                while self.has_next(b'}', &mut is_first)? {
                    self.text()?;
                    self.expect(b':')?;
                    self.skip()?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The text of the next value, as it is written.
    fn as_written(&mut self) -> Result<&'de str, ReadError> {
        self.peek();
        let start = self.at;
        self.skip()?;
        self.piece(start)
    }

    #[cold]
    fn unexpected(&self, met: &Token<'_>, expected: &dyn de::Expected) -> ReadError {
        let met = match met {
            Token::Null => "null",
            Token::Bool(_) => "a boolean",
            Token::Text(_) => "a text",
            Token::Unsigned(_) | Token::Negative(_) | Token::Float(_) => "a number",
            Token::Array => "an array",
            Token::Object => "an object",
        };
        ReadError::custom(format_args!("{met} instead of {expected} at byte {}", self.at))
    }
}

/// Reads a number, and nothing else.
macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            match self.token()? {
                Token::Unsigned(number) => visitor.visit_u64(number),
                Token::Negative(number) => visitor.visit_i64(number),
                Token::Float(number) => visitor.visit_f64(number),
                met => Err(self.unexpected(&met, &visitor)),
            }
        }
    )*};
}

/// Reads a text, and nothing else.
macro_rules! texts {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            match self.token()? {
                Token::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
                Token::Text(Cow::Owned(text)) => visitor.visit_string(text),
                met => Err(self.unexpected(&met, &visitor)),
            }
        }
    )*};
}

impl<'de> de::Deserializer<'de> for &mut Reader<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.token()? {
            Token::Null => visitor.visit_unit(),
            Token::Bool(value) => visitor.visit_bool(value),
            Token::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Token::Text(Cow::Owned(text)) => visitor.visit_string(text),
            Token::Unsigned(number) => visitor.visit_u64(number),
            Token::Negative(number) => visitor.visit_i64(number),
            Token::Float(number) => visitor.visit_f64(number),
            Token::Array => Container::read(self, b']', |items| visitor.visit_seq(items)),
            Token::Object => Container::read(self, b'}', |members| visitor.visit_map(members)),
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }

    texts! { deserialize_char deserialize_str deserialize_string deserialize_identifier }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.token()? {
            Token::Bool(value) => visitor.visit_bool(value),
            met => Err(self.unexpected(&met, &visitor)),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.token()? {
            Token::Null => visitor.visit_unit(),
            met => Err(self.unexpected(&met, &visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.peek() == Some(b'n') {
            self.word("null")?;
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if name == AS_WRITTEN {
            visitor.visit_borrowed_str(self.as_written()?)
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.token()? {
            Token::Array => Container::read(self, b']', |items| visitor.visit_seq(items)),
            met => Err(self.unexpected(&met, &visitor)),
        }
    }

    // Bytes have no form of their own in JSON: they are an array of numbers.
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.token()? {
            Token::Object => Container::read(self, b'}', |members| visitor.visit_map(members)),
            met => Err(self.unexpected(&met, &visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _members: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if self.peek() == Some(b'"') {
            return match self.text()? {
                Cow::Borrowed(name) => visitor.visit_enum(BorrowedStrDeserializer::new(name)),
                Cow::Owned(name) => visitor.visit_enum(de::IntoDeserializer::into_deserializer(name)),
            };
        }
        match self.token()? {
            // An object of one member, whose name is the variant.
            Token::Object => Container::read(self, b'}', |variant| visitor.visit_enum(variant)),
            met => Err(self.unexpected(&met, &visitor)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.skip()?;
        visitor.visit_unit()
    }
}

/// The elements of a container that was entered.
struct Container<'a, 'de> {
    reader: &'a mut Reader<'de>,
    end: u8,
    is_first: bool,
    /// The end was met.
    is_over: bool,
}

impl<'a, 'de> Container<'a, 'de> {
    /// Lets `visit` read the elements, and refuses what it left.
    fn read<T>(
        reader: &'a mut Reader<'de>,
        end: u8,
        visit: impl FnOnce(&mut Container<'_, 'de>) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let mut container = Container {
            reader,
            end,
            is_first: true,
            is_over: false,
        };
        let value = visit(&mut container)?;
        container.finish()?;
        Ok(value)
    }

    fn has_next(&mut self) -> Result<bool, ReadError> {
        if !self.is_over {
            self.is_over = !self.reader.has_next(self.end, &mut self.is_first)?;
        }
        Ok(!self.is_over)
    }

    fn finish(&mut self) -> Result<(), ReadError> {
        if self.has_next()? {
            return Err(self.reader.error("more elements than expected"));
        }
        Ok(())
    }
}

impl<'de> de::SeqAccess<'de> for &mut Container<'_, 'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        if !self.has_next()? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

impl<'de> de::MapAccess<'de> for &mut Container<'_, 'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        if !self.has_next()? {
            return Ok(None);
        }
        if self.reader.peek() != Some(b'"') {
            return Err(self.reader.error("no name of a member"));
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        self.reader.expect(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

impl<'a, 'b, 'de> de::EnumAccess<'de> for &'a mut Container<'b, 'de> {
    type Error = ReadError;
    type Variant = Variant<'a, 'b, 'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self::Variant), ReadError> {
        let name = de::MapAccess::next_key_seed(&mut &mut *self, seed)?
            .ok_or_else(|| self.reader.error("no name of a variant"))?;
        self.reader.expect(b':')?;
        Ok((name, Variant(self)))
    }
}

/// The content of a variant.
struct Variant<'a, 'b, 'de>(&'a mut Container<'b, 'de>);

impl<'de> de::VariantAccess<'de> for Variant<'_, '_, 'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        de::Deserialize::deserialize(&mut *self.0.reader)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        seed.deserialize(&mut *self.0.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, ReadError> {
        de::Deserializer::deserialize_seq(&mut *self.0.reader, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _members: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        de::Deserializer::deserialize_map(&mut *self.0.reader, visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};
    use serde_json::Value;

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
}

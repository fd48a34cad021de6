//! The reader of JSON: from bytes to a value, by what its type says of itself.
//!
//! It reads all of RFC 8259, whitespace included; what is canonical is judged by the decoder around it. A type that is a
//! struct is read from an object and never from an array, a text from a text: code for the other forms is code that every
//! browser would download, for each type once more.

use std::borrow::Cow;

use serde::de::{self, DeserializeSeed, Visitor, value::BorrowedStrDeserializer};

pub use super::scanner::ReadError;
use super::scanner::{Scanner, Token};

/// The name of a newtype that wants the text of a value as it is written: it is given that by `visit_borrowed_str`.
pub const AS_WRITTEN: &str = "$conclave::as_written";

/// The value of a JSON text.
///
/// # Errors
///
/// The bytes are not exactly one JSON value, or not one of a `T`.
pub fn read<'de, T: de::Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, ReadError> {
    let mut scanner = Scanner::new(bytes);
    let value = T::deserialize(&mut scanner)?;
    match scanner.peek() {
        None => Ok(value),
        Some(_) => Err(scanner.error("something follows the value")),
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

impl<'de> de::Deserializer<'de> for &mut Scanner<'de> {
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
    reader: &'a mut Scanner<'de>,
    end: u8,
    is_first: bool,
    /// The end was met.
    is_over: bool,
}

impl<'a, 'de> Container<'a, 'de> {
    /// Lets `visit` read the elements, and refuses what it left.
    fn read<T>(
        reader: &'a mut Scanner<'de>,
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
#[path = "reader_tests.rs"]
mod tests;

//! The encoder of RFC 8785: text, literals and numbers as they come, the members of each object in the order of their
//! names as UTF-16.
//!
//! Everything is written once into one buffer. An object whose members came in order is left as it is; another one is
//! put in order when it ends. Depends on nothing of ours.

use serde::ser::{self, Serialize};
use std::{cmp::Ordering, fmt};

/// What has no JSON form, in words.
#[derive(Debug)]
pub(super) struct NoJsonForm(pub(super) String);

impl fmt::Display for NoJsonForm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for NoJsonForm {}

impl ser::Error for NoJsonForm {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

type Done = Result<(), NoJsonForm>;

/// The greatest integer up to which every integer is a double.
const EXACT_MAX: u128 = 1 << 53;

/// Where a member stands in the text: its name with quotes, and where its value ends.
#[derive(Clone, Copy)]
struct Member {
    name_start: usize,
    name_end: usize,
    end: usize,
}

/// The text so far.
#[derive(Default)]
pub(super) struct Encoder {
    out: Vec<u8>,
    /// The members of every object that is open, the innermost last.
    members: Vec<Member>,
    /// An object while it is put in order.
    scratch: Vec<u8>,
}

impl Encoder {
    /// The canonical text of a value.
    pub(super) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, NoJsonForm> {
        let mut encoder = Self {
            out: Vec::with_capacity(256),
            ..Self::default()
        };
        value.serialize(&mut encoder)?;
        Ok(encoder.out)
    }

    fn text(&mut self, text: &str) {
        self.out.push(b'"');
        escape(&mut self.out, text);
        self.out.push(b'"');
    }

    fn double(&mut self, number: f64) -> Done {
        if !number.is_finite() {
            return Err(NoJsonForm("a number that is not finite".to_owned()));
        }
        let mut buffer = ryu_js::Buffer::new();
        self.out
            .extend_from_slice(buffer.format_finite(number).as_bytes());
        Ok(())
    }

    fn begin_object(&mut self) -> Object<'_> {
        self.out.push(b'{');
        Object {
            first: self.members.len(),
            start: self.out.len(),
            encoder: self,
        }
    }

    fn begin_array(&mut self) -> Array<'_> {
        self.out.push(b'[');
        Array {
            encoder: self,
            is_empty: true,
        }
    }

    /// An integer is the double nearest to it.
    fn integer(&mut self, number: impl Into<i128>) -> Done {
        let number = number.into();
        if number.unsigned_abs() <= EXACT_MAX {
            self.out.extend_from_slice(number.to_string().as_bytes());
            return Ok(());
        }
        self.double(number as f64)
    }

    fn name_of(&self, member: &Member) -> &[u8] {
        &self.out[member.name_start + 1..member.name_end - 1]
    }

    /// Ends the object whose members begin at `first` of the list and at `start` of the text.
    fn end_object(&mut self, first: usize, start: usize) -> Done {
        let in_order = |pair: &[Member]| compare(self.name_of(&pair[0]), self.name_of(&pair[1]));
        let mut orders = self.members[first..].windows(2).map(in_order);
        if !orders.all(|order| order == Ordering::Less) {
            let mut members = self.members.split_off(first);
            members.sort_by(|one, other| compare(self.name_of(one), self.name_of(other)));
            let is_twice = |pair: &[Member]| self.name_of(&pair[0]) == self.name_of(&pair[1]);
            if members.windows(2).any(is_twice) {
                return Err(NoJsonForm("one member name twice".to_owned()));
            }
            self.scratch.clear();
            for member in members {
                if !self.scratch.is_empty() {
                    self.scratch.push(b',');
                }
                self.scratch
                    .extend_from_slice(&self.out[member.name_start..member.end]);
            }
            self.out.truncate(start);
            self.out.extend_from_slice(&self.scratch);
        }
        self.members.truncate(first);
        self.out.push(b'}');
        Ok(())
    }
}

/// Writes text with the escapes of RFC 8785, and no others.
fn escape(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (place, byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' | b'\\' => *byte,
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0c => b'f',
            b'\r' => b'r',
            0x00..=0x1f => b'u',
            _ => continue,
        };
        out.extend_from_slice(&bytes[copied..place]);
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(&[
                b'0',
                b'0',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]);
        }
        copied = place + 1;
    }
    out.extend_from_slice(&bytes[copied..]);
}

/// The order of two names as they stand in the text.
fn compare(one: &[u8], other: &[u8]) -> Ordering {
    let is_plain = |name: &[u8]| name.iter().all(|byte| byte.is_ascii() && *byte != b'\\');
    if is_plain(one) && is_plain(other) {
        return one.cmp(other);
    }
    units(one).cmp(&units(other))
}

/// A name of the text as UTF-16.
fn units(name: &[u8]) -> Vec<u16> {
    let quoted = [b"\"", name, b"\""].concat();
    let name: String = super::read(&quoted).expect("a name that was written as text");
    name.encode_utf16().collect()
}

/// Text that is written as it is displayed, without a copy.
struct Displayed<'a>(&'a mut Vec<u8>);

impl fmt::Write for Displayed<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(self.0, text);
        Ok(())
    }
}

/// An object that is open.
pub(super) struct Object<'a> {
    encoder: &'a mut Encoder,
    first: usize,
    start: usize,
}

impl Object<'_> {
    fn name<T: Serialize + ?Sized>(&mut self, name: &T) -> Done {
        if self.encoder.out.len() > self.start {
            self.encoder.out.push(b',');
        }
        let name_start = self.encoder.out.len();
        name.serialize(&mut *self.encoder)?;
        let name_end = self.encoder.out.len();
        if self.encoder.out.get(name_start) != Some(&b'"') {
            return unused("a member name that is no text");
        }
        self.encoder.out.push(b':');
        self.encoder.members.push(Member {
            name_start,
            name_end,
            end: name_end,
        });
        Ok(())
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        value.serialize(&mut *self.encoder)?;
        let end = self.encoder.out.len();
        if let Some(member) = self.encoder.members.last_mut() {
            member.end = end;
        }
        Ok(())
    }

    fn close(self) -> Done {
        self.encoder.end_object(self.first, self.start)
    }
}

impl ser::SerializeMap for Object<'_> {
    type Ok = ();
    type Error = NoJsonForm;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        self.name(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.value(value)
    }

    fn end(self) -> Done {
        self.close()
    }
}

impl ser::SerializeStruct for Object<'_> {
    type Ok = ();
    type Error = NoJsonForm;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Done {
        self.name(key)?;
        self.value(value)
    }

    fn end(self) -> Done {
        self.close()
    }
}

/// An array that is open.
pub(super) struct Array<'a> {
    encoder: &'a mut Encoder,
    is_empty: bool,
}

impl Array<'_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        if !std::mem::take(&mut self.is_empty) {
            self.encoder.out.push(b',');
        }
        value.serialize(&mut *self.encoder)
    }

    fn close(self) -> Done {
        self.encoder.out.push(b']');
        Ok(())
    }
}

impl ser::SerializeSeq for Array<'_> {
    type Ok = ();
    type Error = NoJsonForm;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.element(value)
    }

    fn end(self) -> Done {
        self.close()
    }
}

impl ser::SerializeTuple for Array<'_> {
    type Ok = ();
    type Error = NoJsonForm;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.element(value)
    }

    fn end(self) -> Done {
        self.close()
    }
}

impl ser::SerializeTupleStruct for Array<'_> {
    type Ok = ();
    type Error = NoJsonForm;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.element(value)
    }

    fn end(self) -> Done {
        self.close()
    }
}

/// What no value of ours is made of.
fn unused<T>(what: &str) -> Result<T, NoJsonForm> {
    Err(NoJsonForm(format!("{what} is not written as JSON here")))
}

macro_rules! integers {
    ($($method:ident: $integer:ty),*) => {
        $(fn $method(self, number: $integer) -> Done {
            self.integer(number)
        })*
    };
}

impl<'a> ser::Serializer for &'a mut Encoder {
    type Ok = ();
    type Error = NoJsonForm;
    type SerializeSeq = Array<'a>;
    type SerializeTuple = Array<'a>;
    type SerializeTupleStruct = Array<'a>;
    type SerializeTupleVariant = ser::Impossible<(), NoJsonForm>;
    type SerializeMap = Object<'a>;
    type SerializeStruct = Object<'a>;
    type SerializeStructVariant = ser::Impossible<(), NoJsonForm>;

    integers!(
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64
    );

    fn serialize_bool(self, value: bool) -> Done {
        let text: &[u8] = if value { b"true" } else { b"false" };
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn serialize_f32(self, number: f32) -> Done {
        self.double(f64::from(number))
    }

    fn serialize_f64(self, number: f64) -> Done {
        self.double(number)
    }

    fn serialize_char(self, value: char) -> Done {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Done {
        self.text(value);
        Ok(())
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Done {
        self.out.push(b'"');
        fmt::write(&mut Displayed(&mut self.out), format_args!("{value}"))
            .map_err(|error| NoJsonForm(error.to_string()))?;
        self.out.push(b'"');
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Done {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Done {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Done {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Done {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Done {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Done {
        unused("a variant with content")
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Array<'a>, NoJsonForm> {
        Ok(self.begin_array())
    }

    fn serialize_tuple(self, _length: usize) -> Result<Array<'a>, NoJsonForm> {
        Ok(self.begin_array())
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<Array<'a>, NoJsonForm> {
        Ok(self.begin_array())
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Self::SerializeTupleVariant, NoJsonForm> {
        unused("a variant with content")
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Object<'a>, NoJsonForm> {
        Ok(self.begin_object())
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Object<'a>, NoJsonForm> {
        Ok(self.begin_object())
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Self::SerializeStructVariant, NoJsonForm> {
        unused("a variant with content")
    }
}

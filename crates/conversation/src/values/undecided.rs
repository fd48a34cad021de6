//! Reading a union: one member, found first, says as what the rest is to be read.
//!
//! The text is kept and read again, from bytes as everything else is. A tree of JSON values in between would need a second
//! reader of every schema, for trees, and that is a good part of what a browser downloads.

use std::borrow::Cow;
use std::fmt;

use conclave_harness::canonical_json::{self, AS_WRITTEN};
use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserialize, Deserializer};

use super::Kinded;

/// A value whose type is not known yet, as it is written.
pub(crate) struct Undecided(Box<str>);

struct AsWritten;

impl<'de> Visitor<'de> for AsWritten {
    type Value = Undecided;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Undecided, E> {
        Ok(Undecided(text.into()))
    }

    // A reader that knows nothing of texts as they are written, such as one of another implementation in a test.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Undecided, D::Error> {
        let value = canonical_json::try_encode(&serde_json::Value::deserialize(deserializer)?);
        let text = value.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.map(|text| Undecided(text.into()))
            .ok_or_else(|| D::Error::custom("a value without a JSON form"))
    }
}

/// The literal that decides.
#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

/// A value that is decided by the literal of its action.
#[derive(Deserialize)]
struct OfAction<'a> {
    #[serde(borrow)]
    action: Kind<'a>,
}

impl Undecided {
    /// Takes one value as it is written.
    ///
    /// # Errors
    /// It is no JSON.
    pub(crate) fn take<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(AS_WRITTEN, AsWritten)
    }

    /// The text of the member `kind`, if there is one.
    pub(crate) fn kind(&self) -> Option<Cow<'_, str>> {
        read::<Kind<'_>>(&self.0).map(|value| value.kind)
    }

    /// The text of the member `kind` of the member `action`, if there is one.
    pub(crate) fn kind_of_action(&self) -> Option<Cow<'_, str>> {
        read::<OfAction<'_>>(&self.0).map(|value| value.action.kind)
    }

    /// The value as a `T`.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn decide<T: DeserializeOwned + Kinded, E: Error>(self) -> Result<Box<T>, E> {
        canonical_json::read(self.0.as_bytes()).map_err(E::custom)
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    canonical_json::read(text.as_bytes()).ok()
}

//! Reading a union: one member, found first, says as what the rest is to be read.
//!
//! The text is kept and read again, from bytes as everything else is. A tree of JSON values in between would need a second
//! reader of every schema, for trees, and that is a good part of what a browser downloads.

use std::borrow::Cow;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::Kinded;

/// A value whose type is not known yet.
pub(crate) struct Undecided(Box<RawValue>);

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
        Box::<RawValue>::deserialize(deserializer).map(Self)
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
        serde_json::from_slice(self.0.get().as_bytes()).map_err(E::custom)
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a RawValue) -> Option<T> {
    serde_json::from_slice(text.get().as_bytes()).ok()
}

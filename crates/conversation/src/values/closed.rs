//! What every closed value has in common: a literal `kind`, exact members, canonical bytes in and out.

use conclave_harness::canonical_json::{self, CanonicalJsonError, Limits};
use conclave_harness::memo;
use conclave_harness::wire_version::{WireVersion, WireVersions};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Versions;

/// Why bytes are not a closed value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The bytes are not the canonical bytes of such a value.
    #[error("not a {what}: {source}")]
    Malformed {
        /// The chapter's name of the value that was expected.
        what: &'static str,
        /// What the canonical decoder refused.
        source: CanonicalJsonError,
    },
    /// The value, or something nested in it, carries a version that is not admitted here.
    #[error("a {what} with wire version {version}")]
    Version {
        /// The chapter's name of the value.
        what: &'static str,
        /// The version.
        version: WireVersion,
    },
}

/// A value with a closed schema and one canonical encoding.
pub trait ClosedValue: Serialize + DeserializeOwned + Versions + Clone + 'static {
    /// The value's name in the chapter, for errors.
    const NAME: &'static str;
    /// Most bytes the decoder looks at.
    const BYTES_MAX: usize = super::PLAINTEXT_BYTES_MAX;
    /// Most container levels the decoder admits.
    const DEPTH_MAX: usize = super::VALUE_DEPTH_MAX;

    /// Decodes exactly the canonical bytes of one value.
    ///
    /// # Errors
    /// [`ValueError`] for bytes over the bounds, bytes that are not RFC 8785, a missing, unknown or ill-formed member,
    /// another `kind`, or a version outside [`HISTORY_WIRE_VERSIONS`](conclave_harness::HISTORY_WIRE_VERSIONS).
    fn decode(bytes: &[u8]) -> Result<Self, ValueError> {
        Self::decode_over(&WireVersions::history(), bytes)
    }

    /// As [`decode`](Self::decode), over another set of versions.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn decode_over(versions: &WireVersions, bytes: &[u8]) -> Result<Self, ValueError> {
        let limits = Limits {
            bytes_max: Self::BYTES_MAX,
            depth_max: Self::DEPTH_MAX,
        };
        let decoded = memo::of(Self::NAME, || bytes, || canonical_json::decode(bytes, limits));
        let value: Self = decoded.map_err(|source| ValueError::Malformed {
            what: Self::NAME,
            source,
        })?;
        let mut foreign = None;
        value.each_version(&mut |version| {
            if !versions.contains(version) {
                foreign = Some(version);
            }
        });
        foreign.map_or(Ok(value), |version| {
            Err(ValueError::Version {
                what: Self::NAME,
                version,
            })
        })
    }

    /// The value's RFC 8785 bytes.
    fn encode(&self) -> Vec<u8> {
        // Members are texts, integers, arrays and JSON values that already hold finite numbers only, so there is
        // nothing in a closed value that JSON cannot say.
        canonical_json::encode(self)
    }
}

/// A value with a literal `kind` member.
pub trait Kinded {
    /// The literal.
    const KIND: &'static str;
}

/// The JSON literal `null` where a schema allows nothing else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Null;

impl Serialize for Null {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_none()
    }
}

impl<'de> Deserialize<'de> for Null {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Option::<serde::de::IgnoredAny>::deserialize(deserializer)? {
            None => Ok(Null),
            Some(_) => Err(D::Error::custom("expected null")),
        }
    }
}

/// Deserializes a member that must be present but may be `null`. (Plain `Option` members may be absent.)
pub(crate) fn required_nullable<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer)
}

/// Deserializes a required [`Null`] member. (A missing member would otherwise pass as `null`.)
pub(crate) fn required_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Null, D::Error> {
    Null::deserialize(deserializer)
}

/// Declares a unit type that stands for one literal `kind`.
macro_rules! kind_literal {
    ($name:ident = $literal:literal) => {
        #[doc = concat!("The literal `kind` \"", $literal, "\".")]
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct $name;

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($literal)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                if text == $literal {
                    Ok($name)
                } else {
                    Err(serde::de::Error::custom(concat!(
                        "kind is not \"",
                        $literal,
                        "\""
                    )))
                }
            }
        }
    };
}
pub(crate) use kind_literal;

/// Declares a versioned closed value: the struct with its `kind` and `sharnessVersion`, and its exact schema.
macro_rules! closed_value {
    (
        $(#[$meta:meta])*
        pub struct $name:ident ($kind:ident = $literal:literal) {
            $( $(#[$field_meta:meta])* pub $field:ident : $type:ty ),+ $(,)?
        }
    ) => {
        crate::values::closed::kind_literal!($kind = $literal);
        crate::values::closed::closed_value_of_kind! {
            $(#[$meta])*
            pub struct $name ($kind = $literal) { $( $(#[$field_meta])* pub $field : $type ),+ }
        }
    };
}
pub(crate) use closed_value;

/// As [`closed_value`], for a `kind` type that exists already.
macro_rules! closed_value_of_kind {
    (
        $(#[$meta:meta])*
        pub struct $name:ident ($kind:ident = $literal:literal) {
            $( $(#[$field_meta:meta])* pub $field:ident : $type:ty ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            /// The wire version this value was created under, any version of the retained history.
            pub sharness_version: conclave_harness::wire_version::WireVersion,
            /// The literal that names this schema.
            pub kind: $kind,
            $( $(#[$field_meta])* pub $field : $type ),+
        }

        impl crate::values::Kinded for $name {
            const KIND: &'static str = $literal;
        }

        impl crate::values::ClosedValue for $name {
            const NAME: &'static str = stringify!($name);
        }

        impl crate::values::Versions for $name {
            fn each_version(&self, visit: &mut dyn FnMut(conclave_harness::wire_version::WireVersion)) {
                visit(self.sharness_version);
                $( crate::values::Versions::each_version(&self.$field, visit); )+
            }
        }
    };
}
pub(crate) use closed_value_of_kind;

/// Declares a union that discriminates on `kind` alone.
macro_rules! kind_union {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident ( $type:ty ) ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
        #[serde(untagged)]
        pub enum $name {
            $( $(#[$variant_meta])* $variant(Box<$type>) ),+
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = crate::values::undecided::Undecided::take(deserializer)?;
                let kind = value.kind();
                $(
                    if kind.as_deref() == Some(<$type as crate::values::Kinded>::KIND) {
                        drop(kind);
                        return value.decide().map($name::$variant);
                    }
                )+
                Err(serde::de::Error::custom(concat!("kind names no ", stringify!($name))))
            }
        }

        impl crate::values::ClosedValue for $name {
            const NAME: &'static str = stringify!($name);
        }

        impl crate::values::Versions for $name {
            fn each_version(&self, visit: &mut dyn FnMut(conclave_harness::wire_version::WireVersion)) {
                match self {
                    $( Self::$variant(inner) => crate::values::Versions::each_version(inner.as_ref(), visit) ),+
                }
            }
        }

        $(
            impl From<$type> for $name {
                fn from(inner: $type) -> Self {
                    $name::$variant(Box::new(inner))
                }
            }
        )+
    };
}
pub(crate) use kind_union;

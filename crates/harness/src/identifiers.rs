//! Nominal identifiers: a four-character prefix and the base64url of 16 or 32 bytes (reference 1.3).
//!
//! Each is its own type, ordered by its decoded bytes, and decodes from its own prefix alone.

use crate::base64url::{self, Base64UrlError};

/// Characters before the payload of every identifier. The payload's alphabet contains `_`, so a text is cut here and
/// never at a separator.
pub const PREFIX_LENGTH: usize = 4;

/// Why a text is not the identifier asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentifierError {
    /// It does not begin as this kind of identifier does.
    #[error("does not start with {prefix}")]
    Prefix {
        /// The prefix wanted.
        prefix: &'static str,
    },
    /// What follows the prefix is not the base64url of the right number of bytes.
    #[error("after {prefix}: {source}")]
    Payload {
        /// The prefix met.
        prefix: &'static str,
        /// What is wrong after it.
        source: Base64UrlError,
    },
}

/// The payload of `text` after `prefix`. What [`nominal_identifier!`](crate::nominal_identifier) decodes with.
///
/// # Errors
///
/// When the prefix is another, or the payload is not exactly `N` bytes in strict base64url.
pub fn decode_payload<const N: usize>(prefix: &'static str, text: &str) -> Result<[u8; N], IdentifierError> {
    let payload = text
        .strip_prefix(prefix)
        .ok_or(IdentifierError::Prefix { prefix })?;
    base64url::decode_array(payload).map_err(|source| IdentifierError::Payload { prefix, source })
}

/// Declares identifier types, each by its doc comment, name, prefix and number of bytes.
///
/// The type is `Copy`, ordered and hashed by its decoded bytes, and shown, parsed and serialised as its text.
///
/// ```
/// conclave_harness::nominal_identifier! {
///     /// A parcel under way.
///     pub struct ParcelId("prc_", 16);
/// }
/// let parcel = ParcelId::from_bytes([1; 16]);
/// assert_eq!(parcel.to_string(), "prc_AQEBAQEBAQEBAQEBAQEBAQ");
/// assert_eq!("prc_AQEBAQEBAQEBAQEBAQEBAQ".parse(), Ok(parcel));
/// ```
#[macro_export]
macro_rules! nominal_identifier {
    ($($(#[$attribute:meta])* $visibility:vis struct $name:ident($prefix:literal, $bytes:literal);)+) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility struct $name([u8; $bytes]);

        impl $name {
            /// What its text starts with.
            pub const PREFIX: &'static str = $prefix;

            /// The identifier of these decoded bytes.
            pub const fn from_bytes(bytes: [u8; $bytes]) -> Self {
                Self(bytes)
            }

            /// The decoded bytes.
            pub const fn as_bytes(&self) -> &[u8; $bytes] {
                &self.0
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                formatter.write_str(Self::PREFIX)?;
                formatter.write_str(&$crate::base64url::encode(&self.0))
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(self, formatter)
            }
        }

        impl ::core::str::FromStr for $name {
            type Err = $crate::identifiers::IdentifierError;

            fn from_str(text: &str) -> ::core::result::Result<Self, Self::Err> {
                $crate::identifiers::decode_payload(Self::PREFIX, text).map(Self)
            }
        }

        impl $crate::__serde::Serialize for $name {
            fn serialize<S: $crate::__serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> $crate::__serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::__serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                let text =
                    <::std::borrow::Cow<'de, str> as $crate::__serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(|error| {
                    <D::Error as $crate::__serde::de::Error>::custom(::core::format_args!("{}: {error}", stringify!($name)))
                })
            }
        }
    )+};
}

nominal_identifier! {
    /// An agent: 16 random bytes the Registry minted.
    pub struct AgentId("agt_", 16);

    /// Whoever an agent acts for: 16 bytes the caller chose, opaque here.
    pub struct PrincipalId("prn_", 16);

    /// One attempt to register, so that it can be repeated.
    pub struct OperationId("opn_", 16);

    /// One message, unique within its sender.
    pub struct MessageId("msg_", 16);

    /// One life of the Router's order.
    pub struct RouterInstanceId("rti_", 16);

    /// SHA-256 of an agent card's complete canonical text.
    pub struct AgentCardDigest("acd_", 32);

    /// SHA-256 of a signed message's complete canonical text.
    pub struct SignedMessageDigest("smd_", 32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_prefix_is_its_own_type() {
        assert!("agt_AQEBAQEBAQEBAQEBAQEBAQ".parse::<AgentId>().is_ok());
        assert_eq!(
            "agt_AQEBAQEBAQEBAQEBAQEBAQ".parse::<MessageId>(),
            Err(IdentifierError::Prefix { prefix: "msg_" })
        );
    }

    #[test]
    fn a_text_is_cut_by_length_and_not_at_an_underscore() {
        let id = AgentId::from_bytes([0xff; 16]);
        assert_eq!(id.to_string(), "agt______________________w");
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn a_payload_of_another_length_or_spelling_is_refused() {
        for text in [
            "",
            "agt_",
            "agt_AQEBAQEBAQEBAQEBAQEBA",
            "agt_AQEBAQEBAQEBAQEBAQEBAQA",
            "agt_AQEBAQEBAQEBAQEBAQEBAR",
            "AGT_AQEBAQEBAQEBAQEBAQEBAQ",
            "agt_AQEBAQEBAQEBAQEBAQEBAQ ",
            "agt_AQEBAQEBAQEBAQEBAQEBA=",
            "agtAQEBAQEBAQEBAQEBAQEBAQ",
        ] {
            assert!(text.parse::<AgentId>().is_err(), "{text}");
        }
    }

    // CONV-A09
    #[test]
    fn order_follows_decoded_bytes_and_not_text() {
        // 0x03.. encodes as "A…" after 0x00.. "A…"; 0xf8.. encodes as "-…", which sorts before every letter.
        let low = AgentId::from_bytes([0x00; 16]);
        let high = AgentId::from_bytes([0xf8; 16]);
        assert!(low < high);
        assert!(low.to_string() > high.to_string());
    }

    #[test]
    fn the_zero_agent_id_is_legal() {
        assert_eq!(
            "agt_AAAAAAAAAAAAAAAAAAAAAA".parse(),
            Ok(AgentId::from_bytes([0; 16]))
        );
    }

    proptest! {
        #[test]
        fn identifiers_survive_text_and_json(bytes: [u8; 32], short: [u8; 16]) {
            let digest = AgentCardDigest::from_bytes(bytes);
            prop_assert_eq!(digest.to_string().parse(), Ok(digest));
            let agent = AgentId::from_bytes(short);
            let json = serde_json::to_string(&agent).unwrap();
            prop_assert_eq!(serde_json::from_str::<AgentId>(&json).unwrap(), agent);
        }
    }
}

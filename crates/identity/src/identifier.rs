//! Identifiers of members. Depends on the wire type alone.

use std::fmt;

use bytes::Bytes;
use conclave_proto::xmtp::identity::associations::{self as wire, IdentifierKind};

/// The length of an Ethereum address, in bytes.
pub const ADDRESS_BYTES: usize = 20;

/// An Ethereum account. Its text is `0x` and 40 lower-case hexadecimal digits, and no other text is read (IDENT-013):
/// the text is signed, so it is never rewritten.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EthereumAddress([u8; ADDRESS_BYTES]);

impl EthereumAddress {
    /// The address with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; ADDRESS_BYTES]) -> EthereumAddress {
        EthereumAddress(bytes)
    }

    /// Reads the one text of an address. `None` for any other text, another letter case included.
    #[must_use]
    pub fn parse(text: &str) -> Option<EthereumAddress> {
        if text.bytes().any(|letter| letter.is_ascii_uppercase()) {
            return None;
        }
        EthereumAddress::parse_any_case(text)
    }

    /// Reads an address whose digits may have either case. `None` for any other text.
    #[must_use]
    pub fn parse_any_case(text: &str) -> Option<EthereumAddress> {
        let mut bytes = [0; ADDRESS_BYTES];
        hex::decode_to_slice(text.strip_prefix("0x")?, &mut bytes).ok()?;
        Some(EthereumAddress(bytes))
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; ADDRESS_BYTES] {
        &self.0
    }
}

impl fmt::Display for EthereumAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "0x{}", hex::encode(self.0))
    }
}

impl fmt::Debug for EthereumAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// A member of an inbox, or what names one. Two are the same member when kind and bytes are; a relying party is no part
/// of a passkey's identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberIdentifier {
    /// An Ethereum account.
    Ethereum(EthereumAddress),
    /// The public key of an installation. Of any length here: a key of another length than 32 bytes signs nothing.
    Installation(Bytes),
    /// The public key of a passkey, as carried: the two encodings of one point are two members.
    Passkey(Bytes),
}

impl MemberIdentifier {
    /// Reads an identifier that is carried as text with its kind: an Ethereum account or a passkey. An unset or unknown
    /// kind means Ethereum; a handle is no member, so its kind names none. `None` when the text does not fit the kind.
    #[must_use]
    pub fn from_text(kind: i32, text: &str) -> Option<MemberIdentifier> {
        match IdentifierKind::try_from(kind) {
            Ok(IdentifierKind::Passkey) => hex::decode(text)
                .ok()
                .map(|key| MemberIdentifier::Passkey(key.into())),
            Ok(IdentifierKind::Handle) => None,
            Ok(IdentifierKind::Unspecified | IdentifierKind::Ethereum) | Err(_) => {
                EthereumAddress::parse(text).map(MemberIdentifier::Ethereum)
            }
        }
    }

    /// Reads the wire message. `None` when it is absent, has no kind, or names a malformed address.
    #[must_use]
    pub fn from_wire(wire: Option<&wire::MemberIdentifier>) -> Option<MemberIdentifier> {
        use wire::member_identifier::Kind;
        match wire?.kind.as_ref()? {
            Kind::EthereumAddress(text) => EthereumAddress::parse(text).map(MemberIdentifier::Ethereum),
            Kind::InstallationPublicKey(key) => Some(MemberIdentifier::installation(key)),
            Kind::Passkey(passkey) => Some(MemberIdentifier::passkey(&passkey.key)),
        }
    }

    /// The installation with this public key, which is copied: identifiers are remembered long after the request that
    /// named them, and a part of its buffer would keep the whole of it in memory.
    #[must_use]
    pub fn installation(key: &[u8]) -> MemberIdentifier {
        MemberIdentifier::Installation(Bytes::copy_from_slice(key))
    }

    /// The passkey with this public key, which is copied as that of an installation is.
    #[must_use]
    pub fn passkey(key: &[u8]) -> MemberIdentifier {
        MemberIdentifier::Passkey(Bytes::copy_from_slice(key))
    }

    /// Whether it is an installation.
    #[must_use]
    pub const fn is_installation(&self) -> bool {
        matches!(self, MemberIdentifier::Installation(_))
    }
}

/// As the signed text and the inbox id carry it: an address with `0x`, a key in lower-case hexadecimal without it.
impl fmt::Display for MemberIdentifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemberIdentifier::Ethereum(address) => address.fmt(out),
            MemberIdentifier::Installation(key) | MemberIdentifier::Passkey(key) => {
                out.write_str(&hex::encode(key))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

    // API-230
    #[test]
    fn an_address_has_one_text() {
        let address = EthereumAddress::parse(ADDRESS).expect("an address");
        assert_eq!(address.to_string(), ADDRESS);
        for other in [
            &ADDRESS.to_uppercase(),
            &ADDRESS.replace("0xf", "0xF"),
            &ADDRESS.replace("0x", "0X"),
            &ADDRESS[2..],
            &ADDRESS[..41],
            &format!("{ADDRESS}0"),
            &ADDRESS.replace('9', "g"),
            &format!(" {ADDRESS}"),
            &format!("0x0x{}", &ADDRESS[4..]),
            "0x",
            "",
        ] {
            assert_eq!(EthereumAddress::parse(other), None, "{other}");
        }
    }

    // API-230
    #[test]
    fn the_kind_of_a_text_says_how_it_is_read() {
        let ethereum = EthereumAddress::parse(ADDRESS).map(MemberIdentifier::Ethereum);
        for kind in [0, 1, 4, 99, -1] {
            assert_eq!(MemberIdentifier::from_text(kind, ADDRESS), ethereum, "{kind}");
        }
        let passkey = MemberIdentifier::Passkey(Bytes::from_static(&[3, 0xab]));
        assert_eq!(MemberIdentifier::from_text(2, "03AB"), Some(passkey.clone()));
        assert_eq!(passkey.to_string(), "03ab");
        for (kind, text) in [
            (2, ADDRESS),
            (2, "03a"),
            (3, "alice"),
            (3, ADDRESS),
            (1, "03ab"),
            (0, ""),
        ] {
            assert_eq!(MemberIdentifier::from_text(kind, text), None, "{kind} {text}");
        }
    }
}

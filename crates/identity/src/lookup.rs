//! The keys that identifiers and handles are found by (API-270, API-299). Depends on handles and the wire type.
//!
//! The same keys come from admitted updates ([`crate::state::changes`]) and from the entries of GetInboxIds, so that
//! comparing keys compares identifiers as the contract wants: addresses without regard to letter case, passkeys by their
//! bytes, handles without regard to ASCII letter case.

use conclave_proto::xmtp::identity::associations::IdentifierKind;

use crate::{handle::Handle, identifier::EthereumAddress, signature::passkey::KEY_BYTES as PASSKEY_BYTES};

/// The kinds of identifier that resolve to an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LookupKind {
    /// An Ethereum account, by its text in lower case.
    Ethereum,
    /// A passkey, by the bytes of its key.
    Passkey,
}

/// An identifier in the one form that is compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdentifierKey {
    /// Its kind.
    pub kind: LookupKind,
    /// Its normalised bytes.
    pub key: Vec<u8>,
}

/// What one entry of GetInboxIds asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupKey {
    /// The latest live association of an identifier.
    Identifier(IdentifierKey),
    /// The inbox that claimed a handle.
    Handle(Handle),
    /// What no inbox can be associated with: a text that is no address, a passkey that is not hexadecimal or has not the
    /// length of a key, or an unknown kind. Nobody is asked for it, however long it is.
    ///
    /// Ours: API-270 answers such an entry with no inbox, as any other without an association; it names no error for it.
    Nothing,
}

/// An entry that fails the whole request: INVALID_ARGUMENT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// A handle that does not match the grammar (API-299).
    #[error("an identifier of the kind handle is not a handle")]
    Handle,
}

impl LookupKey {
    /// Reads an entry of GetInboxIds. An unset kind means Ethereum.
    ///
    /// # Errors
    /// [`LookupError`] when the kind is handle and the identifier is none.
    pub fn parse(identifier: &str, kind: i32) -> Result<LookupKey, LookupError> {
        Ok(match IdentifierKind::try_from(kind) {
            Ok(IdentifierKind::Unspecified | IdentifierKind::Ethereum) => {
                match EthereumAddress::parse(&identifier.to_ascii_lowercase()) {
                    Some(address) => LookupKey::Identifier(IdentifierKey {
                        kind: LookupKind::Ethereum,
                        key: address.to_string().into_bytes(),
                    }),
                    None => LookupKey::Nothing,
                }
            }
            Ok(IdentifierKind::Passkey) => match hex::decode(identifier) {
                Ok(key) if PASSKEY_BYTES.contains(&key.len()) => LookupKey::Identifier(IdentifierKey {
                    kind: LookupKind::Passkey,
                    key,
                }),
                Ok(_) | Err(_) => LookupKey::Nothing,
            },
            Ok(IdentifierKind::Handle) => {
                LookupKey::Handle(Handle::parse_any_case(identifier).ok_or(LookupError::Handle)?)
            }
            Err(_) => LookupKey::Nothing,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: LookupKind, key: &[u8]) -> LookupKey {
        LookupKey::Identifier(IdentifierKey {
            kind,
            key: key.to_vec(),
        })
    }

    // API-270
    #[test]
    fn an_address_is_found_whatever_its_letter_case() {
        let lower = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
        let expected = Ok(key(LookupKind::Ethereum, lower.as_bytes()));
        for text in [
            lower,
            &lower.to_uppercase(),
            "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
            "0Xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
        ] {
            for kind in [0, 1] {
                assert_eq!(LookupKey::parse(text, kind), expected, "{text}");
            }
        }
        // No form is demanded; what is no address is found nowhere.
        for text in [
            "Bob",
            "",
            "0x",
            &lower[2..],
            &format!("{lower}0"),
            &"0x".repeat(1 << 20),
        ] {
            assert_eq!(LookupKey::parse(text, 1), Ok(LookupKey::Nothing));
        }
    }

    // API-270
    #[test]
    fn a_passkey_is_found_by_its_bytes() {
        for length in [33, 65] {
            let bytes = vec![0xab; length];
            let expected = Ok(key(LookupKind::Passkey, &bytes));
            assert_eq!(LookupKey::parse(&"ab".repeat(length), 2), expected);
            assert_eq!(LookupKey::parse(&"aB".repeat(length), 2), expected);
        }
        let compressed = "ab".repeat(33);
        for text in [
            "",
            &compressed[1..],
            &compressed[2..],
            &format!("0x{compressed}"),
            &"zz".repeat(33),
            &"ab".repeat(1 << 20),
        ] {
            assert_eq!(LookupKey::parse(text, 2), Ok(LookupKey::Nothing));
        }
    }

    // API-299
    #[test]
    fn a_handle_is_found_whatever_its_ascii_letter_case() {
        let handle = Handle::parse("alice.42").expect("a handle");
        for text in ["alice.42", "ALICE.42", "Alice.42"] {
            assert_eq!(LookupKey::parse(text, 3), Ok(LookupKey::Handle(handle.clone())));
        }
        for text in ["", "alice.", "@alice", "álice", "ALICE.0"] {
            assert_eq!(LookupKey::parse(text, 3), Err(LookupError::Handle), "{text}");
        }
    }

    // API-270
    #[test]
    fn an_unknown_kind_has_no_association() {
        for kind in [4, -1, i32::MAX] {
            assert_eq!(LookupKey::parse("alice", kind), Ok(LookupKey::Nothing));
        }
    }
}

//! The id of an inbox, from what opens it (IDENT-010). Depends on identifiers.

use sha2::{Digest as _, Sha256};

use crate::identifier::MemberIdentifier;

/// The inbox id of an identifier and a nonce: SHA-256 of the identifier's text and the decimal nonce, in lower-case
/// hexadecimal. An installation opens no inbox; the types that lead here allow none.
#[must_use]
pub fn derive(identifier: &MemberIdentifier, nonce: u64) -> String {
    hex::encode(Sha256::digest(format!("{identifier}{nonce}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    // API-230
    #[test]
    fn inbox_ids_are_those_of_the_published_derivation() {
        let a1 = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
        let passkey = "0360fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6";
        for (kind, text, nonce, expected) in [
            (
                1,
                "0x1234567890abcdef1234567890abcdef12345678",
                0,
                "fcd18d86276d7a99fe522dba9660c420f03c8648785ada7c5daae232a3df77a9",
            ),
            (
                1,
                a1,
                0,
                "41ff994ea1f9462295cee1ad48c270f6fe3e6307cd9a062e9320cf43a724e348",
            ),
            (
                1,
                a1,
                1,
                "f2dc4b90b67487658e6fc1d4759c148fac797ea24fadee18c9d511787e04ea1a",
            ),
            (
                1,
                a1,
                u64::MAX,
                "6a8e20e05735b605de0b4604988c688b801a6a381a43edc056d71e6b0a87f4ae",
            ),
            (
                1,
                "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
                0,
                "1e1257e2aeb2ca12d7758d0b39b378086d410485fc71df0fe8d22b3bfee4c461",
            ),
            (
                2,
                passkey,
                0,
                "f37503786443c2c4c1a3ebf97d3e859e328481620520cf5e764597b18413526a",
            ),
            (
                2,
                &passkey.to_uppercase(),
                0,
                "f37503786443c2c4c1a3ebf97d3e859e328481620520cf5e764597b18413526a",
            ),
        ] {
            let identifier = MemberIdentifier::from_text(kind, text).expect("well formed");
            assert_eq!(derive(&identifier, nonce), expected);
        }
    }
}

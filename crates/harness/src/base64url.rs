//! Bytes as text: RFC 4648 section 5 without padding, and exactly one text for each byte string (reference 1.2).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// The text of `bytes`: `ceil(4 n / 3)` characters.
pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// How many characters [`encode`] gives for so many bytes.
pub const fn encoded_length(bytes: usize) -> usize {
    // Not `4 * bytes` as a whole, which wraps from 1 GiB on where addresses have 32 bits.
    bytes / 3 * 4 + (bytes % 3 * 4).div_ceil(3)
}

/// The bytes of `text`.
///
/// # Errors
///
/// For padding, whitespace, a foreign character, a length no byte string has, or unused bits that are not zero.
pub fn decode(text: &str) -> Result<Vec<u8>, Base64UrlError> {
    URL_SAFE_NO_PAD.decode(text).map_err(Base64UrlError::from)
}

/// The `N` bytes of `text`.
///
/// # Errors
///
/// As [`decode`], and when there are more or fewer than `N`.
pub fn decode_array<const N: usize>(text: &str) -> Result<[u8; N], Base64UrlError> {
    // Refused before decoding, so that a long text costs nothing.
    if text.len() != encoded_length(N) {
        return Err(Base64UrlError::Length {
            characters: text.len(),
        });
    }
    let bytes = decode(text)?;
    bytes.try_into().map_err(|_| Base64UrlError::Length {
        characters: text.len(),
    })
}

/// Why a text is not the base64url of any, or of so many, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Base64UrlError {
    /// A character outside the alphabet; `=` and whitespace are.
    #[error("byte {byte:#04x} at {offset} is not a base64url character")]
    Character {
        /// Where it stands, in bytes from the start.
        offset: usize,
        /// What stands there.
        byte: u8,
    },
    /// No byte string, or none of the wanted length, has a text this long.
    #[error("{characters} characters are not the base64url of so many bytes")]
    Length {
        /// The length met.
        characters: usize,
    },
    /// The last character carries bits that belong to no byte.
    #[error("the last base64url character carries unused bits")]
    UnusedBits,
}

impl From<base64::DecodeError> for Base64UrlError {
    fn from(error: base64::DecodeError) -> Self {
        match error {
            base64::DecodeError::InvalidByte(offset, byte) => Self::Character { offset, byte },
            base64::DecodeError::InvalidLength(characters) => Self::Length { characters },
            base64::DecodeError::InvalidLastSymbol(..) => Self::UnusedBits,
            // Without padding in the alphabet a `=` is reported where the padding would start.
            base64::DecodeError::InvalidPadding => Self::UnusedBits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_foreign_spelling_is_refused() {
        for text in [
            "+A", "/A", "AA==", "AA=", "A", "AAAAA", "A A", "AA\n", "\u{e4}A", "QQ==", "AB", "AAB",
        ] {
            assert!(decode(text).is_err(), "{text}");
        }
        assert_eq!(decode(""), Ok(Vec::new()));
        assert_eq!(decode("_-8"), Ok(vec![0xff, 0xef]));
    }

    #[test]
    fn the_last_character_may_carry_no_unused_bits() {
        const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        fn legal<const N: usize>() -> String {
            let head = "A".repeat(encoded_length(N) - 1);
            ALPHABET
                .chars()
                .filter(|last| decode_array::<N>(&format!("{head}{last}")).is_ok())
                .collect()
        }
        assert_eq!(legal::<12>(), ALPHABET);
        assert_eq!(legal::<16>(), "AQgw");
        assert_eq!(legal::<32>(), "AEIMQUYcgkosw048");
        assert_eq!(legal::<40>(), "AQgw");
        assert_eq!(legal::<64>(), "AQgw");
    }

    proptest! {
        #[test]
        fn bytes_survive_the_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let text = encode(&bytes);
            prop_assert_eq!(text.len(), encoded_length(bytes.len()));
            prop_assert_eq!(decode(&text), Ok(bytes));
        }

        #[test]
        fn whatever_decodes_encodes_to_the_same_text(text in "[A-Za-z0-9_=+/ -]{0,24}") {
            if let Ok(bytes) = decode(&text) {
                prop_assert_eq!(encode(&bytes), text);
            }
        }
    }
}

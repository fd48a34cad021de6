//! What an operator decides: the signer, and who may register.

use sha2::{Digest, Sha256};
use std::fmt;

/// The shortest admission token, in characters.
pub const ADMISSION_TOKEN_LENGTH_MIN: usize = 8;

/// The longest admission token, in characters.
pub const ADMISSION_TOKEN_LENGTH_MAX: usize = 512;

/// A Registry's configuration.
#[derive(Clone, Default)]
pub struct RegistryConfiguration {
    /// The Ed25519 seed cards are signed with. Without one the Registry keeps a seed of its own.
    pub signing_seed: Option<[u8; 32]>,
    /// What an agent has to present to register. Without one anybody may.
    pub admission_token: Option<AdmissionToken>,
}

impl fmt::Debug for RegistryConfiguration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RegistryConfiguration")
            .field("signing_seed", &self.signing_seed.map(|_| "…"))
            .field("admission_token", &self.admission_token)
            .finish()
    }
}

/// An admission token that no request could carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionTokenError {
    /// Too short to guard anything, or too long.
    #[error(
        "an admission token has {ADMISSION_TOKEN_LENGTH_MIN} to {ADMISSION_TOKEN_LENGTH_MAX} characters, not {length}"
    )]
    Length {
        /// Its length in bytes.
        length: usize,
    },
    /// Not a `token68` (RFC 9110 section 11.2).
    #[error(
        "character {offset} of the admission token is not a letter, a digit or one of - . _ ~ + / and a final ="
    )]
    Character {
        /// Where it stands, in bytes from the start.
        offset: usize,
    },
}

/// The token a registration has to present, as its hash, so that comparing takes the same time for every wrong one.
#[derive(Clone, PartialEq, Eq)]
pub struct AdmissionToken {
    hash: [u8; 32],
}

impl AdmissionToken {
    /// Reads a `token68` of [`ADMISSION_TOKEN_LENGTH_MIN`] to [`ADMISSION_TOKEN_LENGTH_MAX`] characters.
    ///
    /// # Errors
    /// [`AdmissionTokenError`], which shows nothing of it.
    pub fn parse(token: &str) -> Result<Self, AdmissionTokenError> {
        if !(ADMISSION_TOKEN_LENGTH_MIN..=ADMISSION_TOKEN_LENGTH_MAX).contains(&token.len()) {
            return Err(AdmissionTokenError::Length { length: token.len() });
        }
        let unpadded = token.trim_end_matches('=');
        let foreign = |byte: u8| !(byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte));
        // Padding alone is no token.
        match unpadded
            .bytes()
            .position(foreign)
            .or(unpadded.is_empty().then_some(0))
        {
            Some(offset) => Err(AdmissionTokenError::Character { offset }),
            None => Ok(Self {
                hash: Sha256::digest(token).into(),
            }),
        }
    }

    pub(crate) fn admits(&self, presented: Option<&str>) -> bool {
        presented.is_some_and(|token| Sha256::digest(token).as_slice() == self.hash)
    }
}

impl fmt::Debug for AdmissionToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AdmissionToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_token68_of_8_to_512_characters() {
        for token in ["abcdefgh", "A-._~+/9", "abcdefg=", "abcdef==", &"x".repeat(512)] {
            assert!(AdmissionToken::parse(token).is_ok(), "{token}");
        }
        for token in [
            "",
            "abcdefg",
            &"x".repeat(513),
            "abcd efgh",
            "abc=defgh",
            "========",
            "abcdefg\u{e9}",
            "abcdefg\n",
        ] {
            assert!(AdmissionToken::parse(token).is_err(), "{token}");
        }
    }

    #[test]
    fn only_the_token_itself_admits() {
        let admission = AdmissionToken::parse("let-me-in").unwrap();
        assert!(admission.admits(Some("let-me-in")));
        for presented in [
            None,
            Some(""),
            Some("let-me-in "),
            Some("let-me-i"),
            Some("LET-ME-IN"),
        ] {
            assert!(!admission.admits(presented));
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let configuration = RegistryConfiguration {
            signing_seed: Some([7; 32]),
            admission_token: AdmissionToken::parse("let-me-in").ok(),
        };
        let shown = format!("{configuration:?} {:?}", AdmissionToken::parse("let-me-in"));
        assert!(!shown.contains("let-me-in") && !shown.contains('7'), "{shown}");
    }
}

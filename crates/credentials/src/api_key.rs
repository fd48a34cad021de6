//! Tokens that are compared (AUTH-006, AUTH-030). Depends on [`crate::bearer`].

use std::{fmt, hint};

use sha2::{Digest as _, Sha256};

use crate::bearer::TOKEN_BYTES_MAX;

/// The shortest value of an API key, in bytes: below it guessing is no longer hopeless.
pub const API_KEY_BYTES_MIN: usize = 32;
/// The longest value of an API key, in bytes: no longer token is looked at.
pub const API_KEY_BYTES_MAX: usize = TOKEN_BYTES_MAX;
/// How many API keys a deployment may have.
pub const API_KEY_COUNT_MAX: usize = 256;
/// The longest name of an API key, in bytes.
pub const API_KEY_NAME_BYTES_MAX: usize = 64;

/// What is wrong with an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiKeyError {
    /// Its name cannot stand in a log.
    #[error(
        "the name of an API key begins with a letter or digit and has at most {API_KEY_NAME_BYTES_MAX} letters, digits \
         and . _ -"
    )]
    Name,
    /// Its value is too short or too long.
    #[error("an API key has {API_KEY_BYTES_MIN} to {API_KEY_BYTES_MAX} bytes, not {length}")]
    Length {
        /// The length of the value in bytes.
        length: usize,
    },
    /// Its value has a byte that no header could carry exactly.
    #[error("byte {offset} of the API key is not a visible ASCII character")]
    Character {
        /// Where it stands, from the start of the value.
        offset: usize,
    },
    /// Two keys have one value or one name, so that who calls would be arbitrary.
    #[error("another API key has the same name or value")]
    Repeated,
    /// There are too many keys to compare each request with all of them.
    #[error("there are more than {API_KEY_COUNT_MAX} API keys")]
    TooMany,
}

/// The API keys of a deployment. Holds hashes of the values alone.
#[derive(Clone, Default, PartialEq)]
pub struct ApiKeys(Vec<ApiKey>);

#[derive(Clone, PartialEq)]
struct ApiKey {
    name: String,
    hash: [u8; 32],
}

impl fmt::Debug for ApiKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_list()
            .entries(self.0.iter().map(|key| &key.name))
            .finish()
    }
}

impl ApiKeys {
    /// Adds a key.
    ///
    /// # Errors
    /// What is wrong with it. Nothing of the value is repeated.
    pub fn add(&mut self, name: &str, value: &str) -> Result<(), ApiKeyError> {
        check_name(name)?;
        check_value(value)?;
        let hash = hash(value);
        if self.0.iter().any(|key| key.hash == hash || key.name == name) {
            return Err(ApiKeyError::Repeated);
        }
        if self.0.len() == API_KEY_COUNT_MAX {
            return Err(ApiKeyError::TooMany);
        }
        self.0.push(ApiKey {
            name: name.to_owned(),
            hash,
        });
        Ok(())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the keys.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|key| key.name.as_str())
    }

    /// The name of the key with this value. Takes as long for every token of one length: all keys are compared to the end.
    #[must_use]
    pub fn name_of(&self, token: &str) -> Option<&str> {
        let hash = hash(token);
        let mut found = None;
        for key in &self.0 {
            if is_equal(&key.hash, &hash) {
                found = Some(key.name.as_str());
            }
        }
        found
    }
}

/// Checks a value that is to be compared with what callers present.
///
/// # Errors
/// Its length, or a byte outside 0x21 to 0x7E.
pub fn check_value(value: &str) -> Result<(), ApiKeyError> {
    let length = value.len();
    if !(API_KEY_BYTES_MIN..=API_KEY_BYTES_MAX).contains(&length) {
        return Err(ApiKeyError::Length { length });
    }
    match value.bytes().position(|byte| !byte.is_ascii_graphic()) {
        Some(offset) => Err(ApiKeyError::Character { offset }),
        None => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), ApiKeyError> {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_alphanumeric();
    let fits = name.len() <= API_KEY_NAME_BYTES_MAX
        && name.as_bytes().first().is_some_and(is_alphanumeric)
        && name
            .bytes()
            .all(|byte| is_alphanumeric(&byte) || b"._-".contains(&byte));
    fits.then_some(()).ok_or(ApiKeyError::Name)
}

fn hash(value: &str) -> [u8; 32] {
    Sha256::digest(value).into()
}

/// Compares without a branch on what is compared. The compiler may not see that the rest does not matter after a difference.
fn is_equal(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let differences = one
        .iter()
        .zip(other)
        .fold(0, |differences, (a, b)| hint::black_box(differences | (a ^ b)));
    differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "0123456789abcdef0123456789abcdef";

    // AUTH-006
    #[test]
    fn a_token_names_the_key_whose_value_it_is() {
        let mut keys = ApiKeys::default();
        assert_eq!(keys.name_of(VALUE), None);
        for number in 0..5 {
            keys.add(&format!("key-{number}"), &format!("{VALUE}{number}"))
                .expect("a key");
        }
        for number in 0..5 {
            assert_eq!(
                keys.name_of(&format!("{VALUE}{number}")),
                Some(&*format!("key-{number}"))
            );
        }
        for token in [
            "",
            VALUE,
            &format!("{VALUE}5"),
            &format!("{VALUE}0 "),
            &VALUE.to_uppercase(),
        ] {
            assert_eq!(keys.name_of(token), None, "{token}");
        }
    }

    #[test]
    fn hashes_are_equal_only_if_every_byte_is() {
        let one = hash(VALUE);
        assert!(is_equal(&one, &one));
        for index in 0..32 {
            let mut other = one;
            other[index] ^= 1;
            assert!(!is_equal(&one, &other), "byte {index}");
        }
    }

    // AUTH-030
    #[test]
    fn a_value_that_is_weak_or_cannot_travel_is_refused() {
        let mut keys = ApiKeys::default();
        keys.add("a", VALUE).expect("the shortest");
        keys.add("b", &"x".repeat(API_KEY_BYTES_MAX))
            .expect("the longest");
        for length in [0, 31, API_KEY_BYTES_MAX + 1] {
            let refused = keys.add("c", &"y".repeat(length));
            assert_eq!(refused, Err(ApiKeyError::Length { length }));
        }
        for byte in ["\n", " ", "\u{7f}", "ä"] {
            let refused = keys.add("c", &format!("{}{byte}", "y".repeat(40)));
            assert_eq!(refused, Err(ApiKeyError::Character { offset: 40 }));
        }
        assert_eq!(keys.add("c", VALUE), Err(ApiKeyError::Repeated));
        assert_eq!(keys.add("a", &format!("{VALUE}0")), Err(ApiKeyError::Repeated));
        assert!(!format!("{keys:?}").contains(VALUE));
    }

    #[test]
    fn a_name_that_cannot_stand_in_a_log_is_refused() {
        let mut keys = ApiKeys::default();
        for (number, name) in ["a", "0", "Ops.backup-1_x", &"n".repeat(64)]
            .into_iter()
            .enumerate()
        {
            keys.add(name, &format!("{VALUE}{number}")).expect(name);
        }
        for name in ["", "-a", ".a", "_a", "a b", "a\n", "ä", "a/b", &"n".repeat(65)] {
            assert_eq!(
                keys.add(name, &format!("{VALUE}x")),
                Err(ApiKeyError::Name),
                "{name}"
            );
        }
    }

    #[test]
    fn there_are_at_most_so_many_keys() {
        let mut keys = ApiKeys::default();
        for number in 0..API_KEY_COUNT_MAX {
            keys.add(&format!("k{number}"), &format!("{VALUE}{number}"))
                .expect("a key");
        }
        assert_eq!(keys.add("more", VALUE), Err(ApiKeyError::TooMany));
    }
}

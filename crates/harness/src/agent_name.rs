//! The name an agent is addressed by (reference 1.3).

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, str::FromStr};

/// The shortest name, in characters.
pub const AGENT_NAME_LENGTH_MIN: usize = 3;

/// The longest name, in characters.
pub const AGENT_NAME_LENGTH_MAX: usize = 32;

/// `^[a-z0-9]+(-[a-z0-9]+)*$`, 3 to 32 characters. A name has one spelling: nothing is folded or normalised.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentName(String);

impl AgentName {
    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentNameError {
    /// Too short or too long.
    #[error("a name has {AGENT_NAME_LENGTH_MIN} to {AGENT_NAME_LENGTH_MAX} characters, not {bytes} bytes")]
    Length {
        /// Bytes met.
        bytes: usize,
    },
    /// A character other than `a` to `z`, `0` to `9` and `-`.
    #[error("character {offset} of the name is not one of a-z, 0-9 and -")]
    Character {
        /// Where it stands, in bytes from the start.
        offset: usize,
    },
    /// A hyphen at an end or next to another.
    #[error("the hyphen at {offset} does not stand between two letters or digits")]
    Hyphen {
        /// Where it stands, in bytes from the start.
        offset: usize,
    },
}

impl FromStr for AgentName {
    type Err = AgentNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = text.as_bytes();
        if !(AGENT_NAME_LENGTH_MIN..=AGENT_NAME_LENGTH_MAX).contains(&bytes.len()) {
            return Err(AgentNameError::Length { bytes: bytes.len() });
        }
        let mut after_hyphen = true;
        for (offset, byte) in bytes.iter().enumerate() {
            match byte {
                b'a'..=b'z' | b'0'..=b'9' => after_hyphen = false,
                b'-' if after_hyphen || offset + 1 == bytes.len() => {
                    return Err(AgentNameError::Hyphen { offset });
                }
                b'-' => after_hyphen = true,
                _ => return Err(AgentNameError::Character { offset }),
            }
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for AgentName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Serialize for AgentName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for AgentName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_exactly_one_spelling() {
        for text in ["abc", "a-b", "0-0-0", "alice-agent", "a1b2c3", &"a".repeat(32)] {
            assert_eq!(
                text.parse::<AgentName>().map(|name| name.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in [
            "",
            "ab",
            &"a".repeat(33),
            "Alice",
            "-ab",
            "ab-",
            "a--b",
            "a_b",
            "a b",
            "ab\n",
            "caf\u{e9}",
            "a.b",
            "---",
        ] {
            assert!(text.parse::<AgentName>().is_err(), "{text:?}");
        }
    }
}

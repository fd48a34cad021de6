//! Keys, ordered as IndexedDB orders array keys.

use std::cmp::Ordering;
use std::fmt;

/// One part of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyPart {
    /// A number, at most [`KeyPart::NUMBER_MAX`] so that a double holds it exactly.
    Number(u64),
    /// A text.
    Text(String),
}

impl KeyPart {
    /// The greatest number a key may hold: 2^53 - 1, the last integer a double holds exactly.
    pub const NUMBER_MAX: u64 = (1 << 53) - 1;
}

impl Ord for KeyPart {
    /// Numbers come before texts; texts compare by UTF-16 code unit.
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (KeyPart::Number(left), KeyPart::Number(right)) => left.cmp(right),
            (KeyPart::Number(_), KeyPart::Text(_)) => Ordering::Less,
            (KeyPart::Text(_), KeyPart::Number(_)) => Ordering::Greater,
            // Bytes are in this order too unless one text goes beyond what UTF-16 says in one unit; ours never do.
            (KeyPart::Text(left), KeyPart::Text(right)) if left.is_ascii() && right.is_ascii() => {
                left.cmp(right)
            }
            (KeyPart::Text(left), KeyPart::Text(right)) => left.encode_utf16().cmp(right.encode_utf16()),
        }
    }
}

impl PartialOrd for KeyPart {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<u64> for KeyPart {
    fn from(number: u64) -> Self {
        debug_assert!(number <= Self::NUMBER_MAX);
        KeyPart::Number(number)
    }
}

impl From<&str> for KeyPart {
    fn from(text: &str) -> Self {
        KeyPart::Text(text.to_owned())
    }
}

impl From<&String> for KeyPart {
    fn from(text: &String) -> Self {
        KeyPart::Text(text.clone())
    }
}

/// A key: a sequence of parts. Shorter keys come before the keys they are a prefix of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Vec<KeyPart>);

impl Key {
    /// A key of these parts.
    pub fn new<P: Into<KeyPart>>(parts: impl IntoIterator<Item = P>) -> Self {
        Key(parts.into_iter().map(Into::into).collect())
    }

    /// This key with one more part.
    #[must_use]
    pub fn with(mut self, part: impl Into<KeyPart>) -> Self {
        self.0.push(part.into());
        self
    }

    /// The parts in order.
    pub fn parts(&self) -> &[KeyPart] {
        &self.0
    }

    /// Whether `self` begins with all parts of `prefix`.
    pub fn starts_with(&self, prefix: &Key) -> bool {
        self.0.starts_with(&prefix.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            if index > 0 {
                formatter.write_str("/")?;
            }
            match part {
                KeyPart::Number(number) => write!(formatter, "{number}")?,
                KeyPart::Text(text) => formatter.write_str(text)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_before_texts_and_prefixes_before_longer_keys() {
        let keys = [
            Key::new([2_u64]),
            Key::new([10_u64]),
            Key::new([""]),
            Key::new(["a"]),
            Key::new(["a"]).with(1_u64),
            Key::new(["a"]).with("b"),
            Key::new(["b"]),
        ];
        assert!(keys.is_sorted());
    }

    #[test]
    fn texts_compare_by_utf16_code_unit() {
        // U+1F600 is encoded with a surrogate (D83D) and so comes before U+FF01, although its code point is greater.
        assert!(Key::new(["\u{1F600}"]) < Key::new(["\u{FF01}"]));
    }

    #[test]
    fn a_prefix_is_found_by_parts_and_not_by_characters() {
        assert!(Key::new(["ab", "c"]).starts_with(&Key::new(["ab"])));
        assert!(!Key::new(["ab", "c"]).starts_with(&Key::new(["a"])));
    }
}

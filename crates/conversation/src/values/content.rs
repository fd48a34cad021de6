//! What a post says: a nonempty, bounded array of texts and JSON values.

use conclave_harness::canonical_json::{self, CanonicalJsonError, Limits};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{CONTENT_BYTES_MAX, CONTENT_DEPTH_MAX};

/// One part of a content value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ContentPart {
    /// Text for a reader.
    Text {
        /// Well-formed Unicode.
        text: String,
    },
    /// Any JSON value, `null` included.
    Data {
        /// The value.
        value: Value,
    },
}

/// The members of either part.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartMembers {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, deserialize_with = "present")]
    text: Option<String>,
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
}

/// A `null` where something is expected is not its absence.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl<'de> Deserialize<'de> for ContentPart {
    // Not derived: the derived form first reads a tagged union into a tree, and that again.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = PartMembers::deserialize(deserializer)?;
        match (members.kind.as_str(), members.text, members.value) {
            ("text", Some(text), None) => Ok(Self::Text { text }),
            ("data", None, Some(value)) => Ok(Self::Data { value }),
            _ => Err(D::Error::custom(
                "a part is a `text` with its `text` or a `data` with its `value`",
            )),
        }
    }
}

/// Why parts are not a content value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// There is no part.
    #[error("content has no part")]
    Empty,
    /// The canonical encoding is too long.
    #[error("content takes {0} canonical bytes, more than {CONTENT_BYTES_MAX}")]
    TooLong(usize),
    /// The parts nest too deeply.
    #[error("content nests deeper than {CONTENT_DEPTH_MAX} levels")]
    TooDeep,
    /// The parts are not canonical JSON (bytes) or cannot be said in it (values).
    #[error("content is not a content value: {0}")]
    Malformed(#[from] CanonicalJsonError),
}

/// A post's content: 1 part or more, at most [`CONTENT_BYTES_MAX`] canonical bytes and [`CONTENT_DEPTH_MAX`] levels.
///
/// Numbers are held as the canonical encoding spells them, so equal contents are equal values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Content(Vec<ContentPart>);

impl Content {
    /// Takes parts made by this process.
    ///
    /// # Errors
    /// [`ContentError`] says which bound they break.
    pub fn new(parts: Vec<ContentPart>) -> Result<Self, ContentError> {
        if let Err(error) = check_shape(&parts) {
            parts.into_iter().for_each(dismantle);
            return Err(error);
        }
        // The bytes decide: parsing them back spells every number the one canonical way (1.0 becomes 1).
        let bytes = canonical_json::try_encode(&parts)?;
        check_length(bytes.len())?;
        let limits = Limits {
            bytes_max: CONTENT_BYTES_MAX,
            depth_max: CONTENT_DEPTH_MAX,
        };
        Ok(Self(canonical_json::decode(&bytes, limits)?))
    }

    /// A content of one text.
    ///
    /// # Errors
    /// [`ContentError::TooLong`].
    pub fn text(text: impl Into<String>) -> Result<Self, ContentError> {
        Self::new(vec![ContentPart::Text { text: text.into() }])
    }

    /// Decodes the canonical bytes of a content value.
    ///
    /// # Errors
    /// [`ContentError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ContentError> {
        check_length(bytes.len())?;
        let limits = Limits {
            bytes_max: CONTENT_BYTES_MAX,
            depth_max: CONTENT_DEPTH_MAX,
        };
        let parts: Vec<ContentPart> = canonical_json::decode(bytes, limits)?;
        check_shape(&parts)?;
        Ok(Self(parts))
    }

    /// The content's RFC 8785 bytes, at most [`CONTENT_BYTES_MAX`].
    pub fn encode(&self) -> Vec<u8> {
        canonical_json::encode(&self.0)
    }

    /// The parts, at least one.
    pub fn parts(&self) -> &[ContentPart] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Content {
    /// As part of a larger value, whose bytes were found canonical as a whole.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parts = Vec::<ContentPart>::deserialize(deserializer)?;
        check_shape(&parts).map_err(D::Error::custom)?;
        let bytes = canonical_json::encode(&parts);
        check_length(bytes.len()).map_err(D::Error::custom)?;
        Ok(Self(parts))
    }
}

fn check_length(length: usize) -> Result<(), ContentError> {
    if length > CONTENT_BYTES_MAX {
        Err(ContentError::TooLong(length))
    } else {
        Ok(())
    }
}

fn check_shape(parts: &[ContentPart]) -> Result<(), ContentError> {
    if parts.is_empty() {
        return Err(ContentError::Empty);
    }
    // The array and the part are two levels; what is left is the value's.
    let left = CONTENT_DEPTH_MAX - 2;
    let too_deep =
        |part: &ContentPart| matches!(part, ContentPart::Data { value } if deeper_than(value, left));
    if parts.iter().any(too_deep) {
        Err(ContentError::TooDeep)
    } else {
        Ok(())
    }
}

/// Whether a value nests more than `levels` containers. Walks without recursion, so any value may be asked about.
fn deeper_than(value: &Value, levels: usize) -> bool {
    let mut open = vec![(value, 0)];
    while let Some((value, above)) = open.pop() {
        let mut children: Vec<&Value> = Vec::new();
        match value {
            Value::Array(items) => children.extend(items),
            Value::Object(members) => children.extend(members.values()),
            _ => continue,
        }
        if above == levels {
            return true;
        }
        open.extend(children.into_iter().map(|child| (child, above + 1)));
    }
    false
}

/// Drops a part without recursion, however deep a host made it.
fn dismantle(part: ContentPart) {
    let ContentPart::Data { value } = part else { return };
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.into_iter().map(|(_, member)| member)),
            _ => {}
        }
    }
}

//! Canonical JSON (RFC 8785, JCS): one spelling for each value, and a decoder that refuses every other (reference 1.1).
//!
//! The encoder writes members in UTF-16 order and numbers as ECMAScript prints doubles; `tests/rfc8785.rs` holds it to the
//! RFC's vectors, and its own tests to another implementation. The decoder proves canonicity by encoding what it understood and comparing bytes, so a
//! duplicate name, a space, `1.0`, or an integer that no double holds is refused without a rule for each.

mod encoder;
mod known_form;
mod reader;
mod scanner;

pub use self::reader::{AS_WRITTEN, ReadError, read};

pub(crate) use self::known_form::{FormError, KnownForm};

use self::encoder::Encoder;
use serde::{Serialize, de::DeserializeOwned};

/// Container levels an artifact of this layer may have: the root counts one, a scalar none.
pub const DEPTH_MAX_IDENTITY: usize = 16;

/// The greatest depth any caller may allow. Parsing and printing recurse by level, and this many levels fit the
/// smallest stack we run on (a browser's wasm stack) many times over.
pub const DEPTH_MAX_CEILING: usize = 120;

/// What a decoder accepts before it looks at the meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole text.
    pub bytes_max: usize,
    /// Container levels; at most [`DEPTH_MAX_CEILING`] whatever is asked.
    pub depth_max: usize,
}

impl Limits {
    /// The limits of an identity artifact of so many bytes.
    pub const fn identity(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            depth_max: DEPTH_MAX_IDENTITY,
        }
    }
}

/// The canonical text of `value`.
///
/// # Panics
///
/// When `value` has no JSON form: a member name that is not text or is there twice, a number that is not finite, an enum
/// variant with content, or a `Serialize` that fails. No type of ours does; use [`try_encode`] for a type that might.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    try_encode(value).expect("the value has a JSON form")
}

/// The canonical text of `value`, if it has one.
///
/// # Errors
///
/// [`CanonicalJsonError::NoJsonForm`] where [`encode`] panics.
pub fn try_encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalJsonError> {
    Encoder::encode(value).map_err(|error| CanonicalJsonError::NoJsonForm { message: error.0 })
}

/// The value of the canonical text `bytes`.
///
/// `T` must describe the value completely: what it does not keep is missing when it is encoded again, and the text is
/// refused. Unknown members are thus refused even where `deny_unknown_fields` was forgotten.
///
/// # Errors
///
/// The first of the checks of reference 1.1 that fails, in their order, except that depth and surrogates are looked at
/// before the parser is trusted with the text: a text that is too deep is reported as that, whether it is JSON or not.
pub fn decode<T: DeserializeOwned + Serialize>(
    bytes: &[u8],
    limits: Limits,
) -> Result<T, CanonicalJsonError> {
    if bytes.len() > limits.bytes_max {
        return Err(CanonicalJsonError::TooLong {
            bytes: bytes.len(),
            bytes_max: limits.bytes_max,
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| CanonicalJsonError::NotUtf8 {
        offset: error.valid_up_to(),
    })?;
    scan(text, limits.depth_max.min(DEPTH_MAX_CEILING))?;
    match read::<T>(bytes) {
        Ok(value) => {
            compare(bytes, &try_encode(&value)?)?;
            Ok(value)
        }
        Err(error) => Err(explain(bytes, &error)),
    }
}

/// Says which check of reference 1.1 a text fails that is no `T`: that it is no JSON and that it is not canonical come
/// before that it has the wrong shape.
fn explain(bytes: &[u8], typed: &ReadError) -> CanonicalJsonError {
    match read::<serde_json::Value>(bytes) {
        Err(error) => CanonicalJsonError::NotJson {
            message: error.to_string(),
        },
        Ok(value) => match try_encode(&value).and_then(|canonical| compare(bytes, &canonical)) {
            Err(error) => error,
            Ok(()) => CanonicalJsonError::Schema {
                message: typed.to_string(),
            },
        },
    }
}

fn compare(bytes: &[u8], canonical: &[u8]) -> Result<(), CanonicalJsonError> {
    if bytes == canonical {
        return Ok(());
    }
    let offset = bytes
        .iter()
        .zip(canonical)
        .take_while(|(met, wanted)| met == wanted)
        .count();
    Err(CanonicalJsonError::NotCanonical { offset })
}

/// Bounds the depth and finds lone surrogates without recursion, before anything that recurses sees the text.
///
/// It need not know JSON: where the text is JSON, brackets outside strings are exactly the container levels, and where
/// it is not, the parser refuses it, at a depth no greater than what was counted here.
fn scan(text: &str, depth_max: usize) -> Result<(), CanonicalJsonError> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut offset = 0;
    while offset < bytes.len() {
        match (in_string, bytes[offset]) {
            (true, b'\\') => {
                offset += escape_length(bytes, offset)?;
                continue;
            }
            (_, b'"') => in_string = !in_string,
            (false, b'{' | b'[') => {
                depth += 1;
                if depth > depth_max {
                    return Err(CanonicalJsonError::TooDeep { depth_max, offset });
                }
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        offset += 1;
    }
    Ok(())
}

/// How many bytes the escape at `offset` takes, a pair of surrogates being one.
fn escape_length(bytes: &[u8], offset: usize) -> Result<usize, CanonicalJsonError> {
    match unicode_escape(bytes, offset) {
        None => Ok(2),
        Some(0xd800..=0xdbff) => match unicode_escape(bytes, offset + 6) {
            Some(0xdc00..=0xdfff) => Ok(12),
            _ => Err(CanonicalJsonError::LoneSurrogate { offset }),
        },
        Some(0xdc00..=0xdfff) => Err(CanonicalJsonError::LoneSurrogate { offset }),
        Some(_) => Ok(6),
    }
}

/// The code unit of a well-formed `\uXXXX` at `offset`.
fn unicode_escape(bytes: &[u8], offset: usize) -> Option<u16> {
    let digits = bytes.get(offset..)?.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0_u16, |unit, digit| {
        let value = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(value).ok()?)
    })
}

/// Why bytes are not the canonical text of the value asked for. Offsets are in bytes from the start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalJsonError {
    /// Over the byte bound; nothing was read.
    #[error("{bytes} bytes of JSON, at most {bytes_max} are allowed")]
    TooLong {
        /// Bytes met.
        bytes: usize,
        /// Bytes allowed.
        bytes_max: usize,
    },
    /// Not UTF-8.
    #[error("not UTF-8 from byte {offset}")]
    NotUtf8 {
        /// The first byte that is not.
        offset: usize,
    },
    /// More container levels than allowed.
    #[error("more than {depth_max} levels of containers at byte {offset}")]
    TooDeep {
        /// Levels allowed.
        depth_max: usize,
        /// Where the level too many opens.
        offset: usize,
    },
    /// An escaped surrogate without its other half.
    #[error("a surrogate without its pair at byte {offset}")]
    LoneSurrogate {
        /// Where the escape starts.
        offset: usize,
    },
    /// Not exactly one JSON value, or a number beyond every double.
    #[error("not one JSON value: {message}")]
    NotJson {
        /// What the parser met, and where.
        message: String,
    },
    /// JSON, but not its canonical spelling, or with more in it than the value asked for keeps.
    #[error("not the canonical spelling from byte {offset}")]
    NotCanonical {
        /// The first byte that differs.
        offset: usize,
    },
    /// Canonical JSON of some other value than the one asked for.
    #[error("not the expected value: {message}")]
    Schema {
        /// Which member is wrong, and where.
        message: String,
    },
    /// A value of ours without a JSON form.
    #[error("no JSON form: {message}")]
    NoJsonForm {
        /// What has none.
        message: String,
    },
}

#[cfg(test)]
mod tests;

//! The forms values have. Every error says what is wrong in words that can follow the variable's name.

use conclave_identity::Handle;

/// The longest identifier, in bytes (CONF-002).
pub(crate) const IDENTIFIER_BYTES_MAX: usize = 256;

/// A deployment's identifier (CONF-002).
pub(crate) fn identifier(value: &str) -> Result<String, String> {
    if value.is_empty() || value.len() > IDENTIFIER_BYTES_MAX {
        return Err(format!(
            "has {} bytes, not 1 to {IDENTIFIER_BYTES_MAX}",
            value.len()
        ));
    }
    if value
        .chars()
        .any(|letter| letter.is_whitespace() || letter.is_control())
    {
        return Err("contains whitespace or a control character".to_owned());
    }
    Ok(value.to_owned())
}

/// Decimal digits, nothing else.
pub(crate) fn integer(value: &str) -> Result<u64, String> {
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{value:?} is not a number"));
    }
    value
        .parse()
        .map_err(|_| format!("{value} is more than {}", u64::MAX))
}

/// An [`integer`] from `min` to `max`.
pub(crate) fn number(value: &str, min: u32, max: u32) -> Result<u32, String> {
    let number = integer(value)?;
    u32::try_from(number)
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("{number} is not {min} to {max}"))
}

/// `true` or `false`.
pub(crate) fn boolean(value: &str) -> Result<bool, String> {
    value
        .parse()
        .map_err(|_| format!("{value:?} is neither true nor false"))
}

/// The longest word, in bytes.
const WORD_BYTES_MAX: usize = 64;

/// A word of an operator's own, or nothing.
pub(crate) fn word(value: &str) -> Result<String, String> {
    if value.len() > WORD_BYTES_MAX || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "is not at most {WORD_BYTES_MAX} visible ASCII characters"
        ));
    }
    Ok(value.to_owned())
}

/// Names joined by commas, each the name part of some handle; none of them when the value is empty.
pub(crate) fn names(value: &str) -> Result<Vec<String>, String> {
    let names = value.split(',').map(str::trim).filter(|_| !value.is_empty());
    names
        .map(|name| match Handle::parse(name) {
            Some(handle) if handle.name() == name => Ok(name.to_owned()),
            _ => Err(format!("{name:?} is not the name part of a handle")),
        })
        .collect()
}

/// A version, or nothing (CONF-067).
pub(crate) fn version(value: &str) -> Result<String, String> {
    if value.is_empty() || is_semver(value) {
        return Ok(value.to_owned());
    }
    Err(format!("{value:?} is not a SemVer 2.0.0 version"))
}

/// Whether a string is a version by the grammar of SemVer 2.0.0.
fn is_semver(value: &str) -> bool {
    let (rest, build) = split_optional(value, '+');
    let (core, pre_release) = split_optional(rest, '-');
    let numbers: Vec<&str> = core.split('.').collect();
    numbers.len() == 3
        && numbers.iter().all(|number| is_numeric(number))
        && pre_release.is_none_or(|dotted| {
            dotted.split('.').all(|part| {
                is_alphanumeric(part) && (!part.bytes().all(|b| b.is_ascii_digit()) || is_numeric(part))
            })
        })
        && build.is_none_or(|dotted| dotted.split('.').all(is_alphanumeric))
}

fn split_optional(value: &str, separator: char) -> (&str, Option<&str>) {
    value
        .split_once(separator)
        .map_or((value, None), |(head, tail)| (head, Some(tail)))
}

fn is_numeric(value: &str) -> bool {
    !value.is_empty()
        && value.bytes().all(|byte| byte.is_ascii_digit())
        && (value == "0" || !value.starts_with('0'))
}

fn is_alphanumeric(value: &str) -> bool {
    !value.is_empty()
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

//! The texts of JSON (RFC 8259): where a value begins, what it is, and where it ends. Total: any bytes are read or refused.
//!
//! What a value means is for the reader; what is canonical for the decoder around both.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Error as _};

/// Container levels that are read. Every caller bounds them further, or reads what this process wrote.
pub(super) const LEVELS_MAX: u8 = 128;

/// Why a text is not the JSON of a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ReadError {
    problem: Box<str>,
}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self {
            problem: problem.to_string().into(),
        }
    }

    // The library's words name the value, for which it brings along how numbers with a point are written: some KiB.
    #[cold]
    fn invalid_type(met: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("{} instead of {expected}", kind(&met)))
    }

    #[cold]
    fn invalid_value(met: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        match met {
            de::Unexpected::Str(text) => Self::custom(format_args!("\"{text}\" instead of {expected}")),
            met => Self::custom(format_args!("{} that is not {expected}", kind(&met))),
        }
    }
}

fn kind(met: &de::Unexpected<'_>) -> &'static str {
    match met {
        de::Unexpected::Bool(_) => "a boolean",
        de::Unexpected::Unsigned(_) | de::Unexpected::Signed(_) | de::Unexpected::Float(_) => "a number",
        de::Unexpected::Char(_) | de::Unexpected::Str(_) => "a text",
        de::Unexpected::Unit | de::Unexpected::Option => "null",
        de::Unexpected::Bytes(_) | de::Unexpected::Seq => "an array",
        de::Unexpected::Map => "an object",
        _ => "a value",
    }
}

/// A JSON text that is read from its beginning to its end.
pub(super) struct Scanner<'de> {
    bytes: &'de [u8],
    at: usize,
    levels_left: u8,
}

/// The beginning of a value; all of it unless it is a container.
pub(super) enum Token<'de> {
    Null,
    Bool(bool),
    Text(Cow<'de, str>),
    Unsigned(u64),
    Negative(i64),
    Float(f64),
    Array,
    Object,
}

impl<'de> Scanner<'de> {
    /// Begins at the first byte.
    pub(super) fn new(bytes: &'de [u8]) -> Self {
        Scanner {
            bytes,
            at: 0,
            levels_left: LEVELS_MAX,
        }
    }

    #[cold]
    pub(super) fn error(&self, problem: &str) -> ReadError {
        ReadError::custom(format_args!("{problem} at byte {}", self.at))
    }

    /// The next byte that is no whitespace.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    pub(super) fn token(&mut self) -> Result<Token<'de>, ReadError> {
        match self.peek() {
            Some(b'"') => self.text().map(Token::Text),
            Some(b'{') => self.enter().map(|()| Token::Object),
            Some(b'[') => self.enter().map(|()| Token::Array),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'n') => self.word("null").map(|()| Token::Null),
            Some(b't') => self.word("true").map(|()| Token::Bool(true)),
            Some(b'f') => self.word("false").map(|()| Token::Bool(false)),
            _ => Err(self.error("no value")),
        }
    }

    pub(super) fn word(&mut self, word: &str) -> Result<(), ReadError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.error("no value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn enter(&mut self) -> Result<(), ReadError> {
        self.levels_left = self
            .levels_left
            .checked_sub(1)
            .ok_or_else(|| self.error("too many levels"))?;
        self.at += 1;
        Ok(())
    }

    /// Whether another element of the container that ends with `end` follows; its end is taken.
    pub(super) fn has_next(&mut self, end: u8, is_first: &mut bool) -> Result<bool, ReadError> {
        let next = self.peek();
        if next == Some(end) {
            self.at += 1;
            self.levels_left += 1;
            return Ok(false);
        }
        if !std::mem::replace(is_first, false) {
            self.expect(b',')?;
        }
        Ok(true)
    }

    pub(super) fn expect(&mut self, byte: u8) -> Result<(), ReadError> {
        if self.peek() != Some(byte) {
            return Err(self.error(match byte {
                b',' => "no comma",
                b':' => "no colon",
                b'"' => "no name of a member",
                _ => "no end of an object",
            }));
        }
        self.at += 1;
        Ok(())
    }

    fn digits(&mut self) -> Result<(), ReadError> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.error("no digit"));
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Token<'de>, ReadError> {
        let start = self.at;
        let is_negative = self.bytes[start] == b'-';
        self.at += usize::from(is_negative);
        let first = self.at;
        self.digits()?;
        if self.bytes[first] == b'0' && self.at > first + 1 {
            return Err(self.error("a number that begins with 0"));
        }
        let mut is_whole = true;
        if self.bytes.get(self.at) == Some(&b'.') {
            is_whole = false;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            is_whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        // Digits, signs, a point and an exponent.
        let text = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        if is_whole
            && !is_negative
            && let Ok(number) = text.parse()
        {
            return Ok(Token::Unsigned(number));
        }
        // The negative zero is a number of its own, and no integer.
        if is_whole
            && text != "-0"
            && let Ok(number) = text.parse()
        {
            return Ok(Token::Negative(number));
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Token::Float(number)),
            _ => Err(self.error("a number out of range")),
        }
    }

    pub(super) fn text(&mut self) -> Result<Cow<'de, str>, ReadError> {
        self.expect(b'"')?;
        let mut start = self.at;
        let mut whole = String::new();
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    let last = self.piece(start)?;
                    self.at += 1;
                    return Ok(if whole.is_empty() {
                        Cow::Borrowed(last)
                    } else {
                        Cow::Owned(whole + last)
                    });
                }
                Some(b'\\') => {
                    whole.push_str(self.piece(start)?);
                    whole.push(self.escaped()?);
                    start = self.at;
                }
                Some(byte) if *byte >= 0x20 => self.at += 1,
                Some(_) => return Err(self.error("a control character in a text")),
                None => return Err(self.error("a text without an end")),
            }
        }
    }

    fn piece(&self, start: usize) -> Result<&'de str, ReadError> {
        std::str::from_utf8(&self.bytes[start..self.at]).map_err(|_| self.error("no UTF-8"))
    }

    /// The character of the escape that begins here.
    fn escaped(&mut self) -> Result<char, ReadError> {
        let kind = self.bytes.get(self.at + 1).copied();
        self.at += 2;
        Ok(match kind {
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'u') => return self.code_point(),
            _ => return Err(self.error("no such escape")),
        })
    }

    fn code_point(&mut self) -> Result<char, ReadError> {
        let first = self.unit()?;
        let scalar = match first {
            0xd800..=0xdbff if self.bytes[self.at..].starts_with(b"\\u") => {
                self.at += 2;
                let second = self.unit()?;
                (0xdc00..=0xdfff)
                    .contains(&second)
                    .then(|| 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
            }
            _ => Some(first),
        };
        scalar
            .and_then(char::from_u32)
            .ok_or_else(|| self.error("half of a surrogate pair"))
    }

    fn unit(&mut self) -> Result<u32, ReadError> {
        let digits = self.bytes.get(self.at..self.at + 4);
        let unit = digits.and_then(|digits| {
            digits.iter().try_fold(0, |unit, digit| {
                Some(unit << 4 | char::from(*digit).to_digit(16)?)
            })
        });
        self.at += 4;
        unit.ok_or_else(|| self.error("an escape without four digits"))
    }

    /// Reads over one value.
    pub(super) fn skip(&mut self) -> Result<(), ReadError> {
        let mut is_first = true;
        match self.token()? {
            Token::Array => {
                while self.has_next(b']', &mut is_first)? {
                    self.skip()?;
                }
            }
            Token::Object => {
                while self.has_next(b'}', &mut is_first)? {
                    self.text()?;
                    self.expect(b':')?;
                    self.skip()?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The text of the next value, as it is written.
    pub(super) fn as_written(&mut self) -> Result<&'de str, ReadError> {
        self.peek();
        let start = self.at;
        self.skip()?;
        self.piece(start)
    }

    #[cold]
    pub(super) fn unexpected(&self, met: &Token<'_>, expected: &dyn de::Expected) -> ReadError {
        let met = match met {
            Token::Null => "null",
            Token::Bool(_) => "a boolean",
            Token::Text(_) => "a text",
            Token::Unsigned(_) | Token::Negative(_) | Token::Float(_) => "a number",
            Token::Array => "an array",
            Token::Object => "an object",
        };
        ReadError::custom(format_args!("{met} instead of {expected} at byte {}", self.at))
    }
}

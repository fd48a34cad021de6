//! Canonical text whose form is known to the byte: literals, and texts without escapes between them.
//!
//! Signed messages, of which an agent reads thousands, differ in a handful of texts that need no escapes. What matches
//! their form is their canonical spelling by construction, and need not be read into a tree and written again to prove it.

/// A text that is read from its beginning, as long as it is as expected.
#[derive(Clone)]
pub(crate) struct KnownForm<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Where a text is not as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not of the expected form from byte {offset}")]
pub(crate) struct FormError {
    /// In bytes from the start.
    pub(crate) offset: usize,
}

impl<'a> KnownForm<'a> {
    /// Begins at the first byte.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    const fn error(&self) -> FormError {
        FormError { offset: self.at }
    }

    /// Takes what must come next.
    pub(crate) fn literal(&mut self, literal: &str) -> Result<(), FormError> {
        if !self.bytes[self.at..].starts_with(literal.as_bytes()) {
            return Err(self.error());
        }
        self.at += literal.len();
        Ok(())
    }

    /// Takes the text that stands in quotation marks after a literal that ends with the first of them. It is one that JSON
    /// spells as it stands.
    pub(crate) fn text(&mut self, literal: &str) -> Result<&'a str, FormError> {
        self.literal(literal)?;
        let rest = &self.bytes[self.at..];
        let is_plain = |byte: &&u8| !matches!(byte, b'"' | b'\\' | 0x00..=0x1f);
        let length = rest.iter().take_while(is_plain).count();
        let text = std::str::from_utf8(&rest[..length]).map_err(|_| self.error())?;
        self.at += length;
        self.literal("\"")?;
        Ok(text)
    }

    /// Takes a last literal, after which nothing may be left.
    pub(crate) fn end(mut self, literal: &str) -> Result<(), FormError> {
        self.literal(literal)?;
        if self.at < self.bytes.len() {
            return Err(self.error());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_texts_are_taken_in_turn_and_nothing_may_be_left() {
        let mut form = KnownForm::new("{\"a\":\"\u{e4} z\"}".as_bytes());
        assert_eq!(form.literal(r#"{"b":"#), Err(FormError { offset: 0 }));
        assert_eq!(form.text(r#"{"a":""#), Ok("\u{e4} z"));
        assert_eq!(form.end("}"), Ok(()));
        let mut form = KnownForm::new(b"\"a\"b");
        assert_eq!(form.text("\""), Ok("a"));
        assert_eq!(form.end(""), Err(FormError { offset: 3 }));
    }

    #[test]
    fn a_text_with_another_spelling_or_without_an_end_is_not_taken() {
        for (text, offset) in [
            (&b"\"a\\u00e4\""[..], 2),
            (b"\"a\nb\"", 2),
            (b"\"ab", 3),
            (b"\"", 1),
            (b"", 0),
            (b"\"\\\"\"", 1),
            (b"\"\xff\"", 1),
        ] {
            assert_eq!(
                KnownForm::new(text).text("\""),
                Err(FormError { offset }),
                "{text:?}"
            );
        }
    }
}

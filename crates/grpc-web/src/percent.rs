//! The percent encoding of `grpc-message`. Depends on nothing.

use std::fmt::Write as _;

/// Writes a message as `grpc-message` carries it: printable ASCII but `%` as it is, every other byte as `%XX`. A space at
/// either end is escaped too, because whoever reads a header trims it.
///
/// At most `max_bytes` are written; what a longer message has beyond that is left out, by whole characters.
pub(crate) fn encode(message: &str, max_bytes: usize) -> String {
    let mut out = String::with_capacity(message.len().min(max_bytes));
    for (at, character) in message.char_indices() {
        let is_at_an_end = at == 0 || at + character.len_utf8() == message.len();
        let is_plain = match character {
            ' ' => !is_at_an_end,
            '!'..='~' => character != '%',
            _ => false,
        };
        let bytes = if is_plain { 1 } else { 3 * character.len_utf8() };
        if out.len() + bytes > max_bytes {
            break;
        }
        if is_plain {
            out.push(character);
        } else {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a string cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// Reads a `grpc-message`. A `%` that two hexadecimal digits do not follow stays as it is, and bytes that are not
/// UTF-8 are replaced: a message is for people, and a bad one must not hide the code beside it.
pub(crate) fn decode(header: &str) -> String {
    let mut out = Vec::with_capacity(header.len());
    let mut rest = header.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        match (first, after) {
            (b'%', [high, low, tail @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                out.push(hex_value(*high) << 4 | hex_value(*low));
                rest = tail;
            }
            _ => {
                out.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The value of an ASCII hexadecimal digit.
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_and_percent_signs_are_escaped() {
        assert_eq!(
            encode("50 %\r\ngrpc-status:0 é", 100),
            "50 %25%0D%0Agrpc-status:0 %C3%A9"
        );
    }

    #[test]
    fn spaces_at_the_ends_are_escaped_and_others_are_not() {
        assert_eq!(encode(" a b ", 100), "%20a b%20");
        assert_eq!(encode(" ", 100), "%20");
    }

    #[test]
    fn a_message_is_cut_between_characters() {
        assert_eq!(encode("aéb", 7), "a%C3%A9");
        assert_eq!(encode("aéb", 6), "a");
        assert_eq!(encode("aéb", 0), "");
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(decode("100% of %zz and %4"), "100% of %zz and %4");
        assert_eq!(decode("%c3%A9%ff"), "é\u{fffd}");
    }

    proptest::proptest! {
        #[test]
        fn any_message_survives(message in ".*") {
            let encoded = encode(&message, usize::MAX);
            proptest::prop_assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            proptest::prop_assert_eq!(encoded.trim(), &encoded);
            proptest::prop_assert_eq!(decode(&encoded), message);
        }

        #[test]
        fn a_cut_message_is_a_prefix_within_its_bound(message in ".*", max_bytes in 0usize..60) {
            let encoded = encode(&message, max_bytes);
            proptest::prop_assert!(encoded.len() <= max_bytes);
            proptest::prop_assert!(message.starts_with(&decode(&encoded)));
        }
    }
}

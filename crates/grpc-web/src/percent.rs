//! The percent encoding of `grpc-message`. Depends on nothing.

use std::fmt::Write as _;

/// Writes a message as `grpc-message` carries it: printable ASCII but `%` as it is, every other byte as `%XX`.
pub(crate) fn encode(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for byte in message.bytes() {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
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
            encode("50 %\r\ngrpc-status:0 é"),
            "50 %25%0D%0Agrpc-status:0 %C3%A9"
        );
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(decode("100% of %zz and %4"), "100% of %zz and %4");
        assert_eq!(decode("%c3%A9%ff"), "é\u{fffd}");
    }

    proptest::proptest! {
        #[test]
        fn any_message_survives(message in ".*") {
            let encoded = encode(&message);
            proptest::prop_assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            proptest::prop_assert_eq!(decode(&encoded), message);
        }
    }
}

//! The base64 layer of `application/grpc-web-text`. Depends on nothing of this crate.
//!
//! A body may be several padded base64 texts one after another: whoever flushes a part pads it. So padding ends a
//! part and not the body.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{BufMut as _, BytesMut};

/// How many characters of base64 make a unit that decodes on its own.
const QUANTUM: usize = 4;

/// A body that is not base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is not base64")]
pub struct InvalidBase64;

/// Reads base64 that arrives in pieces.
#[derive(Debug, Default)]
pub struct TextDecoder {
    /// The characters after the last whole quantum.
    pending: Vec<u8>,
}

impl TextDecoder {
    /// Appends to `out` what `input` completes. Where `input` stops being base64, what came before is appended all the
    /// same, so that the result does not depend on how the body was cut into pieces.
    ///
    /// # Errors
    /// [`InvalidBase64`] at the first quantum that is not one.
    pub fn push(&mut self, input: &[u8], out: &mut BytesMut) -> Result<(), InvalidBase64> {
        self.pending.extend_from_slice(input);
        let whole = self.pending.len() / QUANTUM * QUANTUM;
        let rest = self.pending.split_off(whole);
        let complete = std::mem::replace(&mut self.pending, rest);
        let mut start = 0;
        for end in (QUANTUM..=whole).step_by(QUANTUM) {
            if end == whole || complete[end - 1] == b'=' {
                decode_part(&complete[start..end], out)?;
                start = end;
            }
        }
        Ok(())
    }

    /// Whether every character so far belongs to a whole quantum.
    #[must_use]
    pub fn is_at_boundary(&self) -> bool {
        self.pending.is_empty()
    }
}

/// Decodes one padded text of whole quanta.
fn decode_part(part: &[u8], out: &mut BytesMut) -> Result<(), InvalidBase64> {
    if let Ok(bytes) = STANDARD.decode(part) {
        out.put_slice(&bytes);
        return Ok(());
    }
    for quantum in part.chunks(QUANTUM) {
        out.put_slice(&STANDARD.decode(quantum).map_err(|_| InvalidBase64)?);
    }
    Ok(())
}

/// Writes bytes as one padded base64 text.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_in_pieces(text: &[u8], piece: usize) -> (Vec<u8>, bool) {
        let (mut decoder, mut out) = (TextDecoder::default(), BytesMut::new());
        let fine = text
            .chunks(piece.max(1))
            .all(|input| decoder.push(input, &mut out).is_ok());
        (out.to_vec(), fine && decoder.is_at_boundary())
    }

    #[test]
    fn padding_ends_a_part_and_not_the_body() {
        assert_eq!(decode_in_pieces(b"QQ==QkM=REVG", 5), (b"ABCDEF".to_vec(), true));
    }

    #[test]
    fn an_unfinished_quantum_is_noticed() {
        assert_eq!(decode_in_pieces(b"QUJDRA", 2), (b"ABC".to_vec(), false));
    }

    proptest::proptest! {
        #[test]
        fn any_cut_gives_the_same(text in "[A-Za-z0-9+/=]{0,60}", garble in 0u8.., at in 0usize..60, piece in 1usize..9) {
            let mut text = text.into_bytes();
            if let Some(byte) = text.get_mut(at) {
                *byte = garble;
            }
            proptest::prop_assert_eq!(decode_in_pieces(&text, piece), decode_in_pieces(&text, 1000));
        }

        #[test]
        fn parts_written_one_by_one_read_as_their_sum(parts in proptest::collection::vec(proptest::collection::vec(0u8.., 0..20), 0..6), piece in 1usize..9) {
            let text: String = parts.iter().map(|part| encode(part)).collect();
            proptest::prop_assert_eq!(decode_in_pieces(text.as_bytes(), piece), (parts.concat(), true));
        }
    }
}

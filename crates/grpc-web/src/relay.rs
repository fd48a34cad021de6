//! A body on its way through: messages are passed on as they come, and only the trailers are taken out of it. Depends on
//! [`crate::frame`] and [`crate::trailers`].
//!
//! Native gRPC and binary gRPC-Web frame messages alike, so who stands between the two need not hold one. What is held
//! is at most the frame of the trailers, within its bound.

use bytes::{Buf as _, Bytes, BytesMut};

use crate::{
    FrameError, Trailers,
    frame::{HEADER_BYTES, Kind, MAX_TRAILER_BYTES, kind_and_length},
};

/// What a body brings next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A part of one message or several, their frame headers included, as it came.
    Messages(Bytes),
    /// The trailers; nothing may follow them.
    Trailers(Trailers),
}

/// Where in a body the next byte stands.
#[derive(Debug)]
enum Place {
    /// In a frame header, of which this much has come. With nothing of it come, between two frames.
    Header([u8; HEADER_BYTES], usize),
    /// In a message with so many bytes to come.
    Message(usize),
    /// In the trailers, with so many bytes to come.
    Trailers(BytesMut, usize),
    /// After the trailers.
    End,
}

/// Follows the frames of a body without holding its messages. Total, and the same for every way to cut the body.
///
/// After an error the rest of the body means nothing, and is not to be passed on.
#[derive(Debug)]
pub struct FrameRelay {
    max_message_bytes: usize,
    place: Place,
}

impl FrameRelay {
    /// A relay that refuses a message longer than `max_message_bytes` by its header, before its first byte is passed on.
    /// Compressed messages pass: whether they are read is for the receiver to say.
    #[must_use]
    pub fn new(max_message_bytes: usize) -> FrameRelay {
        FrameRelay {
            max_message_bytes,
            place: Place::Header([0; HEADER_BYTES], 0),
        }
    }

    /// Whether the body may end here: every frame so far is whole.
    #[must_use]
    pub fn is_between_frames(&self) -> bool {
        matches!(self.place, Place::Header(_, 0) | Place::End)
    }

    /// Whether the trailers have come.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.place, Place::End)
    }

    /// Takes the next piece from the front of `input`; `None` when `input` is used up.
    ///
    /// # Errors
    /// [`FrameError`] at the first frame that cannot be passed on.
    pub fn next_piece(&mut self, input: &mut Bytes) -> Result<Option<Piece>, FrameError> {
        let passed = self.message_bytes(input)?;
        if passed > 0 {
            return Ok(Some(Piece::Messages(input.split_to(passed))));
        }
        self.trailers(input)
    }

    /// How many bytes at the front of `input` are messages.
    fn message_bytes(&mut self, input: &[u8]) -> Result<usize, FrameError> {
        let mut passed = 0;
        while let Some(next) = input.get(passed) {
            match &mut self.place {
                Place::Header(header, have) => {
                    header[*have] = *next;
                    if *have == 0 && Kind::of(*next)? == Kind::Trailers {
                        header[0] = 0;
                        self.place = Place::Trailers(BytesMut::new(), HEADER_BYTES);
                        break;
                    }
                    passed += 1;
                    *have += 1;
                    if *have == HEADER_BYTES {
                        let (_, length) = kind_and_length(*header, self.max_message_bytes)?;
                        self.place = if length == 0 {
                            Place::Header([0; HEADER_BYTES], 0)
                        } else {
                            Place::Message(length)
                        };
                    }
                }
                Place::Message(rest) => {
                    let part = (*rest).min(input.len() - passed);
                    passed += part;
                    *rest -= part;
                    if *rest == 0 {
                        self.place = Place::Header([0; HEADER_BYTES], 0);
                    }
                }
                Place::Trailers(..) => break,
                Place::End => return Err(FrameError::AfterTrailers),
            }
        }
        Ok(passed)
    }

    /// The trailers, once they are whole.
    fn trailers(&mut self, input: &mut Bytes) -> Result<Option<Piece>, FrameError> {
        let Place::Trailers(held, rest) = &mut self.place else {
            return Ok(None);
        };
        loop {
            let part = (*rest).min(input.len());
            held.extend_from_slice(&input[..part]);
            input.advance(part);
            *rest -= part;
            if *rest > 0 {
                return Ok(None);
            }
            let header = *held
                .first_chunk::<HEADER_BYTES>()
                .expect("the header is held first");
            let (_, length) = kind_and_length(header, MAX_TRAILER_BYTES)?;
            if held.len() == HEADER_BYTES + length {
                let trailers = Trailers::decode(&held[HEADER_BYTES..]);
                self.place = Place::End;
                return Ok(Some(Piece::Trailers(trailers)));
            }
            *rest = length;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Encoding, Frame, FrameDecoder, Status, frame};

    const MAX: usize = 40;

    /// What passes of a body cut into pieces, its trailers, and how it ended.
    fn relay(body: &[u8], piece: usize) -> (Vec<u8>, Option<Trailers>, Result<bool, FrameError>) {
        let mut relay = FrameRelay::new(MAX);
        let (mut passed, mut trailers) = (Vec::new(), None);
        for part in body.chunks(piece.max(1)) {
            let mut input = Bytes::copy_from_slice(part);
            loop {
                match relay.next_piece(&mut input) {
                    Ok(Some(Piece::Messages(bytes))) => passed.extend_from_slice(&bytes),
                    Ok(Some(Piece::Trailers(found))) => trailers = Some(found),
                    Ok(None) => break,
                    Err(error) => return (passed, trailers, Err(error)),
                }
            }
            assert!(input.is_empty());
        }
        (passed, trailers, Ok(relay.is_between_frames()))
    }

    fn body(messages: &[Vec<u8>], status: &Status) -> (Vec<u8>, Vec<u8>) {
        let mut out = BytesMut::new();
        for message in messages {
            frame::put_encoded(&mut out, message);
        }
        let before = out.to_vec();
        frame::put_trailers(&mut out, &Trailers::from_status(status));
        (before, out.to_vec())
    }

    #[test]
    fn compressed_messages_pass_and_unknown_flags_do_not() {
        assert_eq!(
            relay(&[1, 0, 0, 0, 1, 7], 2),
            (vec![1, 0, 0, 0, 1, 7], None, Ok(true))
        );
        assert_eq!(relay(&[2, 0, 0, 0, 0], 5).2, Err(FrameError::UnknownFlags(2)));
        assert_eq!(relay(&[0x81, 0, 0, 0, 0], 5).2, Err(FrameError::Compressed));
    }

    #[test]
    fn a_message_or_trailers_too_long_are_refused_by_their_header() {
        let at_bound = [&[0, 0, 0, 0, 40][..], &[7; 40]].concat();
        assert_eq!(relay(&at_bound, 7), (at_bound.clone(), None, Ok(true)));
        let (passed, _, end) = relay(&[&[0, 0, 0, 0, 41][..], &[7; 41]].concat(), 50);
        assert_eq!(
            (passed.len(), end),
            (0, Err(FrameError::TooLong { length: 41, max: 40 }))
        );
        let trailers = [0x80, 0, 1, 0, 1];
        assert!(matches!(
            relay(&trailers, 5).2,
            Err(FrameError::TooLong { length: 65_537, .. })
        ));
    }

    #[test]
    fn nothing_may_follow_the_trailers() {
        let (_, mut whole) = body(&[], &Status::ok());
        whole.push(0);
        assert_eq!(relay(&whole, 100).2, Err(FrameError::AfterTrailers));
    }

    proptest! {
        #[test]
        fn messages_pass_unchanged_and_the_trailers_are_taken_out(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..MAX), 0..6),
            text in ".{0,20}",
            piece in 1usize..60,
        ) {
            let status = Status::aborted(text);
            let (before, whole) = body(&messages, &status);
            let (passed, trailers, end) = relay(&whole, piece);
            prop_assert_eq!(passed, before);
            prop_assert_eq!(trailers.and_then(|trailers| trailers.status()), Some(status));
            prop_assert_eq!(end, Ok(true));
        }

        #[test]
        fn any_bytes_are_judged_as_the_decoder_does_however_they_are_cut(
            body in proptest::collection::vec(prop_oneof![3 => 0u8..6, 1 => Just(0x80u8), 1 => any::<u8>()], 0..80),
            piece in 1usize..9,
        ) {
            let by_piece = relay(&body, piece);
            let byte_by_byte = relay(&body, 1);
            prop_assert_eq!(&by_piece.1, &byte_by_byte.1);
            prop_assert_eq!(by_piece.2, byte_by_byte.2);
            let mut decoder = FrameDecoder::new(Encoding::Binary, MAX);
            decoder.push(&body);
            let mut trailers = None;
            let error = loop {
                match decoder.next_frame() {
                    Ok(Some(Frame::Trailers(found))) => trailers = Some(found),
                    Ok(Some(Frame::Message(_))) => {}
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            match error {
                // A decoder refuses what a relay leaves to the receiver.
                Some(FrameError::Compressed) => {}
                Some(error) => prop_assert_eq!(by_piece.2, Err(error)),
                // A relay that has seen no more than the first byte of a frame may know its flag to be wrong.
                None => {
                    prop_assert_eq!(by_piece.1, trailers);
                    if let Ok(between) = by_piece.2 {
                        prop_assert_eq!(between, decoder.finish().is_ok());
                    }
                }
            }
        }
    }
}

//! What the frame decoder accepts and refuses, for every way to cut a body.

use proptest::prelude::*;

use super::*;

/// Every frame of a body fed in pieces, and how it ended.
fn decode(body: &[u8], piece: usize, encoding: Encoding, max: usize) -> (Vec<Frame>, Result<(), FrameError>) {
    let mut decoder = FrameDecoder::new(encoding, max);
    let mut frames = Vec::new();
    for piece in body.chunks(piece.max(1)) {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    let end = decoder.finish();
    (frames, end)
}

fn body_of(messages: &[Vec<u8>], status: &Status) -> BytesMut {
    let mut body = BytesMut::new();
    for message in messages {
        put_encoded(&mut body, message);
    }
    put_trailers(&mut body, &Trailers::from_status(status));
    body
}

// API-281
#[test]
fn a_compressed_message_is_unimplemented() {
    for flags in [0x01, 0x81] {
        let error = decode_single(&[flags, 0, 0, 0, 0], 10).expect_err("compressed");
        assert_eq!(error, FrameError::Compressed);
        assert_eq!(error.to_request_status().code, crate::Code::Unimplemented);
    }
}

// API-281, API-282
#[test]
fn a_message_over_the_bound_is_out_of_range_by_its_header_alone() {
    let mut decoder = FrameDecoder::new(Encoding::Binary, 10);
    decoder.push(&[0, 0, 0, 0, 11]);
    let error = decoder.next_frame().expect_err("too long");
    assert_eq!(error, FrameError::TooLong { length: 11, max: 10 });
    assert_eq!(error.to_request_status().code, crate::Code::OutOfRange);
    decoder.push(&[0; 1000]);
    assert_eq!(decoder.next_frame(), Err(error), "the decoder stays failed");
    assert!(decoder.buffer.is_empty(), "a failed decoder holds nothing");
}

// API-282
#[test]
fn a_message_of_exactly_the_bound_is_carried() {
    let bytes = [&[0, 0, 0, 0, 10][..], &[7; 10]].concat();
    assert_eq!(
        decode_single(&bytes, 10),
        Ok(Frame::Message(Bytes::from(vec![7; 10])))
    );
}

#[test]
fn the_bound_of_messages_is_not_that_of_trailers() {
    let body = body_of(&[], &Status::internal("longer than two bytes"));
    let (frames, end) = decode(&body, 3, Encoding::Binary, 2);
    assert_eq!((frames.len(), end), (1, Ok(())));
    let long = [&[0x80][..], &(MAX_TRAILER_BYTES as u32 + 1).to_be_bytes()].concat();
    assert!(matches!(
        decode_single(&long, 10),
        Err(FrameError::TooLong { .. })
    ));
}

#[test]
fn flags_without_a_meaning_are_refused() {
    for flags in [0x02, 0x40, 0x82, 0xff] {
        assert_eq!(
            decode_single(&[flags, 0, 0, 0, 0], 10),
            Err(FrameError::UnknownFlags(flags))
        );
    }
}

#[test]
fn a_cut_is_noticed_at_every_byte_but_where_frames_end() {
    let body = body_of(&[vec![1, 2, 3]], &Status::ok());
    for length in 0..body.len() {
        let (_, end) = decode(&body[..length], 1, Encoding::Binary, 100);
        let between_frames = length == 0 || length == 8;
        assert_eq!(
            end,
            if between_frames {
                Ok(())
            } else {
                Err(FrameError::Truncated)
            },
            "{length}"
        );
    }
}

#[test]
fn nothing_may_follow_the_trailers() {
    let mut body = body_of(&[], &Status::ok());
    body.put_u8(0);
    assert_eq!(
        decode(&body, 1, Encoding::Binary, 100).1,
        Err(FrameError::AfterTrailers)
    );
}

#[test]
fn a_single_frame_is_one_and_no_more() {
    assert_eq!(decode_single(&[], 10), Err(FrameError::Truncated));
    assert_eq!(decode_single(&[0, 0, 0, 0, 0, 0], 10), Err(FrameError::Truncated));
    assert_eq!(
        decode_single(&[0, 0, 0, 0, 0], 10),
        Ok(Frame::Message(Bytes::new()))
    );
}

proptest! {
    #[test]
    fn any_bytes_give_the_same_however_they_are_cut(
        body in proptest::collection::vec(prop_oneof![3 => 0u8..6, 1 => Just(0x80u8), 1 => 0u8..], 0..80),
        piece in 1usize..9,
        is_text in any::<bool>(),
    ) {
        let encoding = if is_text { Encoding::Text } else { Encoding::Binary };
        prop_assert_eq!(decode(&body, piece, encoding, 20), decode(&body, 1000, encoding, 20));
    }

    #[test]
    fn damaged_text_gives_the_same_however_it_is_cut(
        messages in proptest::collection::vec(proptest::collection::vec(0u8.., 0..12), 0..5),
        at in 0usize..200,
        damage in 0u8..,
        piece in 1usize..9,
    ) {
        let mut body = text::encode(&body_of(&messages, &Status::ok())).into_bytes();
        if let Some(byte) = body.get_mut(at) {
            *byte = damage;
        }
        prop_assert_eq!(decode(&body, piece, Encoding::Text, 12), decode(&body, 1000, Encoding::Text, 12));
    }

    #[test]
    fn what_is_written_is_read_in_both_encodings(
        messages in proptest::collection::vec(proptest::collection::vec(0u8.., 0..40), 0..6),
        piece in 1usize..30,
    ) {
        let status = Status::aborted("changed");
        let mut expected: Vec<_> = messages.iter().map(|m| Frame::Message(Bytes::from(m.clone()))).collect();
        expected.push(Frame::Trailers(Trailers::from_status(&status)));
        for encoding in [Encoding::Binary, Encoding::Text] {
            let sealed = seal(body_of(&messages, &status), encoding);
            prop_assert_eq!(decode(&sealed, piece, encoding, 40), (expected.clone(), Ok(())));
        }
    }
}

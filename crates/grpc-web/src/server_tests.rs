//! What a server accepts as a call, and what its answers look like.

use proptest::prelude::*;
use prost::Message as _;

use super::*;
use crate::Code;

fn head<'a>(method: &'a str, content_type: Option<&'a str>) -> RequestHead<'a> {
    RequestHead {
        method,
        content_type,
        ..RequestHead::default()
    }
}

fn read(body: &[u8], encoding: Encoding, max: usize, piece: usize) -> Result<Bytes, Status> {
    let mut request = UnaryRequest::new(encoding, max);
    body.chunks(piece.max(1)).for_each(|piece| request.push(piece));
    request.finish()
}

#[test]
fn method_and_content_type_are_decided_before_anything_else() {
    let bad_timeout = RequestHead {
        grpc_timeout: Some("soon"),
        grpc_encoding: Some("gzip"),
        ..head("GET", Some("application/grpc-web"))
    };
    assert_eq!(bad_timeout.check(), Err(Refusal::Http { status: 405 }));
    for content_type in [
        None,
        Some("text/plain"),
        Some("application/json"),
        Some("application/grpc"),
    ] {
        assert_eq!(
            head("POST", content_type).check(),
            Err(Refusal::Http { status: 415 }),
            "{content_type:?}"
        );
    }
}

#[test]
fn a_call_is_answered_in_its_own_encoding() {
    let binary = head("POST", Some("application/grpc-web+proto"))
        .check()
        .expect("a call");
    assert_eq!(
        binary,
        Accepted {
            encoding: Encoding::Binary,
            timeout: None
        }
    );
    let text = RequestHead {
        grpc_timeout: Some("2S"),
        ..head("POST", Some("application/grpc-web-text; charset=x"))
    };
    let text = text.check().expect("a call");
    assert_eq!(
        text,
        Accepted {
            encoding: Encoding::Text,
            timeout: Some(Duration::from_secs(2))
        }
    );
    assert_eq!(
        response_headers(text.encoding)[0],
        ("content-type", "application/grpc-web-text+proto")
    );
}

// API-281
#[test]
fn a_compression_encoding_is_unimplemented_whichever_header_names_it() {
    for (encoding, accepted) in [
        ("gzip", false),
        ("deflate", false),
        ("x", false),
        ("identity, gzip", false),
        ("identity", true),
        (" Identity ", true),
        ("", true),
    ] {
        let call = head("POST", Some("application/grpc-web"));
        let by_grpc = RequestHead {
            grpc_encoding: Some(encoding),
            ..call
        };
        let by_http = RequestHead {
            content_encoding: Some(encoding),
            ..call
        };
        for head in [by_grpc, by_http] {
            match head.check() {
                Ok(_) => assert!(accepted, "{head:?}"),
                Err(Refusal::Call { status, .. }) => {
                    assert!(!accepted && status.code == Code::Unimplemented, "{head:?}");
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_timeout_that_cannot_be_read_is_refused() {
    let head = RequestHead {
        grpc_timeout: Some("1s"),
        ..head("POST", Some("application/grpc-web"))
    };
    assert!(matches!(head.check(), Err(Refusal::Call { status, .. }) if status.code == Code::Internal));
}

// API-281, API-282
#[test]
fn the_wire_length_is_bounded_and_the_bound_itself_is_carried() {
    let body = |length: u8| [&[0, 0, 0, 0, length][..], &vec![1; usize::from(length)]].concat();
    assert_eq!(
        read(&body(8), Encoding::Binary, 8, 3).map(|message| message.len()),
        Ok(8)
    );
    assert_eq!(
        read(&body(9), Encoding::Binary, 8, 3).map_err(|status| status.code),
        Err(Code::OutOfRange)
    );
}

// API-282
#[test]
fn the_transport_ceiling_is_carried_in_both_directions_and_both_encodings() {
    const CEILING_BYTES: usize = 26_214_400;
    let message = "x".repeat(CEILING_BYTES - 5);
    assert_eq!(
        message.encoded_len(),
        CEILING_BYTES,
        "tag and length take five bytes"
    );
    for encoding in [Encoding::Binary, Encoding::Text] {
        let body = unary_response(encoding, &Ok(message.encode_to_vec()), CEILING_BYTES);
        let mut decoder = FrameDecoder::new(encoding, CEILING_BYTES);
        body.chunks(1 << 20).for_each(|piece| decoder.push(piece));
        let frame = decoder.next_frame().expect("a frame");
        assert!(matches!(frame, Some(Frame::Message(carried)) if carried.len() == CEILING_BYTES));
    }
    let mut frames = BytesMut::new();
    frame::put_message(&mut frames, &message);
    let carried = read(&frames, Encoding::Binary, CEILING_BYTES, 1 << 20).expect("carried");
    assert_eq!(carried.len(), CEILING_BYTES);
}

#[test]
fn a_unary_request_is_one_message() {
    let one = [0, 0, 0, 0, 1, 7];
    assert_eq!(read(&one, Encoding::Binary, 8, 2).as_deref(), Ok(&[7][..]));
    assert_eq!(
        read(&[], Encoding::Binary, 8, 1).expect_err("none").code,
        Code::Unimplemented
    );
    assert_eq!(
        read(&[one, one].concat(), Encoding::Binary, 8, 5)
            .expect_err("two")
            .code,
        Code::Unimplemented
    );
    assert_eq!(
        read(&one[..5], Encoding::Binary, 8, 5).expect_err("cut").code,
        Code::Internal
    );
    assert_eq!(
        read(&[0x80, 0, 0, 0, 0], Encoding::Binary, 8, 5)
            .expect_err("trailers")
            .code,
        Code::Internal
    );
    assert_eq!(
        read(b"!!!!", Encoding::Text, 8, 4).expect_err("not base64").code,
        Code::Internal
    );
}

/// A client that sends a second message cannot make the server hold it beside the first.
#[test]
fn a_second_message_is_refused_by_its_header() {
    let one = [0, 0, 0, 0, 1, 7];
    for second in [
        &[0, 0, 0, 0, 0][..],
        &[0, 0, 0, 0, 8],
        &[0, 0, 0, 0, 8, 1, 2],
        &[0, 0xff, 0xff, 0xff, 0xff],
    ] {
        for piece in 1..9 {
            let body = [&one[..], second].concat();
            let status = read(&body, Encoding::Binary, 8, piece).expect_err("two");
            assert_eq!(status.code, Code::Unimplemented, "{second:?}");
        }
    }
    for (second, code) in [
        (&[0x80, 0, 0, 0, 0][..], Code::Internal),
        (&[1, 0, 0, 0, 9], Code::Unimplemented),
        (&[2, 0, 0, 0, 9], Code::Internal),
        (&[0, 0, 0], Code::Internal),
    ] {
        let body = [&one[..], second].concat();
        assert_eq!(
            read(&body, Encoding::Binary, 8, 9).expect_err("more").code,
            code,
            "{second:?}"
        );
    }
}

#[test]
fn padded_text_in_several_parts_is_one_message() {
    let (start, end) = (
        crate::text::encode(&[0, 0, 0, 0]),
        crate::text::encode(&[2, 8, 9]),
    );
    for piece in 1..12 {
        let body = format!("{start}{end}");
        assert_eq!(
            read(body.as_bytes(), Encoding::Text, 8, piece).as_deref(),
            Ok(&[8, 9][..])
        );
    }
}

// API-281, API-283
#[test]
fn a_response_over_its_bound_fails_whole() {
    let message = b"twelve bytes";
    let fits = unary_response(Encoding::Binary, &Ok(message), message.len());
    assert_eq!(fits[0], 0, "a message frame comes first");
    let fails = unary_response(Encoding::Binary, &Ok(message), message.len() - 1);
    let Ok(Frame::Trailers(trailers)) = frame::decode_single(&fails, 0) else {
        panic!("a trailer frame alone")
    };
    assert_eq!(
        trailers.status().map(|status| status.code),
        Some(Code::OutOfRange)
    );
}

#[test]
fn a_message_and_its_trailer_leave_in_one_chunk() {
    let body = unary_response(Encoding::Binary, &Ok(b"\x0a\x01x"), 100);
    assert_eq!(&body[..], b"\0\0\0\0\x03\x0a\x01x\x80\0\0\0\x0fgrpc-status:0\r\n");
    let error = unary_response(Encoding::Binary, &Err::<&[u8], _>(Status::not_found("")), 100);
    assert_eq!(&error[..], b"\x80\0\0\0\x0fgrpc-status:5\r\n");
}

#[test]
fn ready_frames_are_joined() {
    let mut joiner = FrameJoiner::new(Encoding::Binary, 1000);
    let message = [b'm'; 1000];
    let mut pushed = 0;
    while !joiner.is_full() {
        joiner.push(&message).expect("fits");
        pushed += 1;
    }
    assert_eq!(
        pushed,
        JOINED_CHUNK_BYTES.div_ceil(message.len() + frame::HEADER_BYTES)
    );
    let chunk = joiner.take().expect("frames");
    assert!(chunk.len() >= JOINED_CHUNK_BYTES && joiner.take().is_none());
    let too_long = joiner.push(&[b'm'; 1001]).expect_err("too long");
    assert_eq!(too_long.out_of_range().code, Code::OutOfRange);
    assert_eq!(
        &joiner.finish(&Status::ok())[..],
        b"\x80\0\0\0\x0fgrpc-status:0\r\n"
    );
}

proptest! {
    #[test]
    fn any_request_body_has_one_verdict_however_it_is_cut(
        body in proptest::collection::vec(prop_oneof![4 => 0u8..4, 1 => 0u8..], 0..40),
        piece in 1usize..9,
        is_text in any::<bool>(),
    ) {
        let encoding = if is_text { Encoding::Text } else { Encoding::Binary };
        prop_assert_eq!(read(&body, encoding, 16, piece), read(&body, encoding, 16, 1000));
    }
}

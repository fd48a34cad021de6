//! How a client reads whole, broken and foreign responses.

use proptest::prelude::*;

use super::*;
use crate::server;

const GRPC_WEB: ResponseHead<'static> = ResponseHead {
    http_status: 200,
    content_type: Some("application/grpc-web+proto"),
    grpc_status: None,
    grpc_message: None,
    grpc_status_details: None,
};

fn read(head: &ResponseHead<'_>, body: &[u8], piece: usize) -> (Vec<Bytes>, End) {
    let mut decoder = ResponseDecoder::new(head, 64);
    let mut messages = Vec::new();
    for piece in body.chunks(piece.max(1)) {
        decoder.push(piece);
        while let Some(Event::Message(message)) = decoder.next_event() {
            messages.push(message);
        }
    }
    (messages, decoder.finish())
}

#[test]
fn a_unary_response_is_read_in_both_encodings() {
    for encoding in [Encoding::Binary, Encoding::Text] {
        let head = ResponseHead {
            content_type: Some(encoding.content_type()),
            ..GRPC_WEB
        };
        let body = server::unary_response(encoding, &Ok("hello".to_owned().encode_to_vec()), 64);
        assert_eq!(
            read_unary::<String>(&head, &body, 64).expect("succeeds").0,
            "hello"
        );
        let status = Status::invalid_argument("no").with_detail("t", &b"d"[..]);
        let body = server::unary_response(encoding, &Err::<Vec<u8>, _>(status.clone()), 64);
        let end = read_unary::<String>(&head, &body, 64).expect_err("fails");
        assert_eq!((end.status, end.is_stated), (status, true));
    }
}

#[test]
fn a_response_without_a_trailer_is_of_unknown_outcome() {
    let body = server::unary_response(Encoding::Binary, &Ok("hello".to_owned().encode_to_vec()), 64);
    for length in 0..body.len() {
        let end = read_unary::<String>(&GRPC_WEB, &body[..length], 64).expect_err("cut");
        assert_eq!(
            (end.status.code, end.is_stated),
            (Code::Unavailable, false),
            "{length}"
        );
    }
    let no_status = [&[0x80, 0, 0, 0, 5][..], b"a:b\r\n"].concat();
    let end = read_unary::<String>(&GRPC_WEB, &no_status, 64).expect_err("no status");
    assert_eq!((end.status.code, end.is_stated), (Code::Unavailable, false));
}

#[test]
fn an_answer_in_headers_alone_is_read() {
    let head = ResponseHead {
        grpc_status: Some("12"),
        grpc_message: Some("not%20here"),
        content_type: None,
        ..GRPC_WEB
    };
    let (messages, end) = read(&head, b"ignored", 3);
    assert!(messages.is_empty());
    assert_eq!(
        (end.status, end.is_stated),
        (Status::unimplemented("not here"), true)
    );
}

#[test]
fn ok_in_headers_is_not_the_end() {
    let head = ResponseHead {
        grpc_status: Some("0"),
        ..GRPC_WEB
    };
    let body = server::unary_response(Encoding::Binary, &Ok("hello".to_owned().encode_to_vec()), 64);
    assert!(read_unary::<String>(&head, &body, 64).is_ok());
    assert_eq!(
        read_unary::<String>(&head, &[], 64)
            .expect_err("empty")
            .status
            .code,
        Code::Unavailable
    );
}

#[test]
fn foreign_responses_are_told_apart() {
    let cases = [
        (200, Some("text/html"), Code::Unknown),
        (200, None, Code::Unknown),
        (404, Some("text/html"), Code::Unimplemented),
        (415, None, Code::Unknown),
        (502, Some("text/html"), Code::Unavailable),
        (503, Some("application/grpc-web"), Code::Unavailable),
    ];
    for (http_status, content_type, code) in cases {
        let head = ResponseHead {
            http_status,
            content_type,
            ..GRPC_WEB
        };
        let (messages, end) = read(&head, b"<html>", 2);
        assert!(messages.is_empty());
        assert_eq!(
            (end.status.code, end.is_stated),
            (code, false),
            "{http_status} {content_type:?}"
        );
    }
}

#[test]
fn a_unary_success_has_one_message_that_decodes() {
    let none = server::error_response(Encoding::Binary, &Status::ok());
    assert_eq!(
        read_unary::<String>(&GRPC_WEB, &none, 64)
            .expect_err("no message")
            .status
            .code,
        Code::Internal
    );
    let bad = [&[0, 0, 0, 0, 1, 0xff][..], &none].concat();
    assert_eq!(
        read_unary::<String>(&GRPC_WEB, &bad, 64)
            .expect_err("undecodable")
            .status
            .code,
        Code::Internal
    );
    let two = [&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &none].concat();
    assert_eq!(
        read_unary::<String>(&GRPC_WEB, &two, 64)
            .expect_err("two messages")
            .status
            .code,
        Code::Internal
    );
}

#[test]
fn a_request_is_what_the_server_reads() {
    let headers = request_headers(Some(Duration::from_millis(1500)));
    let get = |name: &str| {
        headers
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.to_string())
    };
    let (content_type, timeout) = (get("content-type"), get("grpc-timeout"));
    let head = server::RequestHead {
        method: "POST",
        content_type: content_type.as_deref(),
        grpc_encoding: None,
        content_encoding: None,
        grpc_timeout: timeout.as_deref(),
    };
    let accepted = head.check().expect("a call");
    assert_eq!(accepted.timeout, Some(Duration::from_millis(1500)));
    let mut request = server::UnaryRequest::new(accepted.encoding, 64);
    request.push(&request_body(&"hello".to_owned()));
    let message = request.finish().expect("one message");
    assert_eq!(server::decode_message::<String>(message), Ok("hello".to_owned()));
}

proptest! {
    #[test]
    fn any_response_reads_the_same_however_it_is_cut(
        body in proptest::collection::vec(prop_oneof![3 => 0u8..6, 1 => Just(0x80u8), 1 => 0u8..], 0..80),
        piece in 1usize..9,
        is_text in any::<bool>(),
    ) {
        let encoding = if is_text { Encoding::Text } else { Encoding::Binary };
        let head = ResponseHead { content_type: Some(encoding.content_type()), ..GRPC_WEB };
        prop_assert_eq!(read(&head, &body, piece), read(&head, &body, 1000));
    }

    #[test]
    fn a_stream_gives_its_messages_and_then_its_status(
        messages in proptest::collection::vec("[a-z]{0,20}", 0..8),
        piece in 1usize..30,
        is_text in any::<bool>(),
    ) {
        let encoding = if is_text { Encoding::Text } else { Encoding::Binary };
        let mut joiner = server::FrameJoiner::new(encoding, 64);
        let mut body = Vec::new();
        for message in &messages {
            joiner.push(&message.encode_to_vec()).expect("fits");
            body.extend(joiner.take());
        }
        let mut body = body.concat();
        body.extend(joiner.finish(&Status::resource_exhausted("slow")));
        let head = ResponseHead { content_type: Some(encoding.content_type()), ..GRPC_WEB };
        let (read_messages, end) = read(&head, &body, piece);
        let decoded: Vec<_> = read_messages.into_iter().map(|m| String::decode(m).expect("decodes")).collect();
        prop_assert_eq!(decoded, messages);
        prop_assert_eq!((end.status, end.is_stated), (Status::resource_exhausted("slow"), true));
    }
}

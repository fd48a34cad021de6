//! Native gRPC on one side, gRPC-Web on the other, byte by byte.

mod support;

use conclave_grpc_web::{Status, Trailers};
use hyper::Version;
use support::{
    Gateway,
    backend::GRPC_WEB,
    caller::{Caller, data, end, raw},
    frame, message, soon, trailers,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const MIB: usize = 1024 * 1024;

// API-285
#[tokio::test]
async fn a_unary_call_reaches_the_backend_as_grpc_web_and_comes_back_as_grpc() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    let mut call = caller
        .call(
            "/a.B/C",
            &[("authorization", "Bearer x"), ("grpc-timeout", "20S")],
        )
        .await;
    call.send(&message(b"asked"), true);
    let mut backend = gateway.backend().await;
    let head = backend.head().await;
    assert_eq!(head.line, "POST /a.B/C HTTP/1.1");
    assert_eq!(head.get("content-type"), Some("application/grpc-web+proto"));
    assert_eq!(head.get("host"), Some("api.example"));
    assert_eq!(head.get("authorization"), Some("Bearer x"));
    assert_eq!(head.get("grpc-timeout"), Some("20S"));
    assert_eq!(head.get("te"), None);
    assert_eq!(backend.body().await, message(b"asked"));
    backend
        .answer(&[message(b"answered"), trailers("grpc-status:0\r\nx-note:end\r\n")].concat())
        .await;
    let ended = call.end().await;
    assert_eq!(ended.body, message(b"answered"));
    let fields = ended.head.headers();
    assert_eq!(fields["content-type"], "application/grpc+proto");
    assert_eq!(fields["x-request-id"], "r-1");
    assert!(!fields.contains_key("access-control-allow-origin") && !fields.contains_key("grpc-status"));
    assert_eq!((ended.status(), ended.told("x-note")), ("0", "end"));
}

// API-281, API-285
#[tokio::test]
async fn an_error_arrives_with_its_message_and_its_details() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    let status = Status::invalid_argument("envelope 0: ünfit\nfor use")
        .with_detail("type.googleapis.com/x.Y", &b"z"[..]);
    let told = Trailers::from_status(&status);
    let mut call = caller.call("/a.B/C", &[]).await;
    call.send(&message(b""), true);
    let mut backend = gateway.backend().await;
    backend.head().await;
    backend.body().await;
    backend.answer(&trailers(&told.encode())).await;
    let ended = call.end().await;
    assert!(ended.body.is_empty());
    for name in ["grpc-status", "grpc-message", "grpc-status-details-bin"] {
        assert_eq!(Some(ended.told(name)), told.get(name));
    }
}

#[tokio::test]
async fn an_error_in_the_head_of_an_answer_is_one_head_to_the_caller_too() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    let mut call = caller.call("/a.B/C", &[]).await;
    call.send(&message(b""), true);
    let mut backend = gateway.backend().await;
    backend.head().await;
    backend
        .send("HTTP/1.1 200 OK\r\ncontent-type: application/grpc-web\r\ngrpc-status: 7\r\nx-request-id: r-2\r\ncontent-length: 0\r\n\r\n")
        .await;
    let (answer, _) = call.answer().await;
    assert!(answer.body().is_end_stream());
    let ended = end(answer).await;
    assert_eq!((ended.status(), ended.trailers.is_none()), ("7", true));
    assert_eq!(ended.head.headers()["x-request-id"], "r-2");
}

#[tokio::test]
async fn an_answer_that_is_no_grpc_web_is_told_by_a_status() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    for (line, status) in [
        ("404 Not Found", "12"),
        ("503 Service Unavailable", "14"),
        ("200 OK", "2"),
    ] {
        let mut call = caller.call("/a.B/C", &[]).await;
        call.send(&message(b""), true);
        let mut backend = gateway.backend().await;
        backend.head().await;
        backend
            .send(format!(
                "HTTP/1.1 {line}\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>"
            ))
            .await;
        drop(backend);
        let ended = call.end().await;
        assert_eq!((ended.status(), ended.body.len()), (status, 0), "{line}");
    }
}

#[tokio::test]
async fn frames_pass_unchanged_wherever_they_are_cut() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    let asked = [message(b"one"), message(b""), message(&[7; 300])].concat();
    let mut call = caller.call("/a.B/C", &[]).await;
    for byte in &asked {
        call.send(&[*byte], false);
    }
    call.send(&[], true);
    let mut backend = gateway.backend().await;
    backend.head().await;
    assert_eq!(backend.body().await, asked);
    let answered = [
        message(b"a"),
        message(b""),
        message(&[9; 200]),
        trailers("grpc-status:0\r\n"),
    ]
    .concat();
    backend.send(GRPC_WEB).await;
    for byte in &answered {
        backend.send_chunk(&[*byte]).await;
    }
    backend.send_chunk(&[]).await;
    let ended = call.end().await;
    assert_eq!(
        ended.body,
        answered[..answered.len() - trailers("grpc-status:0\r\n").len()]
    );
    assert_eq!(ended.status(), "0");
}

// API-285
#[tokio::test]
async fn both_directions_of_a_call_stay_open_and_the_caller_ends_its_own_first() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    let mut call = caller.call("/a.B/C", &[]).await;
    let mut backend = gateway.backend().await;
    backend.head().await;
    backend.send(GRPC_WEB).await;
    backend.send_chunk(&message(b"started")).await;
    call.send(&message(b"first"), false);
    let (mut answer, mut request) = call.answer().await;
    assert_eq!(data(&mut answer).await, message(b"started"));
    assert_eq!(backend.chunk().await, message(b"first"));
    for round in 0..50u8 {
        request.send_data(message(&[round]).into(), false).expect("open");
        assert_eq!(backend.chunk().await, message(&[round]));
        backend.send_chunk(&message(&[round, round])).await;
        assert_eq!(data(&mut answer).await, message(&[round, round]));
    }
    request.send_data(Default::default(), true).expect("open");
    assert!(backend.chunk().await.is_empty(), "the end of the request");
    backend.send_chunk(&trailers("grpc-status:0\r\n")).await;
    backend.send_chunk(&[]).await;
    assert_eq!(end(answer).await.status(), "0");
}

// API-282
#[tokio::test]
async fn a_message_at_the_ceiling_is_carried_both_ways() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    let large = message(&vec![5; 25 * MIB]);
    let mut call = caller.call("/a.B/C", &[]).await;
    call.send(&large, true);
    let mut backend = gateway.backend().await;
    backend.head().await;
    assert!(backend.body().await == large);
    let answer = [large.clone(), trailers("grpc-status:0\r\n")].concat();
    let (ended, ()) = tokio::join!(call.end(), backend.answer(&answer));
    assert!(ended.body == large);
    assert_eq!(ended.status(), "0");
}

// API-281, API-282
#[tokio::test]
async fn a_message_beyond_the_ceiling_is_out_of_range_either_way() {
    let gateway = Gateway::start_with(|settings| settings.max_message_bytes = MIB).await;
    let mut caller = Caller::connect(gateway.address).await;
    let mut call = caller.call("/a.B/C", &[]).await;
    call.send(&message(&vec![5; MIB + 1]), true);
    let mut backend = gateway.backend().await;
    let ended = call.end().await;
    assert_eq!(ended.status(), "11");
    backend.reset().await;

    let mut call = caller.call("/a.B/C", &[]).await;
    call.send(&message(b""), true);
    let mut backend = gateway.backend().await;
    backend.head().await;
    backend.send(GRPC_WEB).await;
    backend.send_chunk(&message(b"fits")).await;
    backend.send_chunk(&frame(0, &vec![5; MIB + 1])[..100]).await;
    let ended = call.end().await;
    assert_eq!((ended.status(), &ended.body), ("11", &message(b"fits")));
}

#[tokio::test]
async fn a_request_that_is_no_sequence_of_messages_is_refused() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    for bad in [trailers("grpc-status:0\r\n"), frame(4, b"")] {
        let mut call = caller.call("/a.B/C", &[]).await;
        call.send(&bad, true);
        assert_eq!(call.end().await.status(), "13");
    }
}

// API-281
#[tokio::test]
async fn a_compressed_message_reaches_the_backend_which_says_that_it_is_unimplemented() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    let mut call = caller.call("/a.B/C", &[("grpc-encoding", "gzip")]).await;
    call.send(&frame(1, b"squeezed"), true);
    let mut backend = gateway.backend().await;
    assert_eq!(backend.head().await.get("grpc-encoding"), Some("gzip"));
    assert_eq!(backend.body().await, frame(1, b"squeezed"));
    backend.answer(&trailers("grpc-status:12\r\n")).await;
    assert_eq!(call.end().await.status(), "12");
}

#[tokio::test]
async fn native_grpc_that_cannot_be_carried_is_refused_by_http() {
    let gateway = Gateway::start().await;
    let request = "POST /a.B/C HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc\r\nconnection: close\r\n\
                   content-length: 0\r\n\r\n";
    let answer = raw(gateway.address, request).await;
    assert!(answer.starts_with("HTTP/1.1 505 "), "{answer}");
    let mut caller = Caller::connect(gateway.address).await;
    let call = caller
        .call("/a.B/C", &[("content-type", "application/grpc+json")])
        .await;
    let (answer, _request) = call.answer().await;
    assert_eq!(answer.status(), 415);
}

// API-285
#[tokio::test]
async fn grpc_web_and_the_site_pass_through_unchanged_on_the_same_port() {
    let gateway = Gateway::start().await;
    let body = String::from_utf8_lossy(&message(b"hello")).into_owned();
    let request = format!(
        "POST /a.B/C HTTP/1.1\r\nhost: a.example\r\norigin: https://app.example\r\n\
         content-type: application/grpc-web\r\nconnection: close\r\ncontent-length: 10\r\n\r\n{body}"
    );
    let play = async {
        let mut backend = gateway.backend().await;
        let head = backend.head().await;
        assert_eq!(head.get("content-type"), Some("application/grpc-web"));
        assert_eq!(head.get("host"), Some("a.example"));
        assert_eq!(head.get("origin"), Some("https://app.example"));
        assert_eq!(head.get("content-length"), Some("10"));
        assert_eq!(backend.take(10).await, message(b"hello"));
        backend
            .answer(&[message(b"hi"), trailers("grpc-status:0\r\n")].concat())
            .await;
        let head = backend.head().await;
        assert_eq!(
            head.line, "GET /page?x=1 HTTP/1.1",
            "on the connection that was used before"
        );
        backend
            .send("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\npage")
            .await;
    };
    let call = async {
        let answer = raw(gateway.address, request).await;
        assert!(
            answer.contains("content-type: application/grpc-web+proto\r\n"),
            "{answer}"
        );
        assert!(answer.contains("access-control-allow-origin: *\r\n"), "{answer}");
        assert!(
            answer.contains("grpc-status:0\r\n") && !answer.contains("content-length"),
            "{answer}"
        );
        let page = raw(
            gateway.address,
            "GET /page?x=1 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
        )
        .await;
        assert!(
            page.contains("content-length: 4\r\n") && page.ends_with("\r\n\r\npage"),
            "{page}"
        );
    };
    tokio::join!(play, call);
}

#[tokio::test]
async fn a_websocket_passes_byte_by_byte_and_ends_with_either_end() {
    let gateway = Gateway::start().await;
    let upgrade = b"GET /a.B/C HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
                    sec-websocket-key: k\r\nsec-websocket-version: 13\r\n\r\n";
    for is_caller_first in [true, false] {
        let mut caller = TcpStream::connect(gateway.address).await.expect("connected");
        caller.write_all(upgrade).await.expect("sent");
        let mut backend = gateway.backend().await;
        let head = backend.head().await;
        assert_eq!(head.get("upgrade"), Some("websocket"));
        assert_eq!(head.get("sec-websocket-key"), Some("k"));
        backend
            .send("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: s\r\n\r\nhello")
            .await;
        let mut head = vec![0; 0];
        while !head.ends_with(b"hello") {
            assert!(
                soon("the answer", caller.read_buf(&mut head))
                    .await
                    .expect("open")
                    > 0
            );
        }
        let head = String::from_utf8_lossy(&head);
        assert!(
            head.starts_with("HTTP/1.1 101 ") && head.contains("sec-websocket-accept: s\r\n"),
            "{head}"
        );
        caller.write_all(b"ping").await.expect("sent");
        let mut four = [0; 4];
        soon("ping", backend.stream.read_exact(&mut four))
            .await
            .expect("open");
        assert_eq!(&four, b"ping");
        if is_caller_first {
            drop(caller);
            assert_eq!(
                soon("the end", backend.stream.read(&mut four)).await.unwrap_or(0),
                0
            );
        } else {
            drop(backend);
            assert_eq!(soon("the end", caller.read(&mut four)).await.unwrap_or(0), 0);
        }
    }
    let refused = tokio::spawn(raw(
        gateway.address,
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n",
    ));
    let mut backend = gateway.backend().await;
    backend.head().await;
    backend
        .send("HTTP/1.1 426 Upgrade Required\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno")
        .await;
    let answer = soon("the answer", refused).await.expect("no panic");
    assert!(
        answer.starts_with("HTTP/1.1 426 ") && answer.ends_with("no"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_body_before_a_websocket_is_not_announced_to_the_backend() {
    let gateway = Gateway::start().await;
    let asked = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\ncontent-length: 5\r\n\r\nhello";
    let _refused = tokio::spawn(raw(gateway.address, asked));
    let head = gateway.backend().await.head().await;
    assert_eq!(head.get("upgrade"), Some("websocket"));
    // Else the backend takes the beginning of the next request for it, whosever that is.
    assert_eq!(head.get("content-length"), None);
}

#[tokio::test]
async fn an_offer_of_another_protocol_than_a_websocket_is_not_taken_up() {
    let gateway = Gateway::start().await;
    let asked = "POST /a HTTP/1.1\r\nhost: a\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: x\r\n\
                 content-length: 5\r\n\r\nhello";
    let _answered = tokio::spawn(raw(gateway.address, asked));
    let mut backend = gateway.backend().await;
    let head = backend.head().await;
    assert_eq!(
        ["upgrade", "http2-settings", "content-length"].map(|name| head.get(name)),
        [None, None, Some("5")]
    );
    assert_eq!(backend.take(5).await, b"hello");
}

#[tokio::test]
async fn http_1_and_http_2_are_told_apart_by_their_first_bytes() {
    let (address, _drain) = Gateway::start().await.without_backend();
    // A method that begins as the preface of HTTP/2 does, cut where the two still agree.
    let mut stream = TcpStream::connect(address).await.expect("connected");
    for part in [
        "P",
        "R",
        "OPFIND / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    ] {
        stream.write_all(part.as_bytes()).await.expect("sent");
        tokio::task::yield_now().await;
    }
    let mut answer = String::new();
    soon("an answer", stream.read_to_string(&mut answer))
        .await
        .expect("read");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    let version = Caller::connect(address)
        .await
        .unary("/", b"")
        .await
        .head
        .version();
    assert_eq!(version, Version::HTTP_2);
}

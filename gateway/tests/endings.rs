//! Calls that end before their answer does: by the caller, the backend, or a deadline.

mod support;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use support::{
    Gateway,
    backend::GRPC_WEB,
    caller::{Caller, data, end, raw},
    message, trailers,
};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

#[tokio::test]
async fn a_caller_that_cancels_closes_its_connection_to_the_backend_at_once() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    // Before the answer begins.
    let mut call = caller.call("/a.B/C", &[]).await;
    call.send(&message(b"x"), false);
    let mut backend = gateway.backend().await;
    backend.head().await;
    call.request.send_reset(h2::Reason::CANCEL);
    backend.reset().await;
    // And in the midst of it.
    let mut call = caller.call("/a.B/C", &[]).await;
    call.send(&message(b"x"), true);
    let mut backend = gateway.backend().await;
    backend.head().await;
    backend.send(GRPC_WEB).await;
    backend.send_chunk(&message(b"started")).await;
    let (mut answer, mut request) = call.answer().await;
    data(&mut answer).await;
    request.send_reset(h2::Reason::CANCEL);
    backend.reset().await;
}

#[tokio::test]
async fn a_caller_that_is_gone_closes_its_connections_to_the_backend_at_once() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    let mut call = caller.call("/a.B/C", &[]).await;
    call.send(&message(b"x"), true);
    let mut native = gateway.backend().await;
    native.head().await;
    native.send(GRPC_WEB).await;
    native.send_chunk(&message(b"started")).await;
    caller.connection.abort();
    native.reset().await;

    let mut web = TcpStream::connect(gateway.address).await.expect("connected");
    web.write_all(
        b"POST /a.B/C HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc-web\r\ncontent-length: 0\r\n\r\n",
    )
    .await
    .expect("sent");
    let mut backend = gateway.backend().await;
    backend.head().await;
    backend.send(GRPC_WEB).await;
    backend.send_chunk(&message(b"started")).await;
    drop(web);
    backend.reset().await;
}

// API-281
#[tokio::test]
async fn a_backend_that_goes_away_leaves_a_status() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    for begun in [
        None,
        Some(message(b"started")),
        Some(message(b"half")[..7].to_vec()),
    ] {
        let mut call = caller.call("/a.B/C", &[]).await;
        call.send(&message(b"x"), true);
        let mut backend = gateway.backend().await;
        backend.head().await;
        backend.body().await;
        if let Some(begun) = &begun {
            backend.send(GRPC_WEB).await;
            backend.send_chunk(begun).await;
        }
        drop(backend);
        let ended = call.end().await;
        assert_eq!((ended.status(), &ended.body), ("14", &begun.unwrap_or_default()));
    }
}

// API-281
#[tokio::test]
async fn without_a_backend_every_kind_of_caller_is_told_in_its_own_terms() {
    let (address, _drain) = Gateway::start().await.without_backend();
    let ended = Caller::connect(address)
        .await
        .unary("/a.B/C", &message(b"x"))
        .await;
    assert_eq!((ended.status(), ended.trailers.is_none()), ("14", true));
    assert_eq!(ended.told("grpc-message"), "the backend cannot be reached");
    let call = |content_type: &str| {
        format!(
            "POST /a.B/C HTTP/1.1\r\nhost: a\r\ncontent-type: {content_type}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        )
    };
    let web = raw(address, call("application/grpc-web+proto")).await;
    assert!(
        web.starts_with("HTTP/1.1 200 ") && web.contains("grpc-status:14\r\n"),
        "{web}"
    );
    assert!(
        web.contains("access-control-expose-headers: grpc-status, "),
        "{web}"
    );
    let text = raw(address, call("application/grpc-web-text")).await;
    let (_, body) = text.split_once("\r\n\r\n").expect("a head");
    assert!(String::from_utf8_lossy(&STANDARD.decode(body).expect("base64")).contains("grpc-status:14\r\n"));
    let page = raw(address, "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    assert!(page.starts_with("HTTP/1.1 502 "), "{page}");
    let preflight = raw(
        address,
        "OPTIONS /a.B/C HTTP/1.1\r\nhost: a\r\norigin: https://b\r\naccess-control-request-method: POST\r\n\
         access-control-request-headers: x-grpc-web\r\nconnection: close\r\n\r\n",
    )
    .await;
    assert!(preflight.starts_with("HTTP/1.1 204 "), "{preflight}");
    assert!(
        preflight.contains("access-control-allow-headers: x-grpc-web\r\n"),
        "{preflight}"
    );
}

// API-281
#[tokio::test]
async fn a_grpc_web_stream_whose_backend_goes_away_ends_with_a_status_in_either_encoding() {
    let gateway = Gateway::start().await;
    for text in [false, true] {
        let kind = if text {
            "application/grpc-web-text"
        } else {
            "application/grpc-web+proto"
        };
        let request = format!(
            "POST /a.B/C HTTP/1.1\r\nhost: a\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        );
        let play = async {
            let mut backend = gateway.backend().await;
            backend.head().await;
            backend
                .send(GRPC_WEB.replace("application/grpc-web+proto", kind))
                .await;
            let started = message(b"go");
            backend
                .send_chunk(&if text {
                    STANDARD.encode(started).into_bytes()
                } else {
                    started
                })
                .await;
        };
        let (answer, ()) = tokio::join!(raw(gateway.address, request), play);
        if text {
            let last = answer
                .trim_end()
                .lines()
                .rev()
                .nth(1)
                .expect("the last chunk but the empty one");
            let decoded = STANDARD.decode(last).expect("base64");
            assert!(
                String::from_utf8_lossy(&decoded).contains("grpc-status:14\r\n"),
                "{answer}"
            );
        } else {
            assert!(answer.contains("grpc-status:14\r\n"), "{answer}");
        }
        assert!(answer.ends_with("0\r\n\r\n"), "a whole response: {answer}");
    }
}

// API-281
#[tokio::test]
async fn a_deadline_ends_a_call_that_the_backend_does_not_end() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    for has_begun in [false, true] {
        let mut call = caller.call("/a.B/C", &[("grpc-timeout", "20m")]).await;
        call.send(&message(b"x"), true);
        let mut backend = gateway.backend().await;
        backend.head().await;
        if has_begun {
            backend.send(GRPC_WEB).await;
            backend.send_chunk(&message(b"started")).await;
        }
        assert_eq!(call.end().await.status(), "4");
        backend.reset().await;
    }
}

#[tokio::test]
async fn a_call_that_ended_takes_the_rest_of_its_request_with_it() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    let mut call = caller.call("/a.B/C", &[]).await;
    call.send(&message(b"x"), false);
    let mut backend = gateway.backend().await;
    backend.head().await;
    backend.answer(&trailers("grpc-status:8\r\n")).await;
    let (answer, _request) = call.answer().await;
    assert_eq!(end(answer).await.status(), "8");
    backend.reset().await;
}

// API-281
#[tokio::test]
async fn an_answer_that_comes_before_the_request_has_ended_arrives_though_its_backend_has_closed() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    let mut call = caller.call("/a.B/C", &[]).await;
    let mut backend = gateway.backend().await;
    backend.head().await;
    // More than the backend has read when it closes: the connection is then reset.
    call.send(&message(&[7; 40_000]), false);
    backend.chunk().await;
    call.send(&message(&[7; 20_000]), false);
    backend.stream.readable().await.expect("open");
    backend.answer(&trailers("grpc-status:8\r\n")).await;
    drop(backend);
    call.send(&message(&[7; 20_000]), false);
    assert_eq!(call.end().await.status(), "8");
}

// API-281
#[tokio::test]
async fn a_caller_in_http_1_that_is_still_sending_is_read_to_its_end_and_gets_its_answer() {
    const LENGTH: usize = 8 * 1024 * 1024;
    let gateway = Gateway::start().await;
    let head = format!(
        "POST /a.B/C HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc-web\r\nconnection: close\r\n\
         content-length: {LENGTH}\r\n\r\n"
    );
    let play = async {
        let mut backend = gateway.backend().await;
        backend.head().await;
        backend.answer(&trailers("grpc-status:8\r\n")).await;
        drop(backend);
    };
    let request = [head.into_bytes(), vec![0; LENGTH]].concat();
    let (answer, ()) = tokio::join!(raw(gateway.address, request), play);
    assert!(answer.contains("grpc-status:8\r\n"), "{answer}");
}

//! What is bounded: what waits for a slow reader, how many calls there are, and how long the gateway takes to end.

mod support;

use std::time::Duration;

use support::{
    Gateway,
    backend::GRPC_WEB,
    caller::{Caller, data, end, raw},
    message, soon, trailers,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_caller_that_does_not_read_stops_the_backend_and_no_other_caller() {
    const OFFERED: usize = 64 * MIB;
    const HELD_AT_MOST: usize = 24 * MIB;
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    let mut call = caller.call("/a.B/C", &[]).await;
    call.send(&message(b"x"), true);
    let mut backend = gateway.backend().await;
    backend.head().await;
    backend.body().await;
    backend.send(GRPC_WEB).await;
    let chunk = {
        let frame = message(&vec![1; MIB]);
        [format!("{:x}\r\n", frame.len()).as_bytes(), &frame, b"\r\n"].concat()
    };
    let (answer, _request) = call.answer().await;
    let (mut sent, mut written) = (0, 0);
    let is_stuck = loop {
        if sent >= OFFERED {
            break false;
        }
        match timeout(Duration::from_secs(1), backend.stream.write(&chunk[written..])).await {
            Err(_) => break true,
            Ok(count) => written += count.expect("open"),
        }
        if written == chunk.len() {
            (sent, written) = (sent + MIB, 0);
        }
    };
    assert!(
        is_stuck && sent < HELD_AT_MOST,
        "{sent} bytes were taken for a caller that reads none"
    );
    // Another call on the same connection goes on.
    let mut other = caller.call("/a.B/C", &[]).await;
    other.send(&message(b"y"), true);
    let mut beside = gateway.backend().await;
    beside.head().await;
    beside.body().await;
    beside
        .answer(&[message(b"z"), trailers("grpc-status:0\r\n")].concat())
        .await;
    assert_eq!(other.end().await.status(), "0");
    // And nothing was lost of what waited.
    let finish = async {
        backend.send(&chunk[written..]).await;
        backend.send_chunk(&trailers("grpc-status:0\r\n")).await;
        backend.send_chunk(&[]).await;
    };
    let (ended, ()) = tokio::join!(end(answer), finish);
    assert_eq!(
        (ended.status(), ended.body.len()),
        ("0", sent + MIB + 5 * (sent / MIB + 1))
    );
}

#[tokio::test]
async fn a_backend_that_does_not_read_stops_the_caller() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    let mut call = caller.call("/a.B/C", &[]).await;
    let mut backend = gateway.backend().await;
    backend.head().await;
    let sent = message(&vec![1; 24 * MIB]);
    call.request.reserve_capacity(sent.len());
    let mut granted = 0;
    // What the gateway lets the caller send while nobody reads it.
    while granted < sent.len() {
        match timeout(
            Duration::from_secs(1),
            std::future::poll_fn(|context| call.request.poll_capacity(context)),
        )
        .await
        {
            Err(_) => break,
            Ok(capacity) => {
                let capacity = capacity.expect("open").expect("granted");
                let part = capacity.min(sent.len() - granted);
                call.request
                    .send_data(sent[granted..granted + part].to_vec().into(), false)
                    .expect("open");
                granted += part;
                call.request.reserve_capacity(sent.len() - granted);
            }
        }
    }
    assert!(
        granted < 16 * MIB,
        "{granted} bytes were taken for a backend that reads none"
    );
    call.send(&sent[granted..], true);
    assert!(backend.body().await == sent);
}

// API-281
#[tokio::test]
async fn told_to_end_it_finishes_what_is_asked_and_ends_what_streams() {
    let gateway = Gateway::start().await;
    let mut caller = Caller::connect(gateway.address).await;
    let mut asked = caller.call("/a.B/Asked", &[]).await;
    asked.send(&message(b"x"), true);
    let mut answering = gateway.backend().await;
    answering.head().await;
    answering.body().await;
    let mut stream = caller.call("/a.B/Stream", &[]).await;
    stream.send(&message(b"x"), false);
    let mut streaming = gateway.backend().await;
    streaming.head().await;
    streaming.send(GRPC_WEB).await;
    streaming.send_chunk(&message(b"started")).await;
    let (mut answer, _request) = stream.answer().await;
    data(&mut answer).await;

    gateway.drain.begin();
    let ended = end(answer).await;
    assert_eq!(
        (ended.status(), ended.told("grpc-message")),
        ("14", "the gateway is shutting down")
    );
    streaming.reset().await;
    answering
        .answer(&[message(b"y"), trailers("grpc-status:0\r\n")].concat())
        .await;
    assert_eq!(asked.end().await.status(), "0");
    // The connection was told to end too, and with it the gateway.
    soon("the connection to end", caller.connection)
        .await
        .expect("no panic")
        .expect("a graceful end");
    soon("the gateway to end", gateway.served)
        .await
        .expect("no panic");
    TcpStream::connect(gateway.address)
        .await
        .expect_err("nobody listens");
}

// API-281
#[tokio::test]
async fn what_is_not_answered_when_the_drain_is_over_is_unavailable() {
    let gateway = Gateway::start_with(|settings| settings.drain_within = Duration::from_millis(50)).await;
    let mut caller = Caller::connect(gateway.address).await;
    let mut call = caller.call("/a.B/C", &[]).await;
    call.send(&message(b"x"), true);
    let mut backend = gateway.backend().await;
    backend.head().await;
    let page = tokio::spawn(raw(gateway.address, "GET / HTTP/1.1\r\nhost: a\r\n\r\n"));
    let mut beside = gateway.backend().await;
    beside.head().await;
    gateway.drain.begin();
    assert_eq!(call.end().await.status(), "14");
    assert!(
        soon("the page", page)
            .await
            .expect("no panic")
            .starts_with("HTTP/1.1 503 ")
    );
    soon("the gateway to end", gateway.served)
        .await
        .expect("no panic");
}

#[tokio::test]
async fn one_call_too_many_is_unavailable_and_its_place_is_given_back() {
    let gateway = Gateway::start_with(|settings| settings.max_calls = 1).await;
    let mut caller = Caller::connect(gateway.address).await;
    let mut first = caller.call("/a.B/C", &[]).await;
    first.send(&message(b"x"), true);
    let mut backend = gateway.backend().await;
    backend.head().await;
    backend.send(GRPC_WEB).await;
    backend.send_chunk(&message(b"started")).await;
    let (answer, _request) = first.answer().await;
    assert_eq!(caller.unary("/a.B/C", &message(b"x")).await.status(), "14");
    backend.send_chunk(&trailers("grpc-status:0\r\n")).await;
    backend.send_chunk(&[]).await;
    assert_eq!(end(answer).await.status(), "0");
    let mut second = caller.call("/a.B/C", &[]).await;
    second.send(&message(b"x"), true);
    backend.body().await;
    backend.head().await;
    backend.answer(&trailers("grpc-status:0\r\n")).await;
    assert_eq!(second.end().await.status(), "0");
}

/// What every HTTP/2 connection begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Longer than a connection may stay without a request, and than a drain takes.
const LONG: Duration = Duration::from_secs(600);

#[tokio::test(start_paused = true)]
async fn a_connection_that_asks_nothing_is_closed_however_much_of_http_2_it_spoke() {
    let gateway = Gateway::start().await;
    for begun in [&PREFACE[..4], PREFACE] {
        let mut stream = TcpStream::connect(gateway.address).await.expect("connected");
        stream.write_all(begun).await.expect("open");
        let closed = timeout(LONG, stream.read_to_end(&mut Vec::new())).await;
        assert!(closed.is_ok(), "it is held for ever after {} bytes", begun.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_asks_nothing_holds_up_no_drain() {
    let gateway = Gateway::start_with(|settings| settings.drain_within = LONG).await;
    let mut stream = TcpStream::connect(gateway.address).await.expect("connected");
    stream.write_all(&PREFACE[..4]).await.expect("open");
    // It has been accepted once its first bytes were looked at and answered.
    stream.read_exact(&mut [0; 9]).await.expect("settings");
    gateway.drain.begin();
    timeout(LONG / 2, gateway.served)
        .await
        .expect("in time")
        .expect("served");
}

#[tokio::test(start_paused = true)]
async fn a_websocket_that_its_backend_closed_is_not_held_by_a_caller_that_does_not_close() {
    let gateway = Gateway::start().await;
    let mut caller = TcpStream::connect(gateway.address).await.expect("connected");
    caller
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
        .await
        .expect("sent");
    let mut backend = gateway.backend().await;
    backend.head().await;
    backend
        .send("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nlast")
        .await;
    backend.stream.shutdown().await.expect("open");
    let mut answer = Vec::new();
    caller.read_to_end(&mut answer).await.expect("the end");
    assert!(answer.ends_with(b"last"));
    // The caller keeps its own half open; the backend sees the end of it all the same.
    let ended = timeout(LONG, backend.stream.read(&mut [0; 1])).await;
    assert!(ended.is_ok(), "it is held for ever");
}

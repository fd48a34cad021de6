//! Keepalives, Pings and Pongs.

use super::*;

// API-255
#[test]
fn silence_is_broken_by_a_ping_every_interval_and_only_silence() {
    let mut stream = Stream::open();
    stream.pass_ms(400);
    stream.ping(1).expect("answered");
    stream.frames();
    stream.pass_ms(600);
    assert_eq!(
        stream.session.check_silence(stream.now_ns),
        Ok(400),
        "not silent yet"
    );
    stream.pass_ms(400);
    assert_eq!(stream.session.check_silence(stream.now_ns), Ok(1_000));
    let Some(Shown::Ping(nonce)) = stream.frames().pop() else {
        panic!("no Ping")
    };
    stream.pong(nonce).expect("taken");
    stream.pass_ms(1_000);
    assert_eq!(stream.session.check_silence(stream.now_ns), Ok(1_000));
    assert!(matches!(stream.frames()[..], [Shown::Ping(next)] if next != nonce));
}

// API-255
#[test]
fn silence_on_a_static_stream_is_broken_by_a_keepalive() {
    let mut stream = Stream::open_static(&[0]);
    stream.pass_ms(5_000);
    stream.session.check_silence(stream.now_ns).expect("nothing yet");
    assert_eq!(stream.frames(), [], "not before Started");
    stream.heads(&[0]).expect("taken");
    stream.frames();
    stream.pass_ms(1_000);
    stream.session.check_silence(stream.now_ns).expect("silent");
    assert_eq!(stream.frames(), [Shown::Keepalive]);
}

// API-255, API-257
#[test]
fn no_second_ping_is_sent_while_one_is_unanswered() {
    let mut stream = Stream::open();
    stream.pass_ms(1_000);
    stream.session.check_silence(stream.now_ns).expect("silent");
    assert_eq!(stream.frames(), [Shown::Ping(1)]);
    stream.pass_ms(1_000);
    stream.pong(77).expect("an answer to something else");
    stream.session.check_silence(stream.now_ns).expect("silent");
    assert_eq!(stream.frames(), []);
    stream.pong(1).expect("taken");
    stream.pass_ms(1_000);
    stream.session.check_silence(stream.now_ns).expect("silent");
    assert_eq!(stream.frames(), [Shown::Ping(2)]);
}

// API-256
#[test]
fn a_ping_is_answered_with_its_nonce() {
    let mut stream = Stream::open();
    for nonce in [0, 7, u64::MAX] {
        stream.ping(nonce).expect("answered");
        assert_eq!(stream.frames(), [Shown::Pong(nonce)]);
    }
}

// API-257
#[test]
fn a_ping_that_is_not_answered_fails_the_stream_and_one_that_has_not_left_does_not() {
    let mut stream = Stream::open();
    stream.pass_ms(1_000);
    stream.session.check_silence(stream.now_ns).expect("silent");
    assert_eq!(stream.session.awaited_pong(), None, "it waits for the client");
    stream.frames();
    assert_eq!(stream.session.awaited_pong(), Some(1));
    stream.pong(2).expect("an answer to something else");
    assert_eq!(
        stream.session.check_pong(1).map_err(|status| status.code),
        Err(Code::DeadlineExceeded)
    );
    stream.pong(1).expect("taken");
    assert_eq!(stream.session.awaited_pong(), None);
    assert_eq!(stream.session.check_pong(1), Ok(false));
}

// API-281
#[test]
fn a_client_that_takes_no_frame_for_as_long_as_a_ping_may_go_unanswered_loses_its_stream() {
    let mut configuration = configuration();
    configuration.max_pong_wait_ms = 60_000;
    let mut stream = Stream::open_with(&configuration);
    stream.ping(1).expect("answered");
    let looks = std::iter::repeat_with(|| code(stream.session.check_waiting()))
        .take_while(Option::is_none)
        .count();
    assert_eq!(looks, 6, "at least a minute in looks 15 seconds apart");
    assert_eq!(
        code(stream.session.check_waiting()),
        None,
        "what nobody read was forgotten"
    );
    for _ in 0..100 {
        stream.ping(1).ok();
        assert_eq!(code(stream.session.check_waiting()), None);
        stream.frames();
    }
}

//! SubscribeStatic, and how every stream delivers.

use conclave_proto::conclave::internal::v1::Failure;

use super::*;
use crate::session::output::{Kind, OUTPUT_BYTES_MAX, Output};

fn started(cursors: &[u64], heads: &[u64]) -> Stream {
    let mut stream = Stream::open_static(cursors);
    let topics = (1u8..).take(cursors.len()).collect();
    assert_eq!(stream.sent(), [Sent::Whole(topics)]);
    stream.heads(heads).expect("taken");
    assert!(stream.session.is_started());
    stream
}

// API-260
#[test]
fn nothing_is_sent_before_started() {
    let mut stream = Stream::open_static(&[0]);
    stream.tell(push(1, 0, 5)).expect("taken");
    assert!(!stream.session.has_frame());
    stream.heads(&[5]).expect("taken");
    assert_eq!(stream.frames(), [Shown::StaticStarted(vec![(1, 5)])]);
    assert_eq!(stream.session.router_instance(), Some("rti_x"));
}

// API-254
#[test]
fn a_push_is_delivered_where_it_continues_the_chain_and_read_where_it_does_not() {
    let mut stream = started(&[7], &[5]);
    stream.sent();
    for (previous, id) in [(5, 8), (8, 9), (8, 9), (5, 8), (0, 6)] {
        stream.tell(push(1, previous, id)).expect("taken");
    }
    assert_eq!(stream.delivered(), [(1, 8), (1, 9)]);
    stream.tell(push(1, 11, 12)).expect("taken");
    stream.tell(push(1, 12, 14)).expect("taken");
    assert_eq!(stream.delivered(), []);
    assert_eq!(stream.sent(), [Sent::Read(1, vec![(1, 9)])]);
    stream.tell(page(1, &[(1, &[11, 12, 14], false)])).expect("taken");
    stream.tell(push(1, 14, 15)).expect("taken");
    assert_eq!(stream.delivered(), [(1, 11), (1, 12), (1, 14), (1, 15)]);
    assert_eq!(stream.sent(), []);
}

// API-254
#[test]
fn a_page_that_comes_twice_or_after_its_read_was_given_up_changes_nothing() {
    let mut stream = started(&[0], &[3]);
    assert_eq!(stream.sent(), [Sent::Read(1, vec![(1, 0)])]);
    stream.reintroduce().expect("taken");
    assert_eq!(stream.sent(), [Sent::Whole(vec![1]), Sent::Read(2, vec![(1, 0)])]);
    stream.tell(page(1, &[(1, &[1, 2, 3], false)])).expect("taken");
    stream.tell(page(2, &[(1, &[1, 2], true)])).expect("taken");
    stream.tell(page(2, &[(1, &[1, 2], true)])).expect("taken");
    assert_eq!(stream.sent(), [Sent::Read(3, vec![(1, 2)])]);
    stream.tell(page(3, &[(1, &[3], false)])).expect("taken");
    assert_eq!(stream.delivered(), [(1, 1), (1, 2), (1, 3)]);
}

// API-254
#[test]
fn a_shard_that_restarted_is_caught_up_with_by_its_heads() {
    let mut stream = started(&[0, 0], &[0, 0]);
    stream.reintroduce().expect("taken");
    assert_eq!(stream.sent(), [Sent::Whole(vec![1, 2])]);
    stream.heads(&[4, 0]).expect("taken");
    assert_eq!(stream.sent(), [Sent::Read(1, vec![(1, 0)])]);
    stream.tell(page(1, &[(1, &[4], false)])).expect("taken");
    assert_eq!(stream.delivered(), [(1, 4)]);
}

// API-261
#[test]
fn every_topic_that_is_behind_gets_a_turn_before_any_gets_its_next() {
    let mut stream = started(&[0, 0, 0], &[9, 3, 1]);
    assert_eq!(stream.sent(), [Sent::Read(1, vec![(1, 0), (2, 0), (3, 0)])]);
    // The shard reached two of the three.
    stream
        .tell(page(1, &[(1, &[1], true), (2, &[3], false)]))
        .expect("taken");
    // Who was not reached is next, and who had a turn comes behind.
    assert_eq!(stream.sent(), [Sent::Read(2, vec![(3, 0), (1, 1)])]);
    stream
        .tell(page(2, &[(3, &[1], false), (1, &[9], false)]))
        .expect("taken");
    assert_eq!(stream.sent(), []);
    assert_eq!(stream.delivered(), [(1, 1), (2, 3), (3, 1), (1, 9)]);
}

// API-281
#[test]
fn a_shard_that_breaks_its_word_fails_the_stream() {
    let code_of = |message| code(started(&[0], &[3]).tell(message));
    assert_eq!(
        code_of(page(1, &[(1, &[], false)])),
        Some(Code::Internal),
        "an envelope is missing"
    );
    assert_eq!(
        code_of(page(1, &[(1, &[1, 3, 2], false)])),
        Some(Code::Internal),
        "out of order"
    );
    assert_eq!(code_of(page(1, &[])), Some(Code::Internal), "no run");
    let mut stream = Stream::open_static(&[0]);
    assert_eq!(
        code(stream.heads(&[1, 2])),
        Some(Code::Internal),
        "too many heads"
    );
    let failure = Failure {
        code: 14,
        message: "born otherwise".to_owned(),
        ..Default::default()
    };
    assert_eq!(code_of(Incoming::Failure(failure)), Some(Code::Unavailable));
    let mut stream = started(&[0], &[3]);
    assert_eq!(code(stream.session.receive(0, vec![0xff])), Some(Code::Internal));
}

// API-281
#[test]
fn a_shard_that_leaves_a_read_or_a_registration_unanswered_fails_the_stream() {
    for mut stream in [Stream::open_static(&[0]), started(&[0], &[3])] {
        assert_eq!(code(stream.session.check_waiting()), None);
        assert_eq!(code(stream.session.check_waiting()), Some(Code::Unavailable));
    }
    let mut stream = started(&[0], &[0]);
    for _ in 0..100 {
        assert_eq!(code(stream.session.check_waiting()), None);
        stream.frames();
    }
}

// API-281
#[test]
fn a_started_frame_longer_than_a_response_may_be_fails_the_stream() {
    let mut stream = Stream::open_static(&[0; 50]);
    stream.session.output = Output::new(Kind::Static, OUTPUT_BYTES_MAX, 1_000);
    assert_eq!(code(stream.heads(&[1; 50])), Some(Code::ResourceExhausted));
}

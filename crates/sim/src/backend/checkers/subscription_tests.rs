//! The checker of Subscribe streams finds each thing it is there for, in a stream that is sound but for that.

use bytes::Bytes;
use conclave_grpc_web::Code;
use conclave_proto::xmtp::backend::v1::{Cursor, EnvelopeMeta, Topic};

use super::{facts::Facts, subscriptions};
use crate::backend::{
    history::History,
    subscription::{Asked, Event, Manner, Subscription},
};

fn topic(n: u8) -> Bytes {
    vec![n].into()
}

fn meta(n: u8, id: u64) -> EnvelopeMeta {
    EnvelopeMeta {
        cursor: Some(Cursor { sequence_id: id }),
        topic: Some(Topic { topic: topic(n) }),
        ..EnvelopeMeta::default()
    }
}

fn update(id: u64, adds: &[(u8, u64)], removes: &[u8]) -> Event {
    Event::Sent(Asked {
        id,
        adds: adds.iter().map(|(n, cursor)| (topic(*n), *cursor)).collect(),
        removes: removes.iter().map(|n| topic(*n)).collect(),
    })
}

fn applied(id: u64, targets: &[(u8, u64)]) -> Event {
    Event::Applied(
        id,
        targets.iter().map(|(n, target)| (topic(*n), *target)).collect(),
    )
}

fn messages(metas: &[(u8, u64)]) -> Event {
    Event::Messages(metas.iter().map(|(n, id)| meta(*n, *id)).collect())
}

/// Topics 1 and 2 with history, added and read in turns; topic 1 removed and added again from the middle.
fn sound() -> Vec<Event> {
    vec![
        Event::Started,
        update(1, &[(1, 0), (2, 0)], &[]),
        applied(1, &[(1, 5), (2, 6)]),
        messages(&[(1, 1)]),
        messages(&[(2, 2)]),
        messages(&[(1, 3), (1, 5)]),
        messages(&[(2, 6)]),
        Event::SentPing(77),
        Event::Ponged(77),
        update(2, &[], &[1]),
        applied(2, &[]),
        messages(&[(2, 7)]),
        update(4, &[(1, 3), (2, 0)], &[]),
        applied(4, &[(1, 5)]),
        messages(&[(1, 5)]),
        Event::Pinged(1),
        Event::SentPong(1),
        Event::Pinged(2),
        Event::SentPong(2),
    ]
}

/// What the checker says of these events and this end.
fn found_with(events: Vec<Event>, ended: Option<Code>) -> usize {
    let mut history = History::default();
    let mut subscription = Subscription::new(0, Manner { answers_pings: true });
    subscription.is_open = ended.is_none();
    subscription.ended = ended;
    for event in events {
        let moment = history.now();
        subscription.events.push((moment, 0, event));
    }
    history.subscriptions.push(subscription);
    let log = |n, ids: &[u64]| (topic(n), ids.iter().map(|id| meta(n, *id)).collect());
    history.logs = vec![log(1, &[1, 3, 5]), log(2, &[2, 6, 7])];
    subscriptions::check(&history, &Facts::of(&history)).len()
}

fn found(events: Vec<Event>) -> usize {
    found_with(events, None)
}

/// The sound events with one replaced.
fn with(place: usize, event: Event) -> usize {
    let mut events = sound();
    events[place] = event;
    found(events)
}

fn without(place: usize) -> usize {
    let mut events = sound();
    events.remove(place);
    found(events)
}

#[test]
fn a_sound_stream_passes() {
    assert_eq!(found(sound()), 0);
    assert_eq!(found_with(sound(), Some(Code::Unavailable)), 0);
}

// API-250
#[test]
fn a_stream_that_does_not_start_with_started_is_found() {
    assert!(without(0) > 0);
    assert!(with(3, Event::Started) > 0);
}

// API-252
#[test]
fn acknowledgements_that_are_missing_or_wrong_are_found() {
    assert!(without(10) > 0);
    assert!(with(10, applied(3, &[])) > 0, "another id");
    assert!(with(2, applied(1, &[(2, 6), (1, 5)])) > 0, "another order");
    assert!(with(2, applied(1, &[(1, 5)])) > 0, "a topic less");
    assert!(with(2, applied(1, &[(1, 4), (2, 6)])) > 0, "no envelope");
    assert!(
        with(13, applied(4, &[(1, 3)])) > 0,
        "below what was known by then"
    );
    assert!(
        with(13, applied(4, &[(1, 5), (2, 7)])) > 0,
        "what was registered already"
    );
}

// API-253, API-254
#[test]
fn deliveries_that_are_unasked_missing_or_twice_are_found() {
    assert!(with(11, messages(&[(1, 5)])) > 0, "removed");
    assert!(with(3, messages(&[(1, 3)])) > 0, "a gap");
    assert!(with(4, messages(&[(1, 1)])) > 0, "a repeat");
    assert!(with(14, messages(&[(1, 1)])) > 0, "below the cursor of the add");
    assert!(with(5, messages(&[(1, 5), (1, 3)])) > 0, "out of order");
}

// API-261
#[test]
fn a_second_frame_of_history_before_another_has_its_first_is_found() {
    let mut events = sound();
    events.swap(4, 5);
    assert!(found(events) > 0);
}

// API-255, API-256, API-257
#[test]
fn pings_and_pongs_that_do_not_match_are_found() {
    assert!(without(16) > 0, "a second Ping while one is unanswered");
    assert!(with(8, Event::Ponged(78)) > 0, "another nonce");
}

// API-259
#[test]
fn an_end_for_no_reason_is_found() {
    for code in [
        Code::Ok,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::ResourceExhausted,
        Code::Internal,
    ] {
        assert!(found_with(sound(), Some(code)) > 0, "{code}");
    }
    let mut events = sound();
    events.push(Event::EndedItsHalf);
    assert_eq!(found_with(events, Some(Code::Ok)), 0);
}

use conclave_envelope::{Topic, request::TopicPosition as Position};
use conclave_grpc_web::Code;
use conclave_proto::{
    conclave::internal::v1::{
        Failure,
        from_shard::{Push, Reintroduce},
    },
    xmtp::backend::v1::{SubscribeStaticResponse, subscribe_static_response::Response},
};

use super::*;

/// An encoded ClientEnvelope with an empty group message.
const EMPTY_GROUP_MESSAGE: &[u8] = &[0x0a, 0];

/// A message to a shard: a registration as `None`, a read as its id and its positions.
type Sent = Option<(u64, Vec<(u8, u64)>)>;

fn topic(n: u8) -> Topic {
    let mut bytes = [n; 17];
    bytes[0] = 0;
    Topic::parse(&bytes).expect("a topic")
}

/// A session over topics 1 to `count` on one shard, from these cursors.
fn session(cursors: &[u64]) -> StaticSession {
    let positions = (1u8..).zip(cursors).map(|(n, cursor)| Position {
        topic: topic(n),
        cursor: *cursor,
    });
    StaticSession::new(
        &StaticPlan {
            positions: positions.collect(),
        },
        &Routing::at_birth(1),
        100_000,
        1_000,
    )
}

fn stored(n: u8, sequence_id: u64) -> StoredEnvelope {
    let meta = wire::EnvelopeMeta {
        cursor: Some(wire::Cursor { sequence_id }),
        topic: Some(topic(n).to_wire()),
        ..Default::default()
    };
    StoredEnvelope {
        meta: Some(meta),
        envelope: Bytes::from_static(EMPTY_GROUP_MESSAGE),
    }
}

fn tell(session: &mut StaticSession, message: Incoming) -> Result<(), Status> {
    session.receive(
        0,
        FromShard {
            message: Some(message),
        }
        .encode_to_vec(),
    )
}

fn heads(heads: &[u64]) -> Incoming {
    Incoming::Registered(Registered {
        heads: heads.to_vec(),
        router_instance: "rti_x".to_owned(),
    })
}

fn push(n: u8, previous: u64, sequence_id: u64) -> Incoming {
    Incoming::Push(Push {
        links: vec![Link {
            stored: Some(stored(n, sequence_id)),
            previous,
        }],
    })
}

fn page(id: u64, runs: &[(u8, &[u64], bool)]) -> Incoming {
    let runs = runs.iter().map(|(n, ids, has_more)| Run {
        envelopes: ids.iter().map(|id| stored(*n, *id)).collect(),
        has_more: *has_more,
    });
    Incoming::Page(Page {
        id,
        runs: runs.collect(),
    })
}

fn sent(session: &mut StaticSession) -> Vec<Sent> {
    let decode = |(_, bytes): (usize, Vec<u8>)| match ToShard::decode(&bytes[..]).expect("decodes").message {
        Some(Outgoing::Register(_)) => None,
        Some(Outgoing::Read(read)) => Some((
            read.id,
            read.positions
                .iter()
                .map(|position| (position.topic[1], position.after))
                .collect(),
        )),
        None => panic!("an empty message"),
    };
    session.take_outbox().into_iter().map(decode).collect()
}

/// Ids delivered by the frames that wait, in order.
fn shown(session: &mut StaticSession) -> Vec<(u8, u64)> {
    let mut shown = Vec::new();
    while let Some(frame) = session.pop_frame() {
        let frame = SubscribeStaticResponse::decode(&frame[..]).expect("a frame");
        if let Some(Response::Messages(messages)) = frame.response {
            for stored in messages.envelopes {
                let meta = stored.meta.expect("metadata");
                let id = meta.cursor.expect("a cursor").sequence_id;
                shown.push((meta.topic.expect("a topic").topic[1], id));
            }
        }
    }
    shown
}

fn started(cursors: &[u64], at: &[u64]) -> StaticSession {
    let mut session = session(cursors);
    assert_eq!(sent(&mut session), [None]);
    tell(&mut session, heads(at)).expect("taken");
    assert!(session.is_started());
    session
}

// API-260
#[test]
fn nothing_is_sent_before_started() {
    let mut session = session(&[0]);
    tell(&mut session, push(1, 0, 5)).expect("taken");
    assert!(!session.has_frame());
    tell(&mut session, heads(&[5])).expect("taken");
    let frame = session.pop_frame().expect("a frame");
    let frame = SubscribeStaticResponse::decode(&frame[..]).expect("decodes");
    let Some(Response::Started(started)) = frame.response else {
        panic!("Started comes first")
    };
    assert_eq!(started.targets[0].through_sequence_id, 5);
    assert_eq!(session.router_instance(), Some("rti_x"));
}

// API-254
#[test]
fn a_push_is_delivered_where_it_continues_the_chain_and_read_where_it_does_not() {
    let mut session = started(&[7], &[5]);
    sent(&mut session);
    for (previous, id) in [(5, 8), (8, 9), (8, 9), (5, 8), (0, 6)] {
        tell(&mut session, push(1, previous, id)).expect("taken");
    }
    assert_eq!(shown(&mut session), [(1, 8), (1, 9)]);
    tell(&mut session, push(1, 11, 12)).expect("taken");
    tell(&mut session, push(1, 12, 14)).expect("taken");
    assert_eq!(shown(&mut session), []);
    assert_eq!(sent(&mut session), [Some((1, vec![(1, 9)]))]);
    tell(&mut session, page(1, &[(1, &[11, 12, 14], false)])).expect("taken");
    tell(&mut session, push(1, 14, 15)).expect("taken");
    assert_eq!(shown(&mut session), [(1, 11), (1, 12), (1, 14), (1, 15)]);
    assert_eq!(sent(&mut session), []);
}

// API-254
#[test]
fn a_page_that_comes_twice_or_after_its_read_was_given_up_changes_nothing() {
    let mut session = started(&[0], &[3]);
    assert_eq!(sent(&mut session), [Some((1, vec![(1, 0)]))]);
    tell(&mut session, Incoming::Reintroduce(Reintroduce {})).expect("taken");
    assert_eq!(sent(&mut session), [None, Some((2, vec![(1, 0)]))]);
    tell(&mut session, page(1, &[(1, &[1, 2, 3], false)])).expect("taken");
    tell(&mut session, page(2, &[(1, &[1, 2], true)])).expect("taken");
    tell(&mut session, page(2, &[(1, &[1, 2], true)])).expect("taken");
    assert_eq!(sent(&mut session), [Some((3, vec![(1, 2)]))]);
    tell(&mut session, page(3, &[(1, &[3], false)])).expect("taken");
    assert_eq!(shown(&mut session), [(1, 1), (1, 2), (1, 3)]);
}

// API-254
#[test]
fn a_shard_that_restarted_is_caught_up_with_by_its_heads() {
    let mut session = started(&[0, 0], &[0, 0]);
    tell(&mut session, Incoming::Reintroduce(Reintroduce {})).expect("taken");
    assert_eq!(sent(&mut session), [None]);
    tell(&mut session, heads(&[4, 0])).expect("taken");
    assert_eq!(sent(&mut session), [Some((1, vec![(1, 0)]))]);
    tell(&mut session, page(1, &[(1, &[4], false)])).expect("taken");
    assert_eq!(shown(&mut session), [(1, 4)]);
}

// API-261
#[test]
fn every_topic_that_is_behind_gets_a_turn_before_any_gets_its_next() {
    let mut session = started(&[0, 0, 0], &[9, 3, 1]);
    assert_eq!(sent(&mut session), [Some((1, vec![(1, 0), (2, 0), (3, 0)]))]);
    // The shard reached two of the three.
    tell(&mut session, page(1, &[(1, &[1], true), (2, &[3], false)])).expect("taken");
    assert_eq!(sent(&mut session), [Some((2, vec![(3, 0)]))]);
    tell(&mut session, page(2, &[(3, &[1], false)])).expect("taken");
    assert_eq!(sent(&mut session), [Some((3, vec![(1, 1)]))]);
    tell(&mut session, page(3, &[(1, &[9], false)])).expect("taken");
    assert_eq!(sent(&mut session), []);
    assert_eq!(shown(&mut session), [(1, 1), (2, 3), (3, 1), (1, 9)]);
}

// API-281
#[test]
fn a_shard_that_breaks_its_word_fails_the_stream() {
    let codes = |message| {
        let mut session = started(&[0], &[3]);
        tell(&mut session, message).expect_err("fails").code
    };
    assert_eq!(
        codes(page(1, &[(1, &[], false)])),
        Code::Internal,
        "an envelope is missing"
    );
    assert_eq!(
        codes(page(1, &[(1, &[1, 3, 2], false)])),
        Code::Internal,
        "out of order"
    );
    assert_eq!(codes(page(1, &[])), Code::Internal, "no run");
    assert_eq!(codes(heads(&[1, 2])), Code::Internal, "too many heads");
    let failure = Failure {
        code: 14,
        message: "born otherwise".to_owned(),
        ..Default::default()
    };
    assert_eq!(codes(Incoming::Failure(failure)), Code::Unavailable);
    let mut session = started(&[0], &[3]);
    assert_eq!(
        session.receive(0, vec![0xff]).expect_err("fails").code,
        Code::Internal
    );
}

// API-282
#[test]
fn a_started_frame_longer_than_a_response_may_be_fails_the_stream() {
    let positions = (1..=50)
        .map(|n| Position {
            topic: topic(n),
            cursor: 0,
        })
        .collect();
    let mut session = StaticSession::new(&StaticPlan { positions }, &Routing::at_birth(1), 1_000, 1_000);
    let refused = tell(&mut session, heads(&[1; 50])).expect_err("too long");
    assert_eq!(refused.code, Code::ResourceExhausted);
}

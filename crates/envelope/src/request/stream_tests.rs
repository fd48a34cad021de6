//! The rules of SubscribeStatic and of an Update that need no storage.

use conclave_proto::xmtp::backend::v1::{Cursor, TopicQuery, subscribe_request};
use proptest::prelude::*;

use super::*;
use crate::{
    limits::MAX_SEQUENCE_ID,
    topic::{TopicError, TopicKind},
};

fn topic(kind: TopicKind, fill: u8) -> Topic {
    Topic::from_identifier(kind, &vec![fill; kind.identifier_bytes()]).expect("well formed")
}

fn group(fill: u8) -> Topic {
    topic(TopicKind::GroupMessage, fill)
}

fn entry(topic: Topic, sequence_id: u64) -> TopicQuery {
    TopicQuery {
        topic: Some(topic.to_wire()),
        cursor: Some(Cursor { sequence_id }),
    }
}

/// Reads a SubscribeStatic both encoded and decoded, which must come to the same.
fn open(topics: &[TopicQuery], limits: &Limits) -> Result<StaticPlan, RequestFailure> {
    let request = SubscribeStaticRequest {
        topics: topics.to_vec(),
    };
    let plan = parse_static(&request, limits);
    assert_eq!(StaticPlan::decode(request.encode_to_vec().into(), limits), plan);
    plan
}

fn update(id: u64, adds: &[Topic], removes: &[Topic]) -> Update {
    Update {
        id,
        adds: adds.iter().map(|topic| entry(*topic, 3)).collect(),
        removes: removes.iter().map(Topic::to_wire).collect(),
    }
}

// API-260
#[test]
fn a_static_stream_names_each_topic_once_and_at_least_one() {
    let limits = Limits::default();
    assert_eq!(open(&[], &limits), Err(RequestFailure::NoTopics));
    let twice = [entry(group(1), 1), entry(group(2), 1), entry(group(1), 2)];
    assert_eq!(
        open(&twice, &limits),
        Err(RequestFailure::RepeatedTopic {
            field: "topics",
            index: 2
        })
    );
    let plan = open(&twice[..2], &limits).expect("a plan");
    let expected = [
        TopicPosition {
            topic: group(1),
            cursor: 1,
        },
        TopicPosition {
            topic: group(2),
            cursor: 1,
        },
    ];
    assert_eq!(plan.positions, expected, "in request order");
}

#[test]
fn a_static_stream_takes_topics_of_every_kind() {
    let topics: Vec<_> = TopicKind::ALL
        .into_iter()
        .map(|kind| entry(topic(kind, 1), 0))
        .collect();
    assert_eq!(
        open(&topics, &Limits::default()).expect("a plan").positions.len(),
        5
    );
}

// API-281
#[test]
fn a_static_stream_is_bounded_and_its_entries_well_formed() {
    let limits = Limits {
        max_static_topics: 1,
        ..Limits::default()
    };
    assert!(open(&[entry(group(1), MAX_SEQUENCE_ID)], &limits).is_ok());
    let failure = open(&[entry(group(1), 0), entry(group(2), 0)], &limits).expect_err("too many");
    assert!(matches!(
        failure,
        RequestFailure::TooMany {
            limit: "max_static_topics",
            ..
        }
    ));
    let failure = open(&[entry(group(1), MAX_SEQUENCE_ID + 1)], &limits).expect_err("cursor");
    assert_eq!(
        failure,
        RequestFailure::Cursor {
            field: "topics",
            index: 0
        }
    );
    let failure = open(
        &[TopicQuery {
            topic: None,
            cursor: None,
        }],
        &limits,
    )
    .expect_err("no topic");
    assert_eq!(
        failure,
        RequestFailure::Topic {
            field: "topics",
            index: 0,
            error: TopicError::Empty
        }
    );
    let broken = StaticPlan::decode(Bytes::from_static(&[0x0a, 9]), &limits);
    assert!(matches!(broken, Err(RequestFailure::Undecodable(_))));
}

// API-251
#[test]
fn the_ids_of_updates_rise() {
    let limits = Limits::default();
    for (previous, id, accepted) in [
        (0, 0, false),
        (0, 1, true),
        (5, 5, false),
        (5, 4, false),
        (5, 9, true),
    ] {
        assert_eq!(
            parse_update(&update(id, &[], &[]), previous, &limits).is_ok(),
            accepted,
            "{previous} {id}"
        );
    }
}

// API-251
#[test]
fn an_update_names_each_topic_once_across_adds_and_removes() {
    let read =
        |adds: &[Topic], removes: &[Topic]| parse_update(&update(1, adds, removes), 0, &Limits::default());
    let plan = read(&[group(1), group(2)], &[group(3)]).expect("a plan");
    assert_eq!((plan.adds.len(), plan.removes), (2, vec![group(3)]));
    let repeated = |field, index| Err(RequestFailure::RepeatedTopic { field, index });
    assert_eq!(read(&[group(1), group(1)], &[]), repeated("adds", 1));
    assert_eq!(read(&[], &[group(1), group(1)]), repeated("removes", 1));
    assert_eq!(read(&[group(1)], &[group(2), group(1)]), repeated("removes", 1));
}

// API-251, API-281
#[test]
fn an_update_is_bounded_and_its_entries_well_formed() {
    let limits = Limits {
        max_update_adds: 1,
        max_update_removes: 1,
        ..Limits::default()
    };
    let two = [group(1), group(2)];
    let framed = |update: Update| {
        let request = SubscribeRequest {
            request: Some(subscribe_request::Request::Update(update)),
        };
        decode_frame(request.encode_to_vec().into(), &limits)
    };
    assert!(parse_update(&update(1, &two[..1], &two[1..]), 0, &limits).is_ok());
    assert!(framed(update(1, &two[..1], &two[1..])).is_ok());
    for too_many in [update(1, &two, &[]), update(1, &[], &two)] {
        let counted = framed(too_many.clone()).expect_err("too many");
        assert_eq!(parse_update(&too_many, 0, &limits), Err(counted));
    }
    let failure = parse_update(&update(1, &two, &[]), 0, &limits).expect_err("too many");
    assert!(matches!(
        failure,
        RequestFailure::TooMany {
            limit: "max_update_adds",
            ..
        }
    ));
    let failure = parse_update(&update(1, &[], &two), 0, &limits).expect_err("too many");
    assert!(matches!(
        failure,
        RequestFailure::TooMany {
            limit: "max_update_removes",
            ..
        }
    ));
    let mut bad = update(1, &[group(1)], &[group(2)]);
    bad.removes[0].topic = Bytes::from_static(b"?");
    assert!(matches!(
        parse_update(&bad, 0, &limits),
        Err(RequestFailure::Topic { field: "removes", .. })
    ));
    bad.adds[0].cursor = Some(Cursor {
        sequence_id: MAX_SEQUENCE_ID + 1,
    });
    assert_eq!(
        parse_update(&bad, 0, &limits),
        Err(RequestFailure::Cursor {
            field: "adds",
            index: 0
        })
    );
}

proptest! {
    #[test]
    fn any_bytes_are_a_plan_or_refused(bytes in proptest::collection::vec(prop_oneof![3 => 0u8..40, 1 => 0u8..], 0..80)) {
        let _ = StaticPlan::decode(bytes.clone().into(), &Limits::default());
        let _ = decode_frame(bytes.clone().into(), &Limits::default());
        if let Ok(update) = Update::decode(&bytes[..]) {
            let _ = parse_update(&update, 0, &Limits::default());
        }
    }
}

//! The rules of Query and QueryNewest that need no storage.

use conclave_proto::xmtp::backend::v1::{Cursor, Topic as WireTopic};
use proptest::prelude::*;

use super::*;

fn topic(kind: TopicKind, fill: u8) -> Topic {
    Topic::from_identifier(kind, &vec![fill; kind.identifier_bytes()]).expect("well formed")
}

fn group(fill: u8) -> Topic {
    topic(TopicKind::GroupMessage, fill)
}

fn entry(topic: Topic, cursor: Option<u64>) -> TopicQuery {
    TopicQuery {
        topic: Some(topic.to_wire()),
        cursor: cursor.map(|sequence_id| Cursor { sequence_id }),
    }
}

/// Reads a Query both encoded and decoded, which must come to the same.
fn query(queries: &[TopicQuery], limit: u32, limits: &Limits) -> Result<ReadPlan, RequestFailure> {
    let request = QueryRequest {
        queries: queries.to_vec(),
        limit,
    };
    let plan = parse_queries(&request, limits);
    assert_eq!(ReadPlan::decode(request.encode_to_vec().into(), limits), plan);
    plan
}

fn newest(topics: &[WireTopic], full: bool, limits: &Limits) -> Result<NewestPlan, RequestFailure> {
    let request = QueryNewestRequest {
        topics: topics.to_vec(),
        include_full_envelope: full,
    };
    let plan = parse_newest(&request, limits);
    assert_eq!(NewestPlan::decode(request.encode_to_vec().into(), limits), plan);
    plan
}

// API-241
#[test]
fn a_page_has_the_default_limit_or_the_ceiling() {
    let limits = Limits {
        default_query_limit: 5,
        max_query_limit: 9,
        ..Limits::default()
    };
    for (requested, effective) in [(0, 5), (1, 1), (9, 9), (10, 9), (u32::MAX, 9)] {
        assert_eq!(
            query(&[], requested, &limits).expect("a plan").limit,
            effective,
            "{requested}"
        );
    }
}

// API-242
#[test]
fn a_repeated_topic_is_read_from_its_lowest_cursor() {
    let queries = [
        entry(group(2), Some(9)),
        entry(group(1), Some(4)),
        entry(group(2), Some(3)),
        entry(group(2), Some(7)),
        entry(group(1), None),
    ];
    let plan = query(&queries, 0, &Limits::default()).expect("a plan");
    let expected = [
        TopicPosition {
            topic: group(2),
            cursor: 3,
        },
        TopicPosition {
            topic: group(1),
            cursor: 0,
        },
    ];
    assert_eq!(plan.positions, expected);
}

// API-243
#[test]
fn a_key_package_topic_is_not_paged() {
    for kind in TopicKind::ALL {
        let plan = query(
            &[entry(group(9), None), entry(topic(kind, 1), None)],
            0,
            &Limits::default(),
        );
        if kind == TopicKind::KeyPackage {
            assert_eq!(plan, Err(RequestFailure::KeyPackageTopic { index: 1 }));
        } else {
            assert!(plan.is_ok(), "{kind}");
        }
    }
}

// API-281
#[test]
fn a_query_has_bounded_entries_before_they_are_merged() {
    let limits = Limits {
        max_query_topics: 2,
        ..Limits::default()
    };
    let same = entry(group(1), None);
    assert!(query(&[same.clone(), same.clone()], 0, &limits).is_ok());
    let failure = query(&[same.clone(), same.clone(), same], 0, &limits).expect_err("too many");
    assert_eq!(
        failure,
        RequestFailure::TooMany {
            field: "queries",
            count: 3,
            limit: "max_query_topics",
            max: 2
        }
    );
}

// API-281
#[test]
fn a_cursor_is_at_most_the_greatest_sequence_id() {
    let read = |cursor| query(&[entry(group(1), Some(cursor))], 0, &Limits::default());
    assert!(read(MAX_SEQUENCE_ID).is_ok());
    assert_eq!(
        read(MAX_SEQUENCE_ID + 1),
        Err(RequestFailure::Cursor {
            field: "queries",
            index: 0
        })
    );
    assert!(read(u64::MAX).is_err());
}

// API-281
#[test]
fn a_named_topic_must_be_one() {
    for bytes in [vec![], vec![9; 33], vec![0; 16], vec![1; 17]] {
        let wire = WireTopic { topic: bytes.into() };
        let bad = TopicQuery {
            topic: Some(wire.clone()),
            cursor: None,
        };
        let failure = query(&[entry(group(1), None), bad], 0, &Limits::default()).expect_err("no topic");
        assert!(matches!(
            failure,
            RequestFailure::Topic {
                field: "queries",
                index: 1,
                ..
            }
        ));
        let failure = newest(&[wire], false, &Limits::default()).expect_err("no topic");
        assert!(matches!(
            failure,
            RequestFailure::Topic {
                field: "topics",
                index: 0,
                ..
            }
        ));
    }
    let absent = TopicQuery {
        topic: None,
        cursor: None,
    };
    let failure = query(&[absent], 0, &Limits::default()).expect_err("no topic");
    assert_eq!(
        failure,
        RequestFailure::Topic {
            field: "queries",
            index: 0,
            error: TopicError::Empty
        }
    );
}

#[test]
fn newest_asks_each_distinct_topic_of_any_kind_once() {
    let topics: Vec<_> = TopicKind::ALL.into_iter().map(|kind| topic(kind, 1)).collect();
    let twice: Vec<_> = topics.iter().chain(&topics).map(Topic::to_wire).collect();
    let plan = newest(&twice, true, &Limits::default()).expect("a plan");
    assert_eq!(
        plan,
        NewestPlan {
            topics,
            include_full_envelope: true
        }
    );
}

// API-281
#[test]
fn newest_has_a_bound_for_envelopes_and_one_for_metadata() {
    for (full, metadata) in [(1, 2), (2, 1)] {
        let limits = Limits {
            max_newest_full_topics: full,
            max_newest_metadata_topics: metadata,
            ..Limits::default()
        };
        let topics = |count: u32| vec![group(1).to_wire(); count as usize];
        assert!(newest(&topics(full), true, &limits).is_ok());
        assert!(newest(&topics(metadata), false, &limits).is_ok());
        for (count, full) in [(full + 1, true), (metadata + 1, false)] {
            let request = QueryNewestRequest {
                topics: topics(count),
                include_full_envelope: full,
            };
            assert!(matches!(
                parse_newest(&request, &limits),
                Err(RequestFailure::TooMany { .. })
            ));
            let decoded = NewestPlan::decode(request.encode_to_vec().into(), &limits);
            assert!(matches!(decoded, Err(RequestFailure::TooMany { .. })));
        }
    }
}

#[test]
fn what_is_no_request_is_refused() {
    let broken = Bytes::from_static(&[0x0a, 9]);
    let limits = Limits::default();
    assert!(matches!(
        ReadPlan::decode(broken.clone(), &limits),
        Err(RequestFailure::Undecodable(_))
    ));
    assert!(matches!(
        NewestPlan::decode(broken, &limits),
        Err(RequestFailure::Undecodable(_))
    ));
}

#[test]
fn entries_are_counted_before_they_are_decoded() {
    let empty_entries = Bytes::from([0x0a, 0].repeat(1_000_000));
    let failure = ReadPlan::decode(empty_entries, &Limits::default()).expect_err("too many");
    assert!(matches!(
        failure,
        RequestFailure::TooMany { count: 1_000_000, .. }
    ));
}

proptest! {
    #[test]
    fn any_bytes_are_a_plan_or_refused(bytes in proptest::collection::vec(prop_oneof![3 => 0u8..40, 1 => 0u8..], 0..80)) {
        let bytes = Bytes::from(bytes);
        let _ = ReadPlan::decode(bytes.clone(), &Limits::default());
        let _ = NewestPlan::decode(bytes, &Limits::default());
    }

    // API-242
    #[test]
    fn every_topic_is_planned_once_from_its_lowest_cursor(picks in proptest::collection::vec((0u8..4, 0u64..9), 0..20)) {
        let queries: Vec<_> = picks.iter().map(|(fill, cursor)| entry(group(*fill), Some(*cursor))).collect();
        let plan = query(&queries, 0, &Limits::default()).expect("a plan");
        for (fill, _) in &picks {
            let lowest = picks.iter().filter(|(other, _)| other == fill).map(|(_, cursor)| *cursor).min();
            let planned: Vec<_> = plan.positions.iter().filter(|p| p.topic == group(*fill)).map(|p| p.cursor).collect();
            prop_assert_eq!(planned, Vec::from_iter(lowest));
        }
    }
}

//! Query and QueryNewest (contract section 4).

use std::collections::{BTreeMap, BTreeSet};

use conclave_grpc_web::Code;
use conclave_proto::xmtp::backend::v1::TopicQuery;
use conclave_topiclog::{Configuration, platform::ObjectName};
use proptest::prelude::*;

use crate::{
    client::*,
    world::{CallFate, World},
};

const SHARD_COUNTS: [u32; 2] = [1, 4];

fn has_more(page: &conclave_proto::xmtp::backend::v1::QueryResponse) -> bool {
    page.continuation.as_ref().expect("a continuation").has_more
}

/// Publishes a few messages to each of several groups, in turns. Ids by topic.
fn fill(world: &World, groups: u32, messages: u32) -> BTreeMap<Vec<u8>, Vec<u64>> {
    let mut ids_by_topic: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
    for n in 0..messages {
        for g in 0..groups {
            let id = world.say(&group(g), &format!("{n}"));
            ids_by_topic.entry(group_topic(&group(g))).or_default().push(id);
        }
    }
    ids_by_topic
}

// API-240
#[test]
fn a_page_begins_above_the_cursor_and_says_exactly_whether_more_is_left() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let topic = group_topic(&group(0));
        let ids = fill(&world, 1, 5)[&topic].clone();
        for (cursor, limit, expected, more) in [
            (0, 5, &ids[..], false),
            (0, 4, &ids[..4], true),
            (ids[1], 3, &ids[2..], false),
            (ids[1], 2, &ids[2..4], true),
            (ids[4], 1, &[], false),
            (i64::MAX as u64, 1, &[], false),
            ((1 << 53) + 1, 1, &[], false),
        ] {
            let page = world
                .query(vec![query_of(&topic, cursor)], limit)
                .expect("a page");
            assert_eq!(
                (&stored_ids(&page.envelopes)[..], has_more(&page)),
                (expected, more)
            );
        }
    }
}

// API-241
#[test]
fn the_limit_defaults_and_is_capped() {
    for shards in SHARD_COUNTS {
        let mut configuration = Configuration {
            shard_count: shards,
            ..Configuration::default()
        };
        configuration.limits.default_query_limit = 2;
        configuration.limits.max_query_limit = 3;
        let world = World::with(configuration);
        fill(&world, 2, 4);
        let queries: Vec<TopicQuery> = (0..2).map(|g| query_of(&group_topic(&group(g)), 0)).collect();
        for (limit, length) in [(0, 2), (1, 1), (3, 3), (4, 3), (u32::MAX, 3)] {
            let page = world.query(queries.clone(), limit).expect("a page");
            assert_eq!((page.envelopes.len(), has_more(&page)), (length, true));
        }
    }
}

// API-242
#[test]
fn a_topic_that_is_named_twice_is_read_from_its_lowest_cursor() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let topic = group_topic(&group(0));
        let ids = fill(&world, 1, 4)[&topic].clone();
        let queries = vec![
            query_of(&topic, ids[2]),
            query_of(&topic, ids[0]),
            query_of(&topic, ids[1]),
        ];
        let page = world.query(queries, 10).expect("a page");
        assert_eq!(stored_ids(&page.envelopes), ids[1..]);
    }
}

// API-243, API-281
#[test]
fn what_no_query_may_name_is_an_invalid_argument() {
    let mut configuration = Configuration {
        shard_count: 4,
        ..Configuration::default()
    };
    configuration.limits.max_query_topics = 2;
    configuration.limits.max_newest_full_topics = 1;
    configuration.limits.max_newest_metadata_topics = 2;
    let world = World::with(configuration);
    let good = group_topic(&group(0));
    let key_package = [&[3][..], &[1; 32]].concat();
    let cursor_too_great = query_of(&good, i64::MAX as u64 + 1);
    let absent = TopicQuery {
        topic: None,
        cursor: None,
    };
    for queries in [
        vec![query_of(&key_package, 0)],
        vec![query_of(&good, 0), query_of(&[9; 17], 0)],
        vec![query_of(&good[..16], 0)],
        vec![cursor_too_great],
        vec![absent],
        vec![query_of(&good, 0); 3],
    ] {
        assert_eq!(
            world.query(queries, 1).expect_err("refused").code,
            Code::InvalidArgument
        );
    }
    for (topics, full) in [
        (vec![good.clone(); 2], true),
        (vec![good.clone(); 3], false),
        (vec![vec![]], false),
        (vec![vec![7; 33]], false),
    ] {
        assert_eq!(
            world.newest(&topics, full).expect_err("refused").code,
            Code::InvalidArgument
        );
    }
    assert!(
        world
            .newest(&[key_package], false)
            .expect("allowed")
            .results
            .is_empty()
    );
}

#[test]
fn a_query_of_nothing_is_an_empty_page() {
    for shards in SHARD_COUNTS {
        let page = World::new(shards).query(vec![], 5).expect("a page");
        assert!(page.envelopes.is_empty() && !has_more(&page));
    }
}

// API-244, API-245
#[test]
fn the_newest_envelope_of_each_topic_that_has_one_is_named_by_its_topic() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let ids = fill(&world, 5, 3);
        let mut topics: Vec<Vec<u8>> = (0..7).map(|g| group_topic(&group(g))).collect();
        topics.push(topics[0].clone());
        for full in [false, true] {
            let results = world.newest(&topics, full).expect("an answer").results;
            let found: BTreeMap<Vec<u8>, u64> = results
                .iter()
                .map(|result| {
                    let meta = result.meta.as_ref().expect("metadata");
                    assert_eq!(meta.topic, result.topic);
                    assert_eq!(result.envelope.is_some(), full);
                    (result.topic.clone().expect("a topic").topic.to_vec(), id_of(meta))
                })
                .collect();
            let expected: BTreeMap<Vec<u8>, u64> = ids
                .iter()
                .map(|(topic, ids)| (topic.clone(), *ids.last().expect("an id")))
                .collect();
            assert_eq!(results.len(), 5, "one result per distinct topic");
            assert_eq!(found, expected);
        }
    }
}

// API-282, API-283
#[test]
fn a_page_longer_than_a_response_may_be_fails_whole() {
    for shards in SHARD_COUNTS {
        let mut configuration = Configuration {
            shard_count: shards,
            ..Configuration::default()
        };
        configuration.limits.max_envelope_bytes = 1_000;
        configuration.limits.max_response_bytes = 3_000;
        let world = World::with(configuration);
        let groups: Vec<_> = (0..4).map(|n| group_on(&world, n % shards, n)).collect();
        for group in &groups {
            world
                .publish(vec![message_of(group, APPLICATION, &[7; 700])])
                .expect("published");
        }
        let queries: Vec<TopicQuery> = groups
            .iter()
            .map(|group| query_of(&group_topic(group), 0))
            .collect();
        assert_eq!(
            world.query(queries.clone(), 0).expect_err("too long").code,
            Code::OutOfRange
        );
        let page = world.query(queries.clone(), 3).expect("three fit");
        assert_eq!((page.envelopes.len(), has_more(&page)), (3, true));
        let topics: Vec<Vec<u8>> = groups.iter().map(group_topic).collect();
        assert_eq!(
            world.newest(&topics, true).expect_err("too long").code,
            Code::OutOfRange
        );
        assert_eq!(
            world.newest(&topics, false).expect("metadata fits").results.len(),
            4
        );
        assert_eq!(
            world.newest(&topics[..2], true).expect("two fit").results.len(),
            2
        );
    }
}

#[test]
fn a_query_calls_each_involved_shard_once() {
    let world = World::new(4);
    let queries: Vec<TopicQuery> = (0..12)
        .map(|n| query_of(&group_topic(&group_on(&world, n % 3, n)), 0))
        .collect();
    world.query(queries.clone(), 10).expect("a page");
    let before = world.all_calls();
    world.query(queries, 10).expect("a page");
    assert_eq!(world.all_calls() - before, 3);
}

// API-281
#[test]
fn a_read_whose_shard_cannot_be_reached_is_unavailable() {
    let world = World::new(4);
    world.say(&group(0), "x");
    world.on_call(|to, _| {
        if to == ObjectName::Shard(2) {
            CallFate::LoseAnswer
        } else {
            CallFate::Answer
        }
    });
    let queries = (0..20).map(|g| query_of(&group_topic(&group(g)), 0)).collect();
    assert_eq!(
        world.query(queries, 10).expect_err("unreachable").code,
        Code::Unavailable
    );
}

/// A question a client might ask: topics (some never published to) with a place in their history, and a limit.
fn questions() -> impl Strategy<Value = (Vec<(u32, usize, u64)>, u32)> {
    (
        proptest::collection::vec((0u32..8, 0usize..8, 0u64..3), 1..12),
        1u32..12,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    // API-240, API-242, API-201
    #[test]
    fn paging_to_the_end_reads_every_envelope_once_and_in_order(
        shards in prop_oneof![Just(1u32), Just(4u32)],
        script in proptest::collection::vec(0u32..6, 0..40),
        (asked, limit) in questions(),
    ) {
        let world = World::new(shards);
        let mut model: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
        for (n, g) in script.iter().enumerate() {
            let id = world.say(&group(*g), &n.to_string());
            model.entry(group_topic(&group(*g))).or_default().push(id);
        }
        let mut cursors: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        let mut queries = Vec::new();
        for (g, place, offset) in asked {
            let topic = group_topic(&group(g));
            let cursor = model.get(&topic).and_then(|ids| ids.get(place)).map_or(0, |id| id + offset);
            queries.push(query_of(&topic, cursor));
            let lowest = cursors.entry(topic).or_insert(cursor);
            *lowest = cursor.min(*lowest);
        }
        loop {
            let eligible = |topic: &Vec<u8>, cursor: u64| -> Vec<u64> {
                model.get(topic).into_iter().flatten().copied().filter(|id| *id > cursor).collect()
            };
            let total: usize = cursors.iter().map(|(topic, cursor)| eligible(topic, *cursor).len()).sum();
            let page = world.query(queries.clone(), limit).expect("a page");
            prop_assert_eq!(page.envelopes.len(), total.min(limit as usize));
            prop_assert_eq!(has_more(&page), total > limit as usize);
            let mut by_topic: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
            for stored in &page.envelopes {
                let meta = stored.meta.as_ref().expect("metadata");
                by_topic.entry(meta.topic.clone().expect("a topic").topic.to_vec()).or_default().push(id_of(meta));
            }
            for (topic, ids) in &by_topic {
                prop_assert_eq!(&eligible(topic, cursors[topic])[..ids.len()], &ids[..]);
            }
            let distinct: BTreeSet<u64> = stored_ids(&page.envelopes).into_iter().collect();
            prop_assert_eq!(distinct.len(), page.envelopes.len());
            if !has_more(&page) {
                break;
            }
            for (topic, ids) in by_topic {
                cursors.insert(topic, *ids.last().expect("an id"));
            }
            queries = cursors.iter().map(|(topic, cursor)| query_of(topic, *cursor)).collect();
        }
    }
}

//! Publish (contract section 3).

use conclave_grpc_web::Code;
use conclave_proto::xmtp::backend::v1::{PublishError, publish_error::Reason};
use conclave_topiclog::{
    Configuration,
    platform::ObjectName,
    sequencer::{MARK_STEP, SEQUENCE_ID_MAX},
};
use prost::Message as _;
use sha2::{Digest as _, Sha256};

use crate::{client::*, world::World};

const SHARD_COUNTS: [u32; 2] = [1, 4];

// API-221, API-222
#[test]
fn a_publish_answers_one_entry_per_envelope_in_order_duplicates_included() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let (a, b) = (group_on(&world, 0, 1), group_on(&world, 0, 2));
        let envelopes = vec![
            message(&a, "one"),
            message(&b, "two"),
            message(&a, "one"),
            message(&a, "three"),
        ];
        let metas = world.publish(envelopes.clone()).expect("published");
        assert_eq!(metas.len(), 4);
        assert_eq!(metas[0], metas[2]);
        let topics: Vec<_> = metas
            .iter()
            .map(|meta| meta.topic.clone().expect("a topic").topic)
            .collect();
        assert_eq!(
            topics,
            [group_topic(&a), group_topic(&b), group_topic(&a), group_topic(&a)]
        );
        assert_eq!(world.read_all(&group_topic(&a)).len(), 2);
        // A retry of the same bytes, and one mixed with something new.
        assert_eq!(world.publish(envelopes).expect("published again"), metas);
        let mixed = world
            .publish(vec![message(&b, "two"), message(&b, "four")])
            .expect("published");
        assert_eq!(mixed[0], metas[1]);
        assert!(id_of(&mixed[1]) > id_of(&metas[3]));
    }
}

// API-210, API-211, API-212
#[test]
fn stored_envelopes_carry_the_metadata_the_backend_assigns() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, 0, 7);
        let envelopes = vec![
            message(&group, "hello"),
            message_of(&group, COMMIT, b"commit"),
            message(&group, "again"),
        ];
        let metas = world.publish(envelopes.clone()).expect("published");
        let stored = world.read_all(&group_topic(&group));
        assert_eq!(
            stored
                .iter()
                .map(|s| s.meta.clone().expect("metadata"))
                .collect::<Vec<_>>(),
            metas
        );
        for ((stored, sent), meta) in stored.iter().zip(&envelopes).zip(&metas) {
            assert_eq!(stored.envelope.as_ref(), Some(sent));
            let hash = Sha256::digest(sent.encode_to_vec()).to_vec();
            let expected = conclave_proto::xmtp::backend::v1::message_hash::Hash::Sha256(hash.into());
            assert_eq!(
                meta.message_hash.as_ref().and_then(|hash| hash.hash.as_ref()),
                Some(&expected)
            );
            assert_eq!(meta.server_ns, world.now_ns());
        }
        let expiry = world.now_ns() + 7_776_000 * 1_000_000_000;
        assert_eq!(
            metas.iter().map(|meta| meta.expiry_ns).collect::<Vec<_>>(),
            [expiry, 0, expiry]
        );
        assert_eq!(
            metas
                .iter()
                .map(|meta| meta.is_commit_or_proposal)
                .collect::<Vec<_>>(),
            [false, true, false]
        );
    }
}

// API-212
#[test]
fn each_kind_expires_by_its_own_retention() {
    let mut configuration = Configuration::default();
    configuration.retention.welcome = 60;
    let world = World::with(configuration);
    let envelopes = vec![welcome([9; 32], "come"), commit_log_entry(&group(1), 5)];
    let metas = world.publish(envelopes).expect("published");
    assert_eq!(metas[0].expiry_ns, world.now_ns() + 60_000_000_000);
    assert_eq!(metas[1].expiry_ns, 0);
}

// API-222
#[test]
fn a_duplicate_keeps_the_time_and_expiry_of_the_stored_copy() {
    let world = World::new(1);
    let first = world.publish(vec![message(&group(1), "x")]).expect("published");
    world.set_clock_ns(world.now_ns() + 5_000_000_000);
    assert_eq!(
        world.publish(vec![message(&group(1), "x")]).expect("published"),
        first
    );
    world.set_clock_ns(1_000);
    assert_eq!(
        world.publish(vec![message(&group(1), "x")]).expect("published"),
        first
    );
}

// API-222
#[test]
fn the_same_bytes_in_progress_at_the_same_time_are_stored_once() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, shards - 1, 1);
        let running: Vec<_> = (0..20)
            .map(|n| {
                let envelopes = vec![
                    message(&group, "same"),
                    message(&group, &format!("own {}", n % 5)),
                ];
                world.start(publish(&world.client(), envelopes))
            })
            .collect();
        world.settle();
        let metas: Vec<_> = running
            .iter()
            .map(|slot| slot.take().expect("answered").expect("published"))
            .collect();
        assert!(metas.iter().all(|answer| answer[0] == metas[0][0]));
        assert_eq!(world.read_all(&group_topic(&group)).len(), 6);
    }
}

// API-286, API-287, API-289
#[test]
fn ids_are_positive_unique_across_topics_and_rise_with_every_later_publish() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let mut last = 0;
        for n in 0..60 {
            let id = world.say(&group_on(&world, n % shards, n % 7), &format!("{n}"));
            assert!(id > last && id <= i64::MAX as u64, "{id} after {last}");
            last = id;
            if n % 10 == 9 {
                world.crash(ObjectName::Shard(n % shards));
                world.crash(ObjectName::Sequencer);
            }
        }
    }
}

// API-286
#[test]
fn a_restart_leaves_a_gap_no_wider_than_the_mark() {
    let world = World::new(4);
    let first = world.say(&group_on(&world, 1, 1), "before");
    world.crash(ObjectName::Sequencer);
    let second = world.say(&group_on(&world, 2, 1), "after");
    assert!(
        second > first && second - first <= MARK_STEP + 1,
        "{first}, {second}"
    );
    assert!(second < SEQUENCE_ID_MAX);
}

// API-288, API-201, API-202
#[test]
fn ids_do_not_change_and_reads_follow_every_answered_publish() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, shards - 1, 3);
        let mut published = Vec::new();
        for n in 0..30 {
            published.push(world.say(&group, &format!("{n}")));
            assert_eq!(stored_ids(&world.read_all(&group_topic(&group))), published);
            match n % 9 {
                4 => world.crash(ObjectName::Shard(shards - 1)),
                8 => world.hibernate(ObjectName::Shard(shards - 1)),
                _ => {}
            }
        }
    }
}

// API-220, API-223
#[test]
fn a_refused_envelope_is_named_and_nothing_of_its_request_is_stored() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, 0, 1);
        let mut bad = message(&group, "x");
        bad.payload = None;
        let status = world
            .publish(vec![message(&group, "good"), bad])
            .expect_err("refused");
        assert_eq!(status.code, Code::InvalidArgument);
        let detail = status
            .detail("type.googleapis.com/xmtp.backend.v1.PublishError")
            .expect("a detail");
        let detail = PublishError::decode(detail).expect("decodes");
        assert_eq!(
            (detail.index, detail.reason()),
            (Some(1), Reason::MalformedPayload)
        );
        assert!(world.read_all(&group_topic(&group)).is_empty());
    }
}

// API-220, API-224
// API-224, API-222
// API-222
// API-224, API-290, API-283
#[test]
fn a_publish_whose_response_is_too_long_has_committed_and_is_found_by_a_query() {
    let mut configuration = Configuration::default();
    configuration.limits.max_envelope_bytes = 200;
    configuration.limits.max_response_bytes = 500;
    let world = World::with(configuration);
    let envelopes: Vec<_> = (0..10).map(|n| message(&group(1), &n.to_string())).collect();
    let status = world.publish(envelopes).expect_err("too long");
    assert_eq!(status.code, Code::OutOfRange);
    let mut cursor = 0;
    for _ in 0..10 {
        let page = world
            .query(vec![query_of(&group_topic(&group(1)), cursor)], 1)
            .expect("a page");
        cursor = stored_ids(&page.envelopes)[0];
    }
}

// API-220
#[test]
fn an_expiry_beyond_the_clock_fails_the_publish_and_stores_nothing() {
    let world = World::new(1);
    let before = world.now_ns();
    world.set_clock_ns(i64::MAX as u64 - 1);
    let refused = world.publish(vec![
        message_of(&group(1), COMMIT, b"kept"),
        message(&group(1), "x"),
    ]);
    assert_eq!(refused.expect_err("refused").code, Code::Internal);
    world.set_clock_ns(before);
    assert!(world.read_all(&group_topic(&group(1))).is_empty());
}

#[test]
fn a_publish_that_expects_another_router_instance_stores_nothing_even_as_a_duplicate() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, 0, 1);
        let instance = world.status().router_instance_id;
        let metas = world
            .publish_expecting(vec![message(&group, "a")], &instance)
            .expect("published");
        for text in ["a", "b"] {
            let refused = world.publish_expecting(vec![message(&group, text)], "rti_another");
            assert_eq!(refused.expect_err("refused").code, Code::FailedPrecondition);
        }
        assert_eq!(stored_ids(&world.read_all(&group_topic(&group))), ids(&metas));
        let again = world
            .publish_expecting(vec![message(&group, "a")], &instance)
            .expect("published");
        assert_eq!(again, metas);
    }
}

// API-222
#[test]
fn one_shard_publishes_without_calling_another_object() {
    let world = World::new(1);
    world.say(&group(1), "warm");
    let before = world.all_calls();
    world.say(&group(1), "x");
    assert_eq!(world.all_calls() - before, 1, "the Worker's call to the shard");
}

// API-281
// API-281, API-282
#[test]
fn a_request_longer_on_the_wire_than_allowed_is_out_of_range() {
    let mut configuration = Configuration::default();
    configuration.limits.max_envelope_bytes = 500;
    configuration.limits.max_request_bytes = 1_000;
    let world = World::with(configuration);
    let long: Vec<_> = (0..20)
        .map(|n| message(&group(1), &format!("{n:0100}")))
        .collect();
    assert_eq!(world.publish(long).expect_err("too long").code, Code::OutOfRange);
    assert!(world.publish(vec![message(&group(1), "short")]).is_ok());
}

#[test]
fn an_envelope_of_one_shard_costs_its_row_and_two_index_rows() {
    use conclave_sql::Sql as _;
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, 0, 1);
        world.say(&group, "warm");
        let storage = std::rc::Rc::clone(&world.shared.object(ObjectName::Shard(0)).storage);
        let before = storage.rows_written();
        let envelopes: Vec<_> = (0..200).map(|n| message(&group, &n.to_string())).collect();
        world.publish(envelopes).expect("published");
        world.say(&group, "alone");
        // Rows of tables; each row of this one has two more in its indexes.
        assert_eq!(storage.rows_written() - before, 201);
        let indexes = storage
            .query(
                "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'envelope'",
                &[],
            )
            .expect("a count");
        assert_eq!(indexes[0].unsigned(0), Ok(2));
    }
}

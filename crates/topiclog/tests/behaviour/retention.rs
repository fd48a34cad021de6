//! What expires is deleted lazily, and nothing that depends on a topic's past notices.

use conclave_topiclog::{
    Configuration,
    platform::ObjectName,
    shard::retention::{EXPIRY_SLACK_MS, SWEEP_PAUSE_MS, SWEEP_ROWS},
};

use crate::{client::*, world::World};

const HOUR_S: u64 = 3_600;

/// Group messages expire after an hour.
fn world_with(shard_count: u32) -> World {
    let mut configuration = Configuration {
        shard_count,
        ..Default::default()
    };
    configuration.retention.group_message = HOUR_S;
    World::with(configuration)
}

// OPS-001, OPS-002
#[test]
fn expired_envelopes_are_deleted_after_their_slack_and_exempt_ones_and_heads_never() {
    for shards in [1, 4] {
        let world = world_with(shards);
        let (busy, quiet) = (group_on(&world, 0, 1), group_on(&world, 0, 2));
        world.say(&busy, "a");
        let commit = id_of(
            &world
                .publish(vec![message_of(&busy, COMMIT, b"c")])
                .expect("published")[0],
        );
        world.say(&busy, "b");
        let head = world.say(&busy, "head");
        let only = world.say(&quiet, "only");
        world.advance_ms(HOUR_S * 1_000 + EXPIRY_SLACK_MS - 60_000);
        assert_eq!(world.read_all(&group_topic(&busy)).len(), 4, "never hidden");
        world.advance_ms(120_000);
        assert_eq!(stored_ids(&world.read_all(&group_topic(&busy))), [commit, head]);
        assert_eq!(stored_ids(&world.read_all(&group_topic(&quiet))), [only]);
        // What is gone is new again, what is live is a duplicate.
        assert_eq!(world.say(&busy, "head"), head);
        assert!(world.say(&busy, "a") > head);
    }
}

// OPS-002
#[test]
fn deletion_is_bounded_per_turn_survives_restarts_and_ends() {
    let world = world_with(1);
    let group = group_on(&world, 0, 1);
    let total = SWEEP_ROWS as usize * 2 + 10;
    let envelopes: Vec<_> = (0..total).map(|n| message(&group, &n.to_string())).collect();
    world.publish(envelopes).expect("published");
    let due = world.alarm_in_ms(ObjectName::Shard(0)).expect("an alarm");
    world.crash(ObjectName::Shard(0));
    world.advance_ms(due);
    let left = total - SWEEP_ROWS as usize;
    assert_eq!(world.read_all(&group_topic(&group)).len(), left);
    world.crash(ObjectName::Shard(0));
    world.advance_ms(SWEEP_PAUSE_MS * 4);
    world.advance_ms(60_000);
    assert_eq!(world.read_all(&group_topic(&group)).len(), 1);
    assert_eq!(
        world.alarm_in_ms(ObjectName::Shard(0)),
        None,
        "nothing can expire any more"
    );
}

/// How often a client that reads takes a frame at least, in milliseconds.
const KEEPALIVE_MS: u64 = 30_000;

// OPS-002
#[test]
fn a_live_stream_goes_on_over_deleted_envelopes() {
    for shards in [1, 4] {
        let world = world_with(shards);
        let group = group_on(&world, 0, 1);
        let topic = group_topic(&group);
        for n in 0..5 {
            world.say(&group, &n.to_string());
        }
        let mut stream = world.subscribe(vec![query_of(&topic, 0)]).expect("a stream");
        let delivered = |frames: Vec<conclave_proto::xmtp::backend::v1::SubscribeStaticResponse>| {
            frames
                .into_iter()
                .filter_map(|frame| match frame.response {
                    Some(
                        conclave_proto::xmtp::backend::v1::subscribe_static_response::Response::Messages(
                            messages,
                        ),
                    ) => Some(stored_ids(&messages.envelopes)),
                    _ => None,
                })
                .flatten()
                .collect::<Vec<_>>()
        };
        assert_eq!(delivered(world.frames(&mut stream).0).len(), 5);
        for _ in 0..(HOUR_S * 1_000 + EXPIRY_SLACK_MS + 10_000) / KEEPALIVE_MS + 1 {
            world.advance_ms(KEEPALIVE_MS);
            assert!(delivered(world.frames(&mut stream).0).is_empty());
        }
        assert_eq!(world.read_all(&topic).len(), 1);
        let next = world.say(&group, "next");
        assert_eq!(delivered(world.frames(&mut stream).0), [next]);
        // One that comes back with an old cursor gets what is left.
        let mut late = world.subscribe(vec![query_of(&topic, 1)]).expect("a stream");
        assert_eq!(delivered(world.frames(&mut late).0).last(), Some(&next));
    }
}

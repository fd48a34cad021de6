//! Publishes whose topics lie on several shards (docs/decisions/0004-cross-shard-publish.md).

use conclave_grpc_web::Code;
use conclave_proto::xmtp::backend::v1::{ClientEnvelope, EnvelopeMeta};
use conclave_topiclog::platform::ObjectName;

use crate::{client::*, world::World};

/// The groups a test publishes to: one on each of the named shards.
fn groups_on(world: &World, shards: &[u32]) -> Vec<GroupId> {
    shards.iter().map(|shard| group_on(world, *shard, 1)).collect()
}

fn to_each(groups: &[GroupId], text: &str) -> Vec<ClientEnvelope> {
    groups.iter().map(|group| message(group, text)).collect()
}

/// Nothing is prepared, decided or held, and the boundary has caught up.
fn assert_settled(world: &World) {
    let status = world.status();
    assert_eq!(
        status.closed_allocation_boundary,
        Some(status.last_allocated_sequence_id)
    );
}

fn assert_visible(world: &World, groups: &[GroupId], metas: &[EnvelopeMeta]) {
    for (group, meta) in groups.iter().zip(metas) {
        let stored = world.read_all(&group_topic(group));
        assert!(stored.iter().any(|stored| stored.meta.as_ref() == Some(meta)));
    }
}

// API-220, API-221, API-202, API-212
#[test]
fn a_publish_across_shards_is_stored_everywhere_with_one_time_and_answered_in_order() {
    let world = World::new(4);
    let groups = groups_on(&world, &[3, 0, 2, 1]);
    let mut envelopes = to_each(&groups, "x");
    envelopes.push(message(&groups[0], "x"));
    envelopes.push(message(&groups[0], "y"));
    let metas = world.publish(envelopes).expect("published");
    assert_eq!(metas.len(), 6);
    assert_eq!(metas[4], metas[0]);
    assert!(metas.iter().all(|meta| meta.server_ns == world.now_ns()));
    assert!(id_of(&metas[5]) > id_of(&metas[0]));
    assert_visible(&world, &groups, &metas);
    let mut distinct = ids(&metas);
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 5);
    assert_settled(&world);
}

// API-220, API-212
#[test]
fn a_commit_and_its_welcomes_travel_in_one_publish() {
    let world = World::new(16);
    let group = group(1);
    let mut envelopes = vec![message_of(&group, COMMIT, b"commit")];
    envelopes.extend((0..8).map(|n| welcome([n; 32], "come")));
    let metas = world.publish(envelopes.clone()).expect("published");
    assert!(metas[0].is_commit_or_proposal && metas[0].expiry_ns == 0);
    assert!(metas[1..].iter().all(|meta| meta.expiry_ns > world.now_ns()));
    for meta in &metas {
        let topic = meta.topic.clone().expect("a topic").topic;
        assert_eq!(
            world
                .read_all(&topic)
                .iter()
                .filter_map(|s| s.meta.as_ref())
                .collect::<Vec<_>>(),
            [meta]
        );
    }
    assert_eq!(world.publish(envelopes).expect("again"), metas);
    assert_settled(&world);
}

// API-222, API-224
#[test]
fn a_publish_whose_every_envelope_is_a_duplicate_stores_nothing_and_takes_no_ids() {
    let world = World::new(4);
    let groups = groups_on(&world, &[0, 1, 2, 3]);
    let first = world.publish(to_each(&groups, "x")).expect("published");
    let last = world.status().last_allocated_sequence_id;
    assert_eq!(world.publish(to_each(&groups, "x")).expect("again"), first);
    assert_eq!(world.status().last_allocated_sequence_id, last);
    let mut mixed = to_each(&groups, "x");
    mixed[2] = message(&groups[2], "new");
    let answer = world.publish(mixed).expect("published");
    assert_eq!(
        (&answer[0], &answer[1], &answer[3]),
        (&first[0], &first[1], &first[3])
    );
    assert!(id_of(&answer[2]) > last);
}

// API-220, API-221
#[test]
fn a_thousand_topics_and_two_thousand_five_hundred_envelopes_are_one_publish() {
    let world = World::new(16);
    let groups: Vec<GroupId> = (0..1_000).map(group).collect();
    let envelopes: Vec<ClientEnvelope> = (0..2_500)
        .map(|n| message(&groups[n % 1_000], &format!("{}", n / 1_000)))
        .collect();
    let metas = world.publish(envelopes.clone()).expect("published");
    assert_eq!(metas.len(), 2_500);
    for number in [0, 499, 999] {
        let stored = stored_ids(&world.read_all(&group_topic(&groups[number])));
        let answered: Vec<u64> = (number..2_500).step_by(1_000).map(|n| id_of(&metas[n])).collect();
        assert_eq!(stored, answered);
    }
    assert_eq!(world.publish(envelopes).expect("again"), metas);
    assert_settled(&world);
}

// API-222
#[test]
fn the_same_bytes_from_two_edges_at_once_are_stored_once() {
    for seed in 0..40 {
        let configuration = conclave_topiclog::Configuration {
            shard_count: 4,
            ..Default::default()
        };
        let world = World::seeded(configuration, seed);
        let groups = groups_on(&world, &[0, 1, 3]);
        let running: Vec<_> = (0..3)
            .map(|_| world.start(publish(&world.client(), to_each(&groups, "same"))))
            .collect();
        world.settle();
        let answers: Vec<_> = running
            .iter()
            .map(|slot| slot.take().expect("answered").expect("published"))
            .collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "seed {seed}");
        for group in &groups {
            assert_eq!(world.read_all(&group_topic(group)).len(), 1, "seed {seed}");
        }
        assert_settled(&world);
    }
}

// API-201, API-289
#[test]
fn two_publishes_that_span_the_same_shards_in_opposite_order_both_end() {
    for seed in 0..40 {
        let configuration = conclave_topiclog::Configuration {
            shard_count: 4,
            ..Default::default()
        };
        let world = World::seeded(configuration, seed);
        let groups = groups_on(&world, &[0, 1, 2, 3]);
        let mut reversed = groups.clone();
        reversed.reverse();
        let running = [
            world.start(publish(&world.client(), to_each(&groups, "one"))),
            world.start(publish(&world.client(), to_each(&reversed, "two"))),
            world.start(publish(&world.client(), to_each(&groups[1..], "three"))),
            world.start(publish(&world.client(), to_each(&groups[2..3], "four"))),
        ];
        world.settle();
        for slot in &running {
            assert!(slot.take().expect("answered").is_ok(), "seed {seed}");
        }
        let lengths: Vec<usize> = groups
            .iter()
            .map(|group| world.read_all(&group_topic(group)).len())
            .collect();
        assert_eq!(lengths, [2, 3, 4, 3]);
        assert_settled(&world);
    }
}

// API-201
#[test]
fn a_prepared_topic_holds_later_publishes_to_it_and_no_other() {
    let world = World::new(4);
    let groups = groups_on(&world, &[0, 2]);
    let other = group_on(&world, 2, 77);
    world.publish(to_each(&groups, "warm")).expect("published");
    world.hold_syncs(ObjectName::Shard(0), true);
    // Prepared on shard 2, and not decided while shard 0 cannot write.
    let spanning = world.start(publish(&world.client(), to_each(&groups, "spanning")));
    world.settle();
    let behind = world.start(publish(&world.client(), vec![message(&groups[1], "behind")]));
    let aside = world.start(publish(&world.client(), vec![message(&other, "aside")]));
    world.settle();
    assert!(aside.take().is_some_and(|answer| answer.is_ok()));
    assert!(behind.take().is_none() && spanning.take().is_none());
    assert_eq!(world.read_all(&group_topic(&groups[1])).len(), 1);
    world.hold_syncs(ObjectName::Shard(0), false);
    world.settle();
    let first = spanning.take().expect("answered").expect("published");
    let second = behind.take().expect("answered").expect("published");
    assert_eq!(
        stored_ids(&world.read_all(&group_topic(&groups[1])))[1..],
        [id_of(&first[1]), id_of(&second[0])]
    );
}

#[test]
fn a_publish_across_shards_that_expects_another_router_instance_stores_nothing() {
    let world = World::new(4);
    let groups = groups_on(&world, &[1, 2, 3]);
    let instance = world.status().router_instance_id;
    let refused = world.publish_expecting(to_each(&groups, "x"), "rti_another");
    assert_eq!(refused.expect_err("refused").code, Code::FailedPrecondition);
    assert!(
        groups
            .iter()
            .all(|group| world.read_all(&group_topic(group)).is_empty())
    );
    let metas = world
        .publish_expecting(to_each(&groups, "x"), &instance)
        .expect("published");
    assert_visible(&world, &groups, &metas);
    let duplicate = world.publish_expecting(to_each(&groups, "x"), "rti_another");
    assert_eq!(duplicate.expect_err("refused").code, Code::FailedPrecondition);
    assert_eq!(
        world
            .publish_expecting(to_each(&groups, "x"), &instance)
            .expect("again"),
        metas
    );
}

// API-220
#[test]
fn an_expiry_beyond_the_clock_fails_a_publish_across_shards_everywhere() {
    let world = World::new(4);
    let groups = groups_on(&world, &[1, 2]);
    let before = world.now_ns();
    world.set_clock_ns(i64::MAX as u64 - 1);
    let refused = world.publish(to_each(&groups, "x"));
    assert_eq!(refused.expect_err("refused").code, Code::Internal);
    world.set_clock_ns(before);
    assert!(
        groups
            .iter()
            .all(|group| world.read_all(&group_topic(group)).is_empty())
    );
}

#[test]
fn a_publish_across_shards_costs_three_rounds_of_calls() {
    let world = World::new(4);
    let groups = groups_on(&world, &[0, 1, 2, 3]);
    world.publish(to_each(&groups, "warm")).expect("published");
    let before = world.all_calls();
    world.publish(to_each(&groups, "x")).expect("published");
    // The client's call, three prepares, one allocation, three applies.
    assert_eq!(world.all_calls() - before, 8);
}

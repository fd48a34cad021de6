//! The closed allocation boundary (API-203, API-291).

use conclave_topiclog::platform::ObjectName;
use proptest::prelude::*;

use crate::{
    client::*,
    world::{CallFate, World},
};

// API-203
#[test]
fn a_quiet_deployment_has_its_boundary_at_the_last_allocated_id() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let mut last = 0;
        for n in 0..8 {
            last = world.say(&group_on(&world, n % shards, n), "x");
        }
        let status = world.status();
        assert_eq!(status.closed_allocation_boundary, Some(last));
        assert_eq!(status.last_allocated_sequence_id, last);
        assert_eq!(
            (status.shard_count, status.identifier.as_str()),
            (shards, "conclave-local")
        );
    }
}

// API-203
#[test]
fn the_boundary_stays_below_ids_that_may_still_be_stored() {
    let world = World::new(4);
    let (slow, quick) = (group_on(&world, 0, 1), group_on(&world, 3, 2));
    world.say(&slow, "warm");
    let before = world.say(&quick, "before");
    world.hold_syncs(ObjectName::Shard(0), true);
    let pending = world.start(publish(&world.client(), vec![message(&slow, "slow")]));
    world.settle();
    let after = world.say(&quick, "meanwhile");
    // The slow shard's own report waits for its disk as well; the others have answered.
    let looked = world.start(status(&world));
    world.advance_ms(6_000);
    let looked = looked.take().expect("answered").expect("a status");
    assert_eq!(looked.closed_allocation_boundary, Some(before));
    assert_eq!(looked.last_allocated_sequence_id, after);
    world.hold_syncs(ObjectName::Shard(0), false);
    world.settle();
    let stored = id_of(&pending.take().expect("answered").expect("published")[0]);
    assert!(before < stored && stored < after);
    assert_eq!(world.status().closed_allocation_boundary, Some(after));
}

// API-203, API-291
#[test]
fn a_restarted_sequencer_computes_no_boundary_before_every_shard_has_spoken() {
    let world = World::new(4);
    for shard in 0..4 {
        world.say(&group_on(&world, shard, 1), "x");
    }
    let before = world.status();
    world.crash(ObjectName::Sequencer);
    world.on_call(|to, method| match (to, method) {
        (ObjectName::Shard(2), "report") => CallFate::LoseAnswer,
        _ => CallFate::Answer,
    });
    let after = world.status();
    assert_eq!(after.closed_allocation_boundary, None);
    assert!(after.sequencer_epoch > before.sequencer_epoch);
    world.without_faults();
    assert!(world.status().closed_allocation_boundary >= before.closed_allocation_boundary);
}

// API-203
#[test]
fn ids_whose_answer_was_lost_do_not_hold_the_boundary() {
    let world = World::new(4);
    world.on_call(|_, method| {
        if method == "allocate" {
            CallFate::LoseAnswer
        } else {
            CallFate::Answer
        }
    });
    assert!(world.publish(vec![message(&group(1), "x")]).is_err());
    world.without_faults();
    let status = world.status();
    assert_eq!(
        status.closed_allocation_boundary,
        Some(status.last_allocated_sequence_id)
    );
}

// API-203
#[test]
fn ids_that_arrive_after_the_sequencer_restarted_are_not_used_under_its_new_boundary() {
    let world = World::new(4);
    let group = group_on(&world, 0, 1);
    world.say(&group, "warm");
    world.on_call(|_, method| match method {
        "allocate" => CallFate::HoldAnswer,
        _ => CallFate::Answer,
    });
    let late = world.start(publish(&world.client(), vec![message(&group, "late")]));
    world.settle();
    world.crash(ObjectName::Sequencer);
    world.without_faults();
    let boundary = world.status().closed_allocation_boundary.expect("a boundary");
    world.let_answers_go();
    world.settle();
    let stored = id_of(&late.take().expect("answered").expect("published")[0]);
    assert!(stored > boundary, "{stored} under {boundary}");
}

/// One thing that happens to a deployment.
#[derive(Clone, Copy, Debug)]
enum Event {
    Publish(u32),
    /// To two or more groups at once.
    PublishTo(u8),
    CrashShard(u32),
    CrashSequencer,
    FailSync(u32),
    Look,
    LoseCalls(u8),
    Step(usize),
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0u32..4).prop_map(Event::Publish),
        4 => (1u8..16).prop_map(Event::PublishTo),
        1 => (0u32..4).prop_map(Event::CrashShard),
        1 => Just(Event::CrashSequencer),
        1 => (0u32..4).prop_map(Event::FailSync),
        3 => Just(Event::Look),
        1 => (0u8..4).prop_map(Event::LoseCalls),
        4 => (1usize..40).prop_map(Event::Step),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    // API-203, API-291, API-287, API-289
    #[test]
    fn nothing_is_ever_stored_at_or_below_a_boundary_and_it_never_falls(
        seed in any::<u64>(),
        shards in prop_oneof![Just(1u32), Just(4u32)],
        script in proptest::collection::vec(events(), 1..60),
    ) {
        let configuration =
            conclave_topiclog::Configuration { shard_count: shards, ..Default::default() };
        let world = World::seeded(configuration, seed);
        let groups: Vec<GroupId> = (0..4).map(|n| group_on(&world, n % shards, n)).collect();
        let mut highest: Option<(u64, Vec<u64>)> = None;
        let mut running = Vec::new();
        for (n, event) in script.into_iter().enumerate() {
            match event {
                Event::Publish(g) => {
                    let envelope = message(&groups[g as usize], &n.to_string());
                    running.push(world.start(publish(&world.client(), vec![envelope])));
                }
                Event::PublishTo(mask) => {
                    let named = (0..4).filter(|g| mask >> g & 1 == 1);
                    let envelopes = named.map(|g: usize| message(&groups[g], &n.to_string())).collect();
                    running.push(world.start(publish(&world.client(), envelopes)));
                }
                Event::CrashShard(shard) => world.crash(ObjectName::Shard(shard % shards)),
                Event::CrashSequencer => world.crash(ObjectName::Sequencer),
                Event::FailSync(shard) => world.fail_next_sync(ObjectName::Shard(shard % shards)),
                Event::LoseCalls(0) => world.without_faults(),
                Event::LoseCalls(kind) => {
                    let mut count = 0u32;
                    world.on_call(move |_, _| {
                        count += 1;
                        match (count % 3, kind) {
                            (0, 1) => CallFate::LoseAnswer,
                            (0, 2) => CallFate::LoseRequest,
                            (0, _) => CallFate::Repeat,
                            _ => CallFate::Answer,
                        }
                    });
                }
                Event::Step(steps) => world.step(steps),
                Event::Look => {
                    let looked = world.start(status(&world));
                    world.settle();
                    let boundary = looked.take().and_then(Result::ok).and_then(|s| s.closed_allocation_boundary);
                    if let Some(boundary) = boundary {
                        world.without_faults();
                        let stored = stored_up_to(&world, &groups, boundary);
                        if let Some((before, stored_before)) = &highest {
                            prop_assert!(boundary >= *before, "{boundary} after {before}");
                            let still: Vec<u64> = stored.iter().copied().filter(|id| id <= before).collect();
                            prop_assert_eq!(&still, stored_before);
                        }
                        highest = Some((boundary, stored));
                    }
                }
            }
        }
        world.without_faults();
        world.settle();
        world.advance_ms(30_000);
        // Every answered id is stored, once, and ids rise on every topic.
        let all = stored_up_to(&world, &groups, u64::MAX);
        let mut distinct = all.clone();
        distinct.dedup();
        prop_assert_eq!(&all, &distinct);
        for answer in running.iter().filter_map(|slot| slot.take()).flatten() {
            prop_assert!(answer.iter().all(|meta| all.contains(&id_of(meta))));
        }
        if let Some((boundary, stored)) = highest {
            let still: Vec<u64> = all.into_iter().filter(|id| *id <= boundary).collect();
            prop_assert_eq!(still, stored);
        }
    }
}

fn status(
    world: &World,
) -> impl Future<
    Output = Result<conclave_proto::conclave::operator::v1::GetStatusResponse, conclave_grpc_web::Status>,
> + use<>
+ 'static {
    call::<conclave_proto::conclave::operator::v1::operator_service::GetStatus>(
        &world.client(),
        &Default::default(),
        Default::default(),
    )
}

/// Every stored id at or below a boundary, ascending.
fn stored_up_to(world: &World, groups: &[GroupId], boundary: u64) -> Vec<u64> {
    let mut stored: Vec<u64> = groups
        .iter()
        .flat_map(|group| {
            let ids = stored_ids(&world.read_all(&group_topic(group)));
            assert!(ids.is_sorted());
            ids
        })
        .filter(|id| *id <= boundary)
        .collect();
    stored.sort_unstable();
    stored
}

//! Publishes across shards while objects break and calls get lost: all or nothing, once, and always to an end.

use conclave_proto::xmtp::backend::v1::ClientEnvelope;
use conclave_topiclog::platform::ObjectName;

use crate::{
    client::*,
    world::{CallFate, World},
};

/// Long enough for every alarm that is left to go off a few times.
const ALARMS_MS: u64 = 30_000;

fn groups_on(world: &World, shards: &[u32]) -> Vec<GroupId> {
    shards.iter().map(|shard| group_on(world, *shard, 1)).collect()
}

fn to_each(groups: &[GroupId], text: &str) -> Vec<ClientEnvelope> {
    groups.iter().map(|group| message(group, text)).collect()
}

fn copies(world: &World, groups: &[GroupId], text: &str) -> Vec<usize> {
    let count = |group: &GroupId| {
        let wanted = message(group, text);
        let stored = world.read_all(&group_topic(group));
        stored
            .iter()
            .filter(|stored| stored.envelope.as_ref() == Some(&wanted))
            .count()
    };
    groups.iter().map(count).collect()
}

/// Whether the shard's alarm is for retention alone, which is days away.
fn is_done(world: &World, shard: u32) -> bool {
    let due = world.alarm_in_ms(ObjectName::Shard(shard));
    due.is_none_or(|due| due > 24 * 60 * 60 * 1_000)
}

/// After faults: everything ends, in all or in nothing, and a retry of the same bytes finds it.
fn assert_recovers(world: &World, groups: &[GroupId], text: &str, answered: Option<Vec<u64>>, what: &str) {
    world.without_faults();
    world.advance_ms(ALARMS_MS);
    let before = copies(world, groups, text);
    let all_or_nothing = before.iter().all(|count| *count == 1) || before.iter().all(|count| *count == 0);
    assert!(all_or_nothing, "{what}: {before:?}");
    for shard in 0..world.configuration().shard_count {
        assert!(is_done(world, shard), "{what}: shard {shard} is not done");
    }
    let retried = ids(&world.publish(to_each(groups, text)).expect("a retry"));
    assert!(
        copies(world, groups, text).iter().all(|count| *count == 1),
        "{what}"
    );
    if let Some(answered) = answered {
        assert_eq!(answered, retried, "{what}");
        assert!(before.iter().all(|count| *count == 1), "{what}");
    }
    for (group, id) in groups.iter().zip(&retried) {
        let stored = stored_ids(&world.read_all(&group_topic(group)));
        assert!(stored.is_sorted() && stored.contains(id), "{what}");
    }
    let status = world.status();
    assert_eq!(
        status.closed_allocation_boundary,
        Some(status.last_allocated_sequence_id),
        "{what}"
    );
}

/// Runs one publish over shards 0, 1 and 2 with a fault after `steps` steps, and says whether it ended before.
fn publish_with_fault_at(steps: usize, seed: u64, fault: impl Fn(&World), what: &str) -> bool {
    let configuration = conclave_topiclog::Configuration {
        shard_count: 4,
        ..Default::default()
    };
    let world = World::seeded(configuration, seed);
    let groups = groups_on(&world, &[0, 1, 2]);
    world.publish(to_each(&groups, "warm")).expect("published");
    let running = world.start(publish(&world.client(), to_each(&groups, "x")));
    world.step(steps);
    let answer = running.take();
    let ended = answer.is_some();
    fault(&world);
    world.settle();
    world.advance_ms(ALARMS_MS);
    let answer = answer
        .or_else(|| running.take())
        .expect("every publish is answered");
    let answered = answer.ok().map(|metas| ids(&metas));
    assert_recovers(
        &world,
        &groups,
        "x",
        answered,
        &format!("{what} after {steps} steps"),
    );
    ended
}

// API-220, API-222, API-224, API-203
#[test]
fn a_crash_of_any_object_at_any_step_leaves_all_or_nothing_and_ends() {
    for (name, keep) in [
        (ObjectName::Shard(0), false),
        (ObjectName::Shard(1), false),
        (ObjectName::Shard(2), true),
        (ObjectName::Sequencer, false),
    ] {
        let crash = |world: &World| match keep {
            true => world.crash_keeping_streams(name),
            false => world.crash(name),
        };
        let mut steps = 0;
        while !publish_with_fault_at(steps, 7, crash, &format!("a crash of {name:?}")) {
            steps += 1;
        }
        assert!(steps > 20, "{steps} steps are no publish across shards");
    }
}

// API-220, API-203
#[test]
fn a_crash_of_coordinator_and_participant_at_any_step_leaves_all_or_nothing() {
    let crash = |world: &World| {
        world.crash(ObjectName::Shard(0));
        world.crash(ObjectName::Shard(2));
    };
    let mut steps = 0;
    while !publish_with_fault_at(steps, 11, crash, "two crashes") {
        steps += 1;
    }
}

// API-220
#[test]
fn writes_lost_at_any_step_leave_all_or_nothing() {
    for shard in 0..3 {
        let lose = |world: &World| world.fail_next_sync(ObjectName::Shard(shard));
        let mut steps = 0;
        while !publish_with_fault_at(steps, 3, lose, &format!("lost writes of {shard}")) {
            steps += 2;
        }
    }
}

// API-220, API-222, API-224
#[test]
fn every_call_may_be_lost_lose_its_answer_or_run_twice() {
    for fate in [CallFate::LoseRequest, CallFate::LoseAnswer, CallFate::Repeat] {
        for method in ["prepare", "apply", "abort", "allocate", "store"] {
            for nth in 0..4 {
                let world = World::new(4);
                let groups = groups_on(&world, &[0, 1, 2]);
                world.publish(to_each(&groups, "warm")).expect("published");
                let mut seen = 0;
                world.on_call(move |_, called| {
                    seen += usize::from(called == method);
                    // The last case loses all of them.
                    match called == method && (seen == nth + 1 || nth == 3) {
                        true => fate,
                        false => CallFate::Answer,
                    }
                });
                let running = world.start(publish(&world.client(), to_each(&groups, "x")));
                world.advance_ms(ALARMS_MS);
                let answer = running.take().expect("answered");
                let answered = answer.ok().map(|metas| ids(&metas));
                assert_recovers(
                    &world,
                    &groups,
                    "x",
                    answered,
                    &format!("{fate:?} of {method} {nth}"),
                );
            }
        }
    }
}

// API-202, API-224
#[test]
fn a_publish_is_not_answered_with_success_before_it_is_visible_everywhere() {
    let world = World::new(4);
    let groups = groups_on(&world, &[0, 1, 2]);
    world.publish(to_each(&groups, "warm")).expect("published");
    world.on_call(|to, method| match (to, method) {
        (ObjectName::Shard(2), "apply") => CallFate::LoseRequest,
        _ => CallFate::Answer,
    });
    assert!(world.publish(to_each(&groups, "x")).is_err());
    assert_eq!(copies(&world, &groups, "x"), [1, 1, 0]);
    // Decided: the retry waits for that outcome, and the alarm brings it.
    let retry = world.start(publish(&world.client(), to_each(&groups, "x")));
    world.settle();
    assert!(retry.take().is_none());
    world.without_faults();
    world.advance_ms(ALARMS_MS);
    assert_eq!(copies(&world, &groups, "x"), [1, 1, 1]);
    // API-212: one time for the publish, however late a part was applied.
    let metas = world.publish(to_each(&groups, "x")).expect("published");
    assert!(metas.iter().all(|meta| meta.server_ns == metas[0].server_ns));
    assert!(metas[0].server_ns < world.now_ns() - 1_000_000_000);
}

// API-220
#[test]
fn a_participant_that_asks_too_early_keeps_what_it_prepared() {
    let world = World::new(4);
    let groups = groups_on(&world, &[0, 1, 2]);
    world.publish(to_each(&groups, "warm")).expect("published");
    world.hold_syncs(ObjectName::Shard(2), true);
    let running = world.start(publish(&world.client(), to_each(&groups, "x")));
    world.settle();
    // Shard 1 is prepared, shard 2 is not yet; the first call after a restart asks how it ended.
    world.crash(ObjectName::Shard(1));
    let asked = world.calls(ObjectName::Shard(0), "outcome");
    assert_eq!(copies(&world, &groups[1..2], "x"), [0]);
    assert_eq!(world.calls(ObjectName::Shard(0), "outcome"), asked + 1);
    world.hold_syncs(ObjectName::Shard(2), false);
    world.settle();
    let answered = running.take().expect("answered").expect("published");
    assert_recovers(&world, &groups, "x", Some(ids(&answered)), "an early question");
}

// API-203, API-291
#[test]
fn the_boundary_stays_below_what_is_decided_and_not_applied_across_restarts() {
    let world = World::new(4);
    let groups = groups_on(&world, &[0, 1, 2]);
    world.publish(to_each(&groups, "warm")).expect("published");
    let before = world.status().closed_allocation_boundary;
    world.on_call(|_, method| match method {
        "apply" | "outcome" => CallFate::LoseRequest,
        _ => CallFate::Answer,
    });
    assert!(world.publish(to_each(&groups, "x")).is_err());
    let later = world.say(&group_on(&world, 3, 9), "later");
    for crashed in [
        vec![],
        vec![ObjectName::Shard(0)],
        vec![ObjectName::Sequencer],
        vec![ObjectName::Shard(0), ObjectName::Sequencer, ObjectName::Shard(1)],
    ] {
        crashed.into_iter().for_each(|name| world.crash(name));
        assert_eq!(world.status().closed_allocation_boundary, before);
        // Another publish of the coordinator must not close them either.
        world.say(&group_on(&world, 0, 5), "another");
        assert_eq!(world.status().closed_allocation_boundary, before);
    }
    world.without_faults();
    world.advance_ms(ALARMS_MS);
    assert_eq!(copies(&world, &groups, "x"), [1, 1, 1]);
    assert!(world.status().closed_allocation_boundary > Some(later));
}

// API-220
#[test]
fn a_prepared_part_outlives_restarts_and_is_released_when_its_coordinator_forgot_it() {
    let world = World::new(4);
    let groups = groups_on(&world, &[0, 1, 2]);
    world.publish(to_each(&groups, "warm")).expect("published");
    // Prepared on 1, never on 2, and the abort is lost.
    world.on_call(|to, method| match (to, method) {
        (ObjectName::Shard(2), "prepare") | (_, "abort") => CallFate::LoseRequest,
        _ => CallFate::Answer,
    });
    assert!(world.publish(to_each(&groups, "x")).is_err());
    world.without_faults();
    world.on_call(|_, method| match method {
        "outcome" => CallFate::LoseAnswer,
        _ => CallFate::Answer,
    });
    world.crash(ObjectName::Shard(1));
    let held = world.start(publish(&world.client(), vec![message(&groups[1], "behind")]));
    world.settle();
    assert!(held.take().is_none(), "the topic is held across the restart");
    world.without_faults();
    world.advance_ms(9_000);
    assert!(held.take().is_some_and(|answer| answer.is_ok()));
    assert_eq!(copies(&world, &groups, "x"), [0, 0, 0]);
    assert_recovers(&world, &groups, "x", None, "a forgotten publish");
}

// API-220
#[test]
fn a_clock_that_is_set_back_does_not_put_off_the_question_how_a_publish_ended() {
    let world = World::new(4);
    let groups = groups_on(&world, &[0, 1, 2]);
    world.publish(to_each(&groups, "warm")).expect("published");
    let before_ns = world.now_ns();
    world.set_clock_ns(before_ns + 600_000_000_000);
    // Prepared on 1, never on 2, and the abort is lost.
    world.on_call(|to, method| match (to, method) {
        (ObjectName::Shard(2), "prepare") | (_, "abort") => CallFate::LoseRequest,
        _ => CallFate::Answer,
    });
    assert!(world.publish(to_each(&groups, "x")).is_err());
    world.without_faults();
    world.set_clock_ns(before_ns);
    let behind = world.start(publish(&world.client(), vec![message(&groups[1], "behind")]));
    world.advance_ms(9_000);
    assert!(behind.take().is_some_and(|answer| answer.is_ok()));
}

// API-220
#[test]
fn an_alarm_that_does_not_come_is_made_up_for_by_whoever_calls_the_shard() {
    let world = World::new(4);
    let groups = groups_on(&world, &[0, 1, 2]);
    world.publish(to_each(&groups, "warm")).expect("published");
    world.delay_alarms(ObjectName::Shard(1));
    // Prepared on 1, never on 2, and the abort is lost.
    world.on_call(|to, method| match (to, method) {
        (ObjectName::Shard(2), "prepare") | (_, "abort") => CallFate::LoseRequest,
        _ => CallFate::Answer,
    });
    assert!(world.publish(to_each(&groups, "x")).is_err());
    world.without_faults();
    world.advance_ms(ALARMS_MS);
    let behind = world.start(publish(&world.client(), vec![message(&groups[1], "behind")]));
    world.advance_ms(3_000);
    assert!(behind.take().is_some_and(|answer| answer.is_ok()));
}

#[test]
fn an_idle_deployment_has_no_alarm_but_for_retention_after_publishes_across_shards() {
    let world = World::new(4);
    let groups = groups_on(&world, &[0, 1, 2, 3]);
    for n in 0..10 {
        world
            .publish(to_each(&groups, &n.to_string()))
            .expect("published");
    }
    world.advance_ms(ALARMS_MS);
    for shard in 0..4 {
        assert!(is_done(&world, shard));
    }
}

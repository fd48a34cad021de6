//! What whoever watches is told: what a recovery waits for, which conversations stand still, and that they go on.

use conclave_conversation::engine::timing::{CATCH_UP_RETRIES_MAX, STALL_WAIT_MS};
use conclave_conversation::engine::{
    Input, RecoveryPhase, RecoveryReason, RecoveryState, Stall, TimerId, WaitingFor,
};
use conclave_conversation::membership::Membership;
use conclave_conversation::test_support::router_instance;

use crate::scenario::{
    alone, behind, body, founded, inject_vote, nothing_follows, settled, staged_at, with_holders,
};
use crate::world::World;

/// Lets the timers of stalls go off, and no other.
fn let_waits_last(world: &mut World, everyone: &Membership) {
    world.now_ms += STALL_WAIT_MS;
    let id = TimerId::Stall(*everyone.conversation_id());
    for member in 0..world.members.len() {
        let this = &mut world.members[member];
        if this.engine.is_some() && this.timers.get(&id).is_some_and(|at_ms| *at_ms <= world.now_ms) {
            this.timers.remove(&id);
            world.handle(member, Input::Timer(id));
        }
    }
}

fn waits(world: &World, waiting_for: WaitingFor, members: &[usize], behind_another: bool) -> Option<Stall> {
    let mut members: Vec<_> = members.iter().map(|member| world.members[*member].id()).collect();
    members.sort();
    Some(Stall {
        waiting_for,
        members,
        behind_another,
    })
}

#[test]
fn a_post_that_waits_behind_another_members_lock_is_told_and_so_is_its_end() {
    let (mut world, everyone) = founded(4);
    world.crash(2);
    world.crash(3);
    let first = world.send(1, &everyone, "locked first");
    world.settle();
    // Nothing is proposed for it, so nothing of it is ever repeated.
    let own = world.send(0, &everyone, "behind it");
    world.settle();
    assert!(
        world.members[0].stalls.is_empty(),
        "waiting is normal for a while"
    );
    let_waits_last(&mut world, &everyone);
    assert_eq!(
        world.members[0].stall(&everyone),
        waits(&world, WaitingFor::Signatures, &[2, 3], true)
    );
    // Its author waits for the same members, behind nobody.
    assert_eq!(
        world.members[1].stall(&everyone),
        waits(&world, WaitingFor::Signatures, &[2, 3], false)
    );
    world.open(2);
    world.attach(2);
    world.settle();
    assert!(world.members[1].sent[&first].is_ok() && world.members[0].sent[&own].is_ok());
    for member in [0, 1] {
        assert_eq!(world.members[member].stall(&everyone), None);
        assert_eq!(
            world.members[member].stalls.last().map(|(_, stall)| stall),
            Some(&None)
        );
    }
    assert!(
        world.members[2].stalls.is_empty(),
        "what does not last is not told"
    );
}

#[test]
fn a_record_that_waits_for_votes_is_told_though_nothing_of_it_is_repeated() {
    let (mut world, everyone) = staged_at(4, &[0]);
    for silent in [1, 2, 3] {
        world.crash(silent);
    }
    world.settle();
    let_waits_last(&mut world, &everyone);
    assert_eq!(
        world.members[0].stall(&everyone),
        waits(&world, WaitingFor::Votes, &[1, 2, 3], false)
    );
    // Who votes is missed no longer.
    world.open(1);
    world.attach(1);
    world.settle();
    assert_eq!(
        world.members[0].stall(&everyone),
        waits(&world, WaitingFor::Votes, &[2, 3], false)
    );
    world.open(2);
    world.attach(2);
    world.settle();
    assert_eq!(world.members[0].stall(&everyone), None);
    assert_eq!(world.chain(0, &everyone).len(), 2);
}

#[test]
fn a_conversation_that_catches_up_tells_who_answered_and_what_is_left() {
    let (mut world, everyone) = behind(4, 2);
    for silent in [1, 2] {
        world.crash(silent);
    }
    world.lose_unread(3, &everyone);
    let ids = |members: &[usize]| -> Vec<_> {
        let mut ids: Vec<_> = members.iter().map(|member| world.members[*member].id()).collect();
        ids.sort();
        ids
    };
    let asks = RecoveryState {
        reason: RecoveryReason::HistoryMissing,
        phase: RecoveryPhase::CatchUp,
        heard: 0,
        needed: 2,
        missing: ids(&[0, 1, 2]),
        retries_left: CATCH_UP_RETRIES_MAX,
        paused: false,
    };
    let answered = RecoveryState {
        heard: 1,
        missing: ids(&[1, 2]),
        ..asks.clone()
    };
    assert_eq!(world.members[3].recovery(&everyone), Some(asks));
    world.settle();
    assert_eq!(world.members[3].recovery(&everyone), Some(answered.clone()));
    let told = world.members[3].recoveries.len();
    world.run_out();
    let left: Vec<u32> = world.members[3].recoveries[told..]
        .iter()
        .filter_map(|(_, state)| Some(state.as_ref()?.retries_left))
        .collect();
    let expected: Vec<u32> = (0..CATCH_UP_RETRIES_MAX).rev().chain([0]).collect();
    assert_eq!(left, expected, "each retry, and that they are spent");
    let spent = RecoveryState {
        retries_left: 0,
        paused: true,
        ..answered
    };
    assert_eq!(world.members[3].recovery(&everyone), Some(spent));
    assert_eq!(
        world.members[3].stall(&everyone),
        waits(&world, WaitingFor::Answers, &[1, 2], false)
    );
    world.open(1);
    world.attach(1);
    world.attach(3);
    world.run_out();
    assert_eq!(world.members[3].recovery(&everyone), None);
    assert_eq!(world.members[3].stall(&everyone), None);
    let engine = world.members[3].engine.as_ref().expect("an engine");
    assert_eq!(engine.recovery(everyone.conversation_id()), None);
}

#[test]
fn each_phase_of_a_recovery_is_told_with_the_votes_it_has_and_needs() {
    let phase = |world: &World, everyone: &Membership| {
        let state = world.members[0].recovery(everyone).expect("a recovery");
        (state.phase, state.heard, state.needed)
    };
    let (world, everyone) = settled();
    assert_eq!(phase(&world, &everyone), (RecoveryPhase::Reanchor, 1, 3));

    let (mut world, everyone) = alone();
    assert_eq!(phase(&world, &everyone), (RecoveryPhase::CatchUp, 0, 2));
    let earlier = body(&world, 0, &everyone, router_instance(9));
    inject_vote(&mut world, &everyone, 1, &earlier);
    world.settle();
    assert_eq!(phase(&world, &everyone), (RecoveryPhase::EveryMember, 0, 3));

    let (mut world, everyone) = with_holders(4, &[0]);
    for silent in [1, 2, 3] {
        world.crash(silent);
    }
    world.settle();
    nothing_follows(&mut world, &everyone, &[1, 2]);
    assert_eq!(phase(&world, &everyone), (RecoveryPhase::StagedSuccessor, 1, 3));
}

// CONV-N02
#[test]
fn a_timer_that_goes_off_hours_late_is_one_attempt_and_the_next_is_set_from_then_on() {
    let (mut world, everyone) = behind(4, 1);
    for silent in [0, 1, 2] {
        world.crash(silent);
    }
    world.lose_unread(3, &everyone);
    world.settle();
    let id = TimerId::CatchUp(*everyone.conversation_id());
    for attempt in 1..=CATCH_UP_RETRIES_MAX as usize {
        // Whoever sleeps through every deadline there could have been has missed one.
        world.now_ms += 3_600_000;
        world.members[3].timers.remove(&id);
        world.handle(3, Input::Timer(id));
        world.settle();
        assert_eq!(world.count(&everyone, "request"), 1 + attempt);
        assert!(world.members[3].timers[&id] > world.now_ms, "it is set again");
    }
    // A new schedule when a member stirs, and not one attempt before.
    world.members[3].timers.remove(&id);
    world.handle(3, Input::Timer(id));
    world.settle();
    assert!(!world.members[3].timers.contains_key(&id));
    assert_eq!(
        world.count(&everyone, "request"),
        1 + CATCH_UP_RETRIES_MAX as usize
    );
    world.attach(3);
    world.settle();
    assert_eq!(
        world.count(&everyone, "request"),
        2 + CATCH_UP_RETRIES_MAX as usize
    );
    assert!(world.members[3].timers[&id] > world.now_ms);
}

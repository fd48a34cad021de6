//! The outbox: how an envelope is offered to the Router, and what each outcome means.

use conclave_conversation::engine::timing::{
    ATTACH_WAIT_MS, DELIVERY_WAIT_MS, RECONNECT_BASE_MS, RECONNECT_MAX_MS, SEND_ATTEMPT_SPACING_MS,
    SEND_ATTEMPTS_MAX,
};
use conclave_conversation::engine::{
    ConversationStatus, Fatal, Input, RecoveryReason, RouterFault, SendError, SendMode, SendOutcome, TimerId,
    Transmit,
};
use conclave_conversation::store::rows::OutboundRow;
use conclave_conversation::test_support::router_instance;
use conclave_harness::SignedMessageDigest;

use crate::world::World;

/// A world in which member 0 has one envelope in flight: its GENESIS proposal.
fn sending() -> World {
    let mut world = World::new(2);
    let pair = world.everyone();
    world.send(0, &pair, "hello");
    assert_eq!(world.members[0].transmits.len(), 1);
    world
}

/// How the Router answers a transmission.
type Answer = fn(&Transmit) -> SendOutcome;

fn outbound(world: &World) -> Vec<OutboundRow> {
    world.members[0].store.snapshot().rows().unwrap()
}

fn drain_timer(world: &World) -> TimerId {
    TimerId::Drain(*world.everyone().conversation_id())
}

fn accepted(transmit: &Transmit) -> SendOutcome {
    SendOutcome::Accepted {
        router_instance_id: transmit.expected_router_instance_id,
        digest: transmit.message.digest(),
    }
}

fn lost(_: &Transmit) -> SendOutcome {
    SendOutcome::TransportFailure
}

// CONV-H01
#[test]
fn an_envelope_is_offered_as_initial_once_and_as_retry_ever_after_across_restarts() {
    let mut world = sending();
    let row = outbound(&world).remove(0);
    assert!(row.attempted, "the first attempt is durable before it is made");
    let first = world.answer(0, lost);
    assert_eq!(first.mode, SendMode::Initial);
    for _ in 0..3 {
        world.restart(0);
        let again = world.answer(0, lost);
        assert_eq!(again.mode, SendMode::Retry);
        assert_eq!(again.message, first.message, "never signed again");
        assert_eq!(again.invitations, first.invitations);
        assert_eq!(
            outbound(&world)[0].canonical_signed_message,
            row.canonical_signed_message
        );
    }
    world.restart(0);
    let last = world.answer(0, accepted);
    assert!(
        outbound(&world)
            .iter()
            .all(|left| left.outbound_id != row.outbound_id)
    );
    // The outcome again: nothing is in flight under this id, so nothing happens.
    let before = world.members[0].store.snapshot();
    let outcome = accepted(&last);
    world.handle(
        0,
        Input::SendOutcome {
            outbound_id: last.outbound_id,
            outcome,
        },
    );
    assert_eq!(world.members[0].store.snapshot(), before);
}

// CONV-H04, CONV-H05
#[test]
fn an_acceptance_of_other_bytes_or_by_another_instance_stops_the_engine_and_keeps_the_envelope() {
    let cases: [(RouterFault, Answer); 2] = [
        (RouterFault::OtherDigest, |transmit| SendOutcome::Accepted {
            router_instance_id: transmit.expected_router_instance_id,
            digest: SignedMessageDigest::from_bytes([1; 32]),
        }),
        (RouterFault::OtherInstance, |transmit| SendOutcome::Accepted {
            router_instance_id: router_instance(9),
            digest: transmit.message.digest(),
        }),
    ];
    for (fault, outcome) in cases {
        let mut world = sending();
        let before = outbound(&world);
        let sent = world.answer(0, outcome);
        expect_breach(&mut world, &sent, fault);
        assert_eq!(outbound(&world), before);
    }
}

fn expect_breach(world: &mut World, sent: &Transmit, fault: RouterFault) {
    let reason = Fatal::RouterContract {
        outbound_id: sent.outbound_id,
        what: fault,
    };
    assert_eq!(world.members[0].fatal, Some(reason.clone()));
    assert!(world.members[0].transmits.is_empty());
    let pair = world.everyone();
    let refused = world.send(0, &pair, "after the end");
    assert_eq!(world.members[0].sent[&refused], Err(SendError::Stopped(reason)));
}

// CONV-H06
#[test]
fn a_lost_retry_identity_is_answered_with_the_same_bytes_as_initial() {
    let mut world = sending();
    let first = world.answer(0, lost);
    assert!(world.next_timer());
    let retry = world.answer(0, |_| SendOutcome::RetryIdentityUnknown);
    assert_eq!(retry.mode, SendMode::Retry);
    let again = world.answer(0, accepted);
    assert_eq!(again.mode, SendMode::Initial);
    assert_eq!(again.message, first.message);
    assert!(outbound(&world).is_empty());
}

// CONV-H07
#[test]
fn a_conflict_to_an_initial_is_settled_by_one_retry_that_spends_no_attempt() {
    let mut world = sending();
    world.answer(0, |_| SendOutcome::IdempotencyConflict);
    let retry = world.answer(0, |_| SendOutcome::RetryIdentityUnknown);
    assert_eq!(retry.mode, SendMode::Retry);
    // Attempts so far: the initial, and the initial that follows the lost identity. One is left.
    world.answer(0, |_| SendOutcome::IdempotencyConflict);
    world.answer(0, |_| SendOutcome::RetryIdentityUnknown);
    let last = world.answer(0, accepted);
    assert_eq!(last.mode, SendMode::Initial);
    assert!(outbound(&world).is_empty());
    assert_eq!(world.members[0].fatal, None);
}

// CONV-H08
#[test]
fn alternating_conflicts_and_lost_identities_end_at_the_bound_and_the_next_drain_begins_with_retry() {
    let mut world = sending();
    for _ in 0..SEND_ATTEMPTS_MAX {
        let initial = world.answer(0, |_| SendOutcome::IdempotencyConflict);
        assert_eq!(initial.mode, SendMode::Initial);
        let retry = world.answer(0, |_| SendOutcome::RetryIdentityUnknown);
        assert_eq!(retry.mode, SendMode::Retry);
    }
    assert!(world.members[0].transmits.is_empty());
    assert_eq!(outbound(&world).len(), 1, "the envelope stays pending");
    let at_ms = world.members[0].timers[&drain_timer(&world)];
    assert!(at_ms > world.now_ms);
    world.members[0]
        .timers
        .retain(|timer, _| matches!(timer, TimerId::Drain(_)));
    assert!(world.next_timer());
    assert_eq!(world.answer(0, accepted).mode, SendMode::Retry);
}

// CONV-H09
#[test]
fn a_conflict_to_a_retry_a_lost_identity_to_an_initial_and_an_invalid_message_fail_closed() {
    let mut world = sending();
    let sent = world.answer(0, |_| SendOutcome::RetryIdentityUnknown);
    expect_breach(&mut world, &sent, RouterFault::IdentityUnknownToInitial);
    assert_eq!(outbound(&world).len(), 1);

    let mut world = sending();
    let sent = world.answer(0, |_| SendOutcome::MessageInvalid);
    expect_breach(&mut world, &sent, RouterFault::MessageInvalid);
    assert_eq!(outbound(&world).len(), 1);

    let mut world = sending();
    world.answer(0, |_| SendOutcome::IdempotencyConflict);
    let sent = world.answer(0, |_| SendOutcome::IdempotencyConflict);
    expect_breach(&mut world, &sent, RouterFault::ConflictToRetry);
    assert_eq!(outbound(&world).len(), 1);
}

// CONV-H10
#[test]
fn one_envelope_of_a_conversation_is_in_flight_and_order_is_kept() {
    let mut world = sending();
    world.settle();
    let pair = world.everyone();
    world.send(0, &pair, "next");
    assert_eq!(world.members[0].transmits.len(), 1, "the head first");
    let head = world.members[0].transmits[0].outbound_id;
    // What wakes the outbox meanwhile begins nothing twice.
    let router_instance_id = world.router.instance;
    world.handle(0, Input::RouterInstance { router_instance_id });
    world.handle(0, Input::Timer(drain_timer(&world)));
    assert_eq!(world.members[0].transmits.len(), 1);
    assert_eq!(world.answer(0, accepted).outbound_id, head);
    assert_eq!(world.members[0].transmits.len(), 1, "then the proposal");
    // A late outcome of the head does not end the proposal.
    world.handle(
        0,
        Input::SendOutcome {
            outbound_id: head,
            outcome: SendOutcome::MessageInvalid,
        },
    );
    assert_eq!(world.members[0].fatal, None);
    assert_eq!(outbound(&world).len(), 1);
}

#[test]
fn a_drain_makes_three_attempts_and_the_next_ones_wait_ever_longer() {
    let mut world = sending();
    world.members[0].timers.clear();
    let mut attempts = 0;
    let mut waits = Vec::new();
    for _ in 0..10 {
        for attempt in 1..=SEND_ATTEMPTS_MAX {
            world.answer(0, lost);
            attempts += 1;
            let wait = world.members[0].timers[&drain_timer(&world)] - world.now_ms;
            if attempt < SEND_ATTEMPTS_MAX {
                assert_eq!(wait, SEND_ATTEMPT_SPACING_MS);
            } else {
                waits.push(wait);
            }
            assert!(world.next_timer());
        }
    }
    assert_eq!(attempts, 10 * SEND_ATTEMPTS_MAX);
    assert!(waits[0] >= RECONNECT_BASE_MS * 4 / 5 && waits[0] <= RECONNECT_BASE_MS * 6 / 5);
    assert!(waits.iter().all(|wait| *wait <= RECONNECT_MAX_MS * 6 / 5));
    assert!(waits[9] >= RECONNECT_MAX_MS * 4 / 5);
    world.answer(0, accepted);
    world.settle();
}

#[test]
fn a_reattached_transport_does_not_wait_for_the_next_drain() {
    let mut world = sending();
    world.members[0].timers.clear();
    for _ in 1..SEND_ATTEMPTS_MAX {
        world.answer(0, lost);
        assert!(world.next_timer());
    }
    world.answer(0, lost);
    assert!(world.members[0].transmits.is_empty());
    world.attach(0);
    assert_eq!(world.members[0].transmits.len(), 1);
    assert!(!world.members[0].timers.contains_key(&drain_timer(&world)));
}

// CONV-H14
#[test]
fn a_send_before_attachment_waits_for_it_or_for_its_bound() {
    let mut world = World::detached(2);
    let pair = world.everyone();
    let request = world.send(0, &pair, "early");
    assert!(world.members[0].sent.is_empty() && world.members[0].bound.is_empty());
    world.attach(0);
    world.attach(1);
    world.settle();
    assert!(world.members[0].sent[&request].is_ok());

    let mut world = World::detached(2);
    let request = world.send(0, &pair, "too early");
    assert!(world.next_timer());
    assert_eq!(world.now_ms, 1_000_000 + ATTACH_WAIT_MS);
    assert_eq!(
        world.members[0].sent[&request],
        Err(SendError::NetworkUnavailable)
    );
    world.attach(0);
    assert!(
        world.members[0].transmits.is_empty(),
        "what was given up is not sent"
    );
    assert!(world.members[0].bound.is_empty());
}

// CONV-H17
#[test]
fn a_cold_start_with_a_pending_proposal_sends_it_once_attached_under_one_action() {
    let mut world = sending();
    world.transmit_and_lose_the_answer(0);
    world.crash(0);
    world.open(0);
    assert!(
        world.members[0].transmits.is_empty(),
        "not before the Router is reached"
    );
    world.attach(0);
    world.settle();
    let pair = world.everyone();
    assert_eq!(world.chain(0, &pair).len(), 1);
    assert_eq!(world.chain(1, &pair), world.chain(0, &pair));
    assert_eq!(
        world.count(&pair, "proposal"),
        1,
        "the pending envelope was the proposal"
    );
    world.check(&pair);
}

#[test]
fn a_lost_answer_is_asked_for_again_and_the_message_is_ordered_once() {
    let mut world = sending();
    let pair = world.everyone();
    world.transmit_and_lose_the_answer(0);
    world.run_out();
    assert_eq!(world.count(&pair, "proposal"), 1);
    assert_eq!(world.chain(1, &pair).len(), 1);
}

#[test]
fn an_evicted_message_is_appended_again_and_changes_nothing() {
    let mut world = sending();
    let pair = world.everyone();
    world.transmit_and_lose_the_answer(0);
    world.router.forget();
    world.run_out();
    assert_eq!(world.count(&pair, "proposal"), 2);
    assert_eq!(world.chain(1, &pair).len(), 1);
    world.check(&pair);
}

// A conversation whose Router instance changed waits, visibly, until enough members recover it; the others go on.
#[test]
fn a_restarted_router_makes_its_conversations_visibly_recovering_until_their_members_are_there() {
    let mut world = World::new(3);
    let everyone = world.everyone();
    let pair = world.membership(&[0, 1]);
    world.send(0, &everyone, "before");
    world.settle();
    world.crash(2);
    world.router.restart(1);
    let request = world.send(1, &everyone, "during");
    world.settle();
    let conversation = *everyone.conversation_id();
    let (anchored, current) = (router_instance(0), router_instance(1));
    let reason = RecoveryReason::RouterInstanceChanged { anchored, current };
    let recovering = ConversationStatus::Recovering { reason };
    assert_eq!(world.members[1].status[&conversation], recovering);
    world.run_out();
    world.restart(1);
    world.run_out();
    assert_eq!(world.members[1].status[&conversation], recovering);
    assert!(
        !world.members[1].sent.contains_key(&request),
        "a bound post waits"
    );
    let later = world.send(1, &everyone, "after");
    assert!(!world.members[1].sent.contains_key(&later), "and so does another");
    // Another conversation is not held.
    world.attach(0);
    let other = world.send(0, &pair, "elsewhere");
    world.settle();
    assert!(world.members[0].sent[&other].is_ok());
    assert_eq!(world.chain(1, &pair).len(), 1);
    // The third member returns.
    world.open(2);
    world.attach(2);
    world.run_out();
    assert!(world.members[1].sent[&later].is_ok());
    assert_eq!(world.chain(0, &everyone).len(), 3);
    world.check(&everyone);
}

// CONV-H11
#[test]
fn the_caller_of_a_send_that_nothing_answers_is_told_after_ten_seconds_and_the_post_goes_on() {
    let mut world = sending();
    let pair = world.everyone();
    let request = *world.members[0].bound.keys().next().unwrap();
    let begun_ms = world.now_ms;
    while !world.members[0].sent.contains_key(&request) {
        assert!(world.next_timer());
    }
    assert_eq!(world.now_ms, begun_ms + DELIVERY_WAIT_MS);
    let post_id = world.members[0].bound[&request];
    assert_eq!(
        world.members[0].sent[&request],
        Err(SendError::DeliveryPending { post_id })
    );
    world.settle();
    assert_eq!(world.chain(1, &pair).len(), 1);
    let ids: Vec<_> = world
        .router
        .log
        .iter()
        .map(|ordered| ordered.message.message_id())
        .collect();
    let mut distinct = ids.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), ids.len(), "every envelope is ordered once");
    world.check(&pair);
}

// CONV-H12
#[test]
fn the_caller_of_a_send_that_loses_the_router_is_told_at_once_and_the_post_certifies_afterwards() {
    let mut world = sending();
    let pair = world.everyone();
    let request = *world.members[0].bound.keys().next().unwrap();
    let begun_ms = world.now_ms;
    world.members[0].online = false;
    world.settle();
    while !world.members[0].sent.contains_key(&request) {
        assert!(world.next_timer());
        world.settle();
    }
    assert!(matches!(
        world.members[0].sent[&request],
        Err(SendError::DeliveryPending { .. })
    ));
    let spaced = u64::from(SEND_ATTEMPTS_MAX - 1) * SEND_ATTEMPT_SPACING_MS;
    assert_eq!(world.now_ms, begun_ms + spaced, "no longer than one drain");
    world.members[0].online = true;
    world.attach(0);
    world.settle();
    assert_eq!(world.chain(1, &pair).len(), 1);
    assert_eq!(world.count(&pair, "proposal"), 1);
    world.check(&pair);
}

/// What an attempt in a mode may be answered, and what becomes of it.
#[test]
fn every_outcome_of_every_mode_goes_on_or_ends_as_the_chapter_says() {
    let restarted = |_: &Transmit| SendOutcome::RouterRestarted {
        router_instance_id: router_instance(5),
    };
    let unknown: Answer = |_| SendOutcome::RetryIdentityUnknown;
    let conflict: Answer = |_| SendOutcome::IdempotencyConflict;
    let invalid: Answer = |_| SendOutcome::MessageInvalid;
    // Mode, answer, the mode of what is out next, whether the engine stops.
    let cases: [(SendMode, Answer, Option<SendMode>, bool); 12] = [
        (SendMode::Initial, accepted, None, false),
        (SendMode::Retry, accepted, None, false),
        (SendMode::Initial, lost, Some(SendMode::Retry), false),
        (SendMode::Retry, lost, Some(SendMode::Retry), false),
        (SendMode::Initial, unknown, None, true),
        (SendMode::Retry, unknown, Some(SendMode::Initial), false),
        (SendMode::Initial, conflict, Some(SendMode::Retry), false),
        (SendMode::Retry, conflict, None, true),
        (SendMode::Initial, invalid, None, true),
        (SendMode::Retry, invalid, None, true),
        (SendMode::Initial, restarted, None, false),
        (SendMode::Retry, restarted, None, false),
    ];
    for (number, (mode, answer, next, stops)) in cases.into_iter().enumerate() {
        let mut world = sending();
        if mode == SendMode::Retry {
            world.restart(0);
        }
        let first = world.answer(0, answer);
        assert_eq!(first.mode, mode, "case {number}");
        if next.is_some() && world.members[0].transmits.is_empty() {
            world.next_timer();
        }
        let out = world.members[0]
            .transmits
            .front()
            .filter(|out| out.message == first.message);
        assert_eq!(out.map(|out| out.mode), next, "case {number}");
        assert_eq!(world.members[0].fatal.is_some(), stops, "case {number}");
    }
}

/// Taken for the next one's it would be a breach of the Router's contract.
#[test]
fn the_outcome_of_an_attempt_that_a_fence_interrupted_is_not_taken_for_that_of_the_next() {
    let mut world = World::new(2);
    let pair = world.everyone();
    world.send(0, &pair, "first");
    world.settle();
    world.send(0, &pair, "second");
    world.answer(0, lost);
    assert!(world.next_timer());
    let interrupted = world.members[0].transmits.pop_front().expect("a retry");
    assert_eq!(interrupted.mode, SendMode::Retry);
    world.lose_unread(0, &pair);
    world.settle();
    assert_eq!(
        world.chain(0, &pair).len(),
        1,
        "nothing is offered before it is known"
    );
    let (outbound_id, outcome) = (interrupted.outbound_id, SendOutcome::RetryIdentityUnknown);
    world.handle(0, Input::SendOutcome { outbound_id, outcome });
    world.settle();
    assert_eq!(world.members[0].fatal, None);
    assert_eq!(world.chain(1, &pair).len(), 2);
    world.check(&pair);
}

//! What happens to a conversation while it is fenced: what its questions are answered, what waits, and that it always gets out.

use conclave_conversation::engine::timing::RESENDS_MAX;
use conclave_conversation::engine::{ConversationStatus, Ignored, Input, SendOutcome};
use conclave_conversation::store::rows::ReanchorRow;
use conclave_conversation::test_support::router_instance;
use conclave_conversation::values::CertifiedRecord;

use crate::byhand::{answer, certified, post, post_at};
use crate::scenario::{
    MISSING, alone, behind_a_gap, body, follows, founded, inject, inject_vote, nothing_follows, plaintexts,
    question, recovered, rows, settled, status,
};
use crate::world::CrashPoint;

// CONV-D16
#[test]
fn a_fence_stops_resends_without_spending_any_and_they_go_on_after_it() {
    let (mut world, everyone) = founded(4);
    for silent in [2, 3] {
        world.crash(silent);
    }
    world.send(0, &everyone, "two of three sign");
    world.settle();
    for _ in 0..3 {
        world.next_timer();
        world.settle();
    }
    let proposed = plaintexts(&world, &everyone, 0, "proposal").len();
    assert!(proposed > 2, "the GENESIS, the post, and resends of it");
    world.lose_unread(0, &everyone);
    world.run_out();
    assert_eq!(
        status(&world, 0, &everyone),
        MISSING,
        "one of three others answers"
    );
    assert_eq!(plaintexts(&world, &everyone, 0, "proposal").len(), proposed);
    nothing_follows(&mut world, &everyone, &[2]);
    world.run_out();
    assert_eq!(status(&world, 0, &everyone), ConversationStatus::Recovered);
    let all = plaintexts(&world, &everyone, 0, "proposal");
    assert_eq!(
        all.len(),
        2 + RESENDS_MAX as usize,
        "the whole budget, and no more"
    );
    assert!(all[1..].iter().all(|resend| *resend == all[1]), "the same bytes");
}

// CONV-F10
#[test]
fn a_second_successor_for_an_answered_question_is_ignored_and_the_first_is_kept() {
    // Two certified successors of one record take more than f faulty members: 1, 2 and 3 signed both.
    let (mut world, everyone) = behind_a_gap(4);
    let first = certified(&world, &everyone, &post(&world, &everyone, 1, "A"), &[1, 2, 3]);
    let second = certified(&world, &everyone, &post(&world, &everyone, 2, "B"), &[1, 2, 3]);
    let asked = question(&world, &everyone);
    follows(&mut world, &everyone, 1, first.to_value(), false);
    let late = answer(&world, 2, &asked, Some(second.to_value().into()), false);
    inject(&mut world, &everyone, 2, late);
    world.settle();
    assert!(world.members[0].ignored.contains(&Ignored::NotAsked));
    assert_eq!(world.chain(0, &everyone)[1], *first.record().hash());
    nothing_follows(&mut world, &everyone, &[1, 2]);
    assert_eq!(status(&world, 0, &everyone), ConversationStatus::Recovered);
}

// CONV-F11
#[test]
fn a_page_that_does_not_extend_the_position_is_ignored_and_others_finish_the_catch_up() {
    let (mut world, everyone) = behind_a_gap(4);
    let next = certified(&world, &everyone, &post(&world, &everyone, 1, "A"), &[1, 2, 3]);
    let place = (*next.record().hash(), *next.record().anchor_hash());
    let beyond = post_at(&world, &everyone, 2, "B", place);
    let beyond = certified(&world, &everyone, &beyond, &[1, 2, 3]);
    follows(&mut world, &everyone, 3, beyond.to_value(), false);
    assert!(matches!(
        world.members[0].ignored.last(),
        Some(Ignored::NotGapFree | Ignored::Invalid(_))
    ));
    assert_eq!(world.chain(0, &everyone).len(), 1);
    follows(&mut world, &everyone, 1, next.to_value(), true);
    follows(&mut world, &everyone, 2, beyond.to_value(), false);
    nothing_follows(&mut world, &everyone, &[1, 2]);
    assert_eq!(status(&world, 0, &everyone), ConversationStatus::Recovered);
    assert_eq!(world.chain(0, &everyone).len(), 3);
}

// CONV-F16
#[test]
fn a_false_hint_neither_ends_nor_prolongs_the_catch_up() {
    let (mut world, everyone) = behind_a_gap(4);
    let first = certified(&world, &everyone, &post(&world, &everyone, 1, "A"), &[1, 2, 3]);
    let place = (*first.record().hash(), *first.record().anchor_hash());
    let second = certified(
        &world,
        &everyone,
        &post_at(&world, &everyone, 2, "B", place),
        &[1, 2, 3],
    );
    // "Nothing more" where more follows, and "more" where nothing does.
    follows(&mut world, &everyone, 3, first.to_value(), false);
    assert_eq!(status(&world, 0, &everyone), MISSING);
    follows(&mut world, &everyone, 3, second.to_value(), true);
    nothing_follows(&mut world, &everyone, &[1, 2]);
    assert_eq!(status(&world, 0, &everyone), ConversationStatus::Recovered);
    assert_eq!(world.chain(0, &everyone).len(), 3);
}

// CONV-I14
#[test]
fn a_certified_record_that_came_before_the_run_is_where_the_run_begins() {
    let (mut world, everyone) = founded(4);
    for silent in 1..4 {
        world.crash(silent);
    }
    let record = certified(&world, &everyone, &post(&world, &everyone, 1, "A"), &[1, 2, 3]);
    let packet: CertifiedRecord = record.to_value();
    inject(&mut world, &everyone, 1, packet);
    world.settle();
    assert_eq!(world.members[0].texts(), ["A"]);
    world.lose_unread(0, &everyone);
    world.settle();
    assert_eq!(
        question(&world, &everyone).known_record_hash,
        Some(*record.record().hash())
    );
}

// CONV-K13
#[test]
fn an_incomplete_answer_brings_the_vote_for_an_earlier_instance_first_and_never_the_current_one() {
    let (mut world, everyone) = settled();
    let earlier = plaintexts(&world, &everyone, 0, "reanchor");
    assert_eq!(earlier.len(), 1);
    world.restart_router(2);
    world.settle();
    nothing_follows(&mut world, &everyone, &[1, 2, 3]);
    assert_eq!(rows::<ReanchorRow>(&world, 0).len(), 2, "one for each instance");
    let mut asked = question(&world, &everyone);
    asked.requester_agent_id = world.members[3].id();
    let before = world.opened(&everyone).len();
    inject(&mut world, &everyone, 3, asked);
    world.settle();
    let said: Vec<_> = world.opened(&everyone).split_off(before + 1);
    assert_eq!(said.len(), 2);
    assert_eq!(said[0].1.encode(), earlier[0]);
    assert_eq!(crate::world::kind_of(&said[1].1), "incomplete");
}

// CONV-K14
#[test]
fn a_retry_does_not_lose_the_wait_for_everyone() {
    let (mut world, everyone) = alone();
    let earlier = body(&world, 0, &everyone, router_instance(7));
    inject_vote(&mut world, &everyone, 3, &earlier);
    world.settle();
    assert!(world.next_timer(), "the retry");
    world.settle();
    nothing_follows(&mut world, &everyone, &[1, 2]);
    assert_eq!(
        rows::<ReanchorRow>(&world, 0),
        [],
        "the third is still waited for"
    );
    nothing_follows(&mut world, &everyone, &[3]);
    assert_eq!(rows::<ReanchorRow>(&world, 0).len(), 1);
}

// CONV-L04
#[test]
fn a_recovery_that_is_interrupted_at_its_end_still_gets_out() {
    for point in [CrashPoint::BeforeCommit, CrashPoint::AfterCommit] {
        let (mut world, everyone) = behind_a_gap(4);
        let asked = question(&world, &everyone);
        for responder in [1, 2] {
            let answer = answer(&world, responder, &asked, None, false);
            inject(&mut world, &everyone, responder, answer);
        }
        while world.members[0].ignored.len() + world.router.log.len() > 0 && world.deliver_one(0) {
            let left = world.router.log.last().unwrap().position;
            let read = *world.members[0].feeds.values().max().unwrap();
            if read + 1 == left {
                break;
            }
        }
        world.crash_at.insert(0, point);
        assert!(world.deliver_one(0), "the answer that completes the recovery");
        assert!(world.members[0].engine.is_none());
        for member in 1..4 {
            world.open(member);
            world.attach(member);
        }
        world.open(0);
        world.attach(0);
        world.run_out();
        assert_eq!(
            status(&world, 0, &everyone),
            ConversationStatus::Recovered,
            "{point:?}"
        );
        let post = world.send(0, &everyone, "after");
        world.settle();
        assert!(world.members[0].sent[&post].is_ok(), "{point:?}");
    }
}

// CONV-L06
#[test]
fn a_send_whose_outcome_begins_a_recovery_and_one_that_outlasts_it_both_finish() {
    // The outcome of a transmission begins the run.
    let (mut world, everyone) = founded(3);
    let post = world.send(1, &everyone, "across the restart");
    world.router.restart(1);
    assert!(world.transmit_one(1), "answered with another instance");
    assert!(!recovered(&world, &[1], &everyone));
    for member in [0, 2] {
        world.attach(member);
    }
    world.run_out();
    assert!(world.members[1].sent[&post].is_ok());
    world.check(&everyone);

    // A transmission is out while a run begins and ends; its outcome comes after.
    let (mut world, everyone) = founded(3);
    let post = world.send(1, &everyone, "across the run");
    let out = world.members[1].transmits.pop_front().unwrap();
    world.lose_unread(1, &everyone);
    world.settle();
    assert!(recovered(&world, &[1], &everyone));
    let outcome = SendOutcome::Accepted {
        router_instance_id: out.expected_router_instance_id,
        digest: out.message.digest(),
    };
    let outbound_id = out.outbound_id;
    world.handle(1, Input::SendOutcome { outbound_id, outcome });
    world.run_out();
    assert!(world.members[1].sent[&post].is_ok());
    let ordered = |ordered: &&crate::world::Ordered| ordered.message.message_id() == outbound_id;
    assert_eq!(world.router.log.iter().filter(ordered).count(), 1);
    world.check(&everyone);
}

//! Catching up: what a member that missed something asks, and when it carries traffic again.

use conclave_conversation::engine::timing::CATCH_UP_RETRIES_MAX;
use conclave_conversation::engine::{ConversationStatus, Ignored, Input, TimerId, WaitingFor};
use conclave_conversation::values::DirectPacket;

use crate::scenario::{MISSING, behind, inject, outbound, packets, pages, request, status};
use crate::world::World;

// CONV-I03, CONV-I04, CONV-I05, CONV-I11
#[test]
fn a_member_behind_a_gap_catches_up_record_by_record_and_gets_every_delivery_once_and_in_order() {
    let (mut world, everyone) = behind(4, 5);
    world.crash(1);
    world.lose_unread(3, &everyone);
    assert_eq!(status(&world, 3, &everyone), MISSING);
    world.settle();
    assert_eq!(status(&world, 3, &everyone), ConversationStatus::Recovered);
    assert_eq!(world.chain(3, &everyone), world.chain(0, &everyone));
    assert_eq!(
        world.members[3].texts(),
        ["post 0", "post 1", "post 2", "post 3", "post 4"]
    );
    // The last question was asked at the end, and two of three others answered it.
    let asked = packets(&world, &everyone, 3, "request");
    let Some(DirectPacket::CatchUpRequest(last)) = asked.last() else {
        panic!("a request")
    };
    assert_eq!(**last, request(&world, &everyone, 3, true));
    assert!(world.members[3].fatal.is_none());
    let post = world.send(3, &everyone, "after");
    world.settle();
    assert!(world.members[3].sent[&post].is_ok());
    world.check(&everyone);
}

// CONV-I07
#[test]
fn a_repeated_question_is_answered_again_and_a_repeated_answer_counts_once() {
    let (mut world, everyone) = behind(4, 1);
    let asked = request(&world, &everyone, 3, true);
    for _ in 0..2 {
        inject(&mut world, &everyone, 3, asked.clone());
    }
    world.settle();
    assert_eq!(packets(&world, &everyone, 0, "incomplete").len(), 2);

    let (mut world, everyone) = behind(4, 3);
    for silent in [1, 2] {
        world.crash(silent);
    }
    world.lose_unread(3, &everyone);
    world.settle();
    // Everything is supplied by one member; its page again is for a question that is no longer asked.
    let page = pages(&world, &everyone, 0).remove(0);
    inject(&mut world, &everyone, 0, page);
    let incomplete = packets(&world, &everyone, 0, "incomplete").pop().unwrap();
    inject(&mut world, &everyone, 0, incomplete);
    world.settle();
    let ignored = &world.members[3].ignored;
    assert!(ignored.contains(&Ignored::NotAsked) && ignored.contains(&Ignored::Duplicate));
    assert_eq!(
        status(&world, 3, &everyone),
        MISSING,
        "one of three others answered"
    );
    assert_eq!(world.chain(3, &everyone).len(), 3);
}

// CONV-I08, CONV-I09, CONV-I12
#[test]
fn retries_are_bounded_and_begin_again_when_a_member_the_host_or_the_transport_stirs() {
    let (mut world, everyone) = behind(4, 1);
    for silent in [0, 1, 2] {
        world.crash(silent);
    }
    let retries = CATCH_UP_RETRIES_MAX as usize;
    world.lose_unread(3, &everyone);
    world.run_out();
    assert_eq!(world.count(&everyone, "request"), 1 + retries);
    let stall = world.members[3].stall(&everyone).expect("a stall");
    assert_eq!(stall.waiting_for, WaitingFor::Answers);
    let others: Vec<_> = everyone
        .agent_ids()
        .into_iter()
        .filter(|member| *member != world.members[3].id())
        .collect();
    assert_eq!(stall.members, others);
    // By reattachment.
    world.attach(3);
    world.run_out();
    assert_eq!(world.count(&everyone, "request"), 2 * (1 + retries));
    // By a local post, which waits.
    let post = world.send(3, &everyone, "waits");
    world.run_out();
    assert_eq!(world.count(&everyone, "request"), 3 * (1 + retries));
    assert_eq!(world.count(&everyone, "proposal"), 1);
    // By a member's traffic; one answer is kept over the retries, the second settles.
    world.open(0);
    world.attach(0);
    let asked = request(&world, &everyone, 0, true);
    inject(&mut world, &everyone, 0, asked);
    world.settle();
    assert_eq!(status(&world, 3, &everyone), MISSING);
    world.next_timer();
    world.settle();
    world.open(1);
    world.attach(1);
    world.run_out();
    assert_eq!(status(&world, 3, &everyone), ConversationStatus::Recovered);
    assert!(world.members[3].sent[&post].is_ok());
    world.check(&everyone);
}

// CONV-I10
#[test]
fn a_recovered_conversation_asks_no_more() {
    let (mut world, everyone) = behind(4, 2);
    world.lose_unread(3, &everyone);
    world.settle();
    let asked = world.count(&everyone, "request");
    let timer = TimerId::CatchUp(*everyone.conversation_id());
    assert!(!world.members[3].timers.contains_key(&timer));
    world.handle(3, Input::Timer(timer));
    world.run_out();
    assert_eq!(world.count(&everyone, "request"), asked);
}

// CONV-F15
#[test]
fn an_answer_of_another_sender_or_with_another_hint_is_rejected() {
    let (mut world, everyone) = behind(4, 3);
    for silent in [1, 2] {
        world.crash(silent);
    }
    world.members[0].online = false;
    world.lose_unread(3, &everyone);
    world.settle();
    world.members[0].online = true;
    while world.deliver_one(0) {}
    let before = world.router.log.len();
    while world.transmit_one(0)
        || world.members[0]
            .timers
            .keys()
            .any(|id| matches!(id, TimerId::Drain(_)))
    {
        if !world.transmit_one(0) && !world.next_timer() {
            break;
        }
    }
    let page = pages(&world, &everyone, 0).pop().expect("an answer");
    world.crash(0);
    // The page itself is lost.
    world.router.log.truncate(before);
    // Relayed by another member; with another hint than was attested.
    inject(&mut world, &everyone, 1, page.clone());
    let mut hinted = page.clone();
    hinted.has_more = !hinted.has_more;
    inject(&mut world, &everyone, 0, hinted);
    world.settle();
    let rejected = |reason: &&Ignored| matches!(reason, Ignored::Invalid(_));
    assert_eq!(world.members[3].ignored.iter().filter(rejected).count(), 2);
    assert_eq!(world.chain(3, &everyone).len(), 1);
    assert!(world.members[3].fatal.is_none());
}

// CONV-L02, CONV-L03, CONV-L05
#[test]
fn a_fenced_conversation_keeps_its_own_traffic_back_and_takes_only_what_recovery_needs() {
    let (mut world, everyone) = behind(4, 2);
    for silent in [1, 2] {
        world.crash(silent);
    }
    // An envelope that was never ordered is retained, and goes out with its own bytes.
    world.members[3].online = false;
    let post = world.send(3, &everyone, "retained");
    while world.transmit_one(3) {}
    let before: Vec<_> = outbound(&world, 3);
    assert!(!before.is_empty());
    world.members[3].online = true;
    world.lose_unread(3, &everyone);
    world.settle();
    assert_eq!(
        world.chain(3, &everyone).len(),
        2,
        "it catches up behind its fence"
    );
    assert_eq!(status(&world, 3, &everyone), MISSING);
    assert_eq!(world.count(&everyone, "proposal"), 2);
    for row in &before {
        assert!(
            outbound(&world, 3)
                .iter()
                .any(|held| held.outbound_id == row.outbound_id)
        );
    }
    // A proposal and its signatures are not for now.
    let other = world.send(0, &everyone, "meanwhile");
    world.settle();
    assert!(world.members[3].ignored.contains(&Ignored::NotRecovered));
    world.open(1);
    world.attach(1);
    world.open(2);
    world.attach(2);
    world.run_out();
    assert_eq!(status(&world, 3, &everyone), ConversationStatus::Recovered);
    for row in &before {
        let ordered = world
            .router
            .log
            .iter()
            .filter(|ordered| ordered.message.message_id().to_string() == row.outbound_id)
            .count();
        assert_eq!(ordered, 1);
    }
    assert!(world.members[3].sent[&post].is_ok() && world.members[0].sent[&other].is_ok());
    world.check(&everyone);
}

// CONV-L01
#[test]
fn one_conversation_recovers_while_another_waits() {
    let mut world = World::new(3);
    let pair = world.membership(&[0, 1]);
    let everyone = world.everyone();
    for membership in [&pair, &everyone] {
        world.send(0, membership, "hello");
        world.settle();
    }
    world.crash(2);
    world.restart_router(1);
    world.settle();
    assert_eq!(status(&world, 0, &pair), ConversationStatus::Recovered);
    assert_ne!(status(&world, 0, &everyone), ConversationStatus::Recovered);
    let (here, there) = (world.send(1, &pair, "here"), world.send(1, &everyone, "there"));
    world.settle();
    assert!(world.members[1].sent[&here].is_ok());
    assert!(!world.members[1].sent.contains_key(&there));
    world.open(2);
    world.attach(2);
    world.run_out();
    assert!(world.members[1].sent[&there].is_ok());
    world.check(&pair);
    world.check(&everyone);
}

#[test]
fn a_certified_record_that_shows_a_gap_begins_a_run() {
    let (mut world, everyone) = behind(4, 4);
    // The gap was not announced: the next proposer's head shows it.
    let last = world.router.log.len() as u64;
    let feed = conclave_conversation::engine::Feed::Conversation(*everyone.conversation_id());
    world.members[3].feeds.insert(feed, last);
    world.send(0, &everyone, "shows the gap");
    world.settle();
    world.run_out();
    assert_eq!(status(&world, 3, &everyone), ConversationStatus::Recovered);
    assert_eq!(world.chain(3, &everyone), world.chain(0, &everyone));
    assert!(world.members[3].fatal.is_none());
}

// A crash within a run finds the gap again: the cursor is not durable before the run ends.
#[test]
pub(crate) fn a_fenced_cursor_is_durable_only_with_the_end_of_the_run() {
    let (mut world, everyone) = behind(4, 3);
    let cursors = |world: &World| -> Vec<conclave_conversation::store::rows::TransportCursorRow> {
        world.members[3].store.snapshot().rows().unwrap()
    };
    let before = cursors(&world);
    for silent in [1, 2] {
        world.crash(silent);
    }
    world.lose_unread(3, &everyone);
    world.settle();
    assert_eq!(world.chain(3, &everyone).len(), 3);
    assert_eq!(cursors(&world), before);
    for member in [1, 2] {
        world.open(member);
        world.attach(member);
    }
    world.run_out();
    assert_eq!(status(&world, 3, &everyone), ConversationStatus::Recovered);
    assert_ne!(cursors(&world), before);
}

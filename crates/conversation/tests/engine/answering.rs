//! What a member that asks is answered, and how much of it.

use conclave_conversation::engine::limits::ANSWERS_PENDING_PER_MEMBER_MAX;
use conclave_conversation::engine::{ConversationStatus, Ignored};
use conclave_conversation::values::{CatchUpItem, MembershipHash};

use crate::scenario::{behind, inject, outbound, pages, request, status};
use crate::world::World;

// CONV-I02, CONV-I03
#[test]
fn pages_carry_records_and_reanchors_in_order_with_the_hint_that_more_follows() {
    let (mut world, everyone) = behind(4, 2);
    world.crash(3);
    world.restart_router(1);
    world.settle();
    assert_eq!(status(&world, 0, &everyone), ConversationStatus::Recovered);
    let before = pages(&world, &everyone, 0).len();
    world.open(3);
    world.attach(3);
    world.settle();
    let pages = pages(&world, &everyone, 0).split_off(before);
    let shown: Vec<_> = pages
        .iter()
        .map(|page| {
            (
                matches!(page.item, CatchUpItem::CertifiedRecord(_)),
                page.has_more,
            )
        })
        .collect();
    assert_eq!(shown, [(true, true), (false, false)]);
    assert_eq!(
        pages[0].request.known_anchor_hash,
        pages[1].request.known_anchor_hash
    );
    assert_ne!(
        pages[0].request.known_record_hash,
        pages[1].request.known_record_hash
    );
    assert_eq!(status(&world, 3, &everyone), ConversationStatus::Recovered);
    world.check(&everyone);
}

// CONV-I01
#[test]
fn an_empty_position_is_answered_with_the_genesis() {
    let (mut world, everyone) = behind(4, 2);
    let asked = request(&world, &everyone, 3, false);
    inject(&mut world, &everyone, 3, asked);
    world.settle();
    let page = pages(&world, &everyone, 0).pop().unwrap();
    let CatchUpItem::CertifiedRecord(record) = &page.item else {
        panic!("a record")
    };
    assert_eq!(
        record.action_certified_record.record_hash,
        world.chain(0, &everyone)[0]
    );
    assert!(page.has_more);
}

// CONV-I15, CONV-F14
#[test]
fn questions_of_nobody_and_about_nothing_known_do_no_harm() {
    let (mut world, everyone) = behind(3, 2);
    let asked = request(&world, &everyone, 0, true);
    let mut elsewhere = asked.clone();
    elsewhere.known_record_hash = Some(conclave_conversation::values::RecordHash::from_bytes([7; 32]));
    inject(&mut world, &everyone, 0, elsewhere);
    world.settle();
    assert_eq!(world.count(&everyone, "incomplete"), 2, "from each other member");
    let answers = world.count(&everyone, "incomplete") + world.count(&everyone, "page");
    // On another's behalf, under another membership, and from ourselves.
    inject(&mut world, &everyone, 1, asked.clone());
    let mut foreign = asked.clone();
    foreign.membership_hash = MembershipHash::from_bytes([1; 32]);
    inject(&mut world, &everyone, 0, foreign);
    world.settle();
    assert_eq!(
        world.count(&everyone, "incomplete") + world.count(&everyone, "page"),
        answers
    );
    assert!(world.members[0].ignored.contains(&Ignored::OwnRequest));
    assert!(world.members.iter().all(|member| member.fatal.is_none()));
}

#[test]
fn a_member_that_asks_without_end_has_a_bounded_number_of_answers_on_their_way() {
    let (mut world, everyone) = behind(3, 1);
    world.members[0].online = false;
    let mut asked = request(&world, &everyone, 1, true);
    world.members[0].online = true;
    for number in 0..40 {
        asked.known_record_hash = Some(conclave_conversation::values::RecordHash::from_bytes(
            [number; 32],
        ));
        inject(&mut world, &everyone, 1, asked.clone());
    }
    while world.deliver_one(0) {}
    assert!(outbound(&world, 0).len() <= ANSWERS_PENDING_PER_MEMBER_MAX);
    assert!(world.members[0].ignored.contains(&Ignored::TooManyAnswers));
    world.settle();
    assert_eq!(outbound(&world, 0).len(), 0);
}

// CONV-I06
#[test]
fn two_members_that_recover_answer_each_other() {
    let mut world = World::new(2);
    let pair = world.everyone();
    world.send(0, &pair, "hello");
    world.settle();
    for member in [0, 1] {
        world.lose_unread(member, &pair);
    }
    // The gap lies before what they say now.
    world.settle();
    for member in [0, 1] {
        assert_eq!(status(&world, member, &pair), ConversationStatus::Recovered);
    }
}

//! Floods: whatever a member or a stranger sends, what is held stays small, and everybody else is served.

use conclave_conversation::binding::seal_invitation;
use conclave_conversation::engine::limits::{
    ANSWERS_PENDING_PER_MEMBER_MAX, REPEATED_ANSWER_INTERVAL_MS, REPEATED_ANSWERS_MAX, RETAINED_FOLDS_MAX,
    UNASKED_CONVERSATIONS_PER_AUTHOR_MAX,
};
use conclave_conversation::engine::{Ignored, Input, InvitationDelivered};
use conclave_conversation::membership::Membership;
use conclave_conversation::store::{Key, Table};
use conclave_conversation::test_support::{self, Agent, router_instance};
use conclave_conversation::values::{
    ActionProposal, ActionProposalKind, ClosedValue, Content, DirectPacket, GenesisActionCore,
    GenesisActionKind, Null, PostId, PostIntent, PostIntentKind, ReanchorBody, RecordHash,
};
use conclave_harness::WIRE_VERSION;
use conclave_harness::randomness::{Randomness, SeededRandomness, random_array};

use crate::byhand::{answer, certified, post, proposal, signature, vote_for};
use crate::scenario::{body, founded, inject, inject_plaintext, packets, request, vote};
use crate::world::World;

/// Rows of a member's store about what is open, and about each certified record.
fn rows_of_the_protocol(world: &World, member: usize) -> usize {
    let tables = [
        Table::ProposalLocks,
        Table::ProtocolEvidence,
        Table::StagedRecords,
        Table::OutboundMessages,
        Table::DisseminationObligations,
        Table::Reanchors,
        Table::WatchedConversations,
    ];
    let snapshot = world.members[member].store.snapshot();
    tables
        .iter()
        .map(|table| snapshot.count_below(*table, &Key::new([""; 0])))
        .sum()
}

/// Anything a member can say without a quorum, drawn at random.
fn hostile(world: &World, everyone: &Membership, randomness: &mut SeededRandomness) -> Vec<u8> {
    let [kind, number] = random_array::<2>(randomness);
    let hash = RecordHash::from_bytes(random_array(randomness));
    let text = format!("flood {number}");
    match kind % 9 {
        0 => proposal(&post(world, everyone, 3, &text)),
        1 => signature(world, 3, post(world, everyone, 3, &text).hash())
            .encoded()
            .to_canonical_bytes(),
        2 => vote_for(world, everyone, 3, hash).encoded().to_canonical_bytes(),
        3 => {
            let body = ReanchorBody {
                selected_record_hash: hash,
                ..body(world, 0, everyone, router_instance(number))
            };
            vote(world, 3, &body).encoded().to_canonical_bytes()
        }
        4 => {
            let packet: DirectPacket = request(world, everyone, 3, number % 2 == 0).into();
            packet.encode()
        }
        5 => {
            let mut asked = request(world, everyone, 3, true);
            asked.known_record_hash = Some(hash);
            let packet: DirectPacket = asked.into();
            packet.encode()
        }
        6 => answer(world, 3, &request(world, everyone, 0, true), None, false).encode(),
        7 => {
            let mut junk = vec![0; usize::from(number)];
            randomness.fill(&mut junk);
            junk
        }
        _ => {
            let record = certified(world, everyone, &post(world, everyone, 3, &text), &[0, 1, 2, 3]);
            let request = request(world, everyone, 0, true);
            answer(world, 3, &request, Some(record.to_value().into()), true).encode()
        }
    }
}

#[test]
fn a_member_that_says_everything_it_can_without_a_quorum_fills_nothing_and_stops_nobody() {
    let (mut world, everyone) = founded(4);
    let pair = world.membership(&[0, 1]);
    world.crash(3);
    let mut randomness = SeededRandomness::new(5);
    let check = |world: &World| {
        for member in 0..3 {
            let held = world.members[member].engine.as_ref().unwrap().holdings();
            assert!(held.folds <= RETAINED_FOLDS_MAX + 1);
            assert!(held.kept_for_later <= 3 * 4);
            assert!(held.envelopes <= ANSWERS_PENDING_PER_MEMBER_MAX + 2);
            assert_eq!(world.members[member].fatal, None);
        }
        // A lock with its signatures and its copy: what one open proposal takes, and what each certified record does.
        let records = world.chain(0, &everyone).len() + world.chain(0, &pair).len();
        assert!(rows_of_the_protocol(world, 0) <= 16 * (records + 1));
    };
    for round in 0..150 {
        let plaintext = hostile(&world, &everyone, &mut randomness);
        inject_plaintext(&mut world, &everyone, 3, &plaintext);
        if round % 10 == 9 {
            world.settle();
            check(&world);
        }
    }
    // Another conversation of the same agents is served meanwhile.
    let elsewhere = world.send(0, &pair, "elsewhere");
    world.settle();
    assert!(world.members[0].sent[&elsewhere].is_ok());
    // And behind a fence.
    world.lose_unread(0, &everyone);
    for _ in 0..100 {
        let plaintext = hostile(&world, &everyone, &mut randomness);
        inject_plaintext(&mut world, &everyone, 3, &plaintext);
    }
    world.settle();
    check(&world);
    world.check(&pair);
}

#[test]
fn a_question_that_is_repeated_without_end_is_answered_only_so_often_and_one_further_on_always() {
    let (mut world, everyone) = founded(2);
    world.send(0, &everyone, "second");
    world.settle();
    world.crash(1);
    let answered = |world: &World| {
        packets(world, &everyone, 0, "page").len() + packets(world, &everyone, 0, "incomplete").len()
    };
    let from_the_start = request(&world, &everyone, 1, false);
    for _ in 0..2 * REPEATED_ANSWERS_MAX {
        inject(&mut world, &everyone, 1, from_the_start.clone());
        world.settle();
    }
    assert_eq!(answered(&world), 1 + REPEATED_ANSWERS_MAX as usize);
    assert!(world.members[0].ignored.contains(&Ignored::RepeatedTooOften));
    let from_the_end = request(&world, &everyone, 1, true);
    inject(&mut world, &everyone, 1, from_the_end);
    world.settle();
    assert_eq!(answered(&world), 2 + REPEATED_ANSWERS_MAX as usize);
    world.now_ms += 3 * REPEATED_ANSWER_INTERVAL_MS;
    for _ in 0..10 {
        inject(&mut world, &everyone, 1, from_the_start.clone());
        world.settle();
    }
    assert_eq!(answered(&world), 5 + REPEATED_ANSWERS_MAX as usize);
}

/// An author that runs no engine here invites member 0 and proposes the GENESIS of a conversation with a third agent.
fn begin(world: &mut World, author: &Agent, third: usize, position: &mut u64) -> Membership {
    let cards = vec![
        world.members[0].agent.card.clone(),
        author.card.clone(),
        Agent::new(third).card,
    ];
    let membership = Membership::from_cards(cards, &test_support::history()).unwrap();
    let mut randomness = SeededRandomness::new(*position);
    let local = world.members[0].id();
    let message = seal_invitation(
        &membership,
        &author.card,
        &author.key,
        &local,
        WIRE_VERSION,
        &mut randomness,
    );
    *position += 1;
    let router_instance_id = world.router.instance;
    world.handle(
        0,
        Input::InvitationDelivered(Box::new(InvitationDelivered {
            message: Some(message.unwrap().into_encoded()),
            sender_card: Some(author.card.clone()),
            position: *position,
            router_instance_id,
        })),
    );
    let post_intent = PostIntent {
        sharness_version: WIRE_VERSION,
        kind: PostIntentKind,
        conversation_id: *membership.conversation_id(),
        membership_hash: *membership.hash(),
        author_agent_id: author.id(),
        post_id: PostId::from_bytes([9; 32]),
        content: Content::text("buy").unwrap(),
    };
    let genesis = GenesisActionCore {
        sharness_version: WIRE_VERSION,
        kind: GenesisActionKind,
        conversation_id: *membership.conversation_id(),
        membership: membership.descriptor().clone(),
        anchor: membership.genesis_anchor(router_instance_id),
        previous_record_hash: Null,
        post_intent_hash: post_intent.hash(),
        post_intent,
    };
    let packet: DirectPacket = ActionProposal {
        sharness_version: WIRE_VERSION,
        kind: ActionProposalKind,
        action: genesis.into(),
    }
    .into();
    let message = conclave_conversation::outer_message::seal_outer_message(
        &packet.encode(),
        &membership,
        &author.card,
        &author.key,
        WIRE_VERSION,
        &mut randomness,
    );
    world.inject(&membership, message.unwrap().into_encoded());
    while world.deliver_one(0) {}
    membership
}

#[test]
fn a_stranger_begins_only_so_many_conversations_and_its_flood_keeps_nobody_else_out() {
    let mut world = World::new(1);
    let (spammer, friend) = (Agent::new(50), Agent::new(51));
    let mut position = 0;
    let held = |world: &World| world.members[0].engine.as_ref().unwrap().holdings().unasked;
    let mut first = None;
    for number in 0..UNASKED_CONVERSATIONS_PER_AUTHOR_MAX + 4 {
        let membership = begin(&mut world, &spammer, 100 + number, &mut position);
        first.get_or_insert(membership);
        assert_eq!(
            held(&world),
            (number + 1).min(UNASKED_CONVERSATIONS_PER_AUTHOR_MAX)
        );
    }
    assert!(world.members[0].ignored.contains(&Ignored::TooManyConversations));
    begin(&mut world, &friend, 200, &mut position);
    assert_eq!(held(&world), UNASKED_CONVERSATIONS_PER_AUTHOR_MAX + 1);
    // The bound outlives a restart.
    world.restart(0);
    begin(&mut world, &spammer, 300, &mut position);
    assert_eq!(held(&world), UNASKED_CONVERSATIONS_PER_AUTHOR_MAX + 1);
    // Whoever answers one of them asked for it: it no longer counts.
    world.send(0, &first.unwrap(), "who are you?");
    assert_eq!(held(&world), UNASKED_CONVERSATIONS_PER_AUTHOR_MAX);
    begin(&mut world, &spammer, 301, &mut position);
    assert_eq!(held(&world), UNASKED_CONVERSATIONS_PER_AUTHOR_MAX + 1);
    assert_eq!(world.members[0].fatal, None);
}

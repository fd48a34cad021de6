//! Invitations: they make a conversation watched, and nothing else.

use conclave_conversation::binding::seal_invitation;
use conclave_conversation::engine::limits::{WATCHED_MAX, WATCHED_PER_INVITER_MAX};
use conclave_conversation::engine::{Feed, Ignored, Input, InvitationDelivered};
use conclave_conversation::membership::Membership;
use conclave_conversation::store::rows::{ConversationStateRow, MembershipRow, WatchedConversationRow};
use conclave_conversation::test_support::{self, Agent, router_instance};
use conclave_harness::WIRE_VERSION;
use conclave_harness::randomness::SeededRandomness;

use crate::world::World;

fn watched(world: &World, member: usize) -> Vec<WatchedConversationRow> {
    world.members[member].store.snapshot().rows().unwrap()
}

/// Invites member 0 to a conversation with an inviter and a stranger.
fn invite(world: &mut World, inviter: &Agent, stranger: usize, position: u64) -> Membership {
    let cards = vec![
        world.members[0].agent.card.clone(),
        inviter.card.clone(),
        Agent::new(stranger).card,
    ];
    let membership = Membership::from_cards(cards, &test_support::history()).unwrap();
    let mut randomness = SeededRandomness::new(position);
    let message = seal_invitation(
        &membership,
        &inviter.card,
        &inviter.key,
        &world.members[0].id(),
        WIRE_VERSION,
        &mut randomness,
    )
    .unwrap();
    world.handle(
        0,
        Input::InvitationDelivered(Box::new(InvitationDelivered {
            message: Some(message.into_encoded()),
            sender_card: Some(inviter.card.clone()),
            position,
            router_instance_id: router_instance(0),
        })),
    );
    membership
}

#[test]
fn an_invitation_creates_a_watch_and_no_conversation() {
    let mut world = World::new(1);
    let membership = invite(&mut world, &Agent::new(50), 51, 1);
    assert_eq!(watched(&world, 0).len(), 1);
    assert!(
        world.members[0]
            .feeds
            .contains_key(&Feed::Conversation(*membership.conversation_id()))
    );
    let snapshot = world.members[0].store.snapshot();
    assert!(snapshot.rows::<MembershipRow>().unwrap().is_empty());
    assert!(snapshot.rows::<ConversationStateRow>().unwrap().is_empty());
    assert!(world.members[0].transmits.is_empty());
    // Again, and after a restart, it is known.
    invite(&mut world, &Agent::new(50), 51, 2);
    assert_eq!(world.members[0].ignored, [Ignored::InvitationKnown]);
    world.restart(0);
    assert!(
        world.members[0]
            .feeds
            .contains_key(&Feed::Conversation(*membership.conversation_id()))
    );
}

#[test]
fn watched_conversations_are_bounded_for_each_inviter_and_in_total_oldest_dropped_first() {
    let mut world = World::new(1);
    let mut position = 0;
    let mut first = None;
    for stranger in 0..=WATCHED_PER_INVITER_MAX {
        position += 1;
        let membership = invite(&mut world, &Agent::new(50), 100 + stranger, position);
        first.get_or_insert(membership);
    }
    assert_eq!(watched(&world, 0).len(), WATCHED_PER_INVITER_MAX);
    let first = *first.unwrap().conversation_id();
    assert!(
        watched(&world, 0)
            .iter()
            .all(|row| row.conversation_id != first.to_string())
    );
    assert!(!world.members[0].feeds.contains_key(&Feed::Conversation(first)));
    for inviter in 0..WATCHED_MAX + 3 {
        position += 1;
        invite(&mut world, &Agent::new(1_000 + inviter), 100, position);
    }
    assert_eq!(watched(&world, 0).len(), WATCHED_MAX);
    assert_eq!(
        world.members[0].feeds.len(),
        WATCHED_MAX + 1,
        "the feed of invitations besides"
    );
    world.restart(0);
    assert_eq!(world.members[0].feeds.len(), WATCHED_MAX + 1);
}

#[test]
fn an_invitation_that_does_not_verify_is_ignored_and_the_feed_moves_on() {
    let mut world = World::new(1);
    let router_instance_id = router_instance(0);
    let nothing = |position, sender_card| {
        Input::InvitationDelivered(Box::new(InvitationDelivered {
            message: None,
            sender_card,
            position,
            router_instance_id,
        }))
    };
    world.handle(0, nothing(1, None));
    assert_eq!(world.members[0].ignored.last(), Some(&Ignored::NoMessage));
    world.handle(0, nothing(1, None));
    assert_eq!(world.members[0].ignored.last(), Some(&Ignored::AlreadyRead));

    // Sealed to another agent.
    let (inviter, other) = (Agent::new(50), Agent::new(51));
    let cards = vec![
        world.members[0].agent.card.clone(),
        inviter.card.clone(),
        other.card.clone(),
    ];
    let membership = Membership::from_cards(cards, &test_support::history()).unwrap();
    let mut randomness = SeededRandomness::new(1);
    let message = seal_invitation(
        &membership,
        &inviter.card,
        &inviter.key,
        &other.id(),
        WIRE_VERSION,
        &mut randomness,
    )
    .unwrap()
    .into_encoded();
    let input = |sender_card, position| {
        Input::InvitationDelivered(Box::new(InvitationDelivered {
            message: Some(message.clone()),
            sender_card,
            position,
            router_instance_id,
        }))
    };
    world.handle(0, input(Some(inviter.card.clone()), 2));
    assert!(matches!(
        world.members[0].ignored.last(),
        Some(Ignored::InvalidInvitation(_))
    ));
    world.handle(0, input(None, 3));
    assert_eq!(world.members[0].ignored.last(), Some(&Ignored::InviterUnknown));
    assert!(watched(&world, 0).is_empty());
}

#[test]
fn a_member_that_was_offline_during_genesis_learns_of_the_conversation_from_its_invitation() {
    let mut world = World::new(3);
    let everyone = world.everyone();
    world.members[2].online = false;
    world.send(0, &everyone, "join us");
    world.settle();
    assert!(world.chain(0, &everyone).is_empty(), "GENESIS waits for everyone");
    world.members[2].online = true;
    world.settle();
    for member in 0..3 {
        assert_eq!(world.chain(member, &everyone).len(), 1);
    }
    assert!(
        watched(&world, 2).is_empty(),
        "a held conversation is not watched"
    );
}

// CONV-A08
#[test]
fn first_posts_of_two_members_at_once_found_one_conversation() {
    let mut world = World::new(3);
    let everyone = world.everyone();
    let requests = [
        world.send(0, &everyone, "from 0"),
        world.send(1, &everyone, "from 1"),
    ];
    world.settle();
    assert_eq!(world.chain(0, &everyone).len(), 2);
    for (member, request) in requests.into_iter().enumerate() {
        assert!(world.members[member].sent[&request].is_ok());
    }
    let rows = |member: usize| {
        world.members[member]
            .store
            .snapshot()
            .rows::<MembershipRow>()
            .unwrap()
    };
    assert_eq!(rows(0), rows(1));
    assert_eq!(rows(1), rows(2));
    world.check(&everyone);
}

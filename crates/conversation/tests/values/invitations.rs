use conclave_conversation::binding::invitations::{LOOKUPS_MAX, UNKNOWN_FOR_MS, UNKNOWN_MAX, WAITING_MAX};
use conclave_conversation::binding::{
    Attendance, Invitation, InvitationError, InvitationQueue, SAVED_EVERY_MS, open_invitation,
    seal_invitation,
};
use conclave_conversation::membership::MembershipError;
use conclave_conversation::test_support::{Agent, Conversation, history, registry};
use conclave_conversation::values::*;
use conclave_harness::identifiers::{AgentId, MessageId};
use conclave_harness::key::AgentKey;
use conclave_harness::randomness::SeededRandomness;
use conclave_harness::sealed_body;
use conclave_harness::signed_message::{EncodedSignedMessage, SignedMessage};
use conclave_harness::wire_version::{WIRE_VERSION, WireVersions};
use serde_json::{Value, json};

use crate::tamper;

fn open(
    message: &EncodedSignedMessage,
    inviter: &Agent,
    local: &Agent,
) -> Result<Invitation, InvitationError> {
    open_invitation(
        message,
        &inviter.card,
        &local.card,
        &local.key,
        &registry(),
        &WireVersions::live(),
        &history(),
    )
}

fn invite(conversation: &Conversation, inviter: usize, invitee: usize) -> EncodedSignedMessage {
    let agent = conversation.agent(inviter);
    let mut randomness = SeededRandomness::new(1);
    let invitee = conversation.agent(invitee).id();
    seal_invitation(
        &conversation.membership,
        &agent.card,
        &agent.key,
        &invitee,
        WIRE_VERSION,
        &mut randomness,
    )
    .unwrap()
    .into_encoded()
}

/// An invitation whose sender chose the plaintext.
fn with_plaintext(plaintext: &[u8], sender: &Agent, invitee: &Agent) -> EncodedSignedMessage {
    let id = MessageId::from_bytes([3; 16]);
    let body = sealed_body::seal(
        plaintext,
        &[&invitee.card],
        sender.id(),
        id,
        &mut SeededRandomness::new(2),
    )
    .unwrap();
    SignedMessage::sign(
        &sender.card,
        &sender.key,
        &[invitee.id()],
        id,
        &body,
        WIRE_VERSION,
    )
    .unwrap()
    .into_encoded()
}

fn invitation(conversation: &Conversation) -> ConversationInvitation {
    ConversationInvitation {
        sharness_version: conversation.membership.descriptor().sharness_version,
        kind: ConversationInvitationKind,
        conversation_id: *conversation.membership.conversation_id(),
        members: conversation.membership.descriptor().members.clone(),
    }
}

#[test]
fn an_invitee_learns_the_membership_and_nobody_else_does() {
    let conversation = Conversation::new(32);
    let message = invite(&conversation, 0, 31);
    let opened = open(&message, conversation.agent(0), conversation.agent(31)).unwrap();
    assert_eq!(*opened.membership(), conversation.membership);
    assert_eq!(*opened.inviter(), conversation.agent(0).id());
    let other = open(&message, conversation.agent(0), conversation.agent(5));
    assert_eq!(other, Err(InvitationError::NotForMe));
}

#[test]
fn only_a_member_invites_only_a_member() {
    let conversation = Conversation::new(3);
    let (agent, stranger) = (conversation.agent(0), Agent::new(9));
    let mut randomness = SeededRandomness::new(1);
    let mut invite = |inviter: &Agent, key: &AgentKey, invitee: &Agent| {
        seal_invitation(
            &conversation.membership,
            &inviter.card,
            key,
            &invitee.id(),
            WIRE_VERSION,
            &mut randomness,
        )
    };
    assert_eq!(
        invite(agent, &agent.key, &stranger),
        Err(InvitationError::NotAMember)
    );
    assert_eq!(
        invite(&stranger, &stranger.key, agent),
        Err(InvitationError::NotAMember)
    );
    assert_eq!(
        invite(agent, &stranger.key, conversation.agent(1)),
        Err(InvitationError::NotSigned)
    );
}

#[test]
fn an_invitation_is_refused_unless_everything_in_it_holds() {
    let conversation = Conversation::new(3);
    let (sender, invitee) = (conversation.agent(0), conversation.agent(1));
    let proper = invitation(&conversation);
    let check = |value: &ConversationInvitation, sender: &Agent, invitee: &Agent| {
        open(&with_plaintext(&value.encode(), sender, invitee), sender, invitee)
    };
    assert!(check(&proper, sender, invitee).is_ok());

    let change = |edit: &dyn Fn(&mut Value)| tamper(&proper, |json| edit(json));
    let foreign = change(&|json| json["conversationId"] = json!(ConversationId::from_bytes([1; 32])));
    let refused = check(&foreign, sender, invitee);
    assert_eq!(
        refused,
        Err(InvitationError::Membership(MembershipError::ForeignConversation))
    );
    let unsorted = change(&|json| json["members"].as_array_mut().unwrap().reverse());
    assert!(matches!(
        check(&unsorted, sender, invitee),
        Err(InvitationError::Membership(_))
    ));

    // The inviter, or the invitee, is no member.
    let without = |agent: &Agent| {
        let others = (0..4)
            .map(Agent::new)
            .filter(|other| other.id() != agent.id())
            .collect();
        invitation(&Conversation::of(others))
    };
    assert_eq!(
        check(&without(sender), sender, invitee),
        Err(InvitationError::NotAMember)
    );
    assert_eq!(
        check(&without(invitee), sender, invitee),
        Err(InvitationError::NotAMember)
    );

    let not_one = with_plaintext(b"{}", sender, invitee);
    assert!(matches!(
        open(&not_one, sender, invitee),
        Err(InvitationError::Malformed(_))
    ));
    let mut unknown = serde_json::to_value(&proper).unwrap();
    unknown["note"] = json!("hi");
    let unknown = with_plaintext(
        &conclave_harness::canonical_json::encode(&unknown),
        sender,
        invitee,
    );
    assert!(matches!(
        open(&unknown, sender, invitee),
        Err(InvitationError::Malformed(_))
    ));

    let message = with_plaintext(&proper.encode(), sender, invitee);
    assert_eq!(
        open(&message, conversation.agent(2), invitee),
        Err(InvitationError::WrongSignature)
    );
    let id = MessageId::from_bytes([3; 16]);
    let open_body = SignedMessage::sign(
        &sender.card,
        &sender.key,
        &[invitee.id()],
        id,
        &proper.encode(),
        WIRE_VERSION,
    );
    assert_eq!(
        open(&open_body.unwrap().into_encoded(), sender, invitee),
        Err(InvitationError::Sealed)
    );
}

fn sender(number: u16) -> AgentId {
    let mut id = [0; 16];
    id[..2].copy_from_slice(&number.to_be_bytes());
    AgentId::from_bytes(id)
}

#[test]
fn several_senders_are_looked_up_at_once_and_their_invitations_are_handed_on_in_order() {
    let mut queue = InvitationQueue::default();
    let card = Agent::new(1).card;
    for number in 0..20 {
        queue.offer(number, Some(sender(number)), 0).unwrap();
    }
    queue.offer(20, None, 0).unwrap();
    let asked: Vec<_> = std::iter::from_fn(|| queue.next_lookup()).collect();
    assert_eq!(asked, (0..LOOKUPS_MAX as u16).map(sender).collect::<Vec<_>>());
    // The second is answered first: it waits for the one before.
    queue.answered(sender(1), Some(card.clone()), 0);
    assert!(queue.next_ready().is_none());
    queue.answered(sender(0), None, 0);
    assert_eq!(queue.next_ready(), Some((0, None)));
    assert_eq!(queue.next_ready(), Some((1, Some(card))));
    assert_eq!(queue.next_lookup(), Some(sender(LOOKUPS_MAX as u16)));
    while !queue.is_empty() {
        while let Some(next) = queue.next_lookup() {
            queue.answered(next, None, 0);
        }
        for number in 2..20 {
            queue.answered(sender(number), None, 0);
        }
        while queue.next_ready().is_some() {}
    }
}

#[test]
fn an_unknown_sender_is_asked_for_once_for_all_its_invitations_and_for_a_while_not_again() {
    let mut queue = InvitationQueue::default();
    for number in 0..3 {
        queue.offer(number, Some(sender(7)), 0).unwrap();
    }
    assert_eq!(queue.next_lookup(), Some(sender(7)));
    assert_eq!(queue.next_lookup(), None);
    queue.answered(sender(7), None, 10);
    for number in 0..3 {
        assert_eq!(queue.next_ready(), Some((number, None)));
    }
    queue.offer(3, Some(sender(7)), 10 + UNKNOWN_FOR_MS - 1).unwrap();
    assert_eq!(queue.next_lookup(), None);
    assert_eq!(queue.next_ready(), Some((3, None)));
    queue.offer(4, Some(sender(7)), 10 + UNKNOWN_FOR_MS).unwrap();
    assert_eq!(queue.next_lookup(), Some(sender(7)));
}

#[test]
fn a_flood_of_invented_senders_is_bounded_in_what_waits_and_in_what_is_remembered() {
    let mut queue = InvitationQueue::default();
    let mut refused = 0;
    for number in 0..2 * WAITING_MAX as u16 {
        refused += usize::from(queue.offer(number, Some(sender(number)), 0).is_err());
    }
    assert_eq!(refused, WAITING_MAX);
    for number in 0..2 * UNKNOWN_MAX as u16 {
        queue.answered(sender(number), None, 0);
        queue.next_ready();
    }
    assert!(queue.is_empty());
    // The oldest was forgotten for a newer one.
    queue.offer(0, Some(sender(0)), 0).unwrap();
    assert_eq!(queue.next_lookup(), Some(sender(0)));
    queue
        .offer(1, Some(sender(2 * UNKNOWN_MAX as u16 - 1)), 0)
        .unwrap();
    assert_eq!(queue.next_lookup(), None);
}

#[test]
fn whoever_was_away_for_longer_than_envelopes_are_kept_may_have_missed_some() {
    let day_ms = 86_400_000;
    let mut attendance = Attendance::default();
    assert!(
        !attendance.may_have_missed(u64::MAX),
        "nothing was ever kept for a time"
    );
    attendance.see_envelope(5, 0);
    assert!(!attendance.may_have_missed(u64::MAX), "without end");
    attendance.see_envelope(1_000_000, 1_000_000 + 30 * day_ms * 1_000_000);
    attendance.see_envelope(0, 60 * day_ms * 1_000_000);
    assert!(attendance.follow(day_ms), "to be saved");
    assert!(!attendance.follow(day_ms + 1), "not with every message");
    assert!(attendance.follow(day_ms + SAVED_EVERY_MS));
    let mut again = Attendance::decode(&attendance.encode());
    let last = day_ms + SAVED_EVERY_MS;
    assert!(!again.may_have_missed(last + 30 * day_ms - 1));
    assert!(again.may_have_missed(last + 30 * day_ms));
    again.follow(last + 30 * day_ms);
    assert!(!again.may_have_missed(last + 30 * day_ms));
    assert_eq!(Attendance::decode(b"no attendance"), Attendance::default());
}

use conclave_conversation::binding::{Invitation, InvitationError, open_invitation, seal_invitation};
use conclave_conversation::membership::MembershipError;
use conclave_conversation::test_support::{Agent, Conversation, history, registry};
use conclave_conversation::values::*;
use conclave_harness::identifiers::MessageId;
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

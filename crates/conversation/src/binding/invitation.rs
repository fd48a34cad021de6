//! Telling a member that a conversation exists: one sealed message per member, on its welcome topic.
//!
//! An invitation creates no conversation state. It is verified so that a watched topic is one that the Registry's cards
//! and both ends' membership account for.

use conclave_harness::agent_card::AgentCard;
use conclave_harness::identifiers::{AgentId, MessageId};
use conclave_harness::key::{AgentKey, PublicKey};
use conclave_harness::randomness::{Randomness, random_array};
use conclave_harness::sealed_body;
use conclave_harness::signed_message::{EncodedSignedMessage, SignedMessage};
use conclave_harness::wire_version::{WireVersion, WireVersions};

use crate::membership::{Membership, MembershipError};
use crate::values::{
    ClosedValue, ConversationInvitation, ConversationInvitationKind, MembershipDescriptor,
    MembershipDescriptorKind, ValueError,
};

/// Why a message is no invitation to a conversation of ours, or none could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvitationError {
    /// The message is not addressed to the local agent alone.
    #[error("the invitation is not addressed to this agent alone")]
    NotForMe,
    /// The message was not signed by its sender's card.
    #[error("the invitation's signature does not verify")]
    WrongSignature,
    /// The body does not open.
    #[error("the invitation does not open")]
    Sealed,
    /// The plaintext is no invitation.
    #[error(transparent)]
    Malformed(#[from] ValueError),
    /// The cards are no membership of the stated conversation.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// The inviter or the local agent is no member, or is one under another card.
    #[error("the invitation's members do not include this agent and the inviter as they are")]
    NotAMember,
    /// Sealing or signing failed: the inviter's key is not its card's, or a card's key is no curve point.
    #[error("the invitation could not be sealed and signed")]
    NotSigned,
}

/// A verified invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    membership: Membership,
    inviter: AgentId,
}

impl Invitation {
    /// The conversation's membership.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Who invited.
    pub fn inviter(&self) -> &AgentId {
        &self.inviter
    }

    /// The membership itself.
    pub fn into_membership(self) -> Membership {
        self.membership
    }
}

/// Seals and signs an invitation of one member by another. The result is the `data` of a Welcome on the invitee's topic.
///
/// `version` is a live wire version, as of any outer message.
///
/// # Errors
/// [`InvitationError::NotAMember`], [`InvitationError::NotSigned`].
pub fn seal_invitation(
    membership: &Membership,
    inviter: &AgentCard,
    key: &AgentKey,
    invitee: &AgentId,
    version: WireVersion,
    randomness: &mut (impl Randomness + ?Sized),
) -> Result<SignedMessage, InvitationError> {
    let (Some(invitee), Some(member)) = (membership.card(invitee), membership.card(&inviter.agent_id()))
    else {
        return Err(InvitationError::NotAMember);
    };
    if member != inviter {
        return Err(InvitationError::NotAMember);
    }
    let plaintext = ConversationInvitation {
        sharness_version: membership.descriptor().sharness_version,
        kind: ConversationInvitationKind,
        conversation_id: *membership.conversation_id(),
        members: membership.descriptor().members.clone(),
    }
    .encode();
    let message_id = MessageId::from_bytes(random_array(randomness));
    let body = sealed_body::seal(&plaintext, &[invitee], inviter.agent_id(), message_id, randomness)
        .map_err(|_| InvitationError::NotSigned)?;
    SignedMessage::sign(inviter, key, &[invitee.agent_id()], message_id, &body, version)
        .map_err(|_| InvitationError::NotSigned)
}

/// Opens and verifies an invitation.
///
/// `inviter` is the card of the message's sender, looked up at the Registry by [`EncodedSignedMessage::sender`];
/// `registry` is the pinned key that every card must verify under.
///
/// # Errors
/// [`InvitationError`] says what is wrong. That is its sender's fault: ignore it.
pub fn open_invitation(
    message: &EncodedSignedMessage,
    inviter: &AgentCard,
    local: &AgentCard,
    key: &AgentKey,
    registry: &PublicKey,
    live: &WireVersions,
    history: &WireVersions,
) -> Result<Invitation, InvitationError> {
    if message.recipients() != [local.agent_id()] {
        return Err(InvitationError::NotForMe);
    }
    let message = message
        .verify(inviter, live)
        .map_err(|_| InvitationError::WrongSignature)?;
    let plaintext = sealed_body::open(local, key, &message).map_err(|_| InvitationError::Sealed)?;
    let invitation = ConversationInvitation::decode_over(history, &plaintext)?;
    let descriptor = MembershipDescriptor {
        sharness_version: invitation.sharness_version,
        kind: MembershipDescriptorKind,
        conversation_id: invitation.conversation_id,
        members: invitation.members,
    };
    let membership = Membership::verify(descriptor, registry, history)?;
    if [inviter, local]
        .iter()
        .any(|card| membership.card(&card.agent_id()) != Some(card))
    {
        return Err(InvitationError::NotAMember);
    }
    Ok(Invitation {
        membership,
        inviter: inviter.agent_id(),
    })
}

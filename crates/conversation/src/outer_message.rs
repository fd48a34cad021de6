//! Outer messages: a plaintext sealed to the whole membership and signed by its sender ("Direct packets and Router
//! envelopes").
//!
//! The outer signature proves who sent a packet and that it is whole. It is never evidence.

use conclave_harness::agent_card::AgentCard;
use conclave_harness::identifiers::{AgentId, MessageId};
use conclave_harness::key::AgentKey;
use conclave_harness::memo;
use conclave_harness::randomness::{Randomness, random_array};
use conclave_harness::sealed_body;
use conclave_harness::signed_message::{EncodedSignedMessage, SignedMessage};
use conclave_harness::wire_version::{WireVersion, WireVersions};

use crate::membership::Membership;
use crate::values::{Plaintext, PlaintextError};

/// Why a message is no outer message of a conversation, or none could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OuterMessageError {
    /// The sender is no member, or, when sending, is one under another card.
    #[error("the sender is not a member")]
    NotAMember,
    /// The recipients are not exactly the members.
    #[error("the recipients are not the complete membership")]
    ForeignRecipients,
    /// The signature does not hold, or the version is not live.
    #[error("the outer signature does not verify")]
    WrongSignature,
    /// The body is not sealed, not to this agent, or not under this sender and MessageId.
    #[error("the body does not open")]
    Sealed,
    /// What the body holds is no plaintext of the protocol.
    #[error(transparent)]
    Plaintext(#[from] PlaintextError),
    /// Sealing or signing failed: the plaintext is too long, or a key is not what its card says.
    #[error("the message could not be sealed and signed")]
    NotSigned,
}

/// A verified and opened outer message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OuterMessage {
    /// Who sent it.
    pub sender: AgentId,
    /// Its id.
    pub message_id: MessageId,
    /// What it holds, decoded but not yet true.
    pub plaintext: Plaintext,
}

/// Seals canonical plaintext bytes to the complete membership under a fresh random MessageId and signs the result.
///
/// `version` is the live version to emit. Store the complete message before sending it: it is never signed again.
///
/// # Errors
/// [`OuterMessageError::NotAMember`], [`OuterMessageError::NotSigned`].
pub fn seal_outer_message(
    plaintext: &[u8],
    membership: &Membership,
    card: &AgentCard,
    key: &AgentKey,
    version: WireVersion,
    randomness: &mut (impl Randomness + ?Sized),
) -> Result<SignedMessage, OuterMessageError> {
    if membership.card(&card.agent_id()) != Some(card) {
        return Err(OuterMessageError::NotAMember);
    }
    let message_id = MessageId::from_bytes(random_array(randomness));
    let body = sealed_body::seal(
        plaintext,
        membership.cards(),
        card.agent_id(),
        message_id,
        randomness,
    )
    .map_err(|_| OuterMessageError::NotSigned)?;
    SignedMessage::sign(card, key, &membership.agent_ids(), message_id, &body, version)
        .map_err(|_| OuterMessageError::NotSigned)
}

/// Verifies, opens and decodes an outer message of a conversation, as one of its members.
///
/// # Errors
/// [`OuterMessageError`] says why not. That is the sender's fault and no local one: ignore the message, process the
/// next.
pub fn open_outer_message(
    message: &EncodedSignedMessage,
    membership: &Membership,
    card: &AgentCard,
    key: &AgentKey,
    live: &WireVersions,
) -> Result<OuterMessage, OuterMessageError> {
    let sender = membership
        .card(&message.sender())
        .ok_or(OuterMessageError::NotAMember)?;
    if message.recipients() != membership.agent_ids() {
        return Err(OuterMessageError::ForeignRecipients);
    }
    let message = message
        .verify(sender, live)
        .map_err(|_| OuterMessageError::WrongSignature)?;
    let plaintext = sealed_body::open(card, key, &message).map_err(|_| OuterMessageError::Sealed)?;
    // All who open a body read the same bytes.
    let history = membership.history();
    let plaintext = memo::of(
        "plaintext",
        || format!("{} {history:?}", message.digest()),
        || Plaintext::decode_over(history, &plaintext),
    )?;
    Ok(OuterMessage {
        sender: message.sender(),
        message_id: message.message_id(),
        plaintext,
    })
}

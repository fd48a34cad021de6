//! One stable inner evidence message: a member's signed statement, addressed to itself.

use conclave_harness::agent_card::AgentCard;
use conclave_harness::identifiers::AgentId;
use conclave_harness::key::AgentKey;
use conclave_harness::signed_message::{EncodedSignedMessage, SignedMessage};

use super::EvidenceMemory;
use crate::membership::Membership;
use crate::values::{
    ActionHash, AnchorHash, ClosedValue, ConversationId, EvidenceStatement, MembershipHash, RecordHash,
    ValueError,
};

/// What a statement speaks about, and with that which kind of statement it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// An action signature.
    Action(ActionHash),
    /// A durability vote.
    Record {
        /// The record.
        record_hash: RecordHash,
        /// The conversation the vote names.
        conversation_id: ConversationId,
        /// The membership the vote names.
        membership_hash: MembershipHash,
    },
    /// A re-anchor vote. The hash covers the whole body.
    Reanchor(AnchorHash),
    /// A catch-up attestation. It belongs to no certificate.
    CatchUp,
}

impl Subject {
    /// What a statement speaks about.
    pub fn of(statement: &EvidenceStatement) -> Self {
        match statement {
            EvidenceStatement::ActionSignature(statement) => Self::Action(statement.action_hash),
            EvidenceStatement::DurabilityVote(statement) => Self::Record {
                record_hash: statement.record_hash,
                conversation_id: statement.conversation_id,
                membership_hash: statement.membership_hash,
            },
            EvidenceStatement::ReanchorVote(statement) => Self::Reanchor(statement.anchor_hash),
            EvidenceStatement::CatchUpAttestation(_) => Self::CatchUp,
        }
    }
}

/// Why a signed message is not evidence of a member.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    /// The sender is no member of the conversation.
    #[error("the sender is not a member")]
    NotAMember,
    /// The message is not addressed to its sender alone.
    #[error("the sole recipient is not the sender")]
    NotToItself,
    /// The body is not one canonical statement.
    #[error("the body is no statement: {0}")]
    NoStatement(#[from] ValueError),
    /// Another agent than the sender is named as signer.
    #[error("the statement names another signer than the sender")]
    ForeignSigner,
    /// The MessageId is not the one the statement demands.
    #[error("the message id is not that of the statement")]
    WrongMessageId,
    /// A re-anchor vote states a hash that is not its body's.
    #[error("the anchor hash is not that of the re-anchor body")]
    WrongAnchorHash,
    /// The signature does not hold under the member's card.
    #[error("the signature does not verify")]
    WrongSignature,
}

/// A member's statement whose signature holds. Only [`verify_evidence`] and [`VerifiedEvidence::sign`] make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedEvidence {
    statement: EvidenceStatement,
    encoded: EncodedSignedMessage,
}

impl VerifiedEvidence {
    /// Signs a statement as the member it names. Signing is deterministic, so the same statement gives the same bytes.
    ///
    /// None if the key is not that of the card or the statement names another agent than the card.
    pub fn sign(statement: EvidenceStatement, card: &AgentCard, key: &AgentKey) -> Option<Self> {
        if *statement.signer_agent_id() != card.agent_id() {
            return None;
        }
        let (version, body) = (statement.sharness_version(), statement.encode());
        let message_id = statement.message_id_of(&body);
        let message = SignedMessage::sign(card, key, &[card.agent_id()], message_id, &body, version).ok()?;
        Some(Self {
            statement,
            encoded: message.into_encoded(),
        })
    }

    /// The statement.
    pub fn statement(&self) -> &EvidenceStatement {
        &self.statement
    }

    /// Who signed.
    pub fn signer(&self) -> &AgentId {
        self.statement.signer_agent_id()
    }

    /// What the statement speaks about.
    pub fn subject(&self) -> Subject {
        Subject::of(&self.statement)
    }

    /// The complete signed message, relayed and stored byte for byte.
    pub fn encoded(&self) -> &EncodedSignedMessage {
        &self.encoded
    }
}

/// Verifies that a signed message is a statement of a member of `membership`, made in the one way a member may.
///
/// # Errors
/// [`EvidenceError`] says which of the chapter's conditions fails.
pub fn verify_evidence(
    encoded: &EncodedSignedMessage,
    membership: &Membership,
    memory: &mut EvidenceMemory,
) -> Result<VerifiedEvidence, EvidenceError> {
    let card = membership
        .card(&encoded.sender())
        .ok_or(EvidenceError::NotAMember)?;
    let digest = memory.is_kept().then(|| encoded.digest());
    if let Some(digest) = &digest
        && encoded.agent_card_digest() == card.digest()
        && membership.history().contains(encoded.version())
        && let Some(statement) = memory.statement(digest)
        && membership.history().contains(statement.sharness_version())
    {
        return Ok(VerifiedEvidence {
            statement: statement.clone(),
            encoded: encoded.clone(),
        });
    }
    if encoded.recipients() != [encoded.sender()] {
        return Err(EvidenceError::NotToItself);
    }
    let message = encoded
        .verify(card, membership.history())
        .map_err(|_| EvidenceError::WrongSignature)?;
    let statement = EvidenceStatement::decode_over(membership.history(), message.body())?;
    if *statement.signer_agent_id() != message.sender() {
        return Err(EvidenceError::ForeignSigner);
    }
    // Decoding took the body for nothing but the statement's own bytes.
    if statement.message_id_of(message.body()) != message.message_id() {
        return Err(EvidenceError::WrongMessageId);
    }
    if let EvidenceStatement::ReanchorVote(vote) = &statement
        && vote.reanchor.hash() != vote.anchor_hash
    {
        return Err(EvidenceError::WrongAnchorHash);
    }
    if let Some(digest) = digest {
        memory.remember(digest, &statement);
    }
    Ok(VerifiedEvidence {
        statement,
        encoded: message.into_encoded(),
    })
}

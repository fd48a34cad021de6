//! Actions: an author's intent bound to a place in a history.

use conclave_harness::identifiers::AgentId;

use super::{Position, VerificationError};
use crate::certificates::{CertificateRule, Subject};
use crate::membership::Membership;
use crate::values::{
    ActionCore, ActionHash, AnchorHash, GenesisActionCore, GenesisAnchorBody, PostActionCore, PostIntent,
};

/// An action whose every binding holds under one membership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedAction {
    core: ActionCore,
    hash: ActionHash,
    anchor_hash: AnchorHash,
}

impl VerifiedAction {
    /// Verifies an action under a membership.
    ///
    /// For a GENESIS of a conversation that is not held yet, first verify the embedded descriptor with
    /// [`Membership::verify`] and pass the result.
    ///
    /// # Errors
    /// [`VerificationError`] names the binding that fails.
    pub fn verify(core: ActionCore, membership: &Membership) -> Result<Self, VerificationError> {
        let anchor_hash = match &core {
            ActionCore::Genesis(core) => verify_genesis(core, membership)?,
            ActionCore::Post(core) => verify_post(core, membership)?,
        };
        Ok(Self {
            hash: core.hash(),
            core,
            anchor_hash,
        })
    }

    /// The action.
    pub fn core(&self) -> &ActionCore {
        &self.core
    }

    /// The action itself, no longer known to be verified.
    pub fn into_core(self) -> ActionCore {
        self.core
    }

    /// Its hash.
    pub fn hash(&self) -> &ActionHash {
        &self.hash
    }

    /// The anchor it was made under: for GENESIS the hash of the embedded one.
    pub fn anchor_hash(&self) -> &AnchorHash {
        &self.anchor_hash
    }

    /// Where in a history the action belongs.
    pub fn position(&self) -> Position {
        Position {
            record_hash: self.core.previous_record_hash().copied(),
            anchor_hash: self.anchor_hash,
        }
    }

    /// The author.
    pub fn author(&self) -> &AgentId {
        &self.core.post_intent().author_agent_id
    }

    /// What signatures on the action are about.
    pub fn subject(&self) -> Subject {
        Subject::Action(self.hash)
    }

    /// What completes the action's certificate.
    pub fn rule(&self) -> CertificateRule {
        rule(&self.core)
    }
}

pub(super) fn rule(core: &ActionCore) -> CertificateRule {
    match core {
        ActionCore::Genesis(_) => CertificateRule::GenesisAction,
        ActionCore::Post(core) => CertificateRule::PostAction {
            author: core.post_intent.author_agent_id,
        },
    }
}

/// Returns the hash of the embedded anchor.
pub(super) fn verify_genesis(
    core: &GenesisActionCore,
    membership: &Membership,
) -> Result<AnchorHash, VerificationError> {
    if core.membership != *membership.descriptor() {
        return Err(VerificationError::ForeignMembership("GENESIS"));
    }
    if core.conversation_id != *membership.conversation_id() {
        return Err(VerificationError::ForeignConversation("GENESIS"));
    }
    verify_genesis_anchor(&core.anchor, membership)?;
    if core.sharness_version != core.post_intent.sharness_version {
        return Err(VerificationError::ForeignVersion("GENESIS"));
    }
    verify_intent(&core.post_intent, membership)?;
    if core.post_intent.hash() != core.post_intent_hash {
        return Err(VerificationError::WrongHash("post intent hash"));
    }
    Ok(core.anchor.hash())
}

/// Returns the anchor the action names.
pub(super) fn verify_post(
    core: &PostActionCore,
    membership: &Membership,
) -> Result<AnchorHash, VerificationError> {
    if core.conversation_id != *membership.conversation_id() {
        return Err(VerificationError::ForeignConversation("POST"));
    }
    if core.membership_hash != *membership.hash() {
        return Err(VerificationError::ForeignMembership("POST"));
    }
    if core.sharness_version != core.post_intent.sharness_version {
        return Err(VerificationError::ForeignVersion("POST"));
    }
    verify_intent(&core.post_intent, membership)?;
    if core.post_intent.hash() != core.post_intent_hash {
        return Err(VerificationError::WrongHash("post intent hash"));
    }
    Ok(core.anchor_hash)
}

pub(super) fn verify_genesis_anchor(
    body: &GenesisAnchorBody,
    membership: &Membership,
) -> Result<(), VerificationError> {
    if body.conversation_id != *membership.conversation_id() {
        return Err(VerificationError::ForeignConversation("the genesis anchor"));
    }
    if body.membership_hash != *membership.hash() {
        return Err(VerificationError::ForeignMembership("the genesis anchor"));
    }
    // Everyone copies the descriptor's version, so that concurrent first posts derive one anchor.
    if body.sharness_version != membership.descriptor().sharness_version {
        return Err(VerificationError::ForeignVersion("the genesis anchor"));
    }
    Ok(())
}

fn verify_intent(intent: &PostIntent, membership: &Membership) -> Result<(), VerificationError> {
    if intent.conversation_id != *membership.conversation_id() {
        return Err(VerificationError::ForeignConversation("the post intent"));
    }
    if intent.membership_hash != *membership.hash() {
        return Err(VerificationError::ForeignMembership("the post intent"));
    }
    if !membership.contains(&intent.author_agent_id) {
        return Err(VerificationError::NotAMember("author"));
    }
    Ok(())
}

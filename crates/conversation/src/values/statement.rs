//! What members sign: the four statements. Equal counts never make one stand for another.

use std::borrow::Cow;

use conclave_harness::identifiers::AgentId;
use conclave_harness::wire_version::WireVersion;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::closed::{closed_value, kind_union, required_nullable};
use super::{
    ActionHash, AnchorHash, CatchUpRequest, ConversationId, MembershipHash, ReanchorBody, RecordHash,
};

closed_value! {
    /// "I checked this exact action and sign it and no other at its predecessor."
    pub struct ActionSignatureStatement (ActionSignatureKind = "action_signature") {
        /// Who signs.
        pub signer_agent_id: AgentId,
        /// The action.
        pub action_hash: ActionHash,
    }
}

closed_value! {
    /// "I durably stored this exact record with a sufficient action certificate."
    pub struct DurabilityVoteStatement (DurabilityVoteKind = "durability_vote") {
        /// Who votes.
        pub signer_agent_id: AgentId,
        /// The record's conversation.
        pub conversation_id: ConversationId,
        /// The record's membership.
        pub membership_hash: MembershipHash,
        /// The record.
        pub record_hash: RecordHash,
    }
}

closed_value! {
    /// "I leave the previous anchor at this record for this one."
    pub struct ReanchorVoteStatement (ReanchorVoteKind = "reanchor_vote") {
        /// Who votes.
        pub signer_agent_id: AgentId,
        /// The hash of the body.
        pub anchor_hash: AnchorHash,
        /// The candidate.
        pub reanchor: ReanchorBody,
    }
}

closed_value! {
    /// "This is my answer to this exact request."
    pub struct CatchUpAttestationStatement (CatchUpAttestationKind = "catch_up_attestation") {
        /// Who answers.
        pub signer_agent_id: AgentId,
        /// The request, byte for byte.
        pub request: CatchUpRequest,
        /// What the answer carries.
        pub item_kind: CatchUpItemKind,
        /// The hash of what it carries; null for an incomplete answer.
        #[serde(deserialize_with = "required_nullable")]
        pub item_hash: Option<CatchUpItemHash>,
        /// A hint about progress, never about completeness.
        pub has_more: bool,
    }
}

/// What a catch-up answer carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUpItemKind {
    /// A `CertifiedRecord`.
    CertifiedRecord,
    /// A `CompletedReanchor`.
    CompletedReanchor,
    /// Nothing.
    Incomplete,
}

/// The hash of what a catch-up answer carries. The prefix of the text tells which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum CatchUpItemHash {
    /// Of a certified record.
    Record(RecordHash),
    /// Of a completed re-anchor.
    Anchor(AnchorHash),
}

impl<'de> Deserialize<'de> for CatchUpItemHash {
    // Not derived: the derived form keeps a copy of the text in a tree, for any shape that a variant might have.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        let record = text.parse().map(Self::Record);
        record
            .or_else(|_| text.parse().map(Self::Anchor))
            .map_err(D::Error::custom)
    }
}

kind_union! {
    /// Any of the four statements.
    pub enum EvidenceStatement {
        /// A signature on an action.
        ActionSignature(ActionSignatureStatement),
        /// A vote for a record's durability.
        DurabilityVote(DurabilityVoteStatement),
        /// A vote for a re-anchor.
        ReanchorVote(ReanchorVoteStatement),
        /// An attested catch-up answer.
        CatchUpAttestation(CatchUpAttestationStatement),
    }
}

impl EvidenceStatement {
    /// The version the statement was made under.
    pub fn sharness_version(&self) -> WireVersion {
        match self {
            Self::ActionSignature(statement) => statement.sharness_version,
            Self::DurabilityVote(statement) => statement.sharness_version,
            Self::ReanchorVote(statement) => statement.sharness_version,
            Self::CatchUpAttestation(statement) => statement.sharness_version,
        }
    }

    /// Who signs the statement.
    pub fn signer_agent_id(&self) -> &AgentId {
        match self {
            Self::ActionSignature(statement) => &statement.signer_agent_id,
            Self::DurabilityVote(statement) => &statement.signer_agent_id,
            Self::ReanchorVote(statement) => &statement.signer_agent_id,
            Self::CatchUpAttestation(statement) => &statement.signer_agent_id,
        }
    }
}

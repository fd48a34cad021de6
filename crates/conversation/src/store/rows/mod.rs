//! The rows of every table.
//!
//! Identifiers are text as stored; `canonical_*` fields hold the exact RFC 8785 text of the value they name. A row says
//! nothing about validity: startup verification and owner reads turn rows into verified values.

macro_rules! row {
    ($row:ty, $table:ident, |$this:ident| $key:expr) => {
        impl Row for $row {
            const TABLE: Table = Table::$table;

            fn key(&self) -> Key {
                let $this = self;
                $key
            }
        }
    };
}

mod traffic;

use serde::{Deserialize, Serialize};

use super::{Key, Row, Table};

pub use traffic::*;

/// The agent this store belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdentityBindingRow {
    /// The local agent.
    pub agent_id: String,
    /// Its card.
    pub canonical_agent_card: String,
}
row!(IdentityBindingRow, IdentityBinding, |_row| {
    IdentityBindingRow::singleton_key()
});

impl IdentityBindingRow {
    /// The key of the one row.
    pub fn singleton_key() -> Key {
        Key::new([1_u64])
    }
}

/// The membership of one conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MembershipRow {
    /// The conversation.
    pub conversation_id: String,
    /// Hash of the descriptor.
    pub membership_hash: String,
    /// The descriptor.
    pub canonical_membership: String,
}
row!(MembershipRow, Memberships, |row| Key::new([&row.conversation_id]));

/// One anchor of one conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnchorRow {
    /// The conversation.
    pub conversation_id: String,
    /// Hash of the anchor's body.
    pub anchor_hash: String,
    /// Position among the conversation's anchors, from 0.
    pub position: u64,
    /// The anchor this one replaced; none for a genesis anchor.
    pub previous_anchor_hash: Option<String>,
    /// The head a re-anchor selected; none for a genesis anchor.
    pub selected_record_hash: Option<String>,
    /// The genesis body or the completed re-anchor.
    pub canonical_anchor: String,
}
row!(AnchorRow, Anchors, |row| Key::new([
    &row.conversation_id,
    &row.anchor_hash
]));

/// Where one conversation stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConversationStateRow {
    /// The conversation.
    pub conversation_id: String,
    /// Hash of its membership.
    pub membership_hash: String,
    /// The anchor new actions bind.
    pub current_anchor_hash: String,
    /// The last certified record; none while the conversation is empty.
    pub head_record_hash: Option<String>,
    /// The head's ordinal, from 0; -1 while the conversation is empty.
    pub head_ordinal: i64,
}
row!(ConversationStateRow, ConversationState, |row| Key::new([
    &row.conversation_id
]));

/// One post of the local agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostIntentRow {
    /// The author: the local agent.
    pub author_agent_id: String,
    /// The post.
    pub post_id: String,
    /// Number in the order in which intents were bound, from 0.
    pub intent_sequence: u64,
    /// The conversation.
    pub conversation_id: String,
    /// Hash of its membership.
    pub membership_hash: String,
    /// The intent.
    pub canonical_intent: String,
    /// The certified record that carries the post; none while unfinished.
    pub completed_record_hash: Option<String>,
}
row!(PostIntentRow, PostIntents, |row| Key::new([
    &row.author_agent_id,
    &row.post_id
]));

/// The one action this endpoint may sign at a predecessor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposalLockRow {
    /// The conversation.
    pub conversation_id: String,
    /// The predecessor's record hash, or the empty text for GENESIS.
    pub predecessor_key: String,
    /// The predecessor; none for GENESIS.
    pub previous_record_hash: Option<String>,
    /// Hash of the locked action.
    pub action_hash: String,
    /// The locked action.
    pub canonical_action_core: String,
}
row!(ProposalLockRow, ProposalLocks, |row| ProposalLockRow::key_of(
    &row.conversation_id,
    row.previous_record_hash.as_deref()
));

impl ProposalLockRow {
    /// The key of the lock at a predecessor.
    pub fn key_of(conversation_id: &str, previous_record_hash: Option<&str>) -> Key {
        Key::new([conversation_id, previous_record_hash.unwrap_or("")])
    }
}

/// A record core held durably.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StagedRecordRow {
    /// The conversation.
    pub conversation_id: String,
    /// Hash of the core.
    pub record_hash: String,
    /// The record it extends; none for GENESIS.
    pub previous_record_hash: Option<String>,
    /// Hash of the conversation's membership.
    pub membership_hash: String,
    /// Hash of the anchor it binds.
    pub anchor_hash: String,
    /// Hash of its action.
    pub action_hash: String,
    /// The post's author.
    pub author_agent_id: String,
    /// The post.
    pub post_id: String,
    /// The core.
    pub canonical_record_core: String,
}
row!(StagedRecordRow, StagedRecords, |row| Key::new([
    &row.conversation_id,
    &row.record_hash
]));

/// What a retained statement attests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// An action signature; its subject is an action hash.
    Action,
    /// A durability vote; its subject is a record hash.
    Durability,
    /// A catch-up attestation.
    CatchUp,
    /// A re-anchor vote; its subject is an anchor hash.
    Reanchor,
}

impl EvidenceKind {
    /// The kind's name in keys.
    pub const fn name(self) -> &'static str {
        match self {
            EvidenceKind::Action => "action",
            EvidenceKind::Durability => "durability",
            EvidenceKind::CatchUp => "catch-up",
            EvidenceKind::Reanchor => "reanchor",
        }
    }
}

/// One retained statement of one signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceRow {
    /// The conversation.
    pub conversation_id: String,
    /// What it attests.
    pub evidence_kind: EvidenceKind,
    /// The hash it attests.
    pub subject_id: String,
    /// The signer's agent id.
    pub evidence_key: String,
    /// The complete signed message.
    pub canonical_evidence: String,
}
row!(EvidenceRow, ProtocolEvidence, |row| {
    EvidenceRow::below(&row.conversation_id, row.evidence_kind, &row.subject_id).with(&row.evidence_key)
});

impl EvidenceRow {
    /// The prefix under which every statement about one subject stands.
    pub fn below(conversation_id: &str, kind: EvidenceKind, subject_id: &str) -> Key {
        Key::new([conversation_id, kind.name(), subject_id])
    }
}

/// One link of the certified chain.
///
/// Keyed by ordinal, so that history is read in order and two records can never hold one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedRecordRow {
    /// The conversation.
    pub conversation_id: String,
    /// The place in the chain, from 0.
    pub ordinal: u64,
    /// The record, held in the staged records.
    pub record_hash: String,
}
row!(CertifiedRecordRow, CertifiedRecords, |row| Key::new([
    &row.conversation_id
])
.with(row.ordinal));

/// A re-anchor candidate, completed or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReanchorRow {
    /// The conversation.
    pub conversation_id: String,
    /// Hash of the body.
    pub anchor_hash: String,
    /// The anchor it replaces.
    pub previous_anchor_hash: String,
    /// The Router instance it names.
    pub router_instance_id: String,
    /// The head it selects.
    pub selected_record_hash: String,
    /// The body.
    pub canonical_body: String,
    /// The completed re-anchor; none while it is a candidate.
    pub canonical_completed_reanchor: Option<String>,
}
row!(ReanchorRow, Reanchors, |row| Key::new([
    &row.conversation_id,
    &row.anchor_hash
]));

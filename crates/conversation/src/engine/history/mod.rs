//! Owner reads: the certified history of a conversation, verified before any of it is shown; page by page over an open
//! engine, or as a whole over the rows of a store alone.
//!
//! A read creates no delivery and authorises no send. It fails at the first row that cannot be trusted.

mod page;

use conclave_harness::{AgentId, EncodedSignedMessage, PublicKey, WireVersions};

use super::error::Corruption;
use super::stored::{Foundations, Trust};
use crate::certificates::{EvidenceMemory, SignerMap};
use crate::membership::Membership;
use crate::ordered::OrderedMap;
use crate::store::{Key, Read, Snapshot, Table};
use crate::values::{ActionHash, AnchorHash, ConversationId, RecordCore, RecordHash};
use crate::verification::VerifiedCertifiedRecord;

pub use page::{
    HISTORY_PAGE_STATEMENTS_MAX, HistoryError, HistoryPage, HistoryPlace, HistoryPlan, HistorySnapshot,
    HistoryStart,
};

/// One certified record with everything that proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Its place in the chain, from 0.
    pub ordinal: u64,
    /// Hash of the core.
    pub record_hash: RecordHash,
    /// Hash of the action.
    pub action_hash: ActionHash,
    /// The anchor it was certified under.
    pub anchor_hash: AnchorHash,
    /// The record before; none for GENESIS.
    pub previous_record_hash: Option<RecordHash>,
    /// The canonical record core.
    pub record_core: RecordCore,
    /// Who signed the action, each with the complete signed message.
    pub action_signatures: OrderedMap<AgentId, EncodedSignedMessage>,
    /// Who voted for the record's durability, each with the complete signed message.
    pub durability_votes: OrderedMap<AgentId, EncodedSignedMessage>,
}

/// A conversation's verified history.
#[derive(Clone, Debug)]
pub struct History {
    /// The members.
    pub membership: Membership,
    /// The certified records in order.
    pub entries: Vec<HistoryEntry>,
}

/// What must be read, in one consistent state of the store, for [`read`].
pub fn reads(conversation_id: &ConversationId) -> Vec<Read> {
    let key = Key::new([&conversation_id.to_string()]);
    let tables = [
        Table::Memberships,
        Table::ConversationState,
        Table::Anchors,
        Table::CertifiedRecords,
        Table::StagedRecords,
        Table::ProtocolEvidence,
    ];
    tables
        .into_iter()
        .map(|table| Read::Prefix(table, key.clone()))
        .collect()
}

/// The verified history of a conversation; none when nothing of it is held.
///
/// `rows` holds the answers to [`reads`]; more rows do no harm.
///
/// # Errors
/// [`Corruption`] for the first row that disagrees with what it holds or does not verify.
pub fn read(
    rows: &Snapshot,
    conversation_id: &ConversationId,
    registry: &PublicKey,
    history: &WireVersions,
) -> Result<Option<History>, Corruption> {
    let key = Key::new([&conversation_id.to_string()]);
    if rows.bytes(Table::ConversationState, &key).is_none() && rows.bytes(Table::Memberships, &key).is_none()
    {
        return Ok(None);
    }
    let mut memory = EvidenceMemory::default();
    let mut trust = Trust {
        registry,
        history,
        memory: &mut memory,
    };
    let foundations = Foundations::load(rows, conversation_id, &mut trust)?;
    let mut entries = Vec::new();
    foundations.walk(rows, &mut trust, &mut |ordinal, record| {
        entries.push(entry(ordinal, &record));
        Ok(())
    })?;
    Ok(Some(History {
        membership: foundations.membership,
        entries,
    }))
}

fn entry(ordinal: u64, certified: &VerifiedCertifiedRecord) -> HistoryEntry {
    let record = certified.record();
    HistoryEntry {
        ordinal,
        record_hash: *record.hash(),
        action_hash: *record.action_hash(),
        anchor_hash: *record.anchor_hash(),
        previous_record_hash: record.core().previous_record_hash().copied(),
        record_core: record.core().clone(),
        action_signatures: signers(certified.signatures()),
        durability_votes: signers(certified.votes()),
    }
}

fn signers(map: &SignerMap) -> OrderedMap<AgentId, EncodedSignedMessage> {
    map.iter()
        .map(|evidence| (*evidence.signer(), evidence.encoded().clone()))
        .collect()
}

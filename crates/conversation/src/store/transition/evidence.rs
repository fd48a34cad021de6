//! T6: keep one signer's statement.

use super::{Decision, Read, ReadSet, Refusal, Table, row_of};
use crate::store::rows::{
    EvidenceKind, EvidenceRow, IdentityBindingRow, MembershipRow, ProposalLockRow, ReanchorRow,
    StagedRecordRow,
};
use crate::store::{Key, Row};

/// T6: keep one signer's statement about a subject this store holds.
///
/// The local agent's own statements carry the rules that make it honest: an action signature needs the lock on that
/// action, a durability vote needs the lock and the staged record, and no re-anchor candidate away from its anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeEvidence {
    /// The statement.
    pub evidence: EvidenceRow,
    /// The predecessor of the action or record the statement is about; none for GENESIS.
    pub previous_record_hash: Option<String>,
}

impl MergeEvidence {
    fn lock_key(&self) -> Key {
        ProposalLockRow::key_of(
            &self.evidence.conversation_id,
            self.previous_record_hash.as_deref(),
        )
    }

    fn record_key(&self) -> Key {
        Key::new([&self.evidence.conversation_id, &self.evidence.subject_id])
    }

    fn conversation_key(&self) -> Key {
        Key::new([&self.evidence.conversation_id])
    }

    pub(super) fn reads(&self) -> Vec<Read> {
        vec![
            Read::Row(Table::IdentityBinding, IdentityBindingRow::singleton_key()),
            Read::Row(Table::Memberships, self.conversation_key()),
            Read::Row(Table::ProposalLocks, self.lock_key()),
            Read::Row(Table::StagedRecords, self.record_key()),
            Read::Prefix(Table::Reanchors, self.conversation_key()),
            row_of(&self.evidence),
        ]
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        if reads.get::<MembershipRow>(&self.conversation_key())?.is_none() {
            return Err(Refusal::InvalidInput("the conversation has no foundation"));
        }
        match self.evidence.evidence_kind {
            EvidenceKind::Action => self.require_lock(reads, &self.evidence.subject_id)?,
            EvidenceKind::Durability => self.require_staged(reads)?,
            EvidenceKind::Reanchor => self.require_candidate(reads)?,
            EvidenceKind::CatchUp => {
                return Err(Refusal::InvalidInput("an attestation is not kept"));
            }
        }
        match reads.get::<EvidenceRow>(&self.evidence.key())? {
            None => Ok(Decision::applied(vec![self.evidence.put()])),
            Some(held) if held == self.evidence => Ok(Decision::existing()),
            Some(_) => Err(Refusal::Conflict(
                "the signer made this statement with other bytes",
            )),
        }
    }

    fn require_lock(&self, reads: &ReadSet, action_hash: &str) -> Result<(), Refusal> {
        match reads.get::<ProposalLockRow>(&self.lock_key())? {
            Some(lock) if lock.action_hash == action_hash => Ok(()),
            _ => Err(Refusal::InvalidInput("the statement's action is not locked")),
        }
    }

    fn require_candidate(&self, reads: &ReadSet) -> Result<(), Refusal> {
        let candidates = reads.below::<ReanchorRow>(&self.conversation_key())?;
        if candidates
            .iter()
            .any(|row| row.anchor_hash == self.evidence.subject_id)
        {
            Ok(())
        } else {
            Err(Refusal::InvalidInput("the vote's re-anchor is not staged"))
        }
    }

    fn require_staged(&self, reads: &ReadSet) -> Result<(), Refusal> {
        let Some(record) = reads.get::<StagedRecordRow>(&self.record_key())? else {
            return Err(Refusal::InvalidInput("the vote's record is not staged"));
        };
        if record.previous_record_hash != self.previous_record_hash {
            return Err(Refusal::InvalidInput("the vote's record has another predecessor"));
        }
        let identity = reads.get::<IdentityBindingRow>(&IdentityBindingRow::singleton_key())?;
        if identity.is_some_and(|identity| identity.agent_id == self.evidence.evidence_key) {
            self.require_lock(reads, &record.action_hash)?;
            require_no_candidate_away(reads, &self.conversation_key(), &record.anchor_hash)?;
        }
        Ok(())
    }
}

/// Refuses when a re-anchor candidate away from `anchor_hash` is staged: after it no record under that anchor may be
/// staged or voted for.
pub(super) fn require_no_candidate_away(
    reads: &ReadSet,
    conversation: &Key,
    anchor_hash: &str,
) -> Result<(), Refusal> {
    let candidates = reads.below::<ReanchorRow>(conversation)?;
    let away = |row: &ReanchorRow| {
        row.previous_anchor_hash == anchor_hash && row.canonical_completed_reanchor.is_none()
    };
    if candidates.iter().any(away) {
        return Err(Refusal::Conflict(
            "a re-anchor away from the record's anchor is staged",
        ));
    }
    Ok(())
}

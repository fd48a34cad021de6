//! T3 to T5: which action may be signed at a predecessor.

use super::{Decision, Foundation, Read, ReadSet, Refusal, Table, row_of};
use crate::store::rows::{ConversationStateRow, EvidenceKind, EvidenceRow, ProposalLockRow, StagedRecordRow};
use crate::store::{Key, Row};

fn require_consistent(lock: &ProposalLockRow) -> Result<(), Refusal> {
    if lock.predecessor_key != lock.previous_record_hash.as_deref().unwrap_or("") {
        return Err(Refusal::InvalidInput("a lock's key is its predecessor"));
    }
    Ok(())
}

/// T3: lock the first candidate at a predecessor. Another action there is a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockProposal {
    /// The lock.
    pub lock: ProposalLockRow,
}

impl LockProposal {
    pub(super) fn reads(&self) -> Vec<Read> {
        vec![
            row_of(&self.lock),
            Read::Row(Table::ConversationState, Key::new([&self.lock.conversation_id])),
        ]
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        require_consistent(&self.lock)?;
        if reads
            .get::<ConversationStateRow>(&Key::new([&self.lock.conversation_id]))?
            .is_none()
        {
            return Err(Refusal::InvalidInput("the conversation has no foundation"));
        }
        match reads.get::<ProposalLockRow>(&self.lock.key())? {
            None => Ok(Decision::applied(vec![self.lock.put()])),
            Some(held) if held == self.lock => Ok(Decision::existing()),
            Some(_) => Err(Refusal::Conflict("another action is locked at this predecessor")),
        }
    }
}

/// T4: lock a GENESIS together with the foundation it brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockGenesis {
    /// The foundation of the proposal.
    pub foundation: Foundation,
    /// The lock.
    pub lock: ProposalLockRow,
}

impl LockGenesis {
    pub(super) fn reads(&self) -> Vec<Read> {
        let mut reads = self.foundation.reads();
        reads.push(row_of(&self.lock));
        reads
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        require_consistent(&self.lock)?;
        if self.lock.previous_record_hash.is_some()
            || self.lock.conversation_id != self.foundation.membership.conversation_id
        {
            return Err(Refusal::InvalidInput(
                "a GENESIS has no predecessor and one conversation",
            ));
        }
        let mut writes = self.foundation.decide(reads)?;
        match reads.get::<ProposalLockRow>(&self.lock.key())? {
            None => {
                writes.push(self.lock.put());
                Ok(Decision::applied(writes))
            }
            Some(held) if held == self.lock => Ok(Decision::existing()),
            Some(_) => Err(Refusal::Conflict("another GENESIS is locked")),
        }
    }
}

/// T5: move a lock to an action that a quorum signed, with the whole certificate, so that no crash leaves an endpoint that
/// could sign the second action. The locked action's signatures go; an action that was staged is never abandoned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupersedeLock {
    /// The action that loses its lock.
    pub superseded_action_hash: String,
    /// The record hash of that action, under which it would be staged.
    pub superseded_record_hash: String,
    /// The new lock.
    pub lock: ProposalLockRow,
    /// The complete certificate of the new action.
    pub certificate: Vec<EvidenceRow>,
}

impl SupersedeLock {
    fn superseded_evidence(&self) -> Key {
        EvidenceRow::below(
            &self.lock.conversation_id,
            EvidenceKind::Action,
            &self.superseded_action_hash,
        )
    }

    fn superseded_record(&self) -> Key {
        Key::new([&self.lock.conversation_id, &self.superseded_record_hash])
    }

    pub(super) fn reads(&self) -> Vec<Read> {
        vec![
            row_of(&self.lock),
            Read::Row(Table::StagedRecords, self.superseded_record()),
            Read::Prefix(Table::ProtocolEvidence, self.superseded_evidence()),
        ]
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        require_consistent(&self.lock)?;
        if self.lock.previous_record_hash.is_none() {
            return Err(Refusal::InvalidInput("a GENESIS lock is never superseded"));
        }
        let names_the_action = |row: &EvidenceRow| {
            row.conversation_id == self.lock.conversation_id
                && row.evidence_kind == EvidenceKind::Action
                && row.subject_id == self.lock.action_hash
        };
        if self.certificate.is_empty() || !self.certificate.iter().all(names_the_action) {
            return Err(Refusal::InvalidInput("the certificate is of another action"));
        }
        let Some(held) = reads.get::<ProposalLockRow>(&self.lock.key())? else {
            return Err(Refusal::InvalidInput("there is no lock to supersede"));
        };
        if held == self.lock {
            return Ok(Decision::existing());
        }
        if held.action_hash != self.superseded_action_hash {
            return Err(Refusal::Conflict("another action is locked at this predecessor"));
        }
        if reads.get::<StagedRecordRow>(&self.superseded_record())?.is_some() {
            return Err(Refusal::Conflict("the locked action is staged"));
        }
        let mut writes: Vec<_> = reads
            .below::<EvidenceRow>(&self.superseded_evidence())?
            .iter()
            .map(Row::delete)
            .collect();
        writes.push(self.lock.put());
        writes.extend(self.certificate.iter().map(Row::put));
        Ok(Decision::applied(writes))
    }
}

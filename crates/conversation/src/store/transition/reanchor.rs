//! T10 to T13: leaving an anchor. Staging a candidate, completing it, adopting a completed one, and restarting a
//! conversation that has no record yet.
//!
//! An anchor is left once: whichever re-anchor completes takes every candidate away from the same anchor with it, votes
//! included, because no candidate of an anchor that is no longer current can ever be completed or voted for.

use super::{Decision, Read, ReadSet, Refusal, Table, Write, row_of};
use crate::planted::{Bug, has};
use crate::store::rows::{
    AnchorRow, CertifiedRecordRow, ConversationStateRow, EvidenceKind, EvidenceRow, MembershipRow,
    ObligationRow, ProposalLockRow, ReanchorRow, StagedRecordRow,
};
use crate::store::{Key, Row};

/// The action locked at the head that a re-anchor selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadLock {
    /// The locked action.
    pub action_hash: String,
    /// The record it becomes.
    pub record_hash: String,
}

/// T10: stage a candidate, before voting for it. Neither beside another candidate of its scope nor behind a staged record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageReanchor {
    /// The candidate, not completed.
    pub candidate: ReanchorRow,
    /// What is locked at the selected head.
    pub locked: Option<HeadLock>,
}

impl StageReanchor {
    pub(super) fn reads(&self) -> Vec<Read> {
        let mut reads = position_reads(&self.candidate);
        reads.extend(
            self.locked
                .iter()
                .map(|locked| staged_read(&self.candidate, locked)),
        );
        reads
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        let candidate = &self.candidate;
        if candidate.canonical_completed_reanchor.is_some() {
            return Err(Refusal::InvalidInput(
                "a candidate is not completed before it is voted for",
            ));
        }
        let of_scope = candidates(reads, candidate)?
            .into_iter()
            .find(|held| held.router_instance_id == candidate.router_instance_id);
        match of_scope {
            Some(held) if held == *candidate => return Ok(Decision::existing()),
            Some(_) => return Err(Refusal::Conflict("another candidate is staged in this scope")),
            None => {}
        }
        require_selected(reads, candidate)?;
        require_lock(reads, candidate, self.locked.as_ref())?;
        if let Some(locked) = &self.locked
            && reads
                .get::<StagedRecordRow>(&Key::new([&candidate.conversation_id, &locked.record_hash]))?
                .is_some()
        {
            return Err(Refusal::Conflict("a successor of the selected head is staged"));
        }
        Ok(Decision::applied(vec![candidate.put()]))
    }
}

/// What a completed re-anchor changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveAnchor {
    /// The re-anchor, with its completion.
    pub reanchor: ReanchorRow,
    /// The new anchor.
    pub anchor: AnchorRow,
    /// What is locked at the selected head: it is released, with all that was kept about it.
    pub released: Option<HeadLock>,
}

impl LeaveAnchor {
    fn reads(&self) -> Vec<Read> {
        let conversation = Key::new([&self.reanchor.conversation_id]);
        let mut reads = position_reads(&self.reanchor);
        reads.push(Read::Prefix(Table::Anchors, conversation.clone()));
        reads.push(Read::Prefix(
            Table::ProtocolEvidence,
            conversation.with(EvidenceKind::Reanchor.name()),
        ));
        if let Some(released) = &self.released {
            reads.push(staged_read(&self.reanchor, released));
            reads.push(Read::Row(
                Table::DisseminationObligations,
                Key::new([&self.reanchor.conversation_id, &released.record_hash]),
            ));
            reads.extend(
                self.released_evidence(released)
                    .map(|prefix| Read::Prefix(Table::ProtocolEvidence, prefix)),
            );
        }
        reads
    }

    fn released_evidence(&self, released: &HeadLock) -> [Key; 2] {
        let id = &self.reanchor.conversation_id;
        [
            EvidenceRow::below(id, EvidenceKind::Action, &released.action_hash),
            EvidenceRow::below(id, EvidenceKind::Durability, &released.record_hash),
        ]
    }

    fn decide(&self, reads: &ReadSet, adopted: bool) -> Result<Decision, Refusal> {
        let LeaveAnchor {
            reanchor,
            anchor,
            released,
        } = self;
        let consistent = reanchor.canonical_completed_reanchor.as_ref() == Some(&anchor.canonical_anchor)
            && anchor.conversation_id == reanchor.conversation_id
            && anchor.anchor_hash == reanchor.anchor_hash
            && anchor.previous_anchor_hash.as_ref() == Some(&reanchor.previous_anchor_hash)
            && anchor.selected_record_hash.as_ref() == Some(&reanchor.selected_record_hash);
        if !consistent {
            return Err(Refusal::InvalidInput("the anchor is not the completed re-anchor"));
        }
        let conversation = Key::new([&reanchor.conversation_id]);
        let anchors = reads.below::<AnchorRow>(&conversation)?;
        if anchors.contains(anchor) {
            return Ok(Decision::existing());
        }
        let state = require_selected(reads, reanchor)?;
        require_lock(reads, reanchor, released.as_ref())?;
        if anchor.position != anchors.len() as u64 {
            return Err(Refusal::Conflict("the anchor takes another place"));
        }
        let left = candidates(reads, reanchor)?;
        let same = |held: &&ReanchorRow| {
            held.anchor_hash == reanchor.anchor_hash && held.canonical_body == reanchor.canonical_body
        };
        if !adopted && !left.iter().any(|held| same(&held)) {
            return Err(Refusal::InvalidInput("the candidate is not staged"));
        }
        let mut writes = vec![
            anchor.put(),
            ConversationStateRow {
                current_anchor_hash: anchor.anchor_hash.clone(),
                ..state
            }
            .put(),
        ];
        for candidate in left {
            let of_it = |row: &EvidenceRow| row.subject_id == candidate.anchor_hash;
            let prefix = conversation.clone().with(EvidenceKind::Reanchor.name());
            let votes = reads.below::<EvidenceRow>(&prefix)?;
            writes.extend(votes.iter().filter(|row| of_it(row)).map(Row::delete));
            writes.push(candidate.delete());
        }
        if let Some(released) = released {
            self.release(reads, released, &mut writes)?;
        }
        Ok(Decision::applied(writes))
    }

    /// Removes the lock at the selected head with its signatures, its staged record, that record's votes and obligation.
    fn release(&self, reads: &ReadSet, released: &HeadLock, writes: &mut Vec<Write>) -> Result<(), Refusal> {
        let id = &self.reanchor.conversation_id;
        let record = Key::new([id, &released.record_hash]);
        if let Some(lock) = reads.get::<ProposalLockRow>(&lock_key(&self.reanchor))? {
            writes.push(lock.delete());
        }
        if has(Bug::ReleasedLockKeepsEvidence) {
            return Ok(());
        }
        for prefix in self.released_evidence(released) {
            writes.extend(reads.below::<EvidenceRow>(&prefix)?.iter().map(Row::delete));
        }
        if let Some(staged) = reads.get::<StagedRecordRow>(&record)? {
            writes.push(staged.delete());
        }
        if let Some(obligation) = reads.get::<ObligationRow>(&record)? {
            writes.push(obligation.delete());
        }
        Ok(())
    }
}

/// T11: complete the staged candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteReanchor(pub LeaveAnchor);

impl CompleteReanchor {
    pub(super) fn reads(&self) -> Vec<Read> {
        self.0.reads()
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        self.0.decide(reads, false)
    }
}

/// T12: adopt a member's completed re-anchor, whatever candidate or staged successor is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptReanchor(pub LeaveAnchor);

impl AdoptReanchor {
    pub(super) fn reads(&self) -> Vec<Read> {
        self.0.reads()
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        self.0.decide(reads, true)
    }
}

/// T13: give an empty conversation another genesis anchor. Its posts stay, everything else about it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartEmpty {
    /// The membership, exactly as stored.
    pub membership: MembershipRow,
    /// The genesis anchor it has, exactly as stored.
    pub expected: AnchorRow,
    /// The genesis anchor it gets.
    pub anchor: AnchorRow,
}

/// What T13 empties.
const EMPTIED: [Table; 5] = [
    Table::DisseminationObligations,
    Table::ProtocolEvidence,
    Table::ProposalLocks,
    Table::StagedRecords,
    Table::Reanchors,
];

impl RestartEmpty {
    fn conversation(&self) -> Key {
        Key::new([&self.membership.conversation_id])
    }

    pub(super) fn reads(&self) -> Vec<Read> {
        let mut reads = vec![
            row_of(&self.membership),
            Read::Prefix(Table::Anchors, self.conversation()),
            Read::Prefix(Table::CertifiedRecords, self.conversation()),
            Read::Row(Table::ConversationState, self.conversation()),
        ];
        reads.extend(EMPTIED.map(|table| Read::Prefix(table, self.conversation())));
        reads
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        let key = self.conversation();
        let genesis = |row: &AnchorRow| {
            row.conversation_id == self.membership.conversation_id
                && row.position == 0
                && row.previous_anchor_hash.is_none()
                && row.selected_record_hash.is_none()
        };
        if !genesis(&self.anchor) || !genesis(&self.expected) {
            return Err(Refusal::InvalidInput(
                "an empty conversation has a genesis anchor",
            ));
        }
        if reads.get::<MembershipRow>(&self.membership.key())?.as_ref() != Some(&self.membership) {
            return Err(Refusal::Conflict("the conversation has another membership"));
        }
        let Some(state) = reads.get::<ConversationStateRow>(&key)? else {
            return Err(Refusal::InvalidInput("the conversation has no foundation"));
        };
        let certified = reads.below::<CertifiedRecordRow>(&key)?;
        if state.head_record_hash.is_some() || state.head_ordinal != -1 || !certified.is_empty() {
            return Err(Refusal::Conflict("the conversation is not empty"));
        }
        let anchors = reads.below::<AnchorRow>(&key)?;
        if anchors == [self.anchor.clone()] {
            return Ok(Decision::existing());
        }
        if anchors != [self.expected.clone()] || state.current_anchor_hash != self.expected.anchor_hash {
            return Err(Refusal::Conflict("the conversation began with another anchor"));
        }
        let mut writes: Vec<Write> = Vec::new();
        writes.extend(reads.below::<ObligationRow>(&key)?.iter().map(Row::delete));
        writes.extend(reads.below::<EvidenceRow>(&key)?.iter().map(Row::delete));
        writes.extend(reads.below::<ProposalLockRow>(&key)?.iter().map(Row::delete));
        writes.extend(reads.below::<StagedRecordRow>(&key)?.iter().map(Row::delete));
        writes.extend(reads.below::<ReanchorRow>(&key)?.iter().map(Row::delete));
        writes.push(self.expected.delete());
        writes.push(self.anchor.put());
        writes.push(
            ConversationStateRow {
                current_anchor_hash: self.anchor.anchor_hash.clone(),
                ..state
            }
            .put(),
        );
        Ok(Decision::applied(writes))
    }
}

fn lock_key(reanchor: &ReanchorRow) -> Key {
    ProposalLockRow::key_of(&reanchor.conversation_id, Some(&reanchor.selected_record_hash))
}

fn staged_read(reanchor: &ReanchorRow, locked: &HeadLock) -> Read {
    Read::Row(
        Table::StagedRecords,
        Key::new([&reanchor.conversation_id, &locked.record_hash]),
    )
}

fn position_reads(reanchor: &ReanchorRow) -> Vec<Read> {
    let conversation = Key::new([&reanchor.conversation_id]);
    vec![
        Read::Row(Table::ConversationState, conversation.clone()),
        Read::Row(Table::ProposalLocks, lock_key(reanchor)),
        Read::Prefix(Table::Reanchors, conversation),
    ]
}

/// The candidates away from the anchor this re-anchor leaves.
fn candidates(reads: &ReadSet, reanchor: &ReanchorRow) -> Result<Vec<ReanchorRow>, Refusal> {
    let mut held = reads.below::<ReanchorRow>(&Key::new([&reanchor.conversation_id]))?;
    held.retain(|row| row.previous_anchor_hash == reanchor.previous_anchor_hash);
    Ok(held)
}

/// The re-anchor leaves the current anchor at the head.
fn require_selected(reads: &ReadSet, reanchor: &ReanchorRow) -> Result<ConversationStateRow, Refusal> {
    let key = Key::new([&reanchor.conversation_id]);
    let Some(state) = reads.get::<ConversationStateRow>(&key)? else {
        return Err(Refusal::InvalidInput("the conversation has no foundation"));
    };
    if state.current_anchor_hash != reanchor.previous_anchor_hash {
        return Err(Refusal::Conflict("the conversation has another anchor"));
    }
    if state.head_record_hash.as_ref() != Some(&reanchor.selected_record_hash) {
        return Err(Refusal::Conflict("the conversation has another head"));
    }
    Ok(state)
}

/// The transition names exactly what is locked at the selected head.
fn require_lock(reads: &ReadSet, reanchor: &ReanchorRow, named: Option<&HeadLock>) -> Result<(), Refusal> {
    let held = reads.get::<ProposalLockRow>(&lock_key(reanchor))?;
    let (held, named) = (
        held.map(|lock| lock.action_hash),
        named.map(|lock| &lock.action_hash),
    );
    if held.as_ref() == named {
        Ok(())
    } else {
        Err(Refusal::Conflict("another action is locked at the selected head"))
    }
}

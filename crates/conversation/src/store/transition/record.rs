//! T7 to T9: staging a record, and certifying it.

use super::evidence::require_no_candidate_away;
use super::{Decision, Read, ReadSet, Refusal, Sequence, Table, Write, row_of, sequence_read, take_number};
use crate::store::rows::{
    CertifiedRecordRow, ConversationStateRow, EvidenceKind, EvidenceRow, IdentityBindingRow, ObligationRow,
    PendingDeliveryRow, PostIntentRow, ProposalLockRow, StagedRecordRow,
};
use crate::store::{Key, Row};

/// T7: hold a record durably, with the obligation to send its copy, before voting for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageRecord {
    /// The record.
    pub record: StagedRecordRow,
    /// The copy that is owed for it.
    pub obligation: ObligationRow,
}

impl StageRecord {
    pub(super) fn reads(&self) -> Vec<Read> {
        let mut reads = position_reads(&self.record);
        reads.push(row_of(&self.record));
        reads.push(row_of(&self.obligation));
        reads.push(sequence_read(Sequence::Obligation));
        reads
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        let owed = self.obligation.conversation_id == self.record.conversation_id
            && self.obligation.record_hash == self.record.record_hash
            && self.obligation.outbound_id.is_none();
        if !owed {
            return Err(Refusal::InvalidInput("the obligation is of another record"));
        }
        match reads.get::<StagedRecordRow>(&self.record.key())? {
            Some(held) if held == self.record => return Ok(Decision::existing()),
            Some(_) => return Err(Refusal::Conflict("the record is staged with another content")),
            None => {}
        }
        require_position(reads, &self.record)?;
        Ok(Decision::applied(vec![
            take_number(reads, Sequence::Obligation, self.obligation.obligation_sequence)?,
            self.record.put(),
            self.obligation.put(),
        ]))
    }
}

/// What certifying a record finishes: exactly one of the two, by who wrote the post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The local agent's post is finished. It is not delivered to itself.
    LocalPost,
    /// A remote post becomes a pending delivery.
    Delivery(PendingDeliveryRow),
}

/// T8: certify a staged record, with all evidence held for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromoteRecord {
    /// The staged record.
    pub record: StagedRecordRow,
    /// Its place in the chain.
    pub ordinal: u64,
    /// Its action signatures and durability votes.
    pub evidence: Vec<EvidenceRow>,
    /// What it finishes.
    pub completion: Completion,
}

impl PromoteRecord {
    pub(super) fn reads(&self) -> Vec<Read> {
        let mut reads = position_reads(&self.record);
        reads.push(row_of(&self.record));
        reads.extend(certification_reads(
            &self.record,
            self.ordinal,
            &self.evidence,
            &self.completion,
        ));
        reads
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        match reads.get::<StagedRecordRow>(&self.record.key())? {
            Some(held) if held == self.record => {}
            Some(_) => return Err(Refusal::Conflict("the record is staged with another content")),
            None => return Err(Refusal::InvalidInput("the record is not staged")),
        }
        certify(
            reads,
            &self.record,
            self.ordinal,
            &self.evidence,
            &self.completion,
        )
    }
}

/// T9: certify a record that was received whole, in one transaction. Neither an obligation nor an own vote comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyRecord {
    /// The record.
    pub record: StagedRecordRow,
    /// Its place in the chain.
    pub ordinal: u64,
    /// The evidence of its two certificates.
    pub evidence: Vec<EvidenceRow>,
    /// What it finishes.
    pub completion: Completion,
}

impl ApplyRecord {
    pub(super) fn reads(&self) -> Vec<Read> {
        let mut reads = position_reads(&self.record);
        reads.push(row_of(&self.record));
        reads.push(Read::Row(Table::ProposalLocks, lock_key(&self.record)));
        reads.extend(certification_reads(
            &self.record,
            self.ordinal,
            &self.evidence,
            &self.completion,
        ));
        reads
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        let mut writes = match reads.get::<StagedRecordRow>(&self.record.key())? {
            Some(held) if held == self.record => Vec::new(),
            Some(_) => return Err(Refusal::Conflict("the record is staged with another content")),
            None => vec![self.record.put()],
        };
        let own_vote = own_vote(reads, &self.evidence)?;
        if own_vote {
            require_no_candidate_away(
                reads,
                &Key::new([&self.record.conversation_id]),
                &self.record.anchor_hash,
            )?;
        }
        let certified = certify(
            reads,
            &self.record,
            self.ordinal,
            &self.evidence,
            &self.completion,
        )?;
        if certified.writes.is_empty() {
            return Ok(certified);
        }
        writes.extend(certified.writes);
        Ok(Decision::applied(writes))
    }
}

fn own_vote(reads: &ReadSet, evidence: &[EvidenceRow]) -> Result<bool, Refusal> {
    let identity = reads.get::<IdentityBindingRow>(&IdentityBindingRow::singleton_key())?;
    Ok(identity.is_some_and(|identity| {
        evidence
            .iter()
            .any(|row| row.evidence_kind == EvidenceKind::Durability && row.evidence_key == identity.agent_id)
    }))
}

fn conversation_key(record: &StagedRecordRow) -> Key {
    Key::new([&record.conversation_id])
}

fn lock_key(record: &StagedRecordRow) -> Key {
    ProposalLockRow::key_of(&record.conversation_id, record.previous_record_hash.as_deref())
}

fn intent_key(record: &StagedRecordRow) -> Key {
    Key::new([&record.author_agent_id, &record.post_id])
}

fn position_reads(record: &StagedRecordRow) -> Vec<Read> {
    vec![
        Read::Row(Table::ConversationState, conversation_key(record)),
        Read::Row(Table::ProposalLocks, lock_key(record)),
        Read::Prefix(Table::Reanchors, conversation_key(record)),
    ]
}

/// The record extends the head under the current anchor, its action holds the lock, and no candidate away is staged.
fn require_position(reads: &ReadSet, record: &StagedRecordRow) -> Result<(), Refusal> {
    require_extends_head(reads, record)?;
    require_lock(reads, record)?;
    require_no_candidate_away(reads, &conversation_key(record), &record.anchor_hash)
}

fn require_extends_head(reads: &ReadSet, record: &StagedRecordRow) -> Result<ConversationStateRow, Refusal> {
    let Some(state) = reads.get::<ConversationStateRow>(&conversation_key(record))? else {
        return Err(Refusal::InvalidInput("the conversation has no foundation"));
    };
    if state.membership_hash != record.membership_hash {
        return Err(Refusal::Conflict("the conversation has another membership"));
    }
    if state.current_anchor_hash != record.anchor_hash {
        return Err(Refusal::Conflict("the conversation has another anchor"));
    }
    if state.head_record_hash != record.previous_record_hash {
        return Err(Refusal::Conflict("the conversation has another head"));
    }
    Ok(state)
}

fn require_lock(reads: &ReadSet, record: &StagedRecordRow) -> Result<(), Refusal> {
    match reads.get::<ProposalLockRow>(&lock_key(record))? {
        Some(lock) if lock.action_hash == record.action_hash => Ok(()),
        Some(_) => Err(Refusal::Conflict("another action is locked at this predecessor")),
        None => Err(Refusal::InvalidInput("the record's action is not locked")),
    }
}

fn certification_reads(
    record: &StagedRecordRow,
    ordinal: u64,
    evidence: &[EvidenceRow],
    completion: &Completion,
) -> Vec<Read> {
    let mut reads = vec![
        Read::Row(Table::IdentityBinding, IdentityBindingRow::singleton_key()),
        Read::Row(Table::CertifiedRecords, conversation_key(record).with(ordinal)),
        Read::Row(Table::PostIntents, intent_key(record)),
    ];
    reads.extend(evidence.iter().map(row_of));
    if let Completion::Delivery(delivery) = completion {
        reads.push(row_of(delivery));
        reads.push(sequence_read(Sequence::Delivery));
    }
    reads
}

/// The writes that certify `record`; none when it is certified with the same completion.
fn certify(
    reads: &ReadSet,
    record: &StagedRecordRow,
    ordinal: u64,
    evidence: &[EvidenceRow],
    completion: &Completion,
) -> Result<Decision, Refusal> {
    let link = CertifiedRecordRow {
        conversation_id: record.conversation_id.clone(),
        ordinal,
        record_hash: record.record_hash.clone(),
    };
    let before = reads.get::<CertifiedRecordRow>(&link.key())?;
    if before.as_ref().is_some_and(|before| *before != link) {
        return Err(Refusal::Conflict("another record is certified at this place"));
    }
    let again = before.is_some();
    let completed = complete(reads, record, completion, again)?;
    if again {
        return Ok(Decision::existing());
    }
    let state = require_extends_head(reads, record)?;
    require_lock(reads, record)?;
    if i64::try_from(ordinal).ok() != Some(state.head_ordinal + 1) {
        return Err(Refusal::Conflict("the chain's next place is another one"));
    }
    let mut writes = merge_all(reads, record, evidence)?;
    writes.push(link.put());
    writes.push(
        ConversationStateRow {
            head_record_hash: Some(record.record_hash.clone()),
            head_ordinal: state.head_ordinal + 1,
            ..state
        }
        .put(),
    );
    writes.extend(completed);
    Ok(Decision::applied(writes))
}

/// The first bytes kept for a signer stay: a second signature over the same statement changes nothing.
fn merge_all(
    reads: &ReadSet,
    record: &StagedRecordRow,
    evidence: &[EvidenceRow],
) -> Result<Vec<Write>, Refusal> {
    let mut writes = Vec::new();
    for row in evidence {
        let about_it = row.conversation_id == record.conversation_id
            && match row.evidence_kind {
                EvidenceKind::Action => row.subject_id == record.action_hash,
                EvidenceKind::Durability => row.subject_id == record.record_hash,
                EvidenceKind::CatchUp | EvidenceKind::Reanchor => false,
            };
        if !about_it {
            return Err(Refusal::InvalidInput("the evidence is of another record"));
        }
        if reads.get::<EvidenceRow>(&row.key())?.is_none() {
            writes.push(row.put());
        }
    }
    for kind in [EvidenceKind::Action, EvidenceKind::Durability] {
        if !evidence.iter().any(|row| row.evidence_kind == kind) {
            return Err(Refusal::InvalidInput("a certified record has both certificates"));
        }
    }
    Ok(writes)
}

fn complete(
    reads: &ReadSet,
    record: &StagedRecordRow,
    completion: &Completion,
    again: bool,
) -> Result<Vec<Write>, Refusal> {
    let identity = reads
        .get::<IdentityBindingRow>(&IdentityBindingRow::singleton_key())?
        .ok_or(Refusal::InvalidInput("the store is bound to no identity"))?;
    let local = identity.agent_id == record.author_agent_id;
    match completion {
        Completion::LocalPost if !local => Err(Refusal::InvalidInput("a remote post is delivered")),
        Completion::Delivery(_) if local => Err(Refusal::InvalidInput(
            "a local post is not delivered to its author",
        )),
        Completion::LocalPost => complete_intent(reads, record),
        Completion::Delivery(delivery) => complete_delivery(reads, record, delivery, &identity, again),
    }
}

fn complete_intent(reads: &ReadSet, record: &StagedRecordRow) -> Result<Vec<Write>, Refusal> {
    let Some(intent) = reads.get::<PostIntentRow>(&intent_key(record))? else {
        return Err(Refusal::Conflict("the store does not know the local post"));
    };
    match &intent.completed_record_hash {
        None => Ok(vec![
            PostIntentRow {
                completed_record_hash: Some(record.record_hash.clone()),
                ..intent
            }
            .put(),
        ]),
        Some(hash) if *hash == record.record_hash => Ok(Vec::new()),
        Some(_) => Err(Refusal::Conflict("the post was finished by another record")),
    }
}

fn complete_delivery(
    reads: &ReadSet,
    record: &StagedRecordRow,
    delivery: &PendingDeliveryRow,
    identity: &IdentityBindingRow,
    again: bool,
) -> Result<Vec<Write>, Refusal> {
    let of_it = delivery.conversation_id == record.conversation_id
        && delivery.record_hash == record.record_hash
        && delivery.recipient_agent_id == identity.agent_id
        && !delivery.acknowledged;
    if !of_it {
        return Err(Refusal::InvalidInput("the delivery is of another record"));
    }
    match reads.get::<PendingDeliveryRow>(&delivery.key())? {
        Some(held) if held.canonical_message != delivery.canonical_message => Err(Refusal::Conflict(
            "the record was delivered with another projection",
        )),
        Some(_) if again => Ok(Vec::new()),
        Some(_) => Err(Refusal::Conflict(
            "the record was delivered before it was certified",
        )),
        None if again => Err(Refusal::Conflict("a certified remote record has no delivery")),
        None => Ok(vec![
            take_number(reads, Sequence::Delivery, delivery.delivery_sequence)?,
            delivery.put(),
        ]),
    }
}

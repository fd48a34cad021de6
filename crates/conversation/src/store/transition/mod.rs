//! The transitions: each one value, each committed whole or not at all.

mod conversation;
mod delivery;
mod evidence;
mod lock;
mod outbox;
mod reanchor;
mod record;
mod transport;

use super::rows::{Sequence, SequenceRow};
use super::{Decision, Outcome, Read, ReadSet, Refusal, Row, Table, Write};

pub use conversation::{BindIdentity, BindPostIntent, Foundation};
pub use delivery::AcknowledgeDelivery;
pub use evidence::MergeEvidence;
pub use lock::{LockGenesis, LockProposal, SupersedeLock};
pub use outbox::{AttachObligation, BeginOutbound, CompleteOutbound, DiscardOutbound, Enqueue};
pub use reanchor::{AdoptReanchor, CompleteReanchor, HeadLock, LeaveAnchor, RestartEmpty, StageReanchor};
pub use record::{ApplyRecord, Completion, PromoteRecord, StageRecord};
pub use transport::{AdvanceCursor, UnwatchConversation, WatchConversation};

/// One change of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// T1: bind the store to an agent.
    BindIdentity(BindIdentity),
    /// T2: bind a local post, and with the first one the conversation's foundation.
    BindPostIntent(BindPostIntent),
    /// T3: lock the one action to be signed at a predecessor.
    LockProposal(LockProposal),
    /// T4: lock a GENESIS together with the foundation it brings.
    LockGenesis(LockGenesis),
    /// T5: move a lock to an action that a quorum signed.
    SupersedeLock(SupersedeLock),
    /// T6: keep one signer's statement.
    MergeEvidence(MergeEvidence),
    /// T7: hold a record durably, before voting for it.
    StageRecord(StageRecord),
    /// T8: certify a staged record.
    PromoteRecord(PromoteRecord),
    /// T9: certify a record that was received whole.
    ApplyRecord(ApplyRecord),
    /// T10: stage a re-anchor candidate, before voting for it.
    StageReanchor(StageReanchor),
    /// T11: complete the staged candidate.
    CompleteReanchor(CompleteReanchor),
    /// T12: adopt a member's completed re-anchor.
    AdoptReanchor(AdoptReanchor),
    /// T13: give an empty conversation another genesis anchor.
    RestartEmpty(RestartEmpty),
    /// T14: put an envelope on its way.
    Enqueue(Enqueue),
    /// T15: put the envelope an obligation asks for on its way.
    AttachObligation(AttachObligation),
    /// T16: begin an attempt to send.
    BeginOutbound(BeginOutbound),
    /// T17: the Router accepted an envelope.
    CompleteOutbound(CompleteOutbound),
    /// T18: discard a set of envelopes.
    DiscardOutbound(DiscardOutbound),
    /// T19: the host accepted a delivery.
    AcknowledgeDelivery(AcknowledgeDelivery),
    /// A feed was read up to a position.
    AdvanceCursor(AdvanceCursor),
    /// An invitation was accepted for watching.
    WatchConversation(WatchConversation),
    /// A watched conversation became a held one, or was dropped.
    UnwatchConversation(UnwatchConversation),
}

macro_rules! each {
    ($self:ident, $inner:ident => $body:expr) => {
        match $self {
            Transition::BindIdentity($inner) => $body,
            Transition::BindPostIntent($inner) => $body,
            Transition::LockProposal($inner) => $body,
            Transition::LockGenesis($inner) => $body,
            Transition::SupersedeLock($inner) => $body,
            Transition::MergeEvidence($inner) => $body,
            Transition::StageRecord($inner) => $body,
            Transition::PromoteRecord($inner) => $body,
            Transition::ApplyRecord($inner) => $body,
            Transition::StageReanchor($inner) => $body,
            Transition::CompleteReanchor($inner) => $body,
            Transition::AdoptReanchor($inner) => $body,
            Transition::RestartEmpty($inner) => $body,
            Transition::Enqueue($inner) => $body,
            Transition::AttachObligation($inner) => $body,
            Transition::BeginOutbound($inner) => $body,
            Transition::CompleteOutbound($inner) => $body,
            Transition::DiscardOutbound($inner) => $body,
            Transition::AcknowledgeDelivery($inner) => $body,
            Transition::AdvanceCursor($inner) => $body,
            Transition::WatchConversation($inner) => $body,
            Transition::UnwatchConversation($inner) => $body,
        }
    };
}

impl Transition {
    /// What must be read, in the transaction that will carry the writes, before [`Transition::decide`].
    pub fn reads(&self) -> Vec<Read> {
        each!(self, inner => inner.reads())
    }

    /// Checks every precondition and says what to write.
    ///
    /// `Conflict` and `InvalidInput` leave the store as it is.
    pub fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        each!(self, inner => inner.decide(reads))
    }
}

/// Decides a batch that is committed in one transaction: each transition sees the writes of those before it.
///
/// `reads` holds the answers to every read of every transition, taken in that transaction. On a refusal nothing may be
/// written; the number is the place of the refused transition in the batch.
pub fn decide_batch(
    transitions: &[Transition],
    mut reads: ReadSet,
) -> Result<(Vec<Outcome>, Vec<Write>), (usize, Refusal)> {
    let mut outcomes = Vec::with_capacity(transitions.len());
    let mut writes = Vec::new();
    for (index, transition) in transitions.iter().enumerate() {
        let decision = transition.decide(&reads).map_err(|refusal| (index, refusal))?;
        reads.overlay(&decision.writes);
        outcomes.push(decision.outcome);
        writes.extend(decision.writes);
    }
    Ok((outcomes, writes))
}

/// The read of one row.
fn row_of<R: Row>(row: &R) -> Read {
    Read::Row(R::TABLE, row.key())
}

/// The read of a sequence.
fn sequence_read(sequence: Sequence) -> Read {
    Read::Row(Table::Sequences, sequence.key())
}

/// Takes `number` from a sequence. The engine names the number it expects, because it is the only writer; a store that
/// disagrees is not the one the engine was opened from.
fn take_number(reads: &ReadSet, sequence: Sequence, number: u64) -> Result<Write, Refusal> {
    let next = reads
        .get::<SequenceRow>(&sequence.key())?
        .map_or(0, |row| row.next);
    if next != number {
        return Err(Refusal::Conflict("a sequence stands at another number"));
    }
    Ok(SequenceRow {
        name: sequence.name().to_owned(),
        next: number + 1,
    }
    .put())
}

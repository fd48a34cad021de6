//! T14 to T18: envelopes on their way out.

use super::{Decision, Read, ReadSet, Refusal, Sequence, Table, row_of, sequence_read, take_number};
use crate::store::rows::{ConversationStateRow, Disposition, ObligationRow, OutboundRow, SequenceRow};
use crate::store::{Key, Row};

fn decide_enqueue(outbound: &OutboundRow, reads: &ReadSet) -> Result<Decision, Refusal> {
    if outbound.attempted || outbound.disposition != Disposition::Pending {
        return Err(Refusal::InvalidInput("a new envelope was never attempted"));
    }
    if reads
        .get::<ConversationStateRow>(&Key::new([&outbound.conversation_id]))?
        .is_none()
    {
        return Err(Refusal::InvalidInput("the conversation has no foundation"));
    }
    match reads.get::<OutboundRow>(&outbound.key())? {
        Some(held) if held.outbound_id == outbound.outbound_id => Ok(Decision::existing()),
        Some(_) => Err(Refusal::Conflict("another envelope has this number")),
        None => Ok(Decision::applied(vec![
            take_number(reads, Sequence::Outbound, outbound.outbound_sequence)?,
            outbound.put(),
        ])),
    }
}

fn enqueue_reads(outbound: &OutboundRow) -> Vec<Read> {
    vec![
        Read::Row(Table::ConversationState, Key::new([&outbound.conversation_id])),
        row_of(outbound),
        sequence_read(Sequence::Outbound),
    ]
}

/// T14: put a complete signed envelope on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enqueue {
    /// The envelope.
    pub outbound: OutboundRow,
}

impl Enqueue {
    pub(super) fn reads(&self) -> Vec<Read> {
        enqueue_reads(&self.outbound)
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        decide_enqueue(&self.outbound, reads)
    }
}

/// T15: put the envelope an obligation asks for on its way. An obligation is served by one envelope at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachObligation {
    /// The record whose copy the envelope carries.
    pub record_hash: String,
    /// The envelope.
    pub outbound: OutboundRow,
}

impl AttachObligation {
    fn obligation_key(&self) -> Key {
        Key::new([&self.outbound.conversation_id, &self.record_hash])
    }

    pub(super) fn reads(&self) -> Vec<Read> {
        let mut reads = enqueue_reads(&self.outbound);
        reads.push(Read::Row(Table::DisseminationObligations, self.obligation_key()));
        reads
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        let Some(obligation) = reads.get::<ObligationRow>(&self.obligation_key())? else {
            return Err(Refusal::InvalidInput("nothing is owed for this record"));
        };
        match &obligation.outbound_id {
            Some(id) if *id == self.outbound.outbound_id => return Ok(Decision::existing()),
            Some(_) => return Err(Refusal::Conflict("another envelope serves the obligation")),
            None => {}
        }
        let mut decision = decide_enqueue(&self.outbound, reads)?;
        decision.writes.push(
            ObligationRow {
                outbound_id: Some(self.outbound.outbound_id.clone()),
                ..obligation
            }
            .put(),
        );
        Ok(Decision::applied(decision.writes))
    }
}

/// T16: begin an attempt to send. `Existing` means that a first attempt was begun before, so this one is a retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeginOutbound {
    /// The envelope's number.
    pub outbound_sequence: u64,
    /// The envelope.
    pub outbound_id: String,
}

impl BeginOutbound {
    pub(super) fn reads(&self) -> Vec<Read> {
        vec![Read::Row(
            Table::OutboundMessages,
            OutboundRow::key_of(self.outbound_sequence),
        )]
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        match reads.get::<OutboundRow>(&OutboundRow::key_of(self.outbound_sequence))? {
            Some(row) if row.outbound_id != self.outbound_id => {
                Err(Refusal::Conflict("another envelope has this number"))
            }
            Some(row) if row.disposition != Disposition::Pending => {
                Err(Refusal::InvalidInput("the envelope is no longer pending"))
            }
            Some(row) if row.attempted => Ok(Decision::existing()),
            Some(row) => Ok(Decision::applied(vec![
                OutboundRow {
                    attempted: true,
                    ..row
                }
                .put(),
            ])),
            None => Err(Refusal::InvalidInput("the envelope is no longer pending")),
        }
    }
}

/// T17: the Router accepted an envelope. Its row goes; asked again, nothing happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteOutbound {
    /// The envelope's number.
    pub outbound_sequence: u64,
    /// The envelope.
    pub outbound_id: String,
}

impl CompleteOutbound {
    pub(super) fn reads(&self) -> Vec<Read> {
        vec![
            Read::Row(
                Table::OutboundMessages,
                OutboundRow::key_of(self.outbound_sequence),
            ),
            sequence_read(Sequence::Outbound),
        ]
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        match reads.get::<OutboundRow>(&OutboundRow::key_of(self.outbound_sequence))? {
            Some(row) if row.outbound_id != self.outbound_id => {
                Err(Refusal::Conflict("another envelope has this number"))
            }
            Some(row) if row.disposition != Disposition::Pending => Err(Refusal::Conflict(
                "the envelope was discarded by an earlier release",
            )),
            Some(row) => Ok(Decision::applied(vec![row.delete()])),
            None => {
                let next = reads
                    .get::<SequenceRow>(&Sequence::Outbound.key())?
                    .map_or(0, |row| row.next);
                if self.outbound_sequence < next {
                    Ok(Decision::existing())
                } else {
                    Err(Refusal::InvalidInput("no envelope ever had this number"))
                }
            }
        }
    }
}

/// T18: discard a set of envelopes, all of them or none. Their rows go, and an obligation that one of them served is owed
/// again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscardOutbound {
    /// The envelopes exactly as stored.
    pub outbound: Vec<OutboundRow>,
    /// The obligations some of them serve, exactly as stored.
    pub obligations: Vec<ObligationRow>,
}

impl DiscardOutbound {
    pub(super) fn reads(&self) -> Vec<Read> {
        self.outbound
            .iter()
            .map(row_of)
            .chain(self.obligations.iter().map(row_of))
            .collect()
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        let mut writes = Vec::new();
        for row in &self.outbound {
            if reads.get::<OutboundRow>(&row.key())?.as_ref() != Some(row) {
                return Err(Refusal::Conflict("an envelope of the set is not as stored"));
            }
            writes.push(row.delete());
        }
        for obligation in &self.obligations {
            if reads.get::<ObligationRow>(&obligation.key())?.as_ref() != Some(obligation) {
                return Err(Refusal::Conflict("an obligation of the set is not as stored"));
            }
            let served = |row: &OutboundRow| Some(&row.outbound_id) == obligation.outbound_id.as_ref();
            if !self.outbound.iter().any(served) {
                return Err(Refusal::InvalidInput(
                    "an obligation of the set is served by another envelope",
                ));
            }
            writes.push(
                ObligationRow {
                    outbound_id: None,
                    ..obligation.clone()
                }
                .put(),
            );
        }
        Ok(Decision::applied(writes))
    }
}

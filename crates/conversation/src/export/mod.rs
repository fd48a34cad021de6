//! An exported history, verified away from the endpoint that kept it ("Owner-authorized history and proof reads").
//!
//! An export is one closed value a line, each in its canonical bytes and ended by one line feed: the membership
//! descriptor, then certified records and completed re-anchors in the order of the chain. Nothing in it is trusted. With the
//! Registry's key from elsewhere, the cards prove the members, the members' signatures the records, and the records' hashes
//! their order; what no line can prove is that nothing follows the last.
//!
//! [`ExportVerifier`] takes one line at a time and keeps one membership, one position and a bounded memory of signatures,
//! however long the file is. May depend on [`crate::values`], [`crate::membership`], [`crate::certificates`] and
//! [`crate::verification`].

mod error;

use conclave_harness::{PublicKey, WireVersions};

pub use error::{ExportError, ExportProblem};

use crate::certificates::EvidenceMemory;
use crate::membership::Membership;
use crate::values::{CatchUpItem, ClosedValue, PLAINTEXT_BYTES_MAX};
use crate::verification::{Position, VerifiedCertifiedRecord, VerifiedCompletedReanchor};

/// Most bytes of one line: every line is a value that members can send each other.
pub const EXPORT_LINE_BYTES_MAX: usize = PLAINTEXT_BYTES_MAX;

/// What an export begins with after its membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportBegin {
    /// GENESIS: the whole history up to the last line.
    Genesis,
    /// Any record or re-anchor: an excerpt, in which the posts before it are not shown.
    Anywhere,
}

/// What a verified line holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportLine {
    /// The members.
    Membership,
    /// A certified record that extends the line before.
    Record(Box<VerifiedCertifiedRecord>),
    /// A completed re-anchor at the line before.
    Reanchor(Box<VerifiedCompletedReanchor>),
}

/// Verifies an export line by line.
#[derive(Debug)]
pub struct ExportVerifier {
    registry: PublicKey,
    history: WireVersions,
    begin: ExportBegin,
    memory: EvidenceMemory,
    lines: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Before the first line.
    Empty,
    /// After the membership; none before the first item.
    Within(Box<Membership>, Option<Position>),
    /// After a line that does not verify.
    Refused,
}

impl ExportVerifier {
    /// A verifier that trusts this key of a Registry, over artifacts of these versions.
    pub fn new(registry: PublicKey, history: WireVersions, begin: ExportBegin) -> Self {
        ExportVerifier {
            registry,
            history,
            begin,
            memory: EvidenceMemory::default(),
            lines: 0,
            state: State::Empty,
        }
    }

    /// Verifies the next line, without its line feed.
    ///
    /// # Errors
    /// [`ExportError`] names the line and what is wrong with it. No line is taken after one that was refused.
    pub fn line(&mut self, bytes: &[u8]) -> Result<ExportLine, ExportError> {
        let line = self.lines + 1;
        let state = std::mem::replace(&mut self.state, State::Refused);
        let (verified, state) = self
            .take(bytes, state)
            .map_err(|problem| ExportError { line, problem })?;
        self.lines = line;
        self.state = state;
        Ok(verified)
    }

    /// The file has ended; `rest` is what stood behind its last line feed.
    ///
    /// # Errors
    /// [`ExportError`] for a file without a membership, one of which a line was refused, and one that ends within a line.
    pub fn end(&self, rest: &[u8]) -> Result<(), ExportError> {
        let problem = match &self.state {
            State::Refused => ExportProblem::Refused,
            _ if !rest.is_empty() => ExportProblem::EndsWithinLine,
            State::Empty => ExportProblem::Empty,
            State::Within(..) => return Ok(()),
        };
        let line = self.lines + 1;
        Err(ExportError { line, problem })
    }

    /// The members, once they are known.
    pub fn membership(&self) -> Option<&Membership> {
        match &self.state {
            State::Within(membership, _) => Some(membership),
            State::Empty | State::Refused => None,
        }
    }

    /// Where the export has come to; none before its first item.
    pub fn position(&self) -> Option<&Position> {
        match &self.state {
            State::Within(_, position) => position.as_ref(),
            State::Empty | State::Refused => None,
        }
    }

    fn take(&mut self, bytes: &[u8], state: State) -> Result<(ExportLine, State), ExportProblem> {
        if bytes.len() > EXPORT_LINE_BYTES_MAX {
            return Err(ExportProblem::TooLong);
        }
        let (membership, position) = match state {
            State::Refused => return Err(ExportProblem::Refused),
            State::Empty => {
                let membership = Membership::decode(bytes, &self.registry, &self.history)?;
                return Ok((ExportLine::Membership, State::Within(Box::new(membership), None)));
            }
            State::Within(membership, position) => (membership, position),
        };
        let memory = &mut self.memory;
        let (item, before, after) =
            match CatchUpItem::decode_over(&self.history, bytes).map_err(ExportProblem::Item)? {
                CatchUpItem::CertifiedRecord(record) => {
                    let record = VerifiedCertifiedRecord::verify(*record, &membership, memory)?;
                    let (before, after) = (record.record().position(), record.position_after());
                    (ExportLine::Record(Box::new(record)), before, after)
                }
                CatchUpItem::CompletedReanchor(completed) => {
                    let completed = VerifiedCompletedReanchor::verify(*completed, &membership, memory)?;
                    let body = completed.body();
                    let before = Position {
                        record_hash: Some(body.selected_record_hash),
                        anchor_hash: body.previous_anchor_hash,
                    };
                    let after = Position {
                        anchor_hash: *completed.anchor_hash(),
                        ..before
                    };
                    (ExportLine::Reanchor(Box::new(completed)), before, after)
                }
            };
        let follows = match &position {
            Some(position) => *position == before,
            None => self.begin == ExportBegin::Anywhere || before.record_hash.is_none(),
        };
        if !follows {
            return Err(ExportProblem::OutOfOrder);
        }
        Ok((item, State::Within(membership, Some(after))))
    }
}

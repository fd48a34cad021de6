//! From stored rows to verified history: the same checks for opening an engine and for owner reads
//! ("Persistence and compatibility").

use std::collections::VecDeque;
use std::str::FromStr;

use conclave_harness::{PublicKey, UnverifiedSignature, WireVersions};

use super::error::Corruption;
use super::fold::staged_row_of_text;
use super::stored_evidence::StoredEvidence;
use crate::certificates::EvidenceMemory;
use crate::membership::Membership;
use crate::store::rows::{
    AnchorRow, CertifiedRecordRow, ConversationStateRow, MembershipRow, StagedRecordRow,
};
use crate::store::{Key, Row, Snapshot, Table};
use crate::values::{AnchorHash, ClosedValue, ConversationId, RecordCore, RecordHash, RouterAnchor};
use crate::verification::{
    Position, VerifiedActionCertifiedRecord, VerifiedCertifiedRecord, VerifiedRecordCore,
    VerifiedRouterAnchor,
};

/// What stored rows are verified under.
pub(super) struct Trust<'a> {
    pub(super) registry: &'a PublicKey,
    pub(super) history: &'a WireVersions,
    pub(super) memory: &'a mut EvidenceMemory,
}

/// What is wrong with a row.
pub(super) fn corrupt(row: &impl Row, problem: impl ToString) -> Corruption {
    at(row, row.key(), problem)
}

fn at<R: Row>(_row: &R, key: Key, problem: impl ToString) -> Corruption {
    Corruption {
        table: R::TABLE,
        key: key.to_string(),
        problem: problem.to_string(),
    }
}

/// A row that must be there.
pub(super) fn required<R: Row>(rows: &Snapshot, key: &Key) -> Result<R, Corruption> {
    rows.row::<R>(key)?.ok_or_else(|| Corruption {
        table: R::TABLE,
        key: key.to_string(),
        problem: "the row is missing".to_owned(),
    })
}

/// A column that names an identifier.
pub(super) fn column<T: FromStr<Err: ToString>>(row: &impl Row, text: &str) -> Result<T, Corruption> {
    text.parse()
        .map_err(|error: T::Err| corrupt(row, error.to_string()))
}

/// Fails unless a column says what the value says.
pub(super) fn require(row: &impl Row, agrees: bool, problem: &'static str) -> Result<(), Corruption> {
    if agrees {
        Ok(())
    } else {
        Err(corrupt(row, problem))
    }
}

/// A conversation's membership and anchors, verified.
pub(super) struct Foundations {
    pub(super) membership: Membership,
    pub(super) state: ConversationStateRow,
    /// In the order in which the conversation took them; never empty.
    pub(super) anchors: Vec<StoredAnchor>,
}

/// One verified anchor with its row.
pub(super) struct StoredAnchor {
    row: AnchorRow,
    pub(super) anchor: VerifiedRouterAnchor,
}

/// Where the certified chain ends.
pub(super) struct ChainEnd {
    pub(super) position: Position,
    pub(super) records: u64,
    /// How many evidence rows the chain's certificates consist of.
    pub(super) evidence: usize,
}

impl Foundations {
    /// Verifies a conversation's membership, state and anchors.
    pub(super) fn load(
        rows: &Snapshot,
        id: &ConversationId,
        trust: &mut Trust<'_>,
    ) -> Result<Self, Corruption> {
        let key = Key::new([&id.to_string()]);
        let state: ConversationStateRow = required(rows, &key)?;
        let row: MembershipRow = required(rows, &key)?;
        let membership = load_membership(&row, &row.canonical_membership, id, trust)?;
        require(
            &row,
            row.membership_hash == membership.hash().to_string(),
            "the hash is not the descriptor's",
        )?;
        require(
            &state,
            state.membership_hash == row.membership_hash,
            "the membership is another",
        )?;
        let mut anchor_rows: Vec<AnchorRow> = rows.below(&key)?;
        anchor_rows.sort_by_key(|row| row.position);
        let mut anchors = Vec::new();
        for (place, row) in (0..).zip(anchor_rows) {
            require(&row, row.position == place, "an anchor is missing before it")?;
            let anchor = load_anchor(&row, &membership, trust)?;
            anchors.push(StoredAnchor { row, anchor });
        }
        let current = anchors.last().map(|last| last.row.anchor_hash.as_str());
        require(
            &state,
            current == Some(&state.current_anchor_hash),
            "the current anchor is not the last",
        )?;
        Ok(Foundations {
            membership,
            state,
            anchors,
        })
    }

    /// The current anchor.
    pub(super) fn current(&self) -> &VerifiedRouterAnchor {
        &self.anchors[self.anchors.len() - 1].anchor
    }

    /// Verifies the certified records and the anchors as one chain, in order, and shows each record to `visit`.
    pub(super) fn walk(
        &self,
        rows: &Snapshot,
        trust: &mut Trust<'_>,
        visit: &mut dyn FnMut(u64, VerifiedCertifiedRecord) -> Result<(), Corruption>,
    ) -> Result<ChainEnd, Corruption> {
        let mut walk = ChainWalk::begin(self, rows)?;
        while let Some((ordinal, record)) = walk.step(self, rows, trust)? {
            visit(ordinal, record)?;
        }
        walk.finish(self)
    }

    /// Takes the anchor at a place, if it follows at this position.
    fn extend(&self, place: usize, position: &mut Position) -> Result<(), &'static str> {
        let next = self.anchors.get(place).ok_or("no anchor is the record's")?;
        let previous = Some(position.anchor_hash.to_string());
        let selected = position.record_hash.map(|hash| hash.to_string());
        if next.row.previous_anchor_hash != previous || next.row.selected_record_hash != selected {
            return Err("the anchor does not extend the chain");
        }
        position.anchor_hash = *next.anchor.hash();
        Ok(())
    }
}

/// A certified record as it is stored, decoded and not verified.
struct StoredRecord {
    link: CertifiedRecordRow,
    row: StagedRecordRow,
    record: VerifiedRecordCore,
    signatures: StoredEvidence,
    votes: StoredEvidence,
}

impl StoredRecord {
    fn decode(
        link: CertifiedRecordRow,
        rows: &Snapshot,
        membership: &Membership,
    ) -> Result<Self, Corruption> {
        let key = Key::new([&link.conversation_id, &link.record_hash]);
        let row: StagedRecordRow = required(rows, &key)?;
        let record = load_record(&row, membership)?;
        Ok(StoredRecord {
            signatures: StoredEvidence::signatures(rows, &record, membership)?,
            votes: StoredEvidence::votes(rows, &record, membership)?,
            link,
            row,
            record,
        })
    }

    /// Verifies the retained evidence, which must complete both certificates.
    fn verify(
        self,
        anchor: &VerifiedRouterAnchor,
        membership: &Membership,
        trust: &mut Trust<'_>,
    ) -> Result<VerifiedCertifiedRecord, Corruption> {
        let signatures = self.signatures.verify(membership, trust)?;
        let votes = self.votes.verify(membership, trust)?;
        VerifiedActionCertifiedRecord::assemble(self.record, anchor, signatures, membership)
            .and_then(|record| VerifiedCertifiedRecord::assemble(record, votes, membership))
            .ok_or_else(|| {
                corrupt(
                    &self.link,
                    "the retained evidence does not complete its certificates",
                )
            })
    }
}

/// A walk over a conversation's certified records and anchors as one chain, a record at a time.
pub(super) struct ChainWalk {
    links: std::vec::IntoIter<CertifiedRecordRow>,
    /// The records that were decoded ahead of their verification; nothing is beyond one that cannot be.
    ahead: VecDeque<Result<StoredRecord, Corruption>>,
    /// The anchor the walk stands under, by its place.
    place: usize,
    end: ChainEnd,
}

impl ChainWalk {
    /// Stands before the first record.
    pub(super) fn begin(foundations: &Foundations, rows: &Snapshot) -> Result<Self, Corruption> {
        let key = Key::new([&foundations.membership.conversation_id().to_string()]);
        let position = Position {
            record_hash: None,
            anchor_hash: *foundations.anchors[0].anchor.hash(),
        };
        Ok(ChainWalk {
            links: rows.below::<CertifiedRecordRow>(&key)?.into_iter(),
            ahead: VecDeque::new(),
            place: 0,
            end: ChainEnd {
                position,
                records: 0,
                evidence: 0,
            },
        })
    }

    /// Decodes one more record, and returns the signatures on it that are not known to hold. None after the last, and beyond
    /// one that cannot be decoded.
    pub(super) fn look_ahead(
        &mut self,
        foundations: &Foundations,
        rows: &Snapshot,
    ) -> Option<Vec<UnverifiedSignature>> {
        if matches!(self.ahead.back(), Some(Err(_))) {
            return None;
        }
        let membership = &foundations.membership;
        let stored = StoredRecord::decode(self.links.next()?, rows, membership);
        let mut signatures = Vec::new();
        if let Ok(stored) = &stored {
            signatures.extend(stored.signatures.unverified(membership));
            signatures.extend(stored.votes.unverified(membership));
        }
        self.ahead.push_back(stored);
        Some(signatures)
    }

    /// Verifies the next record, with its place in the chain; none after the last.
    pub(super) fn step(
        &mut self,
        foundations: &Foundations,
        rows: &Snapshot,
        trust: &mut Trust<'_>,
    ) -> Result<Option<(u64, VerifiedCertifiedRecord)>, Corruption> {
        let membership = &foundations.membership;
        let next = self.ahead.pop_front().or_else(|| {
            let link = self.links.next()?;
            Some(StoredRecord::decode(link, rows, membership))
        });
        let Some(stored) = next.transpose()? else {
            return Ok(None);
        };
        let StoredRecord {
            link, row, record, ..
        } = &stored;
        let end = &mut self.end;
        let ordinal = link.ordinal;
        require(link, ordinal == end.records, "a record is missing before it")?;
        while *record.anchor_hash() != end.position.anchor_hash {
            self.place += 1;
            foundations
                .extend(self.place, &mut end.position)
                .map_err(|problem| corrupt(row, problem))?;
        }
        require(
            row,
            record.position() == end.position,
            "the record does not extend the one before",
        )?;
        let certified = stored.verify(&foundations.anchors[self.place].anchor, membership, trust)?;
        end.evidence += certified.signatures().len() + certified.votes().len();
        end.position = certified.position_after();
        end.records += 1;
        Ok(Some((ordinal, certified)))
    }

    /// Takes the anchors after the last record, and checks that the conversation's state is where the chain ends.
    pub(super) fn finish(mut self, foundations: &Foundations) -> Result<ChainEnd, Corruption> {
        while self.place + 1 < foundations.anchors.len() {
            self.place += 1;
            let row = &foundations.anchors[self.place].row;
            foundations
                .extend(self.place, &mut self.end.position)
                .map_err(|problem| corrupt(row, problem))?;
        }
        let head = self.end.position.record_hash.map(|hash| hash.to_string());
        let ordinal = i64::try_from(self.end.records).unwrap_or(i64::MAX) - 1;
        let state = &foundations.state;
        let agrees = state.head_record_hash == head && state.head_ordinal == ordinal;
        require(state, agrees, "the head is not the chain's end")?;
        Ok(self.end)
    }
}

/// Reads one certified record and verifies it as a whole.
pub(super) fn load_certified(
    rows: &Snapshot,
    ordinal: u64,
    record_hash: &RecordHash,
    membership: &Membership,
    trust: &mut Trust<'_>,
) -> Result<VerifiedCertifiedRecord, Corruption> {
    let key = Key::new([&membership.conversation_id().to_string()]);
    let link: CertifiedRecordRow = required(rows, &key.with(ordinal))?;
    require(
        &link,
        link.record_hash == record_hash.to_string(),
        "another record holds the place",
    )?;
    let stored = StoredRecord::decode(link, rows, membership)?;
    let key = key_of_anchor(membership, stored.record.anchor_hash());
    let anchor = load_anchor(&required(rows, &key)?, membership, trust)?;
    stored.verify(&anchor, membership, trust)
}

/// Reads the anchor at a place of the chain and verifies it.
pub(super) fn load_anchor_at(
    rows: &Snapshot,
    hash: &AnchorHash,
    place: u64,
    membership: &Membership,
    trust: &mut Trust<'_>,
) -> Result<VerifiedRouterAnchor, Corruption> {
    let row: AnchorRow = required(rows, &key_of_anchor(membership, hash))?;
    require(&row, row.position == place, "another anchor holds the place")?;
    load_anchor(&row, membership, trust)
}

fn key_of_anchor(membership: &Membership, hash: &AnchorHash) -> Key {
    Key::new([&membership.conversation_id().to_string(), &hash.to_string()])
}

/// Verifies a stored descriptor.
pub(super) fn load_membership(
    row: &impl Row,
    canonical: &str,
    id: &ConversationId,
    trust: &Trust<'_>,
) -> Result<Membership, Corruption> {
    let membership = Membership::decode(canonical.as_bytes(), trust.registry, trust.history)
        .map_err(|error| corrupt(row, error))?;
    require(
        row,
        membership.conversation_id() == id,
        "the descriptor is of another conversation",
    )?;
    Ok(membership)
}

fn load_anchor(
    row: &AnchorRow,
    membership: &Membership,
    trust: &mut Trust<'_>,
) -> Result<VerifiedRouterAnchor, Corruption> {
    let value = RouterAnchor::decode_over(trust.history, row.canonical_anchor.as_bytes())
        .map_err(|error| corrupt(row, error))?;
    let anchor =
        VerifiedRouterAnchor::verify(value, membership, trust.memory).map_err(|error| corrupt(row, error))?;
    let (previous, selected) = match anchor.value() {
        RouterAnchor::Genesis(_) => (None, None),
        RouterAnchor::Completed(completed) => (
            Some(completed.reanchor.previous_anchor_hash.to_string()),
            Some(completed.reanchor.selected_record_hash.to_string()),
        ),
    };
    require(
        row,
        row.anchor_hash == anchor.hash().to_string(),
        "the hash is not the anchor's",
    )?;
    require(
        row,
        row.previous_anchor_hash == previous,
        "the previous anchor is not the anchor's",
    )?;
    require(
        row,
        row.selected_record_hash == selected,
        "the selected record is not the anchor's",
    )?;
    require(
        row,
        (row.position == 0) == previous.is_none(),
        "only the first anchor is a genesis anchor",
    )?;
    Ok(anchor)
}

/// Verifies a stored record core, and that every column says what the core says.
pub(super) fn load_record(
    row: &StagedRecordRow,
    membership: &Membership,
) -> Result<VerifiedRecordCore, Corruption> {
    let core = RecordCore::decode_over(membership.history(), row.canonical_record_core.as_bytes())
        .map_err(|error| corrupt(row, error))?;
    let record = VerifiedRecordCore::verify(core, membership).map_err(|error| corrupt(row, error))?;
    // The text is the core's: decoding took no other.
    let written = staged_row_of_text(&record, row.canonical_record_core.clone());
    require(row, written == *row, "a column disagrees with the record core")?;
    Ok(record)
}

/// The conversations that have any row of their own.
pub(super) fn held(rows: &Snapshot) -> Result<Vec<ConversationId>, Corruption> {
    let memberships = rows.rows::<MembershipRow>()?;
    memberships
        .iter()
        .map(|row| column(row, &row.conversation_id))
        .collect()
}

/// A row that should not be there, or one that is missing.
pub(super) fn surplus(table: Table, key: &Key, problem: &'static str) -> Corruption {
    Corruption {
        table,
        key: key.to_string(),
        problem: problem.to_owned(),
    }
}

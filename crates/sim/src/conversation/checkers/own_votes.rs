//! No honest member contradicts itself: one action signed and one record voted for at a predecessor under an anchor, one
//! re-anchor voted for away from an anchor under an instance, no re-anchor behind its own staged successor, nothing staged
//! or voted for under an anchor it voted to leave, and one GENESIS voted for under all anchors.

use std::collections::{BTreeMap, BTreeSet};

use conclave_conversation::{
    store::{
        Transition,
        rows::{EvidenceKind, EvidenceRow, ReanchorRow, StagedRecordRow},
    },
    values::{ActionHash, AnchorHash, ConversationId, RecordHash},
};
use conclave_harness::RouterInstanceId;

use crate::conversation::history::{Event, History, Place, Said, short};

/// What one record is voted for at: a predecessor under an anchor; the beginning under whatever anchor.
type Succession = (ConversationId, Option<(RecordHash, AnchorHash)>);

fn succession(place: &Place) -> Succession {
    (
        place.conversation,
        place.previous.map(|previous| (previous, place.anchor)),
    )
}

/// The word a member has given.
#[derive(Default)]
struct Word {
    signed: BTreeMap<Place, ActionHash>,
    voted: BTreeMap<Succession, RecordHash>,
    reanchored: BTreeMap<(AnchorHash, RouterInstanceId), AnchorHash>,
    /// The anchors it voted to leave.
    leaving: BTreeSet<String>,
    /// What it staged and has not seen certified, by predecessor and anchor.
    staged: BTreeMap<(Option<String>, String), String>,
}

impl Word {
    fn sign(&mut self, history: &History, action: &ActionHash) -> Option<String> {
        let place = history.actions.get(action)?.place;
        let before = *self.signed.entry(place).or_insert(*action);
        (before != *action).then(|| format!("signs {} and {}", short(&before), short(action)))
    }

    fn vote(&mut self, history: &History, record: &RecordHash) -> Option<String> {
        let (_, place) = *history.records.get(record)?;
        let before = *self.voted.entry(succession(&place)).or_insert(*record);
        (before != *record).then(|| format!("votes for {} and {}", short(&before), short(record)))
    }

    fn reanchor(&mut self, history: &History, anchor: &AnchorHash) -> Option<String> {
        let body = history.reanchors.get(anchor)?;
        let scope = (body.previous, body.instance);
        let before = *self.reanchored.entry(scope).or_insert(*anchor);
        (before != *anchor).then(|| {
            format!(
                "votes for the re-anchors {} and {}",
                short(&before),
                short(anchor)
            )
        })
    }

    fn stage(&mut self, record: &StagedRecordRow) -> Option<String> {
        self.staged.insert(place_of(record), record.record_hash.clone());
        self.leaving.contains(&record.anchor_hash).then(|| {
            format!(
                "stages {} under an anchor it voted to leave",
                short(&record.record_hash)
            )
        })
    }

    fn leave(&mut self, candidate: &ReanchorRow) -> Option<String> {
        self.leaving.insert(candidate.previous_anchor_hash.clone());
        let place = (
            Some(candidate.selected_record_hash.clone()),
            candidate.previous_anchor_hash.clone(),
        );
        let staged = self.staged.get(&place)?;
        Some(format!(
            "votes to re-anchor behind its own staged {}",
            short(staged)
        ))
    }

    fn state(&mut self, history: &History, row: &EvidenceRow) -> Option<String> {
        match row.evidence_kind {
            EvidenceKind::Action => self.sign(history, &row.subject_id.parse().ok()?),
            EvidenceKind::Durability => {
                let record = row.subject_id.parse().ok()?;
                let (_, place) = *history.records.get(&record)?;
                if self.leaving.contains(&place.anchor.to_string())
                    && !self.voted.contains_key(&succession(&place))
                {
                    return Some(format!(
                        "votes for {} under an anchor it voted to leave",
                        short(&record)
                    ));
                }
                self.vote(history, &record)
            }
            EvidenceKind::Reanchor => self.reanchor(history, &row.subject_id.parse().ok()?),
            EvidenceKind::CatchUp => None,
        }
    }

    fn take(&mut self, history: &History, own: &str, transition: &Transition) -> Option<String> {
        match transition {
            Transition::MergeEvidence(merge) if merge.evidence.evidence_key == own => {
                self.state(history, &merge.evidence)
            }
            Transition::StageRecord(stage) => self.stage(&stage.record),
            Transition::PromoteRecord(promote) => {
                self.staged.remove(&place_of(&promote.record));
                None
            }
            Transition::ApplyRecord(apply) => {
                self.staged.remove(&place_of(&apply.record));
                None
            }
            Transition::StageReanchor(stage) => self.leave(&stage.candidate),
            Transition::CompleteReanchor(_) | Transition::AdoptReanchor(_) | Transition::RestartEmpty(_) => {
                None
            }
            _ => None,
        }
    }

    fn send(&mut self, history: &History, member: usize, said: &Said) -> Option<String> {
        let is_own = |signer| history.number(signer) == Some(member);
        match said {
            Said::Signature { signer, action } if is_own(signer) => self.sign(history, action),
            Said::Vote { signer, record } if is_own(signer) => self.vote(history, record),
            Said::ReanchorVote { signer, anchor } if is_own(signer) => self.reanchor(history, anchor),
            _ => None,
        }
    }
}

fn place_of(record: &StagedRecordRow) -> (Option<String>, String) {
    (record.previous_record_hash.clone(), record.anchor_hash.clone())
}

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let mut words: BTreeMap<usize, Word> = BTreeMap::new();
    for happened in history
        .events
        .iter()
        .filter(|happened| history.honest[happened.member])
    {
        let member = happened.member;
        let own = history.agents[member].to_string();
        let word = words.entry(member).or_default();
        match &happened.event {
            Event::Durable(transitions) => {
                for transition in transitions {
                    let broken = word.take(history, &own, transition);
                    found.extend(broken.map(|broken| format!("{member} {broken}")));
                }
            }
            Event::Left { said, .. } => {
                let broken = word.send(history, member, said);
                found.extend(broken.map(|broken| format!("{member} {broken}")));
            }
            _ => {}
        }
    }
    found
}

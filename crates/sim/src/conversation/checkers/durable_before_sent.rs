//! What an honest member sends stands on what is durable there: every envelope, and for what it says the intent, the lock,
//! the staged copy, the candidate, and the statement itself. A vote leaves after its member's own copy.

use std::collections::{BTreeMap, BTreeSet};

use conclave_conversation::store::{
    Transition,
    rows::{EvidenceKind, EvidenceRow},
};

use crate::conversation::history::{Event, History, Said};

/// What a member has made durable at some time.
#[derive(Default)]
struct Made {
    envelopes: BTreeSet<String>,
    intents: BTreeSet<String>,
    locks: BTreeSet<String>,
    staged: BTreeSet<String>,
    certified: BTreeSet<String>,
    candidates: BTreeSet<String>,
    anchors: BTreeSet<String>,
    /// Own statements: the subject's name says its kind.
    stated: BTreeSet<String>,
    /// Own copies that left.
    shown: BTreeSet<String>,
}

impl Made {
    fn state(&mut self, own: &str, rows: &[EvidenceRow]) {
        let own_rows = rows
            .iter()
            .filter(|row| row.evidence_key == own && row.evidence_kind != EvidenceKind::CatchUp);
        self.stated.extend(own_rows.map(|row| row.subject_id.clone()));
    }

    fn make(&mut self, own: &str, transition: &Transition) {
        match transition {
            Transition::BindPostIntent(bind) => {
                self.intents.insert(bind.intent.post_id.clone());
            }
            Transition::LockProposal(lock) => {
                self.locks.insert(lock.lock.action_hash.clone());
            }
            Transition::LockGenesis(lock) => {
                self.locks.insert(lock.lock.action_hash.clone());
            }
            Transition::SupersedeLock(supersede) => {
                self.locks.insert(supersede.lock.action_hash.clone());
            }
            Transition::MergeEvidence(merge) => self.state(own, std::slice::from_ref(&merge.evidence)),
            Transition::StageRecord(stage) => {
                self.staged.insert(stage.record.record_hash.clone());
            }
            Transition::PromoteRecord(promote) => {
                self.certified.insert(promote.record.record_hash.clone());
                self.state(own, &promote.evidence);
            }
            Transition::ApplyRecord(apply) => {
                self.certified.insert(apply.record.record_hash.clone());
                self.state(own, &apply.evidence);
            }
            Transition::StageReanchor(stage) => {
                self.candidates.insert(stage.candidate.anchor_hash.clone());
            }
            Transition::CompleteReanchor(complete) => {
                self.anchors.insert(complete.0.anchor.anchor_hash.clone());
            }
            Transition::AdoptReanchor(adopt) => {
                self.anchors.insert(adopt.0.anchor.anchor_hash.clone());
            }
            Transition::Enqueue(enqueue) => {
                self.envelopes.insert(enqueue.outbound.outbound_id.clone());
            }
            Transition::AttachObligation(attach) => {
                self.envelopes.insert(attach.outbound.outbound_id.clone());
            }
            _ => {}
        }
    }

    /// What is missing of what a message stands on.
    fn lacks(&self, history: &History, member: usize, said: &Said) -> Option<&'static str> {
        let is_own = |signer| history.number(signer) == Some(member);
        let missing = |is_there: bool, what| (!is_there).then_some(what);
        match said {
            Said::Proposal(action) => {
                let post = history.actions.get(action).map(|action| action.post.to_string());
                missing(
                    post.is_some_and(|post| self.intents.contains(&post)),
                    "its intent",
                )
            }
            Said::Signature { signer, action } if is_own(signer) => {
                let action = action.to_string();
                missing(self.locks.contains(&action), "its lock")
                    .or_else(|| missing(self.stated.contains(&action), "the signature"))
            }
            Said::Copy(record) => missing(self.staged.contains(&record.to_string()), "the staged record"),
            Said::Vote { signer, record } if is_own(signer) => {
                let record = record.to_string();
                missing(self.staged.contains(&record), "the staged record")
                    .or_else(|| missing(self.stated.contains(&record), "the vote"))
                    .or_else(|| missing(self.shown.contains(&record), "the copy on the wire"))
            }
            Said::ReanchorVote { signer, anchor } if is_own(signer) => {
                let anchor = anchor.to_string();
                missing(self.candidates.contains(&anchor), "the candidate")
                    .or_else(|| missing(self.stated.contains(&anchor), "the vote"))
            }
            Said::Completed(anchor) | Said::PageOfAnchor(anchor) => {
                missing(self.anchors.contains(&anchor.to_string()), "the anchor")
            }
            Said::Certified(record) | Said::PageOfRecord(record) => missing(
                self.certified.contains(&record.to_string()),
                "the certified record",
            ),
            _ => None,
        }
    }
}

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let mut made: BTreeMap<usize, Made> = BTreeMap::new();
    for happened in history
        .events
        .iter()
        .filter(|happened| history.honest[happened.member])
    {
        let member = happened.member;
        let own = history.agents[member].to_string();
        let made = made.entry(member).or_default();
        match &happened.event {
            Event::Durable(transitions) => transitions
                .iter()
                .for_each(|transition| made.make(&own, transition)),
            Event::Left { id, said, .. } => {
                if !made.envelopes.contains(&id.to_string()) {
                    found.push(format!(
                        "{member} sends the {said} before its envelope is durable"
                    ));
                }
                if let Some(what) = made.lacks(history, member, said) {
                    found.push(format!("{member} sends the {said} before {what}"));
                }
                if let Said::Copy(record) = said {
                    made.shown.insert(record.to_string());
                }
            }
            _ => {}
        }
    }
    found
}

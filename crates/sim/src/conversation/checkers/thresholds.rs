//! What honest members hold as certified has the signatures and votes it takes: all members' for GENESIS, a quorum's with
//! its author's for a POST, a quorum's votes for each record and each re-anchor.

use std::collections::BTreeSet;

use conclave_conversation::{
    certificates::quorum,
    store::{
        Transition,
        rows::{EvidenceKind, EvidenceRow, StagedRecordRow},
        transition::LeaveAnchor,
    },
    values::{ClosedValue, CompletedReanchor},
};

use super::durable;
use crate::conversation::history::{Certified, History, Known, short};

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for (_, member, transition) in durable(history) {
        let problem = match transition {
            Transition::PromoteRecord(promote) => of_record(history, &promote.record, &promote.evidence),
            Transition::ApplyRecord(apply) => of_record(history, &apply.record, &apply.evidence),
            Transition::CompleteReanchor(complete) => of_reanchor(history, &complete.0),
            Transition::AdoptReanchor(adopt) => of_reanchor(history, &adopt.0),
            _ => None,
        };
        found.extend(problem.map(|problem| format!("{member}: {problem}")));
    }
    for ((conversation, member), chain) in &history.end.chains {
        let Some(known) = history
            .conversations
            .iter()
            .find(|known| known.id == *conversation)
        else {
            continue;
        };
        for certified in chain {
            found.extend(
                of_certified(history, known, certified).map(|problem| format!("{member}: {problem}")),
            );
        }
    }
    found
}

fn members_of(history: &History, conversation: &str) -> Option<Vec<String>> {
    let known = history
        .conversations
        .iter()
        .find(|known| known.id.to_string() == conversation)?;
    Some(
        known
            .members
            .iter()
            .map(|member| history.agents[*member].to_string())
            .collect(),
    )
}

fn of_record(history: &History, record: &StagedRecordRow, evidence: &[EvidenceRow]) -> Option<String> {
    let members = members_of(history, &record.conversation_id)?;
    let of = |kind, subject: &str| -> BTreeSet<&String> {
        evidence
            .iter()
            .filter(|row| row.evidence_kind == kind && row.subject_id == subject)
            .map(|row| &row.evidence_key)
            .filter(|signer| members.contains(signer))
            .collect()
    };
    let signers = of(EvidenceKind::Action, &record.action_hash);
    let voters = of(EvidenceKind::Durability, &record.record_hash);
    let is_genesis = record.previous_record_hash.is_none();
    let has_author = signers.contains(&record.author_agent_id);
    lacking(members.len(), is_genesis, signers.len(), has_author, voters.len())
        .map(|what| format!("{} is certified {what}", short(&record.record_hash)))
}

fn of_certified(history: &History, known: &Known, certified: &Certified) -> Option<String> {
    let is_member = |id: &&conclave_harness::AgentId| {
        history
            .number(id)
            .is_some_and(|number| known.members.contains(&number))
    };
    let signers = certified.signers.iter().filter(is_member).count();
    let voters = certified.voters.iter().filter(is_member).count();
    let has_author = certified.signers.contains(&certified.author);
    lacking(
        known.members.len(),
        certified.place.previous.is_none(),
        signers,
        has_author,
        voters,
    )
    .map(|what| format!("{} is kept {what}", short(&certified.record)))
}

fn lacking(
    members: usize,
    is_genesis: bool,
    signers: usize,
    has_author: bool,
    voters: usize,
) -> Option<String> {
    let needed = if is_genesis { members } else { quorum(members) };
    if signers < needed || !has_author || voters < quorum(members) {
        return Some(format!(
            "by {signers} signatures ({needed} needed, the author's {}) and {voters} votes",
            if has_author { "there" } else { "missing" }
        ));
    }
    None
}

fn of_reanchor(history: &History, leave: &LeaveAnchor) -> Option<String> {
    let members = members_of(history, &leave.reanchor.conversation_id)?;
    let text = leave
        .reanchor
        .canonical_completed_reanchor
        .as_deref()
        .unwrap_or_default();
    let votes = CompletedReanchor::decode(text.as_bytes()).map_or(0, |completed| {
        let voters = completed
            .certificate
            .votes
            .iter()
            .map(|vote| vote.sender().to_string());
        voters
            .filter(|voter| members.contains(voter))
            .collect::<BTreeSet<_>>()
            .len()
    });
    (votes < quorum(members.len())).then(|| {
        format!(
            "the re-anchor {} is complete by {votes} votes",
            short(&leave.reanchor.anchor_hash)
        )
    })
}

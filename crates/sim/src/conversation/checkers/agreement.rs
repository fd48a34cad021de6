//! No record has two certified successors: none that honest members hold, and none that enough votes for exist of.

use std::collections::{BTreeMap, BTreeSet};

use conclave_conversation::{
    certificates::quorum,
    store::Transition,
    values::{ConversationId, RecordHash},
};

use super::durable;
use crate::conversation::history::{Event, History, Said, short};

type Predecessor = (ConversationId, Option<RecordHash>);

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let mut successors: BTreeMap<Predecessor, BTreeSet<RecordHash>> = BTreeMap::new();
    for (_, _, transition) in durable(history) {
        let row = match transition {
            Transition::PromoteRecord(promote) => &promote.record,
            Transition::ApplyRecord(apply) => &apply.record,
            _ => continue,
        };
        let Some(record) = row.record_hash.parse().ok() else {
            continue;
        };
        if let Some((_, place)) = history.records.get(&record) {
            successors
                .entry((place.conversation, place.previous))
                .or_default()
                .insert(record);
        }
    }
    for ((_, previous), records) in &successors {
        if records.len() > 1 {
            found.push(format!(
                "{} certified successors of {}",
                records.len(),
                name(previous.as_ref())
            ));
        }
    }
    found.extend(possible(history));
    found
}

/// Two successors that both could be certified, if every Byzantine member votes for both.
///
/// Not asked of GENESIS: an empty conversation begins again under each instance, and it is the signatures of all that make
/// one GENESIS the only one.
fn possible(history: &History) -> Vec<String> {
    let mut votes: BTreeMap<RecordHash, BTreeSet<usize>> = BTreeMap::new();
    for happened in history
        .events
        .iter()
        .filter(|happened| history.honest[happened.member])
    {
        if let Event::Left {
            said: Said::Vote { signer, record },
            ..
        } = &happened.event
            && history.number(signer) == Some(happened.member)
        {
            votes.entry(*record).or_default().insert(happened.member);
        }
    }
    let mut able: BTreeMap<Predecessor, Vec<RecordHash>> = BTreeMap::new();
    for (record, voters) in &votes {
        let Some((_, place)) = history.records.get(record) else {
            continue;
        };
        let Some(known) = history
            .conversations
            .iter()
            .find(|known| known.id == place.conversation)
        else {
            continue;
        };
        let byzantine = known
            .members
            .iter()
            .filter(|member| !history.honest[**member])
            .count();
        if place.previous.is_some() && voters.len() + byzantine >= quorum(known.members.len()) {
            able.entry((place.conversation, place.previous))
                .or_default()
                .push(*record);
        }
    }
    let forks = able.into_iter().filter(|(_, records)| records.len() > 1);
    forks
        .map(|((_, previous), records)| {
            format!(
                "{} successors of {} can be certified",
                records.len(),
                name(previous.as_ref())
            )
        })
        .collect()
}

fn name(previous: Option<&RecordHash>) -> String {
    previous.map_or_else(|| "nothing".to_owned(), short)
}

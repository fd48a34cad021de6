//! A handle is claimed by the publishes of one inbox, however many try at once, and whoever is told that another has it was
//! told the truth (API-296).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use conclave_grpc_web::Code;

use super::{Violation, facts::Facts, violation};
use crate::backend::history::{Asked, Came, Condition, History, short};

/// The inboxes of a handle.
type Owners<'a> = BTreeMap<&'a Bytes, BTreeSet<&'a Bytes>>;

pub(super) fn check(history: &History, facts: &Facts) -> Vec<Violation> {
    let mut found = Vec::new();
    let owners = owners_of_stored(history, facts);
    for (handle, inboxes) in owners.iter().filter(|(_, inboxes)| inboxes.len() > 1) {
        let names: Vec<String> = inboxes.iter().map(|inbox| short(inbox)).collect();
        found.push(violation(
            format!("{} is claimed by {}", short(handle), names.join(" and ")),
            [],
        ));
    }
    for attempt in &history.attempts {
        let (Asked::Publish(number), Some(Came::Failure(Code::InvalidArgument, _))) =
            (&attempt.asked, &attempt.came)
        else {
            continue;
        };
        let conditions = &history.publishes[*number].conditions;
        let mut all = owners.clone();
        for (handle, condition) in claims(conditions) {
            all.entry(handle).or_default().insert(&condition.topic);
        }
        let is_taken = |condition: &Condition| {
            let owners = condition.handle.as_ref().and_then(|handle| all.get(handle));
            owners.is_some_and(|owners| owners.iter().any(|owner| **owner != condition.topic))
        };
        let is_full = |condition: &Condition| {
            let log = facts.logs.get(&condition.topic);
            log.is_some_and(|log| log.len() >= condition.entries_max as usize)
        };
        if !conditions
            .iter()
            .any(|condition| is_taken(condition) || is_full(condition))
        {
            let text = format!("nothing is taken and nothing is full: {attempt}");
            found.push(violation(text, []));
        }
    }
    found
}

fn claims(conditions: &[Condition]) -> impl Iterator<Item = (&Bytes, &Condition)> {
    conditions
        .iter()
        .filter_map(|condition| Some((condition.handle.as_ref()?, condition)))
}

/// Who claimed each handle with an envelope that is stored.
fn owners_of_stored<'a>(history: &'a History, facts: &Facts) -> Owners<'a> {
    let mut owners = Owners::new();
    for publish in &history.publishes {
        for (handle, condition) in claims(&publish.conditions) {
            let mut own = publish.keys.iter().filter(|key| key.0 == condition.topic);
            if own.any(|key| facts.stored.contains_key(key)) {
                owners.entry(handle).or_default().insert(&condition.topic);
            }
        }
    }
    owners
}

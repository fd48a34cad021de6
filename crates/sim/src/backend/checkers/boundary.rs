//! The boundary never falls, nothing at or below it is hidden, and nothing is stored there later (API-203, API-291).

use super::{
    Violation,
    facts::{Facts, pages},
    violation,
};
use crate::backend::history::{Came, History, Moment, id_of};

/// A boundary as a client learned it.
struct Seen {
    invoked: Moment,
    returned: Moment,
    boundary: u64,
    last_allocated: u64,
}

pub(super) fn check(history: &History, facts: &Facts) -> Vec<Violation> {
    let seen: Vec<Seen> = history
        .attempts
        .iter()
        .filter_map(|attempt| match (&attempt.came, attempt.returned) {
            (
                Some(Came::Status {
                    boundary: Some(boundary),
                    last_allocated,
                }),
                Some(returned),
            ) => Some(Seen {
                invoked: attempt.invoked,
                returned,
                boundary: *boundary,
                last_allocated: *last_allocated,
            }),
            _ => None,
        })
        .collect();
    let mut found = Vec::new();
    for one in &seen {
        if one.boundary > one.last_allocated {
            let text = format!("the boundary {} is above the last id", one.boundary);
            found.push(violation(text, [one.boundary]));
        }
        let later = seen.iter().filter(|other| one.returned < other.invoked);
        for other in later.filter(|other| other.boundary < one.boundary) {
            let text = format!(
                "the boundary fell from {} at [{}] to {} at [{}]",
                one.boundary, one.returned, other.boundary, other.returned
            );
            found.push(violation(text, [one.boundary, other.boundary]));
        }
        nothing_is_stored_below(one, facts, &mut found);
        nothing_is_hidden_below(one, history, facts, &mut found);
    }
    found
}

fn nothing_is_stored_below(seen: &Seen, facts: &Facts, found: &mut Vec<Violation>) {
    let mut late: Vec<u64> = facts
        .stored
        .iter()
        .filter(|(key, meta)| {
            let sent = facts.first_sent.get(*key).copied().unwrap_or_default();
            id_of(meta) <= seen.boundary && sent > seen.returned
        })
        .map(|(_, meta)| id_of(meta))
        .collect();
    late.sort_unstable();
    if !late.is_empty() {
        let text = format!(
            "{late:?} were first sent after the boundary was {} at [{}]",
            seen.boundary, seen.returned
        );
        found.push(violation(text, late));
    }
}

fn nothing_is_hidden_below(seen: &Seen, history: &History, facts: &Facts, found: &mut Vec<Violation>) {
    for page in pages(history).filter(|page| page.attempt.invoked > seen.returned) {
        for (topic, after) in page.positions {
            let through = page.reaches(topic, *after).min(seen.boundary);
            let shown = page.ids_of(topic);
            let wanted = facts.ids_between(topic, *after, through);
            let hidden: Vec<u64> = wanted.into_iter().filter(|id| !shown.contains(id)).collect();
            if !hidden.is_empty() {
                let text = format!(
                    "{hidden:?} lie below the boundary {} of [{}], and a later query misses them: {}",
                    seen.boundary, seen.returned, page.attempt
                );
                found.push(violation(text, hidden));
            }
        }
    }
}

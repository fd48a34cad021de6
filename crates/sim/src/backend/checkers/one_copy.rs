//! One entry per envelope at its index (API-221), one copy per topic and hash (API-222), and the same metadata whenever it
//! is shown (API-212).

use std::collections::HashMap;

use super::{Violation, facts::Facts, violation};
use crate::backend::history::{Asked, Came, History, id_of, key_of, short};

pub(super) fn check(history: &History, facts: &Facts) -> Vec<Violation> {
    let mut found = receipts_match(history);
    for (topic, log) in &facts.logs {
        let mut first = HashMap::new();
        for meta in log {
            if let Some(earlier) = first.insert(key_of(meta), id_of(meta)) {
                let text = format!("{} holds one envelope twice", short(topic));
                found.push(violation(text, [earlier, id_of(meta)]));
            }
        }
    }
    let mut shown = HashMap::new();
    let logged = facts.logs.values().flatten();
    for meta in facts
        .sightings
        .iter()
        .map(|sighting| &sighting.meta)
        .chain(logged)
    {
        let known = shown.entry(id_of(meta)).or_insert(meta);
        if *known != meta {
            let text = format!("metadata changed from {known:?} to {meta:?}");
            found.push(violation(text, [id_of(meta)]));
        }
    }
    found
}

fn receipts_match(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    for attempt in &history.attempts {
        let (Asked::Publish(number), Some(Came::Receipts(metas))) = (&attempt.asked, &attempt.came) else {
            continue;
        };
        let wanted = &history.publishes[*number].keys;
        if !wanted.iter().eq(&metas.iter().map(key_of).collect::<Vec<_>>()) {
            let text = format!("the receipts of publish #{number} are not of its envelopes");
            found.push(violation(text, metas.iter().map(id_of).collect::<Vec<_>>()));
        }
    }
    found
}

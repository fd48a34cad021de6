//! A query shows every envelope that was shown to anybody before it was sent (API-202, and more: reads are linearizable).
//! An envelope that was shown is stored for good.

use super::{
    Violation,
    facts::{Facts, pages},
    violation,
};
use crate::backend::history::{History, id_of, key_of, short, topic_of};

pub(super) fn check(history: &History, facts: &Facts) -> Vec<Violation> {
    let mut found = Vec::new();
    for sighting in &facts.sightings {
        if !facts.stored.contains_key(&key_of(&sighting.meta)) {
            let text = format!(
                "{} on {} was shown at [{}] and is gone",
                id_of(&sighting.meta),
                short(&topic_of(&sighting.meta)),
                sighting.moment
            );
            found.push(violation(text, [id_of(&sighting.meta)]));
        }
    }
    for page in pages(history) {
        for (topic, after) in page.positions {
            let (shown, through) = (page.ids_of(topic), page.reaches(topic, *after));
            let missing = facts
                .ids_between(topic, *after, through)
                .into_iter()
                .filter(|id| {
                    let was_seen = facts
                        .first_seen
                        .get(id)
                        .is_some_and(|moment| *moment < page.attempt.invoked);
                    was_seen && !shown.contains(id)
                });
            let missing: Vec<u64> = missing.collect();
            if !missing.is_empty() {
                let text = format!("a query misses {missing:?}, shown before: {}", page.attempt);
                found.push(violation(text, missing));
            }
        }
    }
    found.dedup();
    found
}

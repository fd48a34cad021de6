//! Sequence ids are in range, unique over all topics, and never change (API-286, API-287, API-288).

use std::collections::HashMap;

use super::{Violation, facts::Facts, violation};
use crate::backend::history::{History, id_of, key_of, short};

pub(super) fn check(_: &History, facts: &Facts) -> Vec<Violation> {
    let (mut id_by_key, mut key_by_id) = (HashMap::new(), HashMap::new());
    let mut found = Vec::new();
    let logged = facts.logs.values().flatten();
    for meta in facts
        .sightings
        .iter()
        .map(|sighting| &sighting.meta)
        .chain(logged)
    {
        let (id, key) = (id_of(meta), key_of(meta));
        if id == 0 || i64::try_from(id).is_err() {
            found.push(violation(format!("{id} is no sequence id"), [id]));
        }
        let known = *id_by_key.entry(key.clone()).or_insert(id);
        if known != id {
            let text = format!(
                "an envelope on {} was shown as {known} and as {id}",
                short(&key.0)
            );
            found.push(violation(text, [known, id]));
        }
        let owner = key_by_id.entry(id).or_insert_with(|| key.clone());
        if *owner != key {
            let text = format!(
                "{id} was shown for two envelopes, on {} and on {}",
                short(&owner.0),
                short(&key.0)
            );
            found.push(violation(text, [id]));
        }
    }
    found.dedup();
    found
}

//! A publish that arrives after an envelope became visible gets greater ids, whatever the topics (API-289).

use super::{Violation, facts::Facts, violation};
use crate::backend::history::{History, id_of, short};

pub(super) fn check(_: &History, facts: &Facts) -> Vec<Violation> {
    // The greatest id that was shown so far, at each moment at which a greater one was shown.
    let mut risen: Vec<(u64, u64)> = Vec::new();
    for sighting in &facts.sightings {
        let id = id_of(&sighting.meta);
        if risen.last().is_none_or(|(_, greatest)| *greatest < id) {
            risen.push((sighting.moment, id));
        }
    }
    let mut found = Vec::new();
    for (key, meta) in &facts.stored {
        let Some(sent) = facts.first_sent.get(key) else {
            found.push(violation(
                "an envelope is stored that nobody sent".to_owned(),
                [id_of(meta)],
            ));
            continue;
        };
        let before = risen.partition_point(|(moment, _)| moment < sent);
        let Some((moment, visible)) = before.checked_sub(1).and_then(|place| risen.get(place)) else {
            continue;
        };
        if *visible > id_of(meta) {
            let text = format!(
                "{} on {} was first sent at [{sent}], after {visible} was shown at [{moment}]",
                id_of(meta),
                short(&key.0)
            );
            found.push(violation(text, [id_of(meta), *visible]));
        }
    }
    found.sort_by(|one, other| one.text.cmp(&other.text));
    found
}

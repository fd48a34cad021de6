//! Deletion takes what has expired, all of it in the end, and nothing else: no envelope that never expires, not the newest
//! of a topic, and what stays is as it was (OPS-001, OPS-002).

use super::{Violation, facts::Facts, violation};
use crate::backend::history::{History, id_of, short};

pub(super) fn check(history: &History, facts: &Facts) -> Vec<Violation> {
    let mut found = Vec::new();
    let Some(swept) = &history.swept else { return found };
    for ((topic, left), newest) in swept.logs.iter().zip(&swept.newest) {
        let whole = facts.logs.get(topic).map_or(&[][..], Vec::as_slice);
        if left.last().map_or(0, id_of) != *newest {
            let text = format!("the newest envelope of {} is no longer {newest}", short(topic));
            found.push(violation(text, [*newest]));
        }
        let changed: Vec<u64> = left
            .iter()
            .filter(|meta| !whole.contains(meta))
            .map(id_of)
            .collect();
        if !changed.is_empty() {
            found.push(violation(
                format!("deletion changed {changed:?} of {}", short(topic)),
                changed,
            ));
        }
        let is_expired = |expiry_ns: u64| expiry_ns != 0 && expiry_ns < swept.at_ns;
        let lost = whole
            .iter()
            .filter(|meta| id_of(meta) <= *newest)
            .filter(|meta| !is_expired(meta.expiry_ns) && !left.contains(meta));
        let lost: Vec<u64> = lost.map(id_of).collect();
        if !lost.is_empty() {
            found.push(violation(
                format!("{lost:?} of {} were deleted and have not expired", short(topic)),
                lost,
            ));
        }
        // One was the newest when the shard looked.
        let kept = left.iter().filter(|meta| is_expired(meta.expiry_ns));
        let kept: Vec<u64> = kept.map(id_of).collect();
        if kept.len() > 1 {
            found.push(violation(
                format!("{kept:?} of {} have expired and are still there", short(topic)),
                kept,
            ));
        }
    }
    found
}

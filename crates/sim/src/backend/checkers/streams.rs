//! A stream delivers every envelope above its cursor once and in order, until it ends (API-254), and says first how far
//! history runs (API-260).

use super::{Violation, facts::Facts, violation};
use crate::backend::history::{History, Stream, id_of, short, topic_of};

pub(super) fn check(history: &History, facts: &Facts) -> Vec<Violation> {
    let mut found = Vec::new();
    for stream in &history.streams {
        check_stream(stream, facts, &mut found);
    }
    found
}

fn check_stream(stream: &Stream, facts: &Facts, found: &mut Vec<Violation>) {
    for (topic, after) in &stream.positions {
        let frames = stream.frames.iter().flat_map(|(_, metas)| metas);
        let delivered: Vec<u64> = frames
            .filter(|meta| topic_of(meta) == *topic)
            .map(id_of)
            .collect();
        let through = delivered.last().copied().unwrap_or(*after);
        let wanted = facts.ids_between(topic, *after, through);
        if delivered != wanted {
            let text = format!(
                "{} delivered {delivered:?} above {after}, and the topic holds {wanted:?} there: {stream}",
                short(topic)
            );
            found.push(violation(text, wanted));
        }
    }
    let has_started = !stream.targets.is_empty();
    if has_started && stream.targets.len() != stream.positions.len()
        || !has_started && !stream.frames.is_empty()
    {
        found.push(violation(
            format!("Started is missing or not of its topics: {stream}"),
            [],
        ));
    }
    for ((topic, _), target) in stream.positions.iter().zip(&stream.targets) {
        let is_known = *target == 0 || !facts.ids_between(topic, target - 1, *target).is_empty();
        if !is_known {
            let text = format!("the target {target} of {} is no envelope: {stream}", short(topic));
            found.push(violation(text, [*target]));
        }
    }
}

//! An envelope that was to follow another directly follows it, a topic with a bound never exceeds it, and whoever is told
//! that a topic has grown, or is full, was told the truth (API-232, API-234).

use conclave_grpc_web::Code;

use super::{Violation, facts::Facts, violation};
use crate::backend::history::{Asked, Came, Condition, History, Key, id_of, key_of, short};

pub(super) fn check(history: &History, facts: &Facts) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, publish) in history.publishes.iter().enumerate() {
        for condition in &publish.conditions {
            let of_topic = publish.keys.iter().filter(|key| key.0 == condition.topic);
            of_topic.for_each(|key| check_stored(number, condition, key, facts, &mut found));
        }
    }
    for attempt in &history.attempts {
        let (Asked::Publish(number), Some(Came::Failure(Code::Aborted, _))) = (&attempt.asked, &attempt.came)
        else {
            continue;
        };
        let mut conditions = history.publishes[*number].conditions.iter();
        if !conditions.any(|condition| has_grown(condition, facts)) {
            found.push(violation(format!("no topic has grown: {attempt}"), []));
        }
    }
    found
}

fn check_stored(number: usize, condition: &Condition, key: &Key, facts: &Facts, found: &mut Vec<Violation>) {
    let log = facts.logs.get(&condition.topic).map_or(&[][..], Vec::as_slice);
    let Some(place) = log.iter().position(|meta| key_of(meta) == *key) else {
        return;
    };
    let before = place.checked_sub(1).map_or(0, |before| id_of(&log[before]));
    if before != condition.expected_head {
        let text = format!(
            "publish #{number} was to follow {} on {}, and follows {before}",
            condition.expected_head,
            short(&condition.topic)
        );
        found.push(violation(text, [id_of(&log[place]), before]));
    }
    if place >= condition.entries_max as usize {
        let text = format!(
            "publish #{number} is envelope {} of {}, which may hold {}",
            place + 1,
            short(&condition.topic),
            condition.entries_max
        );
        found.push(violation(text, [id_of(&log[place])]));
    }
}

/// Whether the topic ever held anything above the id that a publish was to follow.
fn has_grown(condition: &Condition, facts: &Facts) -> bool {
    let log = facts.logs.get(&condition.topic).map_or(&[][..], Vec::as_slice);
    log.last()
        .is_some_and(|meta| id_of(meta) > condition.expected_head)
}

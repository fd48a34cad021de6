//! Every message of a feed is handed over in order, and none is passed over: after a crash a feed goes on with what follows
//! its durable cursor, whatever was handed over before. Only what the Router no longer keeps may be missing.

use std::collections::{BTreeMap, BTreeSet};

use conclave_conversation::store::Transition;

use crate::conversation::history::{Event, History};

/// How far a member read a feed: the instance and a position under it.
type Read = BTreeMap<(usize, String), (String, u64)>;

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let (mut durable, mut handed_over) = (Read::new(), Read::new());
    let mut gaps = BTreeSet::new();
    for happened in history
        .events
        .iter()
        .filter(|happened| history.honest[happened.member])
    {
        let member = happened.member;
        match &happened.event {
            Event::Opened => {
                handed_over.retain(|(reader, _), _| *reader != member);
                gaps.retain(|(reader, _)| *reader != member);
            }
            Event::Durable(transitions) => {
                for transition in transitions {
                    if let Transition::AdvanceCursor(advance) = transition {
                        let cursor = &advance.cursor;
                        let at = (cursor.router_instance_id.clone(), cursor.position);
                        durable.insert((member, cursor.feed.clone()), at);
                    }
                }
            }
            Event::Gap(feed) => {
                gaps.insert((member, feed.to_string()));
            }
            Event::Handed {
                feed,
                instance,
                position,
            } => {
                let (key, instance) = ((member, feed.to_string()), instance.to_string());
                let of_instance = |read: &Read| {
                    let known = read.get(&key).filter(|(of, _)| *of == instance);
                    known.map(|(_, position)| *position)
                };
                let last = of_instance(&handed_over)
                    .or_else(|| of_instance(&durable))
                    .unwrap_or(0);
                if *position > last + 1 && !gaps.remove(&key) {
                    found.push(format!("{member} is handed {position} of {feed} after {last}"));
                }
                handed_over.insert(key, (instance, last.max(*position)));
            }
            _ => {}
        }
    }
    found
}

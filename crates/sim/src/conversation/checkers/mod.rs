//! What must hold of every history. One file each, named by what it holds.
//!
//! A checker reads the [`History`] and nothing of the engines: what became durable, what left, what hosts were given, and
//! what the stores hold at the end.

mod agreement;
mod cursors;
mod deliveries;
mod durable_before_sent;
mod fence;
mod intents;
mod message_counts;
mod own_votes;
mod post_ids;
mod progress;
mod resends;
mod same_history;
mod thresholds;
mod unbroken;

#[cfg(test)]
mod tests;

use conclave_conversation::{certificates::faults, store::Transition};

use super::history::{Event, History};

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What should hold.
    pub checker: &'static str,
    /// What was seen instead.
    pub text: String,
}

type Checker = fn(&History) -> Vec<String>;

/// What holds however many members are Byzantine: each honest member's own word.
const ALWAYS: [(&str, Checker); 7] = [
    ("unbroken", unbroken::check),
    ("durable_before_sent", durable_before_sent::check),
    ("own_votes", own_votes::check),
    ("cursors", cursors::check),
    ("fence", fence::check),
    ("intents", intents::check),
    ("resends", resends::check),
];

/// What holds while at most `f` are.
const WITHIN_F: [(&str, Checker); 7] = [
    ("agreement", agreement::check),
    ("thresholds", thresholds::check),
    ("same_history", same_history::check),
    ("deliveries", deliveries::check),
    ("post_ids", post_ids::check),
    ("message_counts", message_counts::check),
    ("progress", progress::check),
];

/// Runs every checker that applies.
pub(super) fn check(history: &History) -> Vec<Violation> {
    let byzantine = history.byzantine();
    let within = byzantine <= faults(history.honest.len());
    let checkers = ALWAYS.iter().chain(WITHIN_F.iter().filter(|_| within));
    checkers
        .flat_map(|(checker, run)| run(history).into_iter().map(|text| Violation { checker, text }))
        .collect()
}

/// The checkers that more than `f` Byzantine members made fail. None of it must hold then; it is worth telling.
pub(super) fn failing_beyond_f(history: &History) -> Vec<&'static str> {
    if history.byzantine() <= faults(history.honest.len()) {
        return Vec::new();
    }
    let failing = WITHIN_F.iter().filter(|(_, run)| !run(history).is_empty());
    failing.map(|(checker, _)| *checker).collect()
}

/// The transitions that became durable at honest members, in order: event, member, transition.
fn durable(history: &History) -> impl Iterator<Item = (usize, usize, &Transition)> {
    let events = history.events.iter().enumerate();
    events
        .filter(|(_, happened)| history.honest[happened.member])
        .flat_map(|(place, happened)| {
            let transitions: &[Transition] = match &happened.event {
                Event::Durable(transitions) => transitions,
                _ => &[],
            };
            transitions
                .iter()
                .map(move |transition| (place, happened.member, transition))
        })
}

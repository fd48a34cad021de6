//! Each host is given every remote post of the history, in the order of local commits and with that each conversation's
//! order, once in a life, again in the next under the same token and bytes until it accepts it, and never its own posts.

use std::collections::{BTreeMap, BTreeSet};

use conclave_conversation::{engine::Delivery, store::Transition};

use crate::conversation::history::{Event, History, short};

/// What one host was given.
#[derive(Default)]
struct Given {
    /// By record: all that was ever given for it.
    first: BTreeMap<String, Delivery>,
    /// Records certified durably.
    certified: BTreeSet<String>,
    /// Tokens accepted durably.
    accepted: BTreeSet<String>,
    /// The last sequence number of this life.
    last: Option<u64>,
}

impl Given {
    fn give(&mut self, delivery: &Delivery) -> Option<&'static str> {
        let record = delivery.record_hash.to_string();
        let is_certified = self.certified.contains(&record);
        let before = self.first.entry(record).or_insert_with(|| delivery.clone());
        if *before != *delivery {
            return Some("with another token, place or content than before");
        }
        if !is_certified {
            return Some("before it is certified durably");
        }
        if self.accepted.contains(&delivery.delivery_token.to_string()) {
            return Some("although it was accepted");
        }
        let last = self.last.replace(delivery.delivery_sequence);
        last.is_some_and(|last| last >= delivery.delivery_sequence)
            .then_some("after a later one")
    }
}

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let mut all: BTreeMap<usize, Given> = BTreeMap::new();
    for happened in history
        .events
        .iter()
        .filter(|happened| history.honest[happened.member])
    {
        let given = all.entry(happened.member).or_default();
        match &happened.event {
            Event::Opened => given.last = None,
            Event::Delivered(delivery) => {
                if let Some(problem) = given.give(delivery) {
                    let record = short(&delivery.record_hash);
                    found.push(format!("{} is given {record} {problem}", happened.member));
                }
            }
            Event::Durable(transitions) => {
                for transition in transitions {
                    match transition {
                        Transition::PromoteRecord(promote) => {
                            given.certified.insert(promote.record.record_hash.clone());
                        }
                        Transition::ApplyRecord(apply) => {
                            given.certified.insert(apply.record.record_hash.clone());
                        }
                        Transition::AcknowledgeDelivery(acknowledge) => {
                            given.accepted.insert(acknowledge.delivery_token.clone());
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    for ((_, member), chain) in &history.end.chains {
        let given = all.entry(*member).or_default();
        let mut last = None;
        for certified in chain {
            let delivery = given.first.get(&certified.record.to_string());
            let is_own = history.number(&certified.author) == Some(*member);
            let name = short(&certified.record);
            match delivery {
                None if is_own => {}
                None => found.push(format!("{member} is never given {name}")),
                Some(_) if is_own => found.push(format!("{member} is given its own {name}")),
                Some(delivery) => {
                    if !delivery
                        .canonical_message
                        .contains(&format!("\"{}\"", certified.text))
                    {
                        found.push(format!("{member} is given {name} with another content"));
                    }
                    if last.is_some_and(|last| last >= delivery.delivery_sequence) {
                        found.push(format!(
                            "{member} is given {name} out of the order of its conversation"
                        ));
                    }
                    last = Some(delivery.delivery_sequence);
                }
            }
        }
    }
    found
}

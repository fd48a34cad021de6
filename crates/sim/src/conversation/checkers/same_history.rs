//! Every honest member certifies the same records in the same places, each extending the one before.

use std::collections::BTreeMap;

use conclave_conversation::store::Transition;

use super::durable;
use crate::conversation::history::{History, short};

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let mut places: BTreeMap<(&str, u64), (usize, &str)> = BTreeMap::new();
    let mut heads: BTreeMap<(&str, usize), (u64, &str)> = BTreeMap::new();
    for (_, member, transition) in durable(history) {
        let (row, ordinal) = match transition {
            Transition::PromoteRecord(promote) => (&promote.record, promote.ordinal),
            Transition::ApplyRecord(apply) => (&apply.record, apply.ordinal),
            _ => continue,
        };
        let (conversation, record) = (row.conversation_id.as_str(), row.record_hash.as_str());
        let (first, known) = *places.entry((conversation, ordinal)).or_insert((member, record));
        if known != record {
            let (one, other) = (short(&known), short(&record));
            found.push(format!(
                "record {ordinal} is {one} at {first} and {other} at {member}"
            ));
        }
        let before = heads.insert((conversation, member), (ordinal, record));
        let extends = match before {
            None => ordinal == 0 && row.previous_record_hash.is_none(),
            Some((last, head)) => ordinal == last + 1 && row.previous_record_hash.as_deref() == Some(head),
        };
        if !extends {
            found.push(format!(
                "{member} certifies {} as record {ordinal}, which does not extend its head",
                short(&record)
            ));
        }
    }
    for ((conversation, member), chain) in &history.end.chains {
        let conversation = conversation.to_string();
        let kept = chain.last().map(|certified| certified.record.to_string());
        let made = heads
            .get(&(conversation.as_str(), *member))
            .map(|(_, head)| (*head).to_owned());
        if kept != made {
            found.push(format!(
                "{member} made {} records durable and keeps {}",
                made.is_some(),
                chain.len()
            ));
        }
    }
    found
}

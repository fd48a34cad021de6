//! A publish is stored as a whole or not at all, and only as a whole is it a success (API-220). What it stored carries one
//! time (API-212). What was refused for good is not stored.

use std::collections::BTreeSet;

use conclave_grpc_web::Code;

use super::{Violation, facts::Facts, violation};
use crate::backend::history::{Asked, Came, History, Key, id_of};

pub(super) fn check(history: &History, facts: &Facts) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, publish) in history.publishes.iter().enumerate() {
        let is_stored = |key: &&Key| facts.stored.contains_key(*key);
        let own: BTreeSet<&Key> = publish
            .keys
            .iter()
            .filter(|key| facts.carriers.get(*key) == Some(&1))
            .collect();
        let stored: Vec<&Key> = own.iter().copied().filter(is_stored).collect();
        let ids: Vec<u64> = stored.iter().map(|key| id_of(&facts.stored[*key])).collect();
        let all = publish.keys.iter().filter(is_stored).count();
        if !stored.is_empty() && all < publish.keys.len() {
            let text = format!(
                "publish #{number} is stored in part, {all} of {}",
                publish.keys.len()
            );
            found.push(violation(text, ids.clone()));
        }
        let times: BTreeSet<u64> = stored.iter().map(|key| facts.stored[*key].server_ns).collect();
        if times.len() > 1 {
            let text = format!("publish #{number} was stored at several times: {times:?}");
            found.push(violation(text, ids.clone()));
        }
        if !stored.is_empty() && is_refused(history, number) {
            let text = format!("publish #{number} was refused, and is stored");
            found.push(violation(text, ids));
        }
        let succeeded = came(history, number).any(|came| matches!(came, Came::Receipts(_)));
        if succeeded && (all < publish.keys.len() || publish.is_misdirected) {
            let text = format!("publish #{number} succeeded, and is not stored or should not be");
            found.push(violation(text, []));
        }
    }
    found
}

fn came(history: &History, number: usize) -> impl Iterator<Item = &Came> {
    let own = move |asked: &Asked| matches!(asked, Asked::Publish(other) if *other == number);
    history
        .attempts
        .iter()
        .filter(move |attempt| own(&attempt.asked))
        .filter_map(|attempt| attempt.came.as_ref())
}

/// Whether every attempt that was answered was answered by a refusal that is for good, whoever sends it.
fn is_refused(history: &History, number: usize) -> bool {
    came(history, number).any(|came| {
        matches!(
            came,
            Came::Failure(
                Code::InvalidArgument | Code::Unimplemented | Code::FailedPrecondition | Code::Aborted,
                _
            )
        )
    })
}

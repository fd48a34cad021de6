//! A page says that there is more exactly when there is (API-240): only where it is as long as it may be, and only where
//! something above it on a topic it was asked for had been sent by then. That it says so where there is more follows from
//! the checks that take a page without more at its word.

use super::{
    Violation,
    facts::{Facts, pages},
    violation,
};
use crate::backend::history::{History, key_of};

pub(super) fn check(history: &History, facts: &Facts) -> Vec<Violation> {
    let mut found = Vec::new();
    for page in pages(history).filter(|page| page.has_more) {
        if page.metas.len() < page.limit as usize {
            let text = format!("a page says there is more and is not full: {}", page.attempt);
            found.push(violation(text, []));
        }
        let returned = page.attempt.returned.unwrap_or_default();
        let is_more = page.positions.iter().any(|(topic, after)| {
            let shown = page.ids_of(topic).last().copied().unwrap_or(*after);
            let log = facts.logs.get(topic).map_or(&[][..], Vec::as_slice);
            log.iter().any(|meta| {
                let sent = facts.first_sent.get(&key_of(meta)).copied();
                crate::backend::history::id_of(meta) > shown && sent.is_some_and(|sent| sent < returned)
            })
        });
        if !is_more {
            let text = format!(
                "a page says there is more, and there was nothing: {}",
                page.attempt
            );
            found.push(violation(text, []));
        }
    }
    found
}

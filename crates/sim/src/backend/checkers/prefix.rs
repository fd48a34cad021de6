//! A read shows a prefix of each topic's order above its cursor, ascending, nothing omitted, at most its limit (API-201,
//! API-240); and a topic's newest envelope is never older than one that was newest before (API-201, API-244).

use std::collections::HashMap;

use super::{
    Violation,
    facts::{Facts, PageSeen, pages},
    violation,
};
use crate::backend::history::{History, short};

pub(super) fn check(history: &History, facts: &Facts) -> Vec<Violation> {
    let mut found = Vec::new();
    for (topic, log) in &facts.logs {
        let ids: Vec<u64> = log.iter().map(crate::backend::history::id_of).collect();
        if !ids.is_sorted_by(|one, next| one < next) {
            found.push(violation(
                format!("the log of {} does not ascend: {ids:?}", short(topic)),
                ids,
            ));
        }
    }
    pages(history).for_each(|page| check_page(&page, facts, &mut found));
    found
}

fn check_page(page: &PageSeen<'_>, facts: &Facts, found: &mut Vec<Violation>) {
    if page.limit > 0 && page.metas.len() > page.limit as usize {
        found.push(violation(
            format!("a page is longer than its limit: {}", page.attempt),
            [],
        ));
    }
    if page.has_more && page.metas.is_empty() {
        found.push(violation(
            format!("an empty page claims more: {}", page.attempt),
            [],
        ));
    }
    let mut lowest: HashMap<_, u64> = HashMap::new();
    for (topic, after) in page.positions {
        let known = lowest.entry(topic).or_insert(*after);
        *known = (*known).min(*after);
    }
    for (topic, after) in lowest {
        let shown = page.ids_of(topic);
        let through = shown.last().copied().unwrap_or(after);
        let wanted = facts.ids_between(topic, after, through);
        if shown != wanted {
            let text = format!(
                "a page of {} above {after} shows {shown:?}, and the topic holds {wanted:?} there: {}",
                short(topic),
                page.attempt
            );
            found.push(violation(text, wanted));
        }
    }
}

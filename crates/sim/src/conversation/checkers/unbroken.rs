//! Nothing happened that must never happen: a store that does not open, a commit that is refused, an engine that stops.

use crate::conversation::history::{Event, History};

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for happened in &history.events {
        if let Event::Broken { what, text } = &happened.event
            && history.honest[happened.member]
        {
            found.push(format!("{}: {what}: {text}", happened.member));
        }
    }
    found
}

//! Once faults stop, everything comes to rest, and every honest post is certified at every honest member.

use crate::conversation::history::{History, short};

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    if !history.end.is_at_rest {
        found.push("nothing comes to rest".to_owned());
    }
    for (conversation, reasons) in &history.end.unfinished {
        found.push(format!("{}: {}", short(conversation), reasons.join("; ")));
    }
    found
}

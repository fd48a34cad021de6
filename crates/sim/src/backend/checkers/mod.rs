//! What must hold of every history. One file each, named by what it holds.
//!
//! A checker reads the [`History`] and what follows from it directly ([`facts`]), and nothing of the deployment: it knows
//! what a client knows.

mod all_or_nothing;
mod boundary;
mod ends;
mod expected_heads;
pub(super) mod facts;
mod has_more;
mod one_copy;
mod one_owner;
mod out_of_range_is_settled;
mod prefix;
mod read_your_writes;
mod real_time_order;
mod retention;
mod statuses;
mod streams;
#[cfg(test)]
mod subscription_tests;
pub(super) mod subscriptions;
mod unique_ids;

#[cfg(test)]
mod tests;

use super::history::History;
use facts::Facts;

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What should hold.
    pub checker: &'static str,
    /// What was seen instead.
    pub text: String,
    /// Sequence ids it is about, to find the requests that saw them.
    pub ids: Vec<u64>,
}

type Checker = fn(&History, &Facts) -> Vec<Violation>;

/// Every checker, by the name of its file.
const CHECKERS: [(&str, Checker); 16] = [
    ("unique_ids", unique_ids::check),
    ("one_copy", one_copy::check),
    ("prefix", prefix::check),
    ("has_more", has_more::check),
    ("real_time_order", real_time_order::check),
    ("read_your_writes", read_your_writes::check),
    ("all_or_nothing", all_or_nothing::check),
    ("expected_heads", expected_heads::check),
    ("one_owner", one_owner::check),
    ("boundary", boundary::check),
    ("out_of_range_is_settled", out_of_range_is_settled::check),
    ("retention", retention::check),
    ("streams", streams::check),
    ("subscriptions", subscriptions::check),
    ("statuses", statuses::check),
    ("ends", ends::check),
];

/// Runs every checker.
pub(super) fn check(history: &History) -> Vec<Violation> {
    let facts = Facts::of(history);
    CHECKERS
        .into_iter()
        .flat_map(|(name, checker)| {
            let found = checker(history, &facts).into_iter();
            found.map(move |violation| Violation {
                checker: name,
                ..violation
            })
        })
        .collect()
}

/// The code under simulation panicked.
pub(super) fn panicked(payload: &(dyn std::any::Any + Send)) -> Violation {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    Violation {
        checker: "panics",
        text: text.unwrap_or("a panic without words").to_owned(),
        ids: Vec::new(),
    }
}

/// A violation, named later by its checker.
fn violation(text: String, ids: impl Into<Vec<u64>>) -> Violation {
    Violation {
        checker: "",
        text,
        ids: ids.into(),
    }
}

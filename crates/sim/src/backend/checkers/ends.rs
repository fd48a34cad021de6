//! Once faults stop, everything ends within bounded time: every request is answered, every topic takes publishes, the
//! boundary reaches the last id, and every open stream catches up.

use super::{Violation, facts::Facts, violation};
use crate::backend::history::History;

pub(super) fn check(history: &History, _: &Facts) -> Vec<Violation> {
    let unended = history.unended.iter();
    unended.map(|text| violation(text.clone(), [])).collect()
}

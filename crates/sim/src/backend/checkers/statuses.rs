//! A request fails only with a code that the status table names for something that can happen here (API-281). INTERNAL
//! would mean that a stored value breaks an invariant.

use conclave_grpc_web::Code;

use super::{Violation, facts::Facts, violation};
use crate::backend::history::{Asked, Came, History};

pub(super) fn check(history: &History, _: &Facts) -> Vec<Violation> {
    let mut found = Vec::new();
    for attempt in &history.attempts {
        let Some(Came::Failure(code, _)) = &attempt.came else {
            continue;
        };
        let is_publish = matches!(attempt.asked, Asked::Publish(_));
        let is_fair = match code {
            Code::Unavailable | Code::DeadlineExceeded | Code::OutOfRange => true,
            Code::Unimplemented => is_publish,
            Code::Aborted | Code::InvalidArgument => match attempt.asked {
                Asked::Publish(number) => !history.publishes[number].conditions.is_empty(),
                _ => false,
            },
            Code::FailedPrecondition => match attempt.asked {
                Asked::Publish(number) => history.publishes[number].is_misdirected,
                _ => false,
            },
            _ => false,
        };
        if !is_fair {
            found.push(violation(format!("an answer that cannot be: {attempt}"), []));
        }
    }
    found
}

//! After OUT_OF_RANGE a query settles each envelope: it shows those that are stored, and what it does not show that publish
//! never stores (API-290).

use std::collections::BTreeSet;

use conclave_grpc_web::Code;

use super::{
    Violation,
    facts::{Facts, pages},
    violation,
};
use crate::backend::history::{Asked, Came, History, id_of, short};

pub(super) fn check(history: &History, facts: &Facts) -> Vec<Violation> {
    let mut found = Vec::new();
    for attempt in &history.attempts {
        let (Asked::Publish(number), Some(Came::Failure(Code::OutOfRange, _)), Some(returned)) =
            (&attempt.asked, &attempt.came, attempt.returned)
        else {
            continue;
        };
        let keys: BTreeSet<_> = history.publishes[*number].keys.iter().collect();
        // What another publish carries as well, that one may store later.
        let own = keys
            .into_iter()
            .filter(|key| facts.carriers.get(*key) == Some(&1));
        for (key, meta) in own.filter_map(|key| facts.stored.get_key_value(key)) {
            let id = id_of(meta);
            for page in pages(history).filter(|page| page.attempt.invoked > returned) {
                let positions = page.positions.iter().filter(|(topic, _)| *topic == key.0);
                let mut covering = positions
                    .filter(|(topic, after)| (after + 1..=page.reaches(topic, *after)).contains(&id));
                if covering.next().is_some() && !page.ids_of(&key.0).contains(&id) {
                    let text = format!(
                        "{id} on {} is of publish #{number}, answered OUT_OF_RANGE at [{returned}], and a query after that \
                         does not show it: {}",
                        short(&key.0),
                        page.attempt
                    );
                    found.push(violation(text, [id]));
                }
            }
        }
    }
    found
}

//! A post that was bound is never lost: it is durable when the host is told, and at the end it is certified or still bound.
//! A send that succeeds has its certified record, durably.

use std::collections::{BTreeMap, BTreeSet};

use conclave_conversation::store::Transition;

use crate::conversation::history::{Event, History, short};

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let mut bound: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    let mut certified: BTreeSet<(usize, String)> = BTreeSet::new();
    for happened in history
        .events
        .iter()
        .filter(|happened| history.honest[happened.member])
    {
        let member = happened.member;
        match &happened.event {
            Event::Durable(transitions) => {
                for transition in transitions {
                    let row = match transition {
                        Transition::BindPostIntent(bind) => {
                            bound
                                .entry(member)
                                .or_default()
                                .insert(bind.intent.post_id.clone());
                            continue;
                        }
                        Transition::PromoteRecord(promote) => &promote.record,
                        Transition::ApplyRecord(apply) => &apply.record,
                        _ => continue,
                    };
                    certified.insert((member, row.record_hash.clone()));
                }
            }
            Event::Bound { post, .. }
                if !bound
                    .get(&member)
                    .is_some_and(|bound| bound.contains(&post.to_string())) =>
            {
                found.push(format!(
                    "{member} is told that {} is bound, which is not durable",
                    short(post)
                ));
            }
            Event::Sent {
                request,
                result: Ok(sent),
            } if !certified.contains(&(member, sent.record_hash.to_string())) => {
                found.push(format!(
                    "send {} of {member} succeeds without its certified record",
                    request.0
                ));
            }
            _ => {}
        }
    }
    for (member, posts) in bound {
        let chains = history
            .end
            .chains
            .iter()
            .filter(|((_, holder), _)| *holder == member);
        let made: BTreeSet<String> = chains
            .flat_map(|(_, chain)| chain.iter().map(|certified| certified.post.to_string()))
            .collect();
        let still: BTreeSet<String> = history
            .end
            .bound
            .get(&member)
            .into_iter()
            .flatten()
            .map(ToString::to_string)
            .collect();
        for post in posts
            .iter()
            .filter(|post| !made.contains(*post) && !still.contains(*post))
        {
            found.push(format!("{member} lost its post {}", short(post)));
        }
    }
    found
}

//! One invocation, one PostId, one post: each is certified at most once, with the content its author bound, and nothing is
//! certified in an honest author's name that it did not bind.

use std::collections::{BTreeMap, BTreeSet};

use conclave_conversation::{
    store::Transition,
    values::{ClosedValue, ContentPart, PostIntent},
};

use super::durable;
use crate::conversation::history::{Event, History, short};

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let mut bound: BTreeMap<String, String> = BTreeMap::new();
    for (_, member, transition) in durable(history) {
        let Transition::BindPostIntent(bind) = transition else {
            continue;
        };
        let text = PostIntent::decode(bind.intent.canonical_intent.as_bytes())
            .ok()
            .and_then(text_of);
        let before = bound.insert(bind.intent.post_id.clone(), text.unwrap_or_default());
        if before.is_some() {
            found.push(format!(
                "{member} binds two posts as {}",
                short(&bind.intent.post_id)
            ));
        }
    }
    let mut requests: BTreeMap<String, u64> = BTreeMap::new();
    for happened in &history.events {
        if let Event::Bound { request, post, text } = &happened.event
            && history.honest[happened.member]
        {
            let before = *requests.entry(post.to_string()).or_insert(request.0);
            if before != request.0 {
                found.push(format!("sends {before} and {} share {}", request.0, short(post)));
            }
            if bound.get(&post.to_string()).is_some_and(|kept| kept != text) {
                found.push(format!(
                    "{} is bound with another content than was sent",
                    short(post)
                ));
            }
        }
    }
    for ((_, member), chain) in &history.end.chains {
        let mut seen = BTreeSet::new();
        for certified in chain {
            let name = short(&certified.post);
            if !seen.insert((certified.author, certified.post)) {
                found.push(format!("{member} holds {name} twice"));
            }
            if history.is_honest(&certified.author) {
                match bound.get(&certified.post.to_string()) {
                    None => found.push(format!("{member} holds {name}, which its author never bound")),
                    Some(text) if *text != certified.text => {
                        found.push(format!(
                            "{member} holds {name} with another content than its author bound"
                        ));
                    }
                    Some(_) => {}
                }
            }
        }
    }
    found
}

fn text_of(intent: PostIntent) -> Option<String> {
    match intent.content.parts() {
        [ContentPart::Text { text }] => Some(text.clone()),
        _ => None,
    }
}

//! While a conversation recovers, its endpoint sends nothing of its own posts and signs no action: only catch-up, re-anchor
//! and staged-successor traffic.

use std::collections::BTreeSet;

use crate::conversation::history::{Event, History, Said};

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = BTreeSet::new();
    for happened in history
        .events
        .iter()
        .filter(|happened| history.honest[happened.member])
    {
        let member = happened.member;
        match &happened.event {
            Event::Opened => fenced.retain(|(holder, _)| *holder != member),
            Event::Fenced {
                conversation,
                is_fenced: true,
            } => {
                fenced.insert((member, *conversation));
            }
            Event::Fenced { conversation, .. } => {
                fenced.remove(&(member, *conversation));
            }
            Event::Left {
                conversation, said, ..
            } if fenced.contains(&(member, *conversation)) => {
                if let Said::Proposal(_) | Said::Signature { .. } | Said::Certified(_) = said {
                    found.push(format!("{member} sends the {said} behind the fence"));
                }
            }
            _ => {}
        }
    }
    found
}

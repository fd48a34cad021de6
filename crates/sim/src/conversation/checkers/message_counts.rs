//! What a post costs when nothing goes wrong: `2 + 3n` messages, a GENESIS `1 + 3n`, and each further proposal at the same
//! head 2 more (1 for a GENESIS).

use std::collections::{BTreeMap, BTreeSet};

use conclave_conversation::values::ConversationId;

use crate::conversation::history::{Event, History, Said};

/// The messages of one conversation.
#[derive(Default)]
struct Counted {
    genesis_proposals: usize,
    proposals: usize,
    heads: usize,
    signatures: usize,
    copies: usize,
    votes: usize,
    others: usize,
}

pub(super) fn check(history: &History) -> Vec<String> {
    if !history.is_exact {
        return Vec::new();
    }
    let mut seen = BTreeSet::new();
    let mut counted: BTreeMap<ConversationId, Counted> = BTreeMap::new();
    for happened in &history.events[..history.exact_until] {
        let Event::Left {
            id,
            conversation,
            said,
        } = &happened.event
        else {
            continue;
        };
        if !seen.insert(*id) {
            continue;
        }
        let counted = counted.entry(*conversation).or_default();
        match said {
            Said::Proposal(action)
                if history
                    .actions
                    .get(action)
                    .is_some_and(|action| action.place.previous.is_none()) =>
            {
                counted.genesis_proposals += 1;
            }
            Said::Proposal(_) => counted.proposals += 1,
            Said::Certified(_) => counted.heads += 1,
            Said::Signature { .. } => counted.signatures += 1,
            Said::Copy(_) => counted.copies += 1,
            Said::Vote { .. } => counted.votes += 1,
            _ => counted.others += 1,
        }
    }
    let mut found = Vec::new();
    for known in &history.conversations {
        let Some(counted) = counted.get(&known.id) else {
            continue;
        };
        let chains = history
            .end
            .chains
            .iter()
            .filter(|((conversation, _), _)| *conversation == known.id);
        let records = chains.map(|(_, chain)| chain.len()).max().unwrap_or(0);
        let each = records * known.members.len();
        let mut require = |what: &str, is: usize, should: usize| {
            if is != should {
                found.push(format!(
                    "{is} {what} for {records} records among {} members, not {should}",
                    known.members.len()
                ));
            }
        };
        require("signatures", counted.signatures, each);
        require("copies", counted.copies, each);
        require("votes", counted.votes, each);
        require("heads", counted.heads, counted.proposals);
        require("other messages", counted.others, 0);
        if counted.genesis_proposals + counted.proposals < records {
            require(
                "proposals",
                counted.genesis_proposals + counted.proposals,
                records,
            );
        }
    }
    found
}

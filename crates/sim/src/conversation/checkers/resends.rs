//! Proposals are sent again at most as often as the schedule allows in one life, each preceded by the certified record of
//! the head it extends.

use std::collections::{BTreeMap, BTreeSet};

use conclave_conversation::engine::timing::RESENDS_MAX;

use crate::conversation::history::{Event, History, Said, short};

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut lives: BTreeMap<usize, usize> = BTreeMap::new();
    let mut heads: BTreeMap<(usize, String), usize> = BTreeMap::new();
    let mut extending: BTreeMap<(usize, String), usize> = BTreeMap::new();
    let mut proposed: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for happened in history
        .events
        .iter()
        .filter(|happened| history.honest[happened.member])
    {
        let member = happened.member;
        let (id, said) = match &happened.event {
            Event::Opened => {
                *lives.entry(member).or_default() += 1;
                continue;
            }
            Event::Left { id, said, .. } => (id, said),
            _ => continue,
        };
        if !seen.insert(*id) {
            continue;
        }
        match said {
            Said::Certified(record) => *heads.entry((member, record.to_string())).or_default() += 1,
            Said::Proposal(action) => {
                let Some(known) = history.actions.get(action) else {
                    continue;
                };
                if history.number(&known.author) != Some(member) {
                    found.push(format!("{member} proposes another's post"));
                }
                let times = proposed.entry((member, action.to_string())).or_default();
                *times += 1;
                let most = (1 + RESENDS_MAX as usize) * lives.get(&member).copied().unwrap_or(1);
                if *times > most {
                    found.push(format!(
                        "{member} proposes {} {times} times in {} lives",
                        short(action),
                        most
                    ));
                }
                if let Some(previous) = known.place.previous {
                    let head = (member, previous.to_string());
                    let shown = heads.get(&head).copied().unwrap_or(0);
                    let times = extending.entry(head).or_default();
                    *times += 1;
                    if *times > shown {
                        found.push(format!(
                            "{member} proposes {} without its head before it",
                            short(action)
                        ));
                    }
                }
            }
            _ => {}
        }
    }
    found
}

//! After the faults: what must come about by itself, what takes a restart, and what every store then holds.
//!
//! The chapter lets a head stall: proposals whose resends ran out wait for a restart of the endpoint, and locks that faults
//! or a Byzantine author split wait for a re-anchor. So the end goes in stages, each only if the one before was not enough:
//! everything comes to rest; the transport reattaches; every endpoint restarts; the Router comes back as another instance.
//! After the last, every honest post must be certified at every honest member.

use conclave_conversation::{
    engine::{ConversationStatus, history},
    store::{Key, Table},
    test_support,
    values::{ContentPart, ConversationId},
};

use super::{
    history::{Certified, End, Known},
    world::{Future, MS, SECOND, World},
};

/// Inputs until an end that does not come to rest is given up, for each member.
const INPUTS_MAX: u64 = 2_000;
/// Virtual time that the end may take: all retries of everything, several times.
const END_US: u64 = 20_000 * SECOND;

impl World {
    /// Faults stop; what remains to be done is done.
    pub(super) fn end(&mut self) {
        self.heal();
        let mut is_at_rest = self.rest();
        self.history.is_exact &= !self.history.is_disturbed && self.history.byzantine() == 0;
        self.history.exact_until = self.history.events.len();
        let mut stages = 0;
        for stage in 0..4 {
            if self.is_broken() || !is_at_rest || self.unfinished().is_empty() {
                break;
            }
            stages = stage + 1;
            self.history
                .note(self.now_us, format!("stage {stage} of the end"));
            match stage {
                0 => self.attach_all(),
                1 => self.reopen_all(),
                _ => {
                    self.restart_router();
                    self.attach_all();
                }
            }
            is_at_rest = self.rest();
        }
        let unfinished = self.unfinished();
        // What is there must be there after another start, too.
        if is_at_rest {
            self.reopen_all();
            is_at_rest = self.rest();
        }
        self.history.end = End {
            is_at_rest,
            stages,
            unfinished,
            ..End::default()
        };
        self.read_stores();
    }

    fn rest(&mut self) -> bool {
        let inputs_max = INPUTS_MAX * self.members.len() as u64;
        self.run(self.now_us + END_US, inputs_max)
    }

    fn attach_all(&mut self) {
        for member in 0..self.members.len() {
            let life = self.members[member].life;
            let delay = self.random.between(MS, SECOND);
            self.schedule(delay, Future::Attach { member, life });
        }
    }

    fn reopen_all(&mut self) {
        for member in 0..self.members.len() {
            self.crash(member);
        }
    }

    /// What keeps each conversation from its end.
    fn unfinished(&self) -> std::collections::BTreeMap<ConversationId, Vec<String>> {
        let mut all = std::collections::BTreeMap::new();
        for known in &self.history.conversations {
            let mut reasons = Vec::new();
            let mut lengths = Vec::new();
            for member in known
                .members
                .iter()
                .filter(|member| self.history.honest[**member])
            {
                let Some(engine) = &self.members[*member].engine else {
                    reasons.push(format!("{member} is down"));
                    continue;
                };
                let view = engine
                    .conversations()
                    .find(|view| *view.membership.conversation_id() == known.id);
                let Some(view) = view else {
                    lengths.push(0);
                    continue;
                };
                lengths.push(view.records);
                if view.status != ConversationStatus::Recovered {
                    reasons.push(format!("{member} is {:?}", view.status));
                }
                if view.unfinished > 0 {
                    reasons.push(format!("{member} has {} unfinished posts", view.unfinished));
                }
            }
            if lengths.iter().any(|length| *length != lengths[0]) {
                reasons.push(format!("histories are {lengths:?} long"));
            }
            if !reasons.is_empty() && !self.may_stall(known, &lengths) {
                all.insert(known.id, reasons);
            }
        }
        all
    }

    /// Whether Byzantine members that fell silent can hold a conversation for ever, as the chapter has it: a GENESIS takes
    /// every member's signature, and a record that one honest member staged alone takes more votes to settle than the other
    /// honest ones have.
    fn may_stall(&self, known: &Known, lengths: &[u64]) -> bool {
        let honest = |member: &&usize| self.history.honest[**member];
        if known.members.iter().all(|member| honest(&member)) {
            return false;
        }
        let holds_successor = |member: &usize| {
            let store = self.members[*member].store.snapshot();
            let below = Key::new([&known.id.to_string()]);
            store.count_below(Table::StagedRecords, &below)
                > store.count_below(Table::CertifiedRecords, &below)
        };
        lengths.iter().all(|length| *length == 0) || known.members.iter().filter(honest).any(holds_successor)
    }

    /// What every honest store holds, verified.
    pub(super) fn read_stores(&mut self) {
        let conversations = self.history.conversations.clone();
        for known in &conversations {
            let honest = &self.history.honest;
            let members: Vec<usize> = known
                .members
                .iter()
                .copied()
                .filter(|member| honest[*member])
                .collect();
            for member in members {
                let store = self.members[member].store.snapshot();
                let found = history::read(
                    &store,
                    &known.id,
                    &test_support::registry(),
                    &test_support::history(),
                );
                match found {
                    Err(error) => {
                        self.broken(member, "startup", format!("the history does not verify: {error}"))
                    }
                    Ok(found) => {
                        let entries = found.map_or_else(Vec::new, |history| history.entries);
                        let chain: Vec<_> = entries.into_iter().map(|entry| self.certified(entry)).collect();
                        self.history.end.chains.insert((known.id, member), chain);
                    }
                }
                let bound: Vec<_> = self.members[member]
                    .engine
                    .iter()
                    .flat_map(|engine| engine.unfinished_posts(&known.id).map(|intent| intent.post_id))
                    .collect();
                self.history.end.bound.entry(member).or_default().extend(bound);
            }
        }
    }

    fn certified(&mut self, entry: history::HistoryEntry) -> Certified {
        self.history.learn_record(entry.record_hash, &entry.record_core);
        let (action, place) = self.history.records[&entry.record_hash];
        let intent = entry.record_core.post_intent();
        let text = match intent.content.parts() {
            [ContentPart::Text { text }] => text.clone(),
            _ => String::new(),
        };
        Certified {
            record: entry.record_hash,
            action,
            place,
            author: intent.author_agent_id,
            post: intent.post_id,
            text,
            signers: entry.action_signatures.into_keys().collect(),
            voters: entry.durability_votes.into_keys().collect(),
        }
    }
}

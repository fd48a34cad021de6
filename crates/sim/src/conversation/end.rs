//! After the faults: what must come about by itself, what takes a restart, and what every store then holds.
//!
//! The chapter lets a head stall: proposals whose resends ran out wait for a restart of the endpoint, and locks that faults
//! or a Byzantine author split wait for a re-anchor. So the end goes in stages, each only if the one before was not enough:
//! everything comes to rest; the transport reattaches; every endpoint restarts; the Router comes back as another instance.
//! After the last, every honest post must be certified at every honest member.

use std::collections::BTreeMap;

use conclave_conversation::{
    certificates::{conversion_votes, quorum},
    engine::{ConversationStatus, history},
    store::{
        Key, RowError, Snapshot,
        rows::{ConversationStateRow, ReanchorRow, StagedRecordRow},
    },
    test_support,
    values::{ContentPart, ConversationId},
};

use super::{
    history::{Certified, End, Known},
    world::{Future, MS, SECOND, World},
};

/// Inputs until an end that does not come to rest is given up, for each pair of members. Where a stall is the chapter's own,
/// each member asks as often as its retries allow, every other answers, and everyone is handed each answer.
const INPUTS_MAX: u64 = 1_000;
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
        let members = self.members.len() as u64;
        let inputs_max = INPUTS_MAX * members * members;
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
    fn unfinished(&self) -> BTreeMap<ConversationId, Vec<String>> {
        let mut all = BTreeMap::new();
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

    /// Whether Byzantine members that fell silent can hold a conversation for ever, as the chapter has it.
    ///
    /// A GENESIS takes every member's signature; one that an honest member staged has them, and must be certified unless
    /// another was staged, too. Otherwise all histories are equally long, and some honest members staged a successor of the
    /// head: too few to certify it, yet the others are too few to re-anchor without them; and either the
    /// holders' votes are too few for another member to stage the record during a re-anchor, or too many others voted to
    /// leave the anchor before and may not.
    fn may_stall(&self, known: &Known, lengths: &[u64]) -> bool {
        let honest: Vec<usize> = known
            .members
            .iter()
            .copied()
            .filter(|member| self.history.honest[*member])
            .collect();
        if honest.len() == known.members.len() {
            return false;
        }
        let (mut holders, mut leaving) = (BTreeMap::<String, usize>::new(), 0);
        for member in &honest {
            let store = self.members[*member].store.snapshot();
            let Ok((successor, is_leaving)) = standing(&store, &known.id) else {
                return false;
            };
            if let Some(successor) = successor {
                *holders.entry(successor).or_default() += 1;
            }
            leaving += usize::from(is_leaving);
        }
        let (quorum, conversion) = (quorum(known.members.len()), conversion_votes(known.members.len()));
        if lengths.iter().all(|length| *length == 0) {
            return holders.len() != 1 && holders.values().all(|holders| *holders < quorum);
        }
        let free = honest.len() - holders.values().sum::<usize>();
        let able = honest.len() - leaving;
        let is_stuck = |holders: usize| holders < quorum && (holders < conversion || able < quorum);
        let is_equal = lengths.iter().all(|length| *length == lengths[0]);
        is_equal && free < quorum && !holders.is_empty() && holders.into_values().all(is_stuck)
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

/// The staged successor of a store's head, and whether its member voted to leave its anchor.
fn standing(store: &Snapshot, conversation: &ConversationId) -> Result<(Option<String>, bool), RowError> {
    let below = Key::new([&conversation.to_string()]);
    let Some(state) = store.row::<ConversationStateRow>(&below)? else {
        return Ok((None, false));
    };
    let staged = store.below::<StagedRecordRow>(&below)?;
    let successor = staged
        .into_iter()
        .find(|row| row.previous_record_hash == state.head_record_hash);
    let is_leaving = store.below::<ReanchorRow>(&below)?.iter().any(|row| {
        row.canonical_completed_reanchor.is_none() && row.previous_anchor_hash == state.current_anchor_hash
    });
    Ok((successor.map(|row| row.record_hash), is_leaving))
}

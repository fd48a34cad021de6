//! The shell around each engine: one input, one commit, then the effects in order; perhaps not to their end. And its host
//! and its clock.

use super::world::{Future, MS, SECOND, World};
use super::{bugs::Breach, faults::Fault, history::Event};
use conclave_conversation::{
    engine::{Context, ConversationStatus, Effect, Engine, Input, RequestId, SendRequest, Step, TimerId},
    store::{
        MemoryStore, Read, Snapshot, Transition,
        rows::StagedRecordRow,
        transition::{AdoptReanchor as TransitionAdopt, CompleteReanchor as TransitionComplete},
    },
    values::Content,
};

impl World {
    pub(super) fn open(&mut self, member: usize) {
        let now_us = self.now_us;
        let this = &mut self.members[member];
        if this.engine.is_some() {
            return;
        }
        this.life += 1;
        let life = this.life;
        let (local, now_ms, snapshot) = (this.local(), this.clock(now_us), this.store.snapshot());
        let context = Context {
            now_ms,
            randomness: &mut this.randomness,
        };
        match Engine::open(local, &snapshot, context) {
            Err(error) => self.broken(member, "startup", format!("the store does not open: {error}")),
            Ok((engine, step)) => {
                self.members[member].engine = Some(engine);
                self.record(member, Event::Opened);
                self.finish(member, step);
                let delay = self.latency();
                self.schedule(delay, Future::Attach { member, life });
            }
        }
    }

    /// The engine and everything in memory is gone.
    pub(super) fn crash(&mut self, member: usize) {
        let delay = self.random.between(10 * MS, 15 * SECOND);
        let this = &mut self.members[member];
        if this.engine.take().is_none() {
            return;
        }
        this.readers.clear();
        this.timers.clear();
        if let Some(synced) = this.synced.take() {
            this.store = MemoryStore::from_snapshot(synced);
            this.unsynced.clear();
        }
        self.record(member, Event::Crashed);
        self.history.is_disturbed = true;
        if self.members[member].is_broken && self.is_silent() {
            // It would break again for ever.
            return;
        }
        self.schedule(delay, Future::Open { member });
    }

    /// One input: handled, committed, carried out; perhaps not to its end.
    pub(super) fn input(&mut self, member: usize, input: Input) {
        self.inputs += 1;
        let now_us = self.now_us;
        let this = &mut self.members[member];
        let now_ms = this.clock(now_us);
        let Some(engine) = &mut this.engine else { return };
        let context = Context {
            now_ms,
            randomness: &mut this.randomness,
        };
        let step = engine.handle(input, context);
        self.finish(member, step);
    }

    pub(super) fn finish(&mut self, member: usize, step: Step) {
        let Step {
            transitions, effects, ..
        } = step;
        let crash = self.rolls(Fault::Crash).then(|| self.random.below(3));
        let is_full = self.rolls(Fault::Store) && !transitions.is_empty();
        if is_full || crash == Some(0) {
            if self.breaks(Breach::TornTransactions) {
                let part = self.random.below(transitions.len() + 1);
                self.commit(member, transitions[..part].to_vec());
            }
            if self.breaks(Breach::EffectsBeforeCommit) {
                self.carry_out_all(member, effects);
            }
            return self.crash(member);
        }
        if !self.commit(member, transitions) {
            return self.crash(member);
        }
        match crash {
            None => self.carry_out_all(member, effects),
            Some(1) => self.crash(member),
            Some(_) => {
                let part = self.random.below(effects.len() + 1);
                let first = effects.into_iter().take(part).collect();
                self.carry_out_all(member, first);
                self.crash(member);
            }
        }
    }

    pub(super) fn commit(&mut self, member: usize, transitions: Vec<Transition>) -> bool {
        if transitions.is_empty() {
            return true;
        }
        let is_relaxed = self.breaks(Breach::DurabilityRelaxed);
        let this = &mut self.members[member];
        if is_relaxed && this.synced.is_none() {
            this.synced = Some(this.store.snapshot());
        }
        if let Err(error) = this.store.apply(&transitions) {
            self.broken(member, "transitions", format!("a commit is refused: {error}"));
            return false;
        }
        self.learn_transitions(member, &transitions);
        if !is_relaxed {
            self.record(member, Event::Durable(transitions));
            return true;
        }
        let this = &mut self.members[member];
        this.unsynced.push(transitions);
        if self.random.chance(300) {
            let this = &mut self.members[member];
            this.synced = None;
            for transitions in std::mem::take(&mut this.unsynced) {
                self.record(member, Event::Durable(transitions));
            }
        }
        true
    }

    pub(super) fn learn_transitions(&mut self, member: usize, transitions: &[Transition]) {
        for transition in transitions {
            let (row, is_certified) = match transition {
                Transition::StageRecord(stage) => (&stage.record, false),
                Transition::PromoteRecord(promote) => (&promote.record, true),
                Transition::ApplyRecord(apply) => (&apply.record, true),
                Transition::CompleteReanchor(TransitionComplete(leave))
                | Transition::AdoptReanchor(TransitionAdopt(leave)) => {
                    let names = (
                        leave.anchor.conversation_id.parse(),
                        leave.anchor.anchor_hash.parse(),
                    );
                    if let (Ok(conversation), Ok(anchor)) = names
                        && let Some(tip) = self.tips.get_mut(&conversation)
                    {
                        tip.1 = anchor;
                    }
                    continue;
                }
                _ => continue,
            };
            self.history.learn_row(row);
            if is_certified && self.history.honest[member] {
                self.learn_tip(row);
            }
        }
    }

    pub(super) fn learn_tip(&mut self, row: &StagedRecordRow) {
        let names = (
            row.conversation_id.parse(),
            row.record_hash.parse(),
            row.anchor_hash.parse(),
        );
        let (Ok(conversation), Ok(record), Ok(anchor)) = names else {
            return;
        };
        let tip = self.tips.get(&conversation).map(|(record, _)| record.to_string());
        if row.previous_record_hash == tip {
            self.tips.insert(conversation, (record, anchor));
        }
    }

    pub(super) fn carry_out_all(&mut self, member: usize, effects: Vec<Effect>) {
        for effect in effects {
            self.carry_out(member, effect);
        }
    }

    pub(super) fn carry_out(&mut self, member: usize, effect: Effect) {
        let life = self.members[member].life;
        match effect {
            Effect::Transmit(transmit) => self.transmit(member, *transmit),
            Effect::Watch { feed, after } => self.watch(member, feed, after),
            Effect::Unwatch { feed } => {
                self.members[member].readers.remove(&feed);
            }
            Effect::SetTimer { id, at_ms } => {
                self.queued += 1;
                let set = self.queued;
                self.members[member].timers.insert(id, (set, at_ms));
                let delay = self.members[member].until(at_ms, self.now_us);
                self.schedule(
                    delay,
                    Future::Timer {
                        member,
                        life,
                        id,
                        set,
                    },
                );
            }
            Effect::CancelTimer { id } => {
                self.members[member].timers.remove(&id);
            }
            Effect::Bound {
                request_id: request,
                post_id: post,
                ..
            } => {
                let text = text_of(request);
                self.record(member, Event::Bound { request, post, text });
            }
            Effect::Sent {
                request_id: request,
                result,
            } => {
                self.record(member, Event::Sent { request, result });
            }
            Effect::Deliver(delivery) => {
                let token = delivery.delivery_token;
                self.record(member, Event::Delivered(delivery));
                if self.random.chance(750) {
                    let delay = self.random.between(0, 5 * SECOND);
                    self.schedule(delay, Future::Acknowledge { member, life, token });
                }
            }
            Effect::Acknowledged {
                delivery_token,
                result,
            } => {
                if result.is_ok() {
                    self.record(member, Event::Acknowledged(delivery_token.to_string()));
                }
            }
            Effect::Read { read_id, reads } => {
                let whole = &self.members[member].store;
                let mut rows = Snapshot::new();
                for read in &reads {
                    let (Read::Row(table, _) | Read::Prefix(table, _)) = read;
                    for (key, bytes) in whole.rows(read) {
                        rows.insert(*table, key, bytes);
                    }
                }
                let input = Box::new(Input::Rows {
                    read_id,
                    rows: Box::new(rows),
                });
                let delay = self.random.between(0, 20 * MS);
                self.schedule(delay, Future::Rows { member, life, input });
            }
            Effect::Fatal { reason } => self.broken(member, "fatal", reason.to_string()),
            Effect::ConversationState {
                conversation_id: conversation,
                status,
            } => {
                let is_fenced = status != ConversationStatus::Recovered;
                self.record(
                    member,
                    Event::Fenced {
                        conversation,
                        is_fenced,
                    },
                );
            }
            Effect::Progress { .. } | Effect::Recovery { .. } | Effect::Stalled { .. } => {}
        }
    }

    pub(super) fn record(&mut self, member: usize, event: Event) {
        self.history.push(self.now_us, member, event);
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    pub(super) fn broken(&mut self, member: usize, what: &'static str, text: String) {
        self.is_broken |= self.history.honest[member];
        self.members[member].is_broken = true;
        self.record(member, Event::Broken { what, text });
    }

    pub(super) fn ring(&mut self, member: usize, life: u32, id: TimerId, set: u64) {
        if !self.is_alive(member, life) {
            return;
        }
        match self.members[member].timers.get(&id) {
            Some((found, at_ms)) if *found == set => {
                let delay = self.members[member].until(*at_ms, self.now_us);
                if delay > 0 {
                    // The clock went back meanwhile.
                    return self.schedule(
                        delay,
                        Future::Timer {
                            member,
                            life,
                            id,
                            set,
                        },
                    );
                }
            }
            _ => return,
        }
        self.members[member].timers.remove(&id);
        self.input(member, Input::Timer(id));
    }

    pub(super) fn jump_clock(&mut self, member: usize, jump_ms: i64) {
        self.members[member].clock_ms += jump_ms;
        let life = self.members[member].life;
        let timers: Vec<_> = self.members[member]
            .timers
            .iter()
            .map(|(id, timer)| (*id, *timer))
            .collect();
        for (id, (set, at_ms)) in timers {
            let delay = self.members[member].until(at_ms, self.now_us);
            self.schedule(
                delay,
                Future::Timer {
                    member,
                    life,
                    id,
                    set,
                },
            );
        }
    }

    pub(super) fn online(&mut self, member: usize) {
        self.members[member].is_online = true;
        let life = self.members[member].life;
        self.schedule(0, Future::Attach { member, life });
    }

    /// The host posts a text that no other post has.
    pub(super) fn post(&mut self, member: usize, conversation: usize) {
        if self.members[member].engine.is_none() {
            return self.schedule(SECOND, Future::Post { member, conversation });
        }
        self.requests += 1;
        let request_id = RequestId(self.requests);
        let content = Content::text(text_of(request_id)).expect("a short text is content");
        let request = SendRequest {
            request_id,
            membership: self.conversations[conversation].clone(),
            content,
            post_id: None,
        };
        self.input(member, Input::Send(Box::new(request)));
    }
}

/// The text of a send.
pub(super) fn text_of(request: RequestId) -> String {
    format!("post {}", request.0)
}

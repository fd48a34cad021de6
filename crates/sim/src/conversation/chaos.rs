//! The fault injector: what goes wrong by itself, now and then, until it is stopped.

use conclave_conversation::engine::Feed;

use super::{
    faults::{Fault, Rates},
    router::Topic,
    world::{Future, MS, SECOND, World},
};

impl World {
    /// One look: every kind of fault has its chance.
    pub(super) fn chaos(&mut self) {
        let member = self.random.below(self.members.len());
        if self.rolls(Fault::Restart) {
            self.restart_router();
        }
        if self.rolls(Fault::Forget) {
            let random = &self.random;
            self.router.forget(|entries| {
                if random.chance(500) {
                    random.below(entries + 1)
                } else {
                    entries
                }
            });
            self.disturb("the Router forgets");
        }
        if self.rolls(Fault::Offline) && self.members[member].is_online {
            self.members[member].is_online = false;
            let delay = self.random.between(SECOND, 60 * SECOND);
            self.schedule(delay, Future::Online { member });
            self.disturb(&format!("{member} is offline"));
        }
        if self.rolls(Fault::Stream) {
            self.break_streams(member);
        }
        if self.rolls(Fault::Clock) {
            let jump_ms = i64::try_from(self.random.between(0, 600_000)).unwrap_or(0) - 300_000;
            self.jump_clock(member, jump_ms);
            self.disturb(&format!("the clock of {member} jumps by {jump_ms} ms"));
        }
        if self.rolls(Fault::Garbage) {
            let topics: Vec<Topic> = self
                .conversations
                .iter()
                .map(|known| Topic::Conversation(*known.conversation_id()))
                .collect();
            let topic = *self.random.pick(&topics);
            self.router.append(topic, None);
            self.ordered(topic);
        }
        let delay = self.random.between(100 * MS, 3 * SECOND);
        self.schedule(delay, Future::Chaos);
    }

    pub(super) fn restart_router(&mut self) {
        self.router.restart();
        self.disturb("the Router is another instance");
        for member in 0..self.members.len() {
            // Some learn of it at once, some when they next send or are handed something.
            let life = self.members[member].life;
            let delay = self.random.between(MS, 10 * SECOND);
            if self.random.chance(500) {
                self.schedule(delay, Future::Attach { member, life });
            }
        }
        // The streams of the instance before end.
        let conversations: Vec<_> = self
            .conversations
            .iter()
            .map(|known| *known.conversation_id())
            .collect();
        for conversation in conversations {
            self.ordered(Topic::Conversation(conversation));
        }
    }

    /// A member's feeds begin again some messages before where they were.
    fn break_streams(&mut self, member: usize) {
        let back = self.random.between(0, 5);
        for reader in self.members[member].readers.values_mut() {
            reader.last = reader.last.saturating_sub(back);
        }
        let feeds: Vec<Feed> = self.members[member].readers.keys().copied().collect();
        let life = self.members[member].life;
        for feed in feeds {
            self.schedule(MS, Future::Hand { member, life, feed });
        }
        self.history
            .note(self.now_us, format!("the streams of {member} go back by {back}"));
    }

    fn disturb(&mut self, what: &str) {
        self.history.is_disturbed = true;
        self.history.note(self.now_us, what);
    }

    /// Faults stop, everyone is up and reachable again.
    pub(super) fn heal(&mut self) {
        self.rates = Rates::none();
        self.history.note(self.now_us, "faults stop");
        self.drop_chaos();
        self.silence();
        for member in 0..self.members.len() {
            let was_offline = !self.members[member].is_online;
            self.members[member].is_online = true;
            let life = self.members[member].life;
            if self.members[member].engine.is_none() {
                self.schedule(MS, Future::Open { member });
            } else if was_offline || self.members[member].instance() != Some(self.router.instance()) {
                self.schedule(MS, Future::Attach { member, life });
            }
        }
    }
}

//! Byzantine members. Each holds real keys and runs an engine, so that it takes part as long as it likes; what the engine
//! sends is withheld or sealed to some, and beside it the member says whatever it wants.
//!
//! All Byzantine members of a seed share what they know ([`pool`]) and one plan, drawn from the seed: some seeds have
//! members that only keep silent, some have all of it at once. `lies` and `split` are what they say, `craft` how.

mod craft;
mod lies;
mod pool;
mod split;

use std::rc::Rc;

use conclave_conversation::{
    engine::{SendOutcome, Transmit},
    outer_message::open_outer_message,
    values::{ConversationId, DirectPacket, Plaintext},
};
use conclave_harness::{EncodedSignedMessage, WireVersions};

use self::pool::Pool;
use super::{
    history::Said,
    router::Topic,
    world::{Future, MS, SECOND, World},
};
use crate::random::Random;

/// Something a Byzantine member does beside what its engine sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mischief {
    /// Two proposals at one head.
    Equivocate,
    /// Two proposals at one head, signed so that one may be certified against the locks of the other.
    SplitLocks,
    /// Signs every action, votes for every record and for more than one re-anchor.
    SignAll,
    /// Says again what anybody said before, in its own envelope or as it was.
    Replay,
    /// Answers questions with nothing, with the wrong item, with a false `hasMore`.
    AnswerJunk,
    /// Questions, votes for nothing, bodies that mean nothing.
    Flood,
    /// Certificates it assembled itself, when it likes and to whom it likes.
    ShowLate,
}

impl Mischief {
    const ALL: [Self; 7] = [
        Self::Equivocate,
        Self::SplitLocks,
        Self::SignAll,
        Self::Replay,
        Self::AnswerJunk,
        Self::Flood,
        Self::ShowLate,
    ];
}

/// What the Byzantine members of a seed are up to.
pub(super) struct Adversary {
    /// When they stop acting like anybody else. Until then conversations can begin.
    turns_us: u64,
    /// What of their engines' messages they withhold, in thousandths.
    withheld: u64,
    /// What of it they seal to some only, in thousandths.
    sealed_away: u64,
    /// Whether they withhold every signature and every vote of their engines, to show certificates later.
    holds_back: bool,
    /// Whether they answer every question with that they cannot supply what is asked for.
    denies: bool,
    mischief: Vec<Mischief>,
    is_silent: bool,
    pool: Pool,
}

impl Adversary {
    /// The plan of one seed.
    pub(super) fn draw(random: &Random) -> Self {
        let share = || {
            if random.chance(400) {
                random.between(50, 1000)
            } else {
                0
            }
        };
        let (withheld, sealed_away) = (share(), share());
        let holds_back = random.chance(120);
        // What is held back must be shown some time.
        let does = |kind: &Mischief| random.chance(450) || (holds_back && *kind == Mischief::ShowLate);
        Adversary {
            turns_us: if random.chance(200) {
                0
            } else {
                random.between(2 * SECOND, 20 * SECOND)
            },
            withheld,
            sealed_away,
            holds_back,
            denies: random.chance(250),
            mischief: Mischief::ALL.into_iter().filter(does).collect(),
            is_silent: false,
            pool: Pool::default(),
        }
    }
}

impl Adversary {
    /// Whether they still say anything beside what their engines send.
    fn speaks(&self) -> bool {
        !self.is_silent && self.pool.said <= MISCHIEF_MAX
    }
}

/// How many messages a Byzantine member sends beside its engine's, at most: enough for any of it, few enough to end.
const MISCHIEF_MAX: usize = 150;

impl World {
    /// What a Byzantine member makes of a message of its engine; none when the message goes no further.
    pub(super) fn bend(&mut self, member: usize, transmit: Rc<Transmit>) -> Option<Rc<Transmit>> {
        if self.history.honest[member] {
            return Some(transmit);
        }
        let Some(adversary) = &self.adversary else {
            return Some(transmit);
        };
        let (turns_us, withheld, sealed_away) =
            (adversary.turns_us, adversary.withheld, adversary.sealed_away);
        if adversary.is_silent || (self.now_us >= turns_us && self.random.chance(withheld)) {
            return None;
        }
        let holds_back = adversary.holds_back;
        if holds_back && matches!(self.said(&transmit), Said::Signature { .. } | Said::Vote { .. }) {
            return None;
        }
        if self.now_us >= turns_us && self.random.chance(sealed_away) {
            let away = self.some_of(&transmit.conversation_id);
            if let Some(message) = self.seal_again(member, &transmit, &away) {
                self.say(&transmit.conversation_id, message);
                return None;
            }
        }
        Some(transmit)
    }

    /// An engine is told that its message was ordered.
    pub(super) fn pretend(&mut self, member: usize, life: u32, transmit: &Transmit) {
        let outcome = SendOutcome::Accepted {
            router_instance_id: transmit.expected_router_instance_id,
            digest: transmit.message.digest(),
        };
        let id = transmit.outbound_id;
        self.schedule(
            20 * MS,
            Future::Outcome {
                member,
                life,
                id,
                outcome,
            },
        );
    }

    /// A Byzantine member reads a message.
    pub(super) fn overhear(&mut self, member: usize, topic: &Topic, message: &EncodedSignedMessage) {
        let (Some(adversary), Topic::Conversation(id)) = (&mut self.adversary, topic) else {
            return;
        };
        if self.history.honest[member] || adversary.pool.has_seen(message) {
            return;
        }
        let known = self
            .conversations
            .iter()
            .find(|known| known.conversation_id() == id);
        let Some(membership) = known else { return };
        let agent = &self.members[member].agent;
        let live = WireVersions::live();
        let Ok(outer) = open_outer_message(message, membership, &agent.card, &agent.key, &live) else {
            return;
        };
        let denied = match &outer.plaintext {
            Plaintext::Packet(DirectPacket::CatchUpRequest(request)) if adversary.denies => {
                Some((**request).clone())
            }
            _ => None,
        };
        adversary.pool.learn(*id, message, outer);
        let speaks = self.now_us >= adversary.turns_us && adversary.speaks();
        if let Some(request) = denied.filter(|_| speaks) {
            self.deny(id, &request);
        }
    }

    /// Byzantine members say no more than nothing from here on.
    pub(super) fn silence(&mut self) {
        if let Some(adversary) = &mut self.adversary {
            adversary.is_silent = true;
        }
    }

    /// A Byzantine member says what it prepared.
    pub(super) fn tell_prepared(&mut self, member: usize, conversation: &ConversationId, plaintext: &[u8]) {
        if self
            .adversary
            .as_ref()
            .is_some_and(|adversary| !adversary.is_silent)
        {
            self.tell(member, conversation, plaintext);
        }
    }

    /// Whether Byzantine members say no more.
    pub(super) fn is_silent(&self) -> bool {
        self.adversary
            .as_ref()
            .is_some_and(|adversary| adversary.is_silent)
    }

    /// One look of a Byzantine member.
    pub(super) fn mischief(&mut self, member: usize) {
        let Some(adversary) = &self.adversary else { return };
        if !adversary.speaks() {
            return;
        }
        let (turned, choices) = (self.now_us >= adversary.turns_us, adversary.mischief.clone());
        if turned && !choices.is_empty() {
            let conversation = *self.conversations[0].conversation_id();
            match *self.random.pick(&choices) {
                Mischief::Equivocate => self.equivocate(member, &conversation),
                Mischief::SplitLocks => self.split_locks(member, &conversation),
                Mischief::SignAll => self.sign_all(member, &conversation),
                Mischief::Replay => self.replay(member, &conversation),
                Mischief::AnswerJunk => self.answer_junk(member, &conversation),
                Mischief::Flood => self.flood(member, &conversation),
                Mischief::ShowLate => self.show_late(member, &conversation),
            }
        }
        let delay = self.random.between(100 * MS, 4 * SECOND);
        self.schedule(delay, Future::Mischief { member });
    }
}

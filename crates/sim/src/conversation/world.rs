//! The world: virtual time, a queue of what is going to happen, the Router, the members, and the shell around each engine.
//!
//! The shell does what `engine`'s documentation asks: one input, one commit, then the effects in order. Everything else
//! here is the network, with its faults.

use super::{
    adversary::Adversary,
    bugs::Breach,
    faults::{Fault, Rates},
    history::{History, Said},
    member::Member,
    router::Router,
};
use crate::random::Random;
use conclave_conversation::{
    engine::{Feed, Input, SendOutcome, TimerId, Transmit},
    membership::Membership,
    values::{AnchorHash, ConversationId, DeliveryToken, RecordHash},
};
use conclave_harness::MessageId;
use std::{collections::BTreeMap, rc::Rc};

/// One millisecond.
pub(super) const MS: u64 = 1_000;
/// One second.
pub(super) const SECOND: u64 = 1_000 * MS;

/// Something that is going to happen.
pub(super) enum Future {
    Open {
        member: usize,
    },
    Attach {
        member: usize,
        life: u32,
    },
    /// A transmission reaches the Router; `is_answered` unless it is a repetition, or its answer will be lost.
    Arrive {
        member: usize,
        life: u32,
        transmit: Rc<Transmit>,
        is_answered: bool,
    },
    Outcome {
        member: usize,
        life: u32,
        id: MessageId,
        outcome: SendOutcome,
    },
    Hand {
        member: usize,
        life: u32,
        feed: Feed,
    },
    Timer {
        member: usize,
        life: u32,
        id: TimerId,
        set: u64,
    },
    Rows {
        member: usize,
        life: u32,
        input: Box<Input>,
    },
    Post {
        member: usize,
        conversation: usize,
    },
    Acknowledge {
        member: usize,
        life: u32,
        token: DeliveryToken,
    },
    /// A look of the fault injector.
    Chaos,
    Online {
        member: usize,
    },
    /// A Byzantine member does something.
    Mischief {
        member: usize,
    },
    /// A Byzantine member says what it prepared.
    Tell {
        member: usize,
        conversation: ConversationId,
        plaintext: Vec<u8>,
    },
}

pub(super) struct World {
    pub(super) random: Random,
    pub(super) rates: Rates,
    pub(super) breach: Option<Breach>,
    pub(super) now_us: u64,
    queue: BTreeMap<(u64, u64), Future>,
    pub(super) queued: u64,
    pub(super) router: Router,
    pub(super) members: Vec<Member>,
    pub(super) conversations: Vec<Membership>,
    pub(super) adversary: Option<Adversary>,
    /// The newest certified record and anchor of each conversation, at whichever honest member has them.
    pub(super) tips: BTreeMap<ConversationId, (RecordHash, AnchorHash)>,
    pub(super) history: History,
    pub(super) inputs: u64,
    /// Something happened that must never happen: the verdict is known, and nothing more need.
    pub(super) is_broken: bool,
    pub(super) said: BTreeMap<MessageId, Said>,
    pub(super) requests: u64,
}

impl World {
    pub(super) fn new(
        random: Random,
        rates: Rates,
        router: Router,
        members: Vec<Member>,
        conversations: Vec<Membership>,
        history: History,
    ) -> Self {
        World {
            random,
            rates,
            breach: None,
            now_us: 0,
            queue: BTreeMap::new(),
            queued: 0,
            router,
            members,
            conversations,
            adversary: None,
            tips: BTreeMap::new(),
            history,
            inputs: 0,
            is_broken: false,
            said: BTreeMap::new(),
            requests: 0,
        }
    }

    pub(super) fn schedule(&mut self, delay_us: u64, future: Future) {
        self.queued += 1;
        self.queue.insert((self.now_us + delay_us, self.queued), future);
    }

    /// Lets things happen until nothing is going to, or until a time. False when it never comes to rest.
    pub(super) fn run(&mut self, end_us: u64, inputs_max: u64) -> bool {
        let last = self.inputs + inputs_max;
        while let Some(next) = self.queue.first_entry() {
            if next.key().0 > end_us || self.is_broken {
                break;
            }
            let ((at_us, _), future) = next.remove_entry();
            self.now_us = at_us;
            self.happen(future);
            if self.inputs > last {
                return false;
            }
        }
        true
    }

    /// The fault injector looks no more.
    pub(super) fn drop_chaos(&mut self) {
        self.queue.retain(|_, future| !matches!(future, Future::Chaos));
    }

    pub(super) fn breaks(&self, breach: Breach) -> bool {
        self.breach == Some(breach)
    }

    pub(super) fn rolls(&self, fault: Fault) -> bool {
        self.random.chance(self.rates.of(fault))
    }

    /// How long something takes on the network.
    pub(super) fn latency(&self) -> u64 {
        let usual = self.random.between(MS, 40 * MS);
        if self.rolls(Fault::Delay) {
            usual + self.random.between(0, 20 * SECOND)
        } else {
            usual
        }
    }

    pub(super) fn happen(&mut self, future: Future) {
        match future {
            Future::Open { member } => self.open(member),
            Future::Attach { member, life } => {
                if self.is_alive(member, life) && self.members[member].is_online {
                    let router_instance_id = self.router.instance();
                    self.input(member, Input::RouterInstance { router_instance_id });
                    self.read_on(member);
                }
            }
            Future::Arrive {
                member,
                life,
                transmit,
                is_answered,
            } => {
                self.arrive(member, life, &transmit, is_answered);
            }
            Future::Outcome {
                member,
                life,
                id: outbound_id,
                outcome,
            } => {
                if self.is_alive(member, life) {
                    self.input(member, Input::SendOutcome { outbound_id, outcome });
                }
            }
            Future::Hand { member, life, feed } => {
                if self.is_alive(member, life) {
                    self.hand(member, feed);
                }
            }
            Future::Timer {
                member,
                life,
                id,
                set,
            } => self.ring(member, life, id, set),
            Future::Rows { member, life, input } => {
                if self.is_alive(member, life) {
                    self.input(member, *input);
                }
            }
            Future::Post { member, conversation } => self.post(member, conversation),
            Future::Acknowledge {
                member,
                life,
                token: delivery_token,
            } => {
                if self.is_alive(member, life) {
                    self.input(member, Input::Acknowledge { delivery_token });
                }
            }
            Future::Chaos => self.chaos(),
            Future::Online { member } => self.online(member),
            Future::Mischief { member } => self.mischief(member),
            Future::Tell {
                member,
                conversation,
                plaintext,
            } => self.tell_prepared(member, &conversation, &plaintext),
        }
    }

    pub(super) fn is_alive(&self, member: usize, life: u32) -> bool {
        let member = &self.members[member];
        member.life == life && member.engine.is_some()
    }
}

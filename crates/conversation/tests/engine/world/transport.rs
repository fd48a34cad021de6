//! What moves messages and time: transmissions, deliveries, timers, restarts of the Router.

use conclave_conversation::engine::{Delivered, Feed, Input, InvitationDelivered, SendOutcome, Transmit};
use conclave_conversation::membership::Membership;

use super::World;
use super::router::{Ordered, OrderedFeed, feed_of};

impl World {
    /// The Router comes back as another instance, and everyone who is up learns of it.
    pub(crate) fn restart_router(&mut self, number: u8) {
        self.router.restart(number);
        for member in 0..self.members.len() {
            if self.members[member].engine.is_some() {
                self.attach(member);
            }
        }
    }

    /// A member loses what its feed of a conversation holds beyond what it read, and the transport says so.
    pub(crate) fn lose_unread(&mut self, member: usize, membership: &Membership) {
        let conversation_id = *membership.conversation_id();
        let last = self
            .router
            .log
            .iter()
            .filter(|ordered| ordered.instance == self.router.instance)
            .count() as u64;
        self.members[member]
            .feeds
            .insert(Feed::Conversation(conversation_id), last);
        self.handle(member, Input::FeedGap { conversation_id });
    }

    /// The Router answers a member's first transmission. False when there is none.
    pub(crate) fn transmit_one(&mut self, member: usize) -> bool {
        let Some(transmit) = self.members[member].transmits.pop_front() else {
            return false;
        };
        let outcome = if self.members[member].online {
            self.router.send(&transmit)
        } else {
            SendOutcome::TransportFailure
        };
        self.handle(
            member,
            Input::SendOutcome {
                outbound_id: transmit.outbound_id,
                outcome,
            },
        );
        true
    }

    /// The Router orders a member's first transmission, and the answer is lost.
    pub(crate) fn transmit_and_lose_the_answer(&mut self, member: usize) {
        let transmit = self.members[member]
            .transmits
            .pop_front()
            .expect("a transmission");
        self.router.send(&transmit);
        let outcome = SendOutcome::TransportFailure;
        self.handle(
            member,
            Input::SendOutcome {
                outbound_id: transmit.outbound_id,
                outcome,
            },
        );
    }

    /// Answers a member's first transmission with any outcome.
    pub(crate) fn answer(
        &mut self,
        member: usize,
        outcome: impl FnOnce(&Transmit) -> SendOutcome,
    ) -> Transmit {
        let transmit = self.members[member]
            .transmits
            .pop_front()
            .expect("a transmission");
        let outcome = outcome(&transmit);
        self.handle(
            member,
            Input::SendOutcome {
                outbound_id: transmit.outbound_id,
                outcome,
            },
        );
        transmit
    }

    /// Hands a member the next message of one of its feeds. False when it has read everything.
    pub(crate) fn deliver_one(&mut self, member: usize) -> bool {
        let this = &self.members[member];
        if !this.online || this.engine.is_none() {
            return false;
        }
        let next = self.router.log.iter().find(|ordered| {
            ordered.instance == self.router.instance
                && feed_of(ordered, this.id())
                    .is_some_and(|feed| this.feeds.get(&feed).is_some_and(|read| ordered.position > *read))
        });
        let Some(ordered) = next.cloned() else {
            return false;
        };
        self.deliver(member, &ordered);
        true
    }

    /// Hands a member one message, wherever it stands.
    pub(crate) fn deliver(&mut self, member: usize, ordered: &Ordered) {
        let feed = feed_of(ordered, self.members[member].id()).expect("a message for the member");
        self.members[member].feeds.insert(feed, ordered.position);
        let input = self.input(ordered);
        self.handle(member, input);
    }

    /// A message as the transport hands it over.
    pub(crate) fn input(&self, ordered: &Ordered) -> Input {
        let (message, position) = (Some(ordered.message.clone()), ordered.position);
        let router_instance_id = ordered.instance;
        match ordered.feed {
            OrderedFeed::Conversation(conversation_id) => Input::Delivered(Box::new(Delivered {
                conversation_id,
                message,
                position,
                router_instance_id,
            })),
            OrderedFeed::Welcome(_) => {
                let sender = ordered.message.sender();
                let sender_card = self
                    .members
                    .iter()
                    .find(|other| other.id() == sender)
                    .map(|other| other.agent.card.clone());
                Input::InvitationDelivered(Box::new(InvitationDelivered {
                    message,
                    sender_card,
                    position,
                    router_instance_id,
                }))
            }
        }
    }

    /// Lets everything happen that needs no timer, fairly, until nothing does.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100_000 {
            let mut moved = false;
            for member in 0..self.members.len() {
                if self.members[member].engine.is_none() {
                    continue;
                }
                moved |= self.transmit_one(member);
                moved |= self.deliver_one(member);
            }
            if !moved {
                return;
            }
        }
        panic!("the world does not settle");
    }

    /// Moves the clock to the next timer of any member and lets it go off. False when there is none.
    pub(crate) fn next_timer(&mut self) -> bool {
        let next = (0..self.members.len())
            .filter(|member| self.members[*member].engine.is_some())
            .flat_map(|member| {
                self.members[member]
                    .timers
                    .iter()
                    .map(move |(id, at_ms)| (*at_ms, member, *id))
            })
            .min();
        let Some((at_ms, member, id)) = next else {
            return false;
        };
        self.now_ms = self.now_ms.max(at_ms);
        self.members[member].timers.remove(&id);
        self.handle(member, Input::Timer(id));
        true
    }

    /// Lets everything happen, timers included, until no timer is left.
    pub(crate) fn run_out(&mut self) {
        for _ in 0..10_000 {
            self.settle();
            if !self.next_timer() {
                return;
            }
        }
        panic!("the timers do not run out");
    }
}

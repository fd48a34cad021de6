//! The way to the Router and back: transmissions with their outcomes, and feeds handed over in order.

use super::world::{Future, MS, SECOND, World};
use super::{
    agents,
    bugs::Breach,
    faults::Fault,
    history::{Event, Said, statement_of},
    member::Reader,
    router::Topic,
};
use conclave_conversation::{
    engine::{Delivered, Feed, Input, InvitationDelivered, SendOutcome, Transmit},
    outer_message::open_outer_message,
    test_support,
    values::Plaintext,
};
use conclave_harness::{EncodedSignedMessage, MessageId, WireVersions};
use std::rc::Rc;

impl World {
    pub(super) fn transmit(&mut self, member: usize, transmit: Transmit) {
        let (life, id) = (self.members[member].life, transmit.outbound_id);
        let said = self.said(&transmit);
        let left = Event::Left {
            id,
            conversation: transmit.conversation_id,
            said,
        };
        self.record(member, left);
        if !self.members[member].is_online {
            return self.fail(member, life, id);
        }
        let transmit = Rc::new(transmit);
        let Some(transmit) = self.bend(member, Rc::clone(&transmit)) else {
            // A Byzantine member keeps it to itself, and tells its engine nothing of it.
            return self.pretend(member, life, &transmit);
        };
        if self.rolls(Fault::Repeat) {
            self.history.is_disturbed = true;
            let delay = self.latency() + self.random.between(0, 60 * SECOND);
            let transmit = Rc::clone(&transmit);
            self.schedule(
                delay,
                Future::Arrive {
                    member,
                    life,
                    transmit,
                    is_answered: false,
                },
            );
        }
        let (loses, loses_answer) = (self.rolls(Fault::Lose), self.rolls(Fault::Lose));
        if loses || loses_answer {
            self.history.is_disturbed = true;
            self.fail(member, life, id);
        }
        if !loses {
            let delay = self.latency();
            let is_answered = !loses_answer;
            self.schedule(
                delay,
                Future::Arrive {
                    member,
                    life,
                    transmit,
                    is_answered,
                },
            );
        }
    }

    pub(super) fn fail(&mut self, member: usize, life: u32, id: MessageId) {
        let delay = self.random.between(50 * MS, 10 * SECOND);
        let outcome = SendOutcome::TransportFailure;
        self.schedule(
            delay,
            Future::Outcome {
                member,
                life,
                id,
                outcome,
            },
        );
    }

    pub(super) fn arrive(&mut self, member: usize, life: u32, transmit: &Transmit, is_answered: bool) {
        let (outcome, topics) = if self.breaks(Breach::AcceptedNotOrdered) && self.random.chance(20) {
            self.pretend(member, life, transmit);
            return;
        } else {
            self.router.send(transmit)
        };
        for topic in topics {
            self.ordered(topic);
        }
        if is_answered {
            let delay = self.latency();
            let id = transmit.outbound_id;
            self.schedule(
                delay,
                Future::Outcome {
                    member,
                    life,
                    id,
                    outcome,
                },
            );
        }
    }

    /// A topic has something new: whoever reads it is handed it in a while.
    pub(super) fn ordered(&mut self, topic: Topic) {
        for member in 0..self.members.len() {
            let feed = match topic {
                Topic::Conversation(id) => Feed::Conversation(id),
                Topic::Welcome(agent) if self.members[member].agent.id() == agent => Feed::Invitations,
                Topic::Welcome(_) => continue,
            };
            self.due(member, feed);
        }
    }

    /// What a transmission says. Opened as its sender, who is a recipient.
    pub(super) fn said(&mut self, transmit: &Transmit) -> Said {
        if let Some(said) = self.said.get(&transmit.outbound_id) {
            return *said;
        }
        let said = self.read_message(&transmit.message, &transmit.conversation_id);
        self.said.insert(transmit.outbound_id, said);
        said
    }

    pub(super) fn read_message(
        &mut self,
        message: &EncodedSignedMessage,
        conversation: &conclave_conversation::values::ConversationId,
    ) -> Said {
        let membership = self
            .conversations
            .iter()
            .find(|known| known.conversation_id() == conversation);
        let sender = self.history.number(&message.sender());
        let (Some(membership), Some(sender)) = (membership, sender) else {
            return Said::Junk;
        };
        let agent = &self.members[sender].agent;
        let live = WireVersions::live();
        let Ok(outer) = open_outer_message(message, membership, &agent.card, &agent.key, &live) else {
            return Said::Junk;
        };
        let statement = match &outer.plaintext {
            Plaintext::Evidence(evidence) => agents::number_of(
                &self
                    .members
                    .iter()
                    .map(|member| Rc::clone(&member.agent))
                    .collect::<Vec<_>>(),
                &evidence.sender(),
            )
            .and_then(|signer| {
                evidence
                    .verify(&self.members[signer].agent.card, &test_support::history())
                    .ok()
            })
            .and_then(|signed| statement_of(signed.body())),
            Plaintext::Packet(_) => None,
        };
        self.history.learn(&outer.plaintext, statement)
    }

    pub(super) fn watch(&mut self, member: usize, feed: Feed, after: Option<u64>) {
        let Some(instance) = self.members[member].instance() else {
            return;
        };
        let mut last = after.unwrap_or(0);
        if self.breaks(Breach::CursorBeforeEffects)
            && let Some((handed_of, handed)) = self.members[member].handed.get(&feed)
            && *handed_of == instance
        {
            last = last.max(*handed);
        }
        let readers = &mut self.members[member].readers;
        if readers
            .get(&feed)
            .is_none_or(|reader| reader.instance != instance)
        {
            readers.insert(
                feed,
                Reader {
                    instance,
                    last,
                    is_due: false,
                },
            );
            self.due(member, feed);
        }
    }

    pub(super) fn topic(&self, member: usize, feed: Feed) -> Topic {
        match feed {
            Feed::Conversation(id) => Topic::Conversation(id),
            Feed::Invitations => Topic::Welcome(self.members[member].agent.id()),
        }
    }

    /// Lets a member be handed the next message of a feed, unless it is going to be.
    pub(super) fn due(&mut self, member: usize, feed: Feed) {
        let life = self.members[member].life;
        let delay = self.latency();
        if let Some(reader) = self.members[member].readers.get_mut(&feed)
            && !reader.is_due
        {
            reader.is_due = true;
            self.schedule(delay, Future::Hand { member, life, feed });
        }
    }

    pub(super) fn read_on(&mut self, member: usize) {
        let feeds: Vec<Feed> = self.members[member].readers.keys().copied().collect();
        for feed in feeds {
            self.due(member, feed);
        }
    }

    /// Hands over the next message of a feed; before it, that something between is no longer kept.
    pub(super) fn hand(&mut self, member: usize, feed: Feed) {
        let topic = self.topic(member, feed);
        let (current, life) = (self.router.instance(), self.members[member].life);
        let is_online = self.members[member].is_online;
        let Some(reader) = self.members[member].readers.get_mut(&feed) else {
            return;
        };
        reader.is_due = false;
        if !is_online {
            return;
        }
        if reader.instance != current {
            // The connection ends with the instance; the next one tells.
            let delay = self.random.between(MS, 5 * SECOND);
            return self.schedule(delay, Future::Attach { member, life });
        }
        let Some(log) = self.router.log(&topic) else {
            return;
        };
        if reader.last < log.dropped {
            reader.last = log.dropped;
            self.history.push(self.now_us, member, Event::Gap(feed));
            if let Feed::Conversation(conversation_id) = feed {
                self.input(member, Input::FeedGap { conversation_id });
            }
            return self.due(member, feed);
        }
        let swaps = self.breach == Some(Breach::OrderOfItsOwn) && self.random.chance(150);
        let Some(next) = log.after(reader.last) else {
            return;
        };
        let next = match log.after(next.position) {
            // The planted bug: two messages change places, for this member alone.
            Some(later) if swaps => later.clone(),
            _ => next.clone(),
        };
        reader.last = next.position;
        self.members[member].handed.insert(feed, (current, next.position));
        if let Some(message) = &next.message {
            self.overhear(member, &topic, message);
        }
        let handed = Event::Handed {
            feed,
            instance: current,
            position: next.position,
        };
        self.record(member, handed);
        let input = self.handed(feed, next.message, next.position);
        self.input(member, input);
        self.due_if_more(member, feed);
    }

    pub(super) fn due_if_more(&mut self, member: usize, feed: Feed) {
        let topic = self.topic(member, feed);
        let Some(reader) = self.members[member].readers.get(&feed) else {
            return;
        };
        if reader.instance != self.router.instance()
            || self
                .router
                .log(&topic)
                .is_some_and(|log| log.after(reader.last).is_some())
        {
            self.due(member, feed);
        }
    }

    pub(super) fn handed(&self, feed: Feed, message: Option<EncodedSignedMessage>, position: u64) -> Input {
        let router_instance_id = self.router.instance();
        match feed {
            Feed::Conversation(conversation_id) => Input::Delivered(Box::new(Delivered {
                conversation_id,
                message,
                position,
                router_instance_id,
            })),
            Feed::Invitations => {
                let sender = message
                    .as_ref()
                    .and_then(|message| self.history.number(&message.sender()));
                Input::InvitationDelivered(Box::new(InvitationDelivered {
                    message,
                    sender_card: sender.map(|sender| self.members[sender].agent.card.clone()),
                    position,
                    router_instance_id,
                }))
            }
        }
    }
}

//! The Router: one order for each topic, under an instance, as long as it remembers.
//!
//! It speaks one of two dialects: the backend's, which knows a message by its bytes for as long as it keeps them and never
//! conflicts, and the chapter's own, with retry identities that it may forget.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use conclave_conversation::{
    engine::{SendMode, SendOutcome, Transmit},
    test_support::router_instance,
    values::ConversationId,
};
use conclave_harness::{AgentId, EncodedSignedMessage, MessageId, RouterInstanceId, SignedMessageDigest};

/// Where a message is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    /// A conversation's.
    Conversation(ConversationId),
    /// An agent's, for invitations.
    Welcome(AgentId),
}

/// One ordered message; none where a stranger wrote something else.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) position: u64,
    pub(super) message: Option<EncodedSignedMessage>,
}

/// What is kept of a topic.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    /// The last position that is no longer kept.
    pub(super) dropped: u64,
    pub(super) entries: VecDeque<Entry>,
    last: u64,
    /// The digests of the entries.
    held: BTreeSet<SignedMessageDigest>,
}

impl Log {
    /// The first entry after a position.
    pub(super) fn after(&self, position: u64) -> Option<&Entry> {
        let place = self.entries.partition_point(|entry| entry.position <= position);
        self.entries.get(place)
    }
}

/// How messages are known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// By topic and bytes.
    Backend,
    /// By sender and id, in two modes.
    Chapter,
}

pub(super) struct Router {
    number: u8,
    dialect: Dialect,
    topics: BTreeMap<Topic, Log>,
    known: BTreeMap<(AgentId, MessageId), SignedMessageDigest>,
}

/// Instances that there can be.
const INSTANCES_MAX: u8 = 250;

impl Router {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            number: 0,
            dialect,
            topics: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    pub(super) fn instance(&self) -> RouterInstanceId {
        router_instance(self.number)
    }

    pub(super) fn log(&self, topic: &Topic) -> Option<&Log> {
        self.topics.get(topic)
    }

    /// Another instance, with nothing ordered.
    pub(super) fn restart(&mut self) {
        if self.number < INSTANCES_MAX {
            self.number += 1;
            self.topics.clear();
            self.known.clear();
        }
    }

    /// Drops the first entries of every topic, each with the share that `keep` says, and every retry identity.
    pub(super) fn forget(&mut self, mut keep: impl FnMut(usize) -> usize) {
        self.known.clear();
        for log in self.topics.values_mut() {
            let kept = keep(log.entries.len());
            while log.entries.len() > kept {
                if let Some(dropped) = log.entries.pop_front() {
                    log.dropped = dropped.position;
                    if let Some(message) = dropped.message {
                        log.held.remove(&message.digest());
                    }
                }
            }
        }
    }

    /// Puts something behind everything a topic holds.
    pub(super) fn append(&mut self, topic: Topic, message: Option<EncodedSignedMessage>) {
        let log = self.topics.entry(topic).or_default();
        log.last += 1;
        log.held
            .extend(message.as_ref().map(EncodedSignedMessage::digest));
        log.entries.push_back(Entry {
            position: log.last,
            message,
        });
    }

    /// As [`append`](Self::append), unless the topic holds these bytes. Whether it did not.
    pub(super) fn publish(&mut self, topic: Topic, message: &EncodedSignedMessage) -> bool {
        let is_new = !self
            .log(&topic)
            .is_some_and(|log| log.held.contains(&message.digest()));
        if is_new {
            self.append(topic, Some(message.clone()));
        }
        is_new
    }

    /// Answers a transmission, and the topics it added to.
    pub(super) fn send(&mut self, transmit: &Transmit) -> (SendOutcome, Vec<Topic>) {
        let instance = self.instance();
        let mut changed = Vec::new();
        if transmit.expected_router_instance_id != instance {
            let outcome = SendOutcome::RouterRestarted {
                router_instance_id: instance,
            };
            return (outcome, changed);
        }
        let digest = transmit.message.digest();
        if self.dialect == Dialect::Chapter {
            let key = (transmit.message.sender(), transmit.message.message_id());
            match (self.known.get(&key), transmit.mode) {
                (Some(known), SendMode::Retry) if *known == digest => {}
                (Some(_), _) => return (SendOutcome::IdempotencyConflict, changed),
                (None, SendMode::Retry) => return (SendOutcome::RetryIdentityUnknown, changed),
                (None, SendMode::Initial) => {
                    self.known.insert(key, digest);
                    let topic = Topic::Conversation(transmit.conversation_id);
                    self.append(topic, Some(transmit.message.clone()));
                    changed.push(topic);
                    self.invite(transmit, &mut changed);
                }
            }
        } else {
            let topic = Topic::Conversation(transmit.conversation_id);
            if self.publish(topic, &transmit.message) {
                changed.push(topic);
            }
            self.invite(transmit, &mut changed);
        }
        let outcome = SendOutcome::Accepted {
            router_instance_id: instance,
            digest,
        };
        (outcome, changed)
    }

    fn invite(&mut self, transmit: &Transmit, changed: &mut Vec<Topic>) {
        for invitation in &transmit.invitations {
            let topic = Topic::Welcome(invitation.recipient_agent_id);
            if let Ok(message) = EncodedSignedMessage::from_canonical_bytes(&invitation.message)
                && self.publish(topic, &message)
            {
                changed.push(topic);
            }
        }
    }
}

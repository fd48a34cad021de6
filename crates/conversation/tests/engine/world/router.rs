//! The Router: one order, idempotent while it remembers.

use std::collections::BTreeMap;

use conclave_conversation::engine::{Feed, SendMode, SendOutcome, Transmit};
use conclave_conversation::test_support::router_instance;
use conclave_conversation::values::ConversationId;
use conclave_harness::{AgentId, EncodedSignedMessage, MessageId, RouterInstanceId};

/// One ordered message.
#[derive(Clone)]
pub(crate) struct Ordered {
    /// The Router instance that ordered it.
    pub(crate) instance: RouterInstanceId,
    pub(crate) feed: OrderedFeed,
    pub(crate) position: u64,
    pub(crate) message: EncodedSignedMessage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OrderedFeed {
    Conversation(ConversationId),
    Welcome(AgentId),
}

/// The Router: one order, idempotent by sender and message id while it remembers.
pub(crate) struct Router {
    pub(crate) instance: RouterInstanceId,
    pub(crate) log: Vec<Ordered>,
    pub(super) known: BTreeMap<(AgentId, MessageId), EncodedSignedMessage>,
}

impl Router {
    pub(crate) fn append(&mut self, feed: OrderedFeed, message: EncodedSignedMessage) {
        let of_instance = |ordered: &&Ordered| ordered.instance == self.instance;
        let position = self.log.iter().filter(of_instance).count() as u64 + 1;
        self.log.push(Ordered {
            instance: self.instance,
            feed,
            position,
            message,
        });
    }

    /// Another instance, with an order of its own.
    pub(crate) fn restart(&mut self, number: u8) {
        self.instance = router_instance(number);
        self.known.clear();
    }

    /// Forgets every retry identity, as eviction does.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Takes one transmission and answers it.
    pub(super) fn send(&mut self, transmit: &Transmit) -> SendOutcome {
        if transmit.expected_router_instance_id != self.instance {
            return SendOutcome::RouterRestarted {
                router_instance_id: self.instance,
            };
        }
        let key = (transmit.message.sender(), transmit.message.message_id());
        let accepted = SendOutcome::Accepted {
            router_instance_id: self.instance,
            digest: transmit.message.digest(),
        };
        match (self.known.get(&key), transmit.mode) {
            (Some(known), SendMode::Retry) if *known == transmit.message => accepted,
            (Some(_), _) => SendOutcome::IdempotencyConflict,
            (None, SendMode::Retry) => SendOutcome::RetryIdentityUnknown,
            (None, SendMode::Initial) => {
                self.known.insert(key, transmit.message.clone());
                self.append(
                    OrderedFeed::Conversation(transmit.conversation_id),
                    transmit.message.clone(),
                );
                for invitation in &transmit.invitations {
                    let message = EncodedSignedMessage::from_canonical_bytes(&invitation.message)
                        .expect("an invitation");
                    self.append(OrderedFeed::Welcome(invitation.recipient_agent_id), message);
                }
                accepted
            }
        }
    }
}

/// The feed of a member that brings a message; none when it is not for the member.
pub(super) fn feed_of(ordered: &Ordered, member: AgentId) -> Option<Feed> {
    match ordered.feed {
        OrderedFeed::Conversation(conversation) => Some(Feed::Conversation(conversation)),
        OrderedFeed::Welcome(recipient) => (recipient == member).then_some(Feed::Invitations),
    }
}

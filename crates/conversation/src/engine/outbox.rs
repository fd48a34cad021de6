//! When an envelope is offered to the Router, and what its outcome means ("Direct packets and Router envelopes", 1 to 5).
//!
//! Each conversation has one queue, in durable order, and at most one envelope in flight: order within a conversation is
//! kept, and one conversation never waits for another.
//!
//! One drain of an envelope makes at most [`SEND_ATTEMPTS_MAX`] attempts. An attempt whose outcome is unknown, and one
//! whose retry identity was lost, spend one; a conflict to an `initial` spends none, because the `retry` that follows
//! settles it. A drain that ran out leaves the envelope pending, and the next begins with `retry`.

use std::collections::VecDeque;

use conclave_harness::{AgentId, EncodedSignedMessage, MessageId, RouterInstanceId, SignedMessageDigest};

use super::draft::Draft;
use super::effect::{Effect, SendMode, Transmit, TransmitInvitation};
use super::error::{Fatal, RouterFault};
use super::input::{SendOutcome, TimerId};
use super::text::message_text;
use super::timing::{SEND_ATTEMPT_SPACING_MS, SEND_ATTEMPTS_MAX, reconnect_delay};
use crate::membership::Membership;
use crate::ordered::{OrderedMap, OrderedSet};
use crate::store::Transition;
use crate::store::rows::{Disposition, OutboundInvitation, OutboundRow};
use crate::store::transition::{BeginOutbound, CompleteOutbound, DiscardOutbound};
use crate::values::ConversationId;

/// A signed envelope that is not known to be ordered.
#[derive(Clone, Debug)]
pub(super) struct Envelope {
    pub(super) sequence: u64,
    pub(super) outbound_id: MessageId,
    pub(super) digest: SignedMessageDigest,
    pub(super) message: EncodedSignedMessage,
    pub(super) invitations: Vec<OutboundInvitation>,
    /// Whether a first attempt was ever begun.
    pub(super) attempted: bool,
    /// The member whose catch-up question it answers.
    pub(super) answer_to: Option<AgentId>,
}

impl Envelope {
    /// Its row, exactly as stored.
    fn row(&self, conversation: &ConversationId) -> OutboundRow {
        OutboundRow {
            outbound_sequence: self.sequence,
            outbound_id: self.outbound_id.to_string(),
            conversation_id: conversation.to_string(),
            canonical_signed_message: message_text(&self.message),
            invitations: self.invitations.clone(),
            attempted: self.attempted,
            disposition: Disposition::Pending,
            wire_version: self.message.version().to_string(),
        }
    }
}

/// What a queue is doing with its first envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drain {
    /// Nothing: there is none, or it may be begun.
    Idle,
    /// An attempt is out.
    InFlight { mode: SendMode, attempts: u32 },
    /// The next attempt of this drain waits for its timer.
    Spacing { attempts: u32 },
    /// The next drain waits for its timer.
    Waiting,
}

/// What an outcome means for those who wait for the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drained {
    /// Its drain goes on, or is done.
    GoesOn,
    /// Its drain ran out of attempts: the Router is not reached for now.
    RanOut,
}

#[derive(Clone, Debug)]
struct Queue {
    pending: VecDeque<Envelope>,
    drain: Drain,
    /// Drains in a row that ran out of attempts.
    failures: u32,
}

/// Every envelope on its way.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    queues: OrderedMap<ConversationId, Queue>,
    /// What fenced conversations retain: everything that was on its way when the fence went up. What is pushed behind the
    /// fence is recovery's and goes out.
    retained: OrderedMap<ConversationId, VecDeque<Envelope>>,
    /// Envelopes whose attempt was out when a fence went up. Its outcome is still to come, and would be taken for that of the
    /// next one: none is begun before. One at most for each attempt that the transport has in hand.
    interrupted: OrderedSet<MessageId>,
}

impl Outbox {
    /// Puts an envelope behind all others of its conversation.
    pub(super) fn push(&mut self, conversation: ConversationId, envelope: Envelope) {
        self.queues
            .or_insert_with(conversation, || Queue {
                pending: VecDeque::new(),
                drain: Drain::Idle,
                failures: 0,
            })
            .pending
            .push_back(envelope);
    }

    /// How many envelopes of a conversation are on their way.
    pub(super) fn pending(&self, conversation: &ConversationId) -> usize {
        let retained = self.retained.get(conversation).map_or(0, VecDeque::len);
        let pending = self
            .queues
            .get(conversation)
            .map_or(0, |queue| queue.pending.len());
        retained + pending
    }

    /// Whether an envelope of a conversation waits for the Router. What a fence retains waits for its conversation.
    pub(super) fn is_draining(&self, conversation: &ConversationId) -> bool {
        self.queues
            .get(conversation)
            .is_some_and(|queue| !queue.pending.is_empty())
    }

    /// How many answers to a member are on their way.
    pub(super) fn answers_pending(&self, conversation: &ConversationId, member: &AgentId) -> usize {
        let to_member = |envelope: &&Envelope| envelope.answer_to == Some(*member);
        self.queues
            .get(conversation)
            .map_or(0, |queue| queue.pending.iter().filter(to_member).count())
    }

    /// Retains everything that is on its way, until [`release`](Self::release).
    pub(super) fn fence(&mut self, conversation: ConversationId, draft: &mut Draft<'_>) {
        let retained = self.retained.or_default(conversation);
        if let Some(queue) = self.queues.get_mut(&conversation) {
            if let (Drain::InFlight { .. }, Some(first)) = (queue.drain, queue.pending.front()) {
                self.interrupted.insert(first.outbound_id);
            }
            if matches!(queue.drain, Drain::Spacing { .. } | Drain::Waiting) {
                draft.effect(Effect::CancelTimer {
                    id: TimerId::Drain(conversation),
                });
            }
            queue.drain = Drain::Idle;
            retained.append(&mut queue.pending);
        }
    }

    /// Lets what was retained go out, in its order, before whatever is pushed from here on.
    pub(super) fn release(&mut self, conversation: ConversationId) {
        for envelope in self.retained.remove(&conversation).into_iter().flatten() {
            self.push(conversation, envelope);
        }
    }

    /// Discards what is retained: it binds a Router instance that is gone.
    pub(super) fn discard(&mut self, conversation: ConversationId, draft: &mut Draft<'_>) {
        let Some(retained) = self.retained.get_mut(&conversation) else {
            return;
        };
        let outbound: Vec<OutboundRow> = retained
            .iter()
            .map(|envelope| envelope.row(&conversation))
            .collect();
        retained.clear();
        if !outbound.is_empty() {
            draft.commit(Transition::DiscardOutbound(DiscardOutbound {
                outbound,
                obligations: Vec::new(),
            }));
        }
    }

    /// Takes the outcome of an attempt that a fence interrupted. Whether it is one: then it decides nothing, and the envelope
    /// may be begun again.
    pub(super) fn settle(&mut self, outbound_id: &MessageId) -> bool {
        self.interrupted.remove(outbound_id)
    }

    /// Whether a queue's first envelope may be begun.
    fn is_ready(&self, queue: &Queue) -> bool {
        let first = queue.pending.front();
        queue.drain == Drain::Idle
            && first.is_some_and(|first| !self.interrupted.contains(&first.outbound_id))
    }

    /// The conversations with something to begin.
    pub(super) fn to_begin(&self) -> Vec<ConversationId> {
        let ready = self.queues.iter().filter(|(_, queue)| self.is_ready(queue));
        ready.map(|(id, _)| *id).collect()
    }

    /// Begins a drain of a conversation's first envelope: `initial` the first time ever, `retry` afterwards.
    pub(super) fn begin(
        &mut self,
        membership: &Membership,
        instance: RouterInstanceId,
        draft: &mut Draft<'_>,
    ) {
        let conversation = *membership.conversation_id();
        let is_ready = self
            .queues
            .get(&conversation)
            .is_some_and(|queue| self.is_ready(queue));
        let Some(queue) = self.queues.get_mut(&conversation).filter(|_| is_ready) else {
            return;
        };
        let Some(first) = queue.pending.front_mut() else {
            return;
        };
        let mode = if first.attempted {
            SendMode::Retry
        } else {
            SendMode::Initial
        };
        if !first.attempted {
            first.attempted = true;
            draft.commit(Transition::BeginOutbound(BeginOutbound {
                outbound_sequence: first.sequence,
                outbound_id: first.outbound_id.to_string(),
            }));
        }
        queue.attempt(mode, 1, membership, instance, draft);
    }

    /// Goes on after a timer.
    pub(super) fn timer(
        &mut self,
        membership: &Membership,
        instance: RouterInstanceId,
        draft: &mut Draft<'_>,
    ) {
        let conversation = *membership.conversation_id();
        let Some(queue) = self.queues.get_mut(&conversation) else {
            return;
        };
        match queue.drain {
            Drain::Spacing { attempts } => {
                queue.attempt(SendMode::Retry, attempts, membership, instance, draft)
            }
            Drain::Waiting => {
                queue.drain = Drain::Idle;
                self.begin(membership, instance, draft);
            }
            Drain::Idle | Drain::InFlight { .. } => {}
        }
    }

    /// The transport reached the Router again: what waits for the next attempt or drain need not wait longer.
    pub(super) fn wake(&mut self, draft: &mut Draft<'_>) {
        for (conversation, queue) in &mut self.queues {
            if matches!(queue.drain, Drain::Spacing { .. } | Drain::Waiting) {
                queue.drain = Drain::Idle;
                draft.effect(Effect::CancelTimer {
                    id: TimerId::Drain(*conversation),
                });
            }
        }
    }

    /// Whose envelope in flight this is.
    pub(super) fn conversation_of(&self, outbound_id: &MessageId) -> Option<ConversationId> {
        let in_flight = |queue: &Queue| {
            matches!(queue.drain, Drain::InFlight { .. })
                && queue
                    .pending
                    .front()
                    .is_some_and(|first| first.outbound_id == *outbound_id)
        };
        self.queues
            .iter()
            .find(|(_, queue)| in_flight(queue))
            .map(|(conversation, _)| *conversation)
    }

    /// Takes the outcome of the envelope in flight of a conversation.
    pub(super) fn outcome(
        &mut self,
        membership: &Membership,
        instance: RouterInstanceId,
        outcome: SendOutcome,
        draft: &mut Draft<'_>,
    ) -> Result<Drained, Fatal> {
        let conversation = *membership.conversation_id();
        let Some(queue) = self.queues.get_mut(&conversation) else {
            return Ok(Drained::GoesOn);
        };
        let Drain::InFlight { mode, attempts } = queue.drain else {
            return Ok(Drained::GoesOn);
        };
        let Some(first) = queue.pending.front() else {
            return Ok(Drained::GoesOn);
        };
        let breach = |what| Fatal::RouterContract {
            outbound_id: first.outbound_id,
            what,
        };
        match (outcome, mode) {
            (
                SendOutcome::Accepted {
                    router_instance_id,
                    digest,
                },
                _,
            ) => {
                if router_instance_id != instance {
                    return Err(breach(RouterFault::OtherInstance));
                }
                if digest != first.digest {
                    return Err(breach(RouterFault::OtherDigest));
                }
                draft.commit(Transition::CompleteOutbound(CompleteOutbound {
                    outbound_sequence: first.sequence,
                    outbound_id: first.outbound_id.to_string(),
                }));
                queue.pending.pop_front();
                queue.drain = Drain::Idle;
                queue.failures = 0;
                self.begin(membership, instance, draft);
            }
            (SendOutcome::MessageInvalid, _) => return Err(breach(RouterFault::MessageInvalid)),
            (SendOutcome::IdempotencyConflict, SendMode::Initial) => {
                queue.attempt(SendMode::Retry, attempts, membership, instance, draft);
            }
            (SendOutcome::IdempotencyConflict, SendMode::Retry) => {
                return Err(breach(RouterFault::ConflictToRetry));
            }
            (SendOutcome::RetryIdentityUnknown, SendMode::Initial) => {
                return Err(breach(RouterFault::IdentityUnknownToInitial));
            }
            (SendOutcome::RetryIdentityUnknown, SendMode::Retry) if attempts < SEND_ATTEMPTS_MAX => {
                queue.attempt(SendMode::Initial, attempts + 1, membership, instance, draft);
            }
            (SendOutcome::TransportFailure, _) if attempts < SEND_ATTEMPTS_MAX => {
                queue.drain = Drain::Spacing {
                    attempts: attempts + 1,
                };
                draft.effect(Effect::SetTimer {
                    id: TimerId::Drain(conversation),
                    at_ms: draft.now_ms + SEND_ATTEMPT_SPACING_MS,
                });
            }
            (SendOutcome::TransportFailure | SendOutcome::RetryIdentityUnknown, _) => {
                queue.drain = Drain::Waiting;
                let at_ms = draft.now_ms + reconnect_delay(queue.failures, draft.randomness);
                queue.failures = queue.failures.saturating_add(1);
                draft.effect(Effect::SetTimer {
                    id: TimerId::Drain(conversation),
                    at_ms,
                });
                return Ok(Drained::RanOut);
            }
            // The engine learns the instance first; whether anything is sent again is for it to say.
            (SendOutcome::RouterRestarted { .. }, _) => queue.drain = Drain::Idle,
        }
        Ok(Drained::GoesOn)
    }
}

impl Queue {
    /// Offers the first envelope.
    fn attempt(
        &mut self,
        mode: SendMode,
        attempts: u32,
        membership: &Membership,
        expected_router_instance_id: RouterInstanceId,
        draft: &mut Draft<'_>,
    ) {
        let Some(first) = self.pending.front() else { return };
        self.drain = Drain::InFlight { mode, attempts };
        draft.effect(Effect::Transmit(Box::new(Transmit {
            outbound_id: first.outbound_id,
            mode,
            expected_router_instance_id,
            conversation_id: *membership.conversation_id(),
            message: first.message.clone(),
            invitations: first
                .invitations
                .iter()
                .filter_map(|invitation| transmit(invitation, membership))
                .collect(),
        })));
    }
}

/// An invitation with the key its topic is derived from.
fn transmit(invitation: &OutboundInvitation, membership: &Membership) -> Option<TransmitInvitation> {
    // Startup verification requires every stored invitation to name a member.
    let recipient_agent_id: AgentId = invitation.recipient_agent_id.parse().ok()?;
    Some(TransmitInvitation {
        recipient_agent_id,
        recipient_key: membership.card(&recipient_agent_id)?.public_key(),
        message: invitation.canonical_signed_message.clone().into_bytes(),
    })
}

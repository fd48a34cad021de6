//! One input, one step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use conclave_harness::randomness::random_array;
use conclave_harness::{MessageId, RouterInstanceId};

use super::conversation::{Conversation, Cursor, Intent, Recovery, foundation, sealable};
use super::draft::Draft;
use super::effect::{ConversationStatus, Effect, Step, UnavailableReason};
use super::error::{AcknowledgeError, SendError};
use super::ignored::Ignored;
use super::input::{
    Context, Delivered, Feed, Input, InvitationDelivered, RequestId, SendOutcome, SendRequest, TimerId,
};
use super::invitation::{self, Watched};
use super::limits::{PENDING_OUTBOUND_MAX, UNFINISHED_SENDS_MAX};
use super::shared::{Shared, take};
use super::text::canonical;
use super::timing::ATTACH_WAIT_MS;
use crate::membership::Membership;
use crate::outer_message::open_outer_message;
use crate::store::Transition;
use crate::store::rows::{PostIntentRow, TransportCursorRow};
use crate::store::transition::{AcknowledgeDelivery, AdvanceCursor, BindPostIntent, UnwatchConversation};
use crate::values::{
    ActionHash, ConversationId, DeliveryToken, DirectPacket, Plaintext, PostId, PostIntent, PostIntentKind,
};
use crate::verification::VerifiedRouterAnchor;

/// One agent's side of all its conversations.
pub struct Engine {
    pub(super) shared: Shared,
    pub(super) conversations: BTreeMap<ConversationId, Conversation>,
    pub(super) watched: BTreeMap<ConversationId, Watched>,
    pub(super) cursors: BTreeMap<Feed, Cursor>,
    /// Sends that wait for the Router, in order.
    pub(super) waiting: VecDeque<SendRequest>,
    /// What a restart must send again, until the transport reaches the Router.
    pub(super) unresumed: BTreeMap<ConversationId, Resume>,
}

/// What a restart finds to be sent again.
#[derive(Clone, Debug, Default)]
pub(super) struct Resume {
    /// Staged records whose copy no envelope carries.
    pub(super) owed: Vec<ActionHash>,
    /// The plaintexts of the envelopes on their way.
    pub(super) pending: BTreeSet<Vec<u8>>,
}

/// A conversation as an owner sees it.
#[derive(Clone, Copy, Debug)]
pub struct ConversationView<'a> {
    /// Its members.
    pub membership: &'a Membership,
    /// Whether it carries traffic.
    pub status: ConversationStatus,
    /// How many certified records it has.
    pub records: u64,
    /// How many posts of the local agent are unfinished.
    pub unfinished: usize,
}

impl Engine {
    /// The held conversations, ascending by id.
    pub fn conversations(&self) -> impl Iterator<Item = ConversationView<'_>> {
        self.conversations.values().map(|conversation| ConversationView {
            membership: &conversation.membership,
            status: conversation.status(),
            records: conversation.next_ordinal,
            unfinished: conversation.intents.len(),
        })
    }

    /// The Router instance the transport reported last.
    pub fn router_instance(&self) -> Option<RouterInstanceId> {
        self.shared.instance
    }

    /// Takes one input. See the module's documentation for what the shell does with the step.
    pub fn handle(&mut self, input: Input, context: Context<'_>) -> Step {
        let mut draft = Draft::new(context);
        if self.shared.fatal.is_none() {
            self.take(input, &mut draft);
            self.begin_sending(&mut draft);
        } else {
            self.refuse(input, &mut draft);
        }
        match self.shared.fatal.clone() {
            // Nothing of a step that failed is kept: the engine is at its end, and the store is as it was.
            Some(reason) => {
                draft.step.transitions.clear();
                draft
                    .step
                    .effects
                    .retain(|effect| matches!(effect, Effect::Sent { result: Err(_), .. }));
                draft.effect(Effect::Fatal { reason });
                draft.step
            }
            None => draft.step,
        }
    }

    fn take(&mut self, input: Input, draft: &mut Draft<'_>) {
        match input {
            Input::RouterInstance { router_instance_id } => self.attach(router_instance_id, draft),
            Input::Delivered(delivered) => self.deliver(*delivered, draft),
            Input::InvitationDelivered(delivered) => self.deliver_invitation(*delivered, draft),
            Input::Send(request) => self.send(*request, draft),
            Input::Acknowledge { delivery_token } => self.acknowledge(delivery_token, draft),
            Input::Timer(timer) => self.timer(timer, draft),
            Input::SendOutcome { outbound_id, outcome } => self.outcome(outbound_id, outcome, draft),
        }
    }

    /// A stopped engine answers what waits for an answer.
    fn refuse(&mut self, input: Input, draft: &mut Draft<'_>) {
        if let (Input::Send(request), Some(reason)) = (input, self.shared.fatal.clone()) {
            draft.effect(Effect::Sent {
                request_id: request.request_id,
                result: Err(SendError::Stopped(reason)),
            });
        }
    }

    // ── the Router ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// The transport reached the Router, or learned that it is another instance.
    fn attach(&mut self, instance: RouterInstanceId, draft: &mut Draft<'_>) {
        let before = self.shared.instance.replace(instance);
        if before == Some(instance) {
            return self.shared.outbox.wake(draft);
        }
        for (conversation_id, conversation) in &mut self.conversations {
            let anchored = conversation.anchored_instance();
            if anchored != instance && conversation.is_recovered() {
                let reason = UnavailableReason::RouterInstanceChanged {
                    anchored,
                    current: instance,
                };
                conversation.recovery = Recovery::Unavailable(reason);
                self.shared.outbox.hold(*conversation_id, draft);
                draft.effect(Effect::CancelTimer {
                    id: TimerId::Resend(*conversation_id),
                });
                draft.effect(Effect::Unwatch {
                    feed: Feed::Conversation(*conversation_id),
                });
            } else if before.is_some() {
                continue;
            }
            let (conversation_id, status) = (*conversation_id, conversation.status());
            draft.effect(Effect::ConversationState {
                conversation_id,
                status,
            });
        }
        self.watch_all(draft);
        if before.is_none() {
            self.resume(draft);
        }
        for request in std::mem::take(&mut self.waiting) {
            draft.effect(Effect::CancelTimer {
                id: TimerId::Attach(request.request_id),
            });
            self.bind(request, instance, draft);
        }
    }

    /// Asks for every feed that is to be read.
    fn watch_all(&mut self, draft: &mut Draft<'_>) {
        let held = self
            .conversations
            .iter()
            .filter(|(_, held)| held.is_recovered())
            .map(|(id, _)| *id);
        let feeds = held.chain(self.watched.keys().copied()).map(Feed::Conversation);
        for feed in std::iter::once(Feed::Invitations).chain(feeds) {
            draft.effect(Effect::Watch {
                feed,
                after: self.read_up_to(feed),
            });
        }
    }

    /// How far a feed was read in the order of the current instance.
    fn read_up_to(&self, feed: Feed) -> Option<u64> {
        let cursor = self.cursors.get(&feed)?;
        (Some(cursor.router_instance_id) == self.shared.instance).then_some(cursor.position)
    }

    fn outcome(&mut self, outbound_id: MessageId, outcome: SendOutcome, draft: &mut Draft<'_>) {
        // An outcome of an envelope that is no longer in flight is late: a timer or a new attachment came first.
        let Some(conversation_id) = self.shared.outbox.conversation_of(&outbound_id) else {
            return;
        };
        let Some(instance) = self.shared.instance else {
            return;
        };
        let Some(conversation) = self.conversations.get(&conversation_id) else {
            return;
        };
        if let Err(reason) = self
            .shared
            .outbox
            .outcome(&conversation.membership, instance, outcome, draft)
        {
            return self.shared.fail(reason);
        }
        if let SendOutcome::RouterRestarted { router_instance_id } = outcome {
            self.attach(router_instance_id, draft);
        }
    }

    /// Begins every envelope that may go out.
    fn begin_sending(&mut self, draft: &mut Draft<'_>) {
        let Some(instance) = self.shared.instance else {
            return;
        };
        for conversation_id in self.shared.outbox.to_begin() {
            if let Some(conversation) = self.conversations.get(&conversation_id) {
                self.shared
                    .outbox
                    .begin(&conversation.membership, instance, draft);
            }
        }
    }

    fn timer(&mut self, timer: TimerId, draft: &mut Draft<'_>) {
        match timer {
            TimerId::Attach(request_id) => self.give_up_waiting(request_id, draft),
            TimerId::Resend(conversation_id) => {
                if let Some(conversation) = self.conversations.get_mut(&conversation_id) {
                    conversation.resend(&mut self.shared, draft);
                }
            }
            TimerId::Drain(conversation_id) => {
                if let (Some(conversation), Some(instance)) =
                    (self.conversations.get(&conversation_id), self.shared.instance)
                {
                    self.shared
                        .outbox
                        .timer(&conversation.membership, instance, draft);
                }
            }
        }
    }

    /// After a restart: the copies that are owed, the own evidence of what is not certified, the unfinished posts.
    fn resume(&mut self, draft: &mut Draft<'_>) {
        let mut unresumed = std::mem::take(&mut self.unresumed);
        for (conversation_id, conversation) in &mut self.conversations {
            let Resume { owed, pending } = unresumed.remove(conversation_id).unwrap_or_default();
            if !conversation.is_recovered() {
                continue;
            }
            for action_hash in owed {
                conversation.send_copy(action_hash, &mut self.shared, draft);
            }
            conversation.resend_evidence(&pending, &mut self.shared, draft);
            if let Some(locked) = conversation.locked {
                conversation.evaluate(locked, &mut self.shared, draft);
            }
            conversation.resume_proposal(&pending, &mut self.shared, draft);
        }
    }

    // ── feeds ───────────────────────────────────────────────────────────────────────────────────────────────────────

    fn deliver(&mut self, delivered: Delivered, draft: &mut Draft<'_>) {
        let conversation_id = delivered.conversation_id;
        let known =
            self.conversations.contains_key(&conversation_id) || self.watched.contains_key(&conversation_id);
        if !known {
            return draft.ignore(Ignored::UnknownConversation);
        }
        if !self.advance(
            Feed::Conversation(conversation_id),
            &delivered.router_instance_id,
            delivered.position,
            draft,
        ) {
            return;
        }
        if let Err(reason) = self.take_message(delivered, draft) {
            draft.ignore(reason);
        }
    }

    /// Moves a feed's cursor, in the same step as whatever the message does. False for a repetition.
    fn advance(
        &mut self,
        feed: Feed,
        instance: &RouterInstanceId,
        position: u64,
        draft: &mut Draft<'_>,
    ) -> bool {
        if self.shared.instance != Some(*instance) {
            self.attach(*instance, draft);
        }
        if self.read_up_to(feed).is_some_and(|read| position <= read) {
            draft.ignore(Ignored::AlreadyRead);
            return false;
        }
        self.cursors.insert(
            feed,
            Cursor {
                router_instance_id: *instance,
                position,
            },
        );
        draft.commit(Transition::AdvanceCursor(AdvanceCursor {
            cursor: TransportCursorRow {
                feed: feed.to_string(),
                router_instance_id: instance.to_string(),
                position,
            },
        }));
        true
    }

    fn take_message(&mut self, delivered: Delivered, draft: &mut Draft<'_>) -> Result<(), Ignored> {
        let Delivered {
            conversation_id,
            message,
            router_instance_id,
            ..
        } = delivered;
        let message = message.ok_or(Ignored::NoMessage)?;
        let shared = &mut self.shared;
        let local = &shared.local;
        if let Some(conversation) = self.conversations.get_mut(&conversation_id) {
            if !conversation.is_recovered() {
                return Err(Ignored::NotRecovered);
            }
            let outer = open_outer_message(
                &message,
                &conversation.membership,
                &local.card,
                &local.key,
                &local.live,
            )?;
            return match outer.plaintext {
                Plaintext::Evidence(evidence) => conversation.on_evidence(&evidence, shared, draft),
                Plaintext::Packet(DirectPacket::ActionProposal(proposal)) => {
                    conversation.on_proposal(outer.sender, *proposal, shared, draft)
                }
                Plaintext::Packet(DirectPacket::ActionCertifiedRecord(record)) => {
                    conversation.on_action_certified(*record, shared, draft)
                }
                Plaintext::Packet(DirectPacket::CertifiedRecord(record)) => {
                    conversation.on_certified(*record, shared, draft)
                }
                Plaintext::Packet(
                    DirectPacket::CompletedReanchor(_)
                    | DirectPacket::CatchUpRequest(_)
                    | DirectPacket::CatchUpPage(_)
                    | DirectPacket::CatchUpIncomplete(_),
                ) => Err(Ignored::RecoveryNotBuilt),
            };
        }
        let watched = self
            .watched
            .get(&conversation_id)
            .ok_or(Ignored::UnknownConversation)?;
        let outer = open_outer_message(
            &message,
            &watched.membership,
            &local.card,
            &local.key,
            &local.live,
        )?;
        let Plaintext::Packet(DirectPacket::ActionProposal(proposal)) = outer.plaintext else {
            return Err(Ignored::UnknownConversation);
        };
        let membership = watched.membership.clone();
        let conversation = Conversation::from_genesis(
            outer.sender,
            *proposal,
            &membership,
            router_instance_id,
            shared,
            draft,
        )?;
        self.watched.remove(&conversation_id);
        self.conversations.insert(conversation_id, conversation);
        Ok(())
    }

    fn deliver_invitation(&mut self, delivered: InvitationDelivered, draft: &mut Draft<'_>) {
        if !self.advance(
            Feed::Invitations,
            &delivered.router_instance_id,
            delivered.position,
            draft,
        ) {
            return;
        }
        let invitation = match invitation::open(&self.shared.local, &delivered) {
            Ok(invitation) => invitation,
            Err(reason) => return draft.ignore(reason),
        };
        let conversation_id = invitation.membership().conversation_id();
        if self.conversations.contains_key(conversation_id) || self.watched.contains_key(conversation_id) {
            return draft.ignore(Ignored::InvitationKnown);
        }
        for dropped in invitation::watch(&mut self.watched, invitation, &mut self.shared, draft) {
            self.cursors.remove(&Feed::Conversation(dropped));
        }
    }

    // ── the host ────────────────────────────────────────────────────────────────────────────────────────────────────

    fn send(&mut self, request: SendRequest, draft: &mut Draft<'_>) {
        if let Some(instance) = self.shared.instance {
            return self.bind(request, instance, draft);
        }
        if self.waiting.len() >= UNFINISHED_SENDS_MAX {
            let result = Err(SendError::TooManyUnfinished);
            return draft.effect(Effect::Sent {
                request_id: request.request_id,
                result,
            });
        }
        let at_ms = draft.now_ms + ATTACH_WAIT_MS;
        draft.effect(Effect::SetTimer {
            id: TimerId::Attach(request.request_id),
            at_ms,
        });
        self.waiting.push_back(request);
    }

    fn give_up_waiting(&mut self, request_id: RequestId, draft: &mut Draft<'_>) {
        let place = self
            .waiting
            .iter()
            .position(|waiting| waiting.request_id == request_id);
        if place.and_then(|place| self.waiting.remove(place)).is_some() {
            draft.effect(Effect::Sent {
                request_id,
                result: Err(SendError::NetworkUnavailable),
            });
        }
    }

    fn bind(&mut self, request: SendRequest, instance: RouterInstanceId, draft: &mut Draft<'_>) {
        let request_id = request.request_id;
        if let Err(error) = self.try_bind(request, instance, draft) {
            draft.effect(Effect::Sent {
                request_id,
                result: Err(error),
            });
        }
    }

    /// Binds a post durably, founding its conversation if it is the first thing known of it, and proposes it.
    fn try_bind(
        &mut self,
        request: SendRequest,
        instance: RouterInstanceId,
        draft: &mut Draft<'_>,
    ) -> Result<(), SendError> {
        let SendRequest {
            request_id,
            membership,
            content,
        } = request;
        let shared = &mut self.shared;
        if membership.card(&shared.local_id) != Some(&shared.local.card) {
            return Err(SendError::NotAMember);
        }
        let conversation_id = *membership.conversation_id();
        let mut new_foundation = None;
        match self.conversations.get(&conversation_id) {
            Some(held) => admit(held, &membership, shared)?,
            None => {
                if !sealable(&membership) {
                    return Err(SendError::NotSealable);
                }
                let body = membership.genesis_anchor(instance);
                let anchor = VerifiedRouterAnchor::verify(body.into(), &membership, &mut shared.memory)
                    .map_err(|_| SendError::MembershipDiffers)?;
                new_foundation = Some(foundation(&membership, &anchor));
                let conversation = Conversation::founded(membership, anchor);
                self.conversations.insert(conversation_id, conversation);
            }
        }
        let Some(conversation) = self.conversations.get_mut(&conversation_id) else {
            return Err(SendError::MembershipDiffers);
        };
        let intent = PostIntent {
            sharness_version: shared.local.wire_version,
            kind: PostIntentKind,
            conversation_id,
            membership_hash: *conversation.membership.hash(),
            author_agent_id: shared.local_id,
            post_id: PostId::from_bytes(random_array(draft.randomness)),
            content,
        };
        let founds = new_foundation.is_some();
        draft.commit(Transition::BindPostIntent(BindPostIntent {
            foundation: new_foundation,
            intent: PostIntentRow {
                author_agent_id: shared.local_id.to_string(),
                post_id: intent.post_id.to_string(),
                intent_sequence: take(&mut shared.numbers.intent),
                conversation_id: conversation_id.to_string(),
                membership_hash: intent.membership_hash.to_string(),
                canonical_intent: canonical(&intent),
                completed_record_hash: None,
            },
        }));
        draft.effect(Effect::Bound {
            request_id,
            conversation_id,
            post_id: intent.post_id,
        });
        if founds {
            draft.effect(Effect::ConversationState {
                conversation_id,
                status: conversation.status(),
            });
            if self.watched.remove(&conversation_id).is_some() {
                let (conversation_id, forget_cursor) = (conversation_id.to_string(), false);
                draft.commit(Transition::UnwatchConversation(UnwatchConversation {
                    conversation_id,
                    forget_cursor,
                }));
            } else {
                draft.effect(Effect::Watch {
                    feed: Feed::Conversation(conversation_id),
                    after: None,
                });
            }
        }
        conversation.intents.push_back(Intent {
            intent,
            request_id: Some(request_id),
        });
        conversation.propose(shared, draft);
        Ok(())
    }

    fn acknowledge(&mut self, delivery_token: DeliveryToken, draft: &mut Draft<'_>) {
        let result = match self.shared.deliveries.get_mut(&delivery_token) {
            None => Err(AcknowledgeError::UnknownDelivery),
            Some(entry) => {
                if !entry.acknowledged {
                    entry.acknowledged = true;
                    draft.commit(Transition::AcknowledgeDelivery(AcknowledgeDelivery {
                        conversation_id: entry.conversation_id.to_string(),
                        record_hash: entry.record_hash.to_string(),
                        delivery_token: delivery_token.to_string(),
                    }));
                }
                Ok(())
            }
        };
        draft.effect(Effect::Acknowledged {
            delivery_token,
            result,
        });
    }
}

/// Whether a held conversation takes another post of these members.
fn admit(held: &Conversation, membership: &Membership, shared: &Shared) -> Result<(), SendError> {
    if held.membership.hash() != membership.hash() {
        return Err(SendError::MembershipDiffers);
    }
    if let Recovery::Unavailable(reason) = held.recovery {
        return Err(SendError::Unavailable(reason));
    }
    if held.intents.len() >= UNFINISHED_SENDS_MAX
        || shared.outbox.pending(membership.conversation_id()) >= PENDING_OUTBOUND_MAX
    {
        return Err(SendError::TooManyUnfinished);
    }
    Ok(())
}

//! The host's side: posts to be bound, deliveries to be acknowledged.

use conclave_harness::RouterInstanceId;
use conclave_harness::randomness::random_array;

use super::conversation::{Conversation, Intent, foundation, sealable};
use super::draft::Draft;
use super::effect::{Effect, SentPost};
use super::error::{AcknowledgeError, SendError};
use super::input::{Feed, RequestId, SendRequest, TimerId};
use super::limits::{PENDING_OUTBOUND_MAX, UNFINISHED_SENDS_MAX};
use super::run::Engine;
use super::shared::{Shared, take};
use super::text::canonical;
use super::timing::{ATTACH_WAIT_MS, DELIVERY_WAIT_MS};
use crate::membership::Membership;
use crate::store::Transition;
use crate::store::rows::PostIntentRow;
use crate::store::transition::{AcknowledgeDelivery, BindPostIntent, UnwatchConversation};
use crate::values::{ConversationId, DeliveryToken, PostId, PostIntent, PostIntentKind};
use crate::verification::VerifiedRouterAnchor;

impl Engine {
    pub(super) fn send(&mut self, request: SendRequest, draft: &mut Draft<'_>) {
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

    pub(super) fn give_up_waiting(&mut self, request_id: RequestId, draft: &mut Draft<'_>) {
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

    /// The time for the Router to take a bound send's envelopes is over. While it took them all, the post waits for its
    /// members, and the caller with it.
    pub(super) fn give_up_delivery(&mut self, request_id: RequestId, draft: &mut Draft<'_>) {
        let waits = |intent: &Intent| intent.request_id == Some(request_id);
        let holder = self
            .conversations
            .iter()
            .find(|(_, held)| held.intents.iter().any(waits))
            .map(|(conversation_id, _)| *conversation_id);
        if let Some(conversation_id) = holder
            && self.shared.outbox.is_draining(&conversation_id)
        {
            self.stop_waiting(&conversation_id, draft);
        }
    }

    /// Answers the callers of a conversation's unfinished posts: the posts go on without them.
    pub(super) fn stop_waiting(&mut self, conversation_id: &ConversationId, draft: &mut Draft<'_>) {
        let Some(conversation) = self.conversations.get_mut(conversation_id) else {
            return;
        };
        for held in &mut conversation.intents {
            if let Some(request_id) = held.request_id.take() {
                let post_id = held.intent.post_id;
                answer(request_id, Err(SendError::DeliveryPending { post_id }), draft);
            }
        }
    }

    pub(super) fn bind(&mut self, request: SendRequest, instance: RouterInstanceId, draft: &mut Draft<'_>) {
        let request_id = request.request_id;
        if let Err(error) = self.try_bind(request, instance, draft) {
            draft.effect(Effect::Sent {
                request_id,
                result: Err(error),
            });
        }
    }

    /// Binds a post durably, founding its conversation if it is the first thing known of it, and proposes it.
    pub(super) fn try_bind(
        &mut self,
        request: SendRequest,
        instance: RouterInstanceId,
        draft: &mut Draft<'_>,
    ) -> Result<(), SendError> {
        let SendRequest {
            request_id,
            membership,
            content,
            post_id,
        } = request;
        let shared = &mut self.shared;
        if membership.card(&shared.local_id) != Some(&shared.local.card) {
            return Err(SendError::NotAMember);
        }
        let intent = PostIntent {
            sharness_version: shared.local.wire_version,
            kind: PostIntentKind,
            conversation_id: *membership.conversation_id(),
            membership_hash: *membership.hash(),
            author_agent_id: shared.local_id,
            post_id: post_id.unwrap_or_else(|| PostId::from_bytes(random_array(draft.randomness))),
            content,
        };
        if post_id.is_some() && self.join(&intent, request_id, draft)? {
            return Ok(());
        }
        let shared = &mut self.shared;
        let conversation_id = intent.conversation_id;
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
        wait_for(request_id, &intent, draft);
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
        conversation.is_asked_for = true;
        conversation.intents.push_back(Intent {
            intent,
            request_id: Some(request_id),
        });
        conversation.rearm(shared, draft);
        conversation.propose(shared, draft);
        Ok(())
    }

    /// Takes a send of a post that there is already as the same one: its caller waits for it, or is answered at once when it
    /// is certified. Whoever waited before hears that it goes on without them. False when there is no such post.
    fn join(
        &mut self,
        asked: &PostIntent,
        request_id: RequestId,
        draft: &mut Draft<'_>,
    ) -> Result<bool, SendError> {
        let post_id = asked.post_id;
        let (conversation_id, differs) = (asked.conversation_id, SendError::PostDiffers { post_id });
        for conversation in self.conversations.values_mut() {
            if let Some(made) = conversation.posts.get(&(asked.author_agent_id, post_id)) {
                if made.intent != asked.hash() {
                    return Err(differs);
                }
                let Some(link) = conversation.chain.link(made.ordinal) else {
                    return Err(differs);
                };
                let post = SentPost {
                    conversation_id,
                    post_id,
                    record_hash: link.record_hash,
                };
                draft.effect(Effect::Sent {
                    request_id,
                    result: Ok(post),
                });
                return Ok(true);
            }
            let unfinished = |held: &&mut Intent| held.intent.post_id == post_id;
            if let Some(held) = conversation.intents.iter_mut().find(unfinished) {
                if held.intent != *asked {
                    return Err(differs);
                }
                if let Some(before) = held.request_id.replace(request_id) {
                    answer(before, Err(SendError::DeliveryPending { post_id }), draft);
                }
                wait_for(request_id, &held.intent, draft);
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn acknowledge(&mut self, delivery_token: DeliveryToken, draft: &mut Draft<'_>) {
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

/// A send's post is bound; its caller waits until the Router takes the envelopes, or the time for that is over.
fn wait_for(request_id: RequestId, intent: &PostIntent, draft: &mut Draft<'_>) {
    draft.effect(Effect::Bound {
        request_id,
        conversation_id: intent.conversation_id,
        post_id: intent.post_id,
    });
    draft.effect(Effect::SetTimer {
        id: TimerId::Delivery(request_id),
        at_ms: draft.now_ms + DELIVERY_WAIT_MS,
    });
}

/// Ends a bound send for its caller.
pub(super) fn answer(request_id: RequestId, result: Result<SentPost, SendError>, draft: &mut Draft<'_>) {
    draft.effect(Effect::CancelTimer {
        id: TimerId::Delivery(request_id),
    });
    draft.effect(Effect::Sent { request_id, result });
}

/// Whether a held conversation takes another post of these members.
fn admit(held: &Conversation, membership: &Membership, shared: &Shared) -> Result<(), SendError> {
    if held.membership.hash() != membership.hash() {
        return Err(SendError::MembershipDiffers);
    }
    if held.intents.len() >= UNFINISHED_SENDS_MAX
        || shared.outbox.pending(membership.conversation_id()) >= PENDING_OUTBOUND_MAX
    {
        return Err(SendError::TooManyUnfinished);
    }
    Ok(())
}

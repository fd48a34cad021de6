//! Delivered messages: the feed's cursor, and whose message it is.

use conclave_harness::{AgentId, RouterInstanceId};

use super::conversation::{Conversation, Cursor};
use super::draft::Draft;
use super::effect::RecoveryReason;
use super::ignored::Ignored;
use super::input::{Delivered, Feed, InvitationDelivered};
use super::invitation;
use super::limits::{UNASKED_CONVERSATIONS_MAX, UNASKED_CONVERSATIONS_PER_AUTHOR_MAX};
use super::run::Engine;
use crate::outer_message::open_outer_message;
use crate::planted::{Bug, has};
use crate::store::Transition;
use crate::store::rows::TransportCursorRow;
use crate::store::transition::AdvanceCursor;
use crate::values::{ConversationId, DirectPacket, Plaintext};

impl Engine {
    pub(super) fn deliver(&mut self, delivered: Delivered, draft: &mut Draft<'_>) {
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
    pub(super) fn advance(
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
        // Until a run ends its messages are read again after a crash, and the gap that began it is found again.
        let fenced = match feed {
            Feed::Conversation(id) => self
                .conversations
                .get(&id)
                .is_some_and(|held| !held.is_recovered()),
            Feed::Invitations => false,
        };
        if !fenced || has(Bug::FencedCursorKept) {
            self.keep_cursor(feed, draft);
        }
        true
    }

    fn keep_cursor(&self, feed: Feed, draft: &mut Draft<'_>) {
        if let Some(cursor) = self.cursors.get(&feed) {
            draft.commit(Transition::AdvanceCursor(AdvanceCursor {
                cursor: TransportCursorRow {
                    feed: feed.to_string(),
                    router_instance_id: cursor.router_instance_id.to_string(),
                    position: cursor.position,
                },
            }));
        }
    }

    /// The cursors of conversations whose run ended become durable with its effects.
    pub(super) fn keep_recovered_cursors(&mut self, draft: &mut Draft<'_>) {
        for conversation_id in std::mem::take(&mut self.shared.recovered) {
            self.keep_cursor(Feed::Conversation(conversation_id), draft);
        }
    }

    /// The transport's cursor lies below what the Router kept.
    pub(super) fn feed_gap(&mut self, conversation_id: ConversationId, draft: &mut Draft<'_>) {
        if self.shared.instance.is_none() {
            return;
        }
        let Some(conversation) = self.conversations.get_mut(&conversation_id) else {
            return;
        };
        let reason = conversation
            .run()
            .map_or(RecoveryReason::HistoryMissing, |run| run.reason);
        let resume = self.unresumed.remove(&conversation_id);
        conversation.begin_run(reason, resume, &mut self.shared, draft);
        conversation.show_status(draft);
    }

    pub(super) fn take_message(
        &mut self,
        delivered: Delivered,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
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
            let outer = open_outer_message(
                &message,
                &conversation.membership,
                &local.card,
                &local.key,
                &local.live,
            )?;
            if !conversation.is_recovered() {
                return conversation.on_fenced(outer.sender, outer.plaintext, shared, draft);
            }
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
                Plaintext::Packet(DirectPacket::CatchUpRequest(request)) => {
                    conversation.on_catch_up_request(outer.sender, *request, shared, draft)
                }
                Plaintext::Packet(
                    DirectPacket::CompletedReanchor(_)
                    | DirectPacket::CatchUpPage(_)
                    | DirectPacket::CatchUpIncomplete(_),
                ) => Err(Ignored::NotRecovering),
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
        admit_another(self.conversations.values(), outer.sender)?;
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

    pub(super) fn deliver_invitation(&mut self, delivered: InvitationDelivered, draft: &mut Draft<'_>) {
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
}

/// Whether an author may begin one more conversation that the local agent did not ask for.
fn admit_another<'a>(held: impl Iterator<Item = &'a Conversation>, author: AgentId) -> Result<(), Ignored> {
    let (mut all, mut of_author) = (0, 0);
    for conversation in held.filter(|conversation| !conversation.is_asked_for) {
        all += 1;
        of_author += usize::from(conversation.begun_by == Some(author));
    }
    if all >= UNASKED_CONVERSATIONS_MAX || of_author >= UNASKED_CONVERSATIONS_PER_AUTHOR_MAX {
        return Err(Ignored::TooManyConversations);
    }
    Ok(())
}

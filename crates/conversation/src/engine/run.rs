//! One input, one step.

use std::collections::VecDeque;

use conclave_harness::{AgentId, RouterInstanceId};

use super::conversation::{Conversation, Cursor};
use super::draft::Draft;
use super::effect::{ConversationStatus, Effect, Step};
use super::error::SendError;
use super::input::{Context, Feed, Input, SendRequest};
use super::invitation::Watched;
use super::shared::Shared;
use super::stall::Touched;
use crate::certificates::SignerMap;
use crate::membership::Membership;
use crate::ordered::{OrderedMap, OrderedSet};
use crate::values::{ActionHash, ConversationId, PostIntent, RecordCore};

/// One agent's side of all its conversations.
pub struct Engine {
    pub(super) shared: Shared,
    pub(super) conversations: OrderedMap<ConversationId, Conversation>,
    pub(super) watched: OrderedMap<ConversationId, Watched>,
    pub(super) cursors: OrderedMap<Feed, Cursor>,
    /// Sends that wait for the Router, in order.
    pub(super) waiting: VecDeque<SendRequest>,
    /// What a restart must send again, until the transport reaches the Router.
    pub(super) unresumed: OrderedMap<ConversationId, Resume>,
}

/// What a restart finds to be sent again.
#[derive(Clone, Debug, Default)]
pub(super) struct Resume {
    /// Staged records whose copy no envelope carries.
    pub(super) owed: Vec<ActionHash>,
    /// The plaintexts of the envelopes on their way.
    pub(super) pending: OrderedSet<Vec<u8>>,
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

/// The post that holds the lock at a conversation's head, on its way to a certified record.
#[derive(Clone, Debug)]
pub struct LockedPost<'a> {
    /// The post.
    pub intent: &'a PostIntent,
    /// Whether it founds the conversation, so that everyone must sign it.
    pub is_genesis: bool,
    /// Whether its record is held durably.
    pub is_stored: bool,
    /// Who signed its action, as far as is known here.
    pub signed_by: Vec<AgentId>,
    /// Who holds its record durably, as far as is known here.
    pub stored_by: Vec<AgentId>,
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

    /// The local agent's posts that are bound and not certified, oldest first.
    pub fn unfinished_posts(&self, conversation_id: &ConversationId) -> impl Iterator<Item = &PostIntent> {
        let conversation = self.conversations.get(conversation_id);
        conversation
            .into_iter()
            .flat_map(|held| held.intents.iter().map(|intent| &intent.intent))
    }

    /// The post that holds the lock at a conversation's head, if one does.
    pub fn locked_post(&self, conversation_id: &ConversationId) -> Option<LockedPost<'_>> {
        let conversation = self.conversations.get(conversation_id)?;
        let fold = conversation.folds.get(&conversation.locked?)?;
        let signers = |of: &SignerMap| of.iter().map(|held| *held.signer()).collect();
        Some(LockedPost {
            intent: fold.record.core().post_intent(),
            is_genesis: matches!(fold.record.core(), RecordCore::Genesis(_)),
            is_stored: fold.staged,
            signed_by: signers(&fold.signatures),
            stored_by: signers(&fold.votes),
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
            let (touched, instance) = (Touched::by(&input), self.shared.instance);
            self.take(input, &mut draft);
            self.keep_recovered_cursors(&mut draft);
            self.begin_sending(&mut draft);
            // Whatever names another instance of the Router touches every conversation.
            let is_same = self.shared.instance == instance;
            self.show_waits(if is_same { touched } else { Touched::Every }, &mut draft);
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
            Input::FeedGap { conversation_id } => self.feed_gap(conversation_id, draft),
            Input::Rows { read_id, rows } => {
                if let Some(conversation) = self.conversations.get_mut(&read_id.conversation_id) {
                    conversation.on_rows(read_id.requester, &rows, &mut self.shared, draft);
                }
            }
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
}

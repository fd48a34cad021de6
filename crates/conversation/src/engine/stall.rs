//! What a conversation waits for. The protocol replaces nothing by itself, so an owner is told whom to look after.

use conclave_harness::AgentId;

use super::conversation::Conversation;
use super::draft::Draft;
use super::effect::{Effect, Stall, WaitingFor};
use super::run::Engine;
use super::shared::Shared;
use crate::certificates::SignerMap;
use crate::values::ConversationId;

impl Engine {
    /// What a held conversation waits for right now, and whom; none while nothing is open in it.
    ///
    /// Waiting is normal while a post is on its way. [`Effect::Stalled`] says when it has lasted.
    pub fn stall(&self, conversation_id: &ConversationId) -> Option<Stall> {
        self.conversations.get(conversation_id)?.stall(&self.shared)
    }
}

impl Conversation {
    pub(super) fn stall(&self, shared: &Shared) -> Option<Stall> {
        let behind_another = self
            .locked_fold()
            .is_some_and(|fold| *fold.record.author() != shared.local_id && !self.intents.is_empty());
        let (waiting_for, members) = match (self.run(), self.locked_fold()) {
            (Some(run), _) if !run.is_ready() => {
                let unanswered = |member: &AgentId| *member != shared.local_id && !run.has_answer_of(member);
                (WaitingFor::Answers, self.members(unanswered))
            }
            (_, Some(fold)) if fold.staged => (WaitingFor::Votes, self.missing(Some(&fold.votes))),
            (Some(_), _) => {
                let candidate = self
                    .candidates
                    .iter()
                    .find(|candidate| Some(candidate.body.router_instance_id) == shared.instance);
                let votes = candidate.map(|candidate| &candidate.votes);
                (WaitingFor::ReanchorVotes, self.missing(votes))
            }
            (None, Some(fold)) => (WaitingFor::Signatures, self.missing(Some(&fold.signatures))),
            (None, None) if self.proposal.is_some() => (WaitingFor::Signatures, self.missing(None)),
            (None, None) => return None,
        };
        Some(Stall {
            waiting_for,
            members,
            behind_another,
        })
    }

    /// Tells what the conversation waits for.
    pub(super) fn show_stall(&self, shared: &Shared, draft: &mut Draft<'_>) {
        if let Some(stall) = self.stall(shared) {
            draft.effect(Effect::Stalled {
                conversation_id: *self.membership.conversation_id(),
                stall,
            });
        }
    }

    fn missing(&self, held: Option<&SignerMap>) -> Vec<AgentId> {
        self.members(|member| !held.is_some_and(|held| held.contains(member)))
    }

    fn members(&self, matches: impl Fn(&AgentId) -> bool) -> Vec<AgentId> {
        let mut members = self.membership.agent_ids();
        members.retain(|member| matches(member));
        members
    }
}

//! What a conversation waits for, as whoever watches is told of it. Nothing here decides anything: at the end of each step the
//! conversations it touched are compared with what was told of them last.
//!
//! The protocol replaces nothing by itself, so an owner is told whom to look after.

use conclave_harness::AgentId;

use super::conversation::Conversation;
use super::draft::Draft;
use super::effect::{Effect, RecoveryState, Stall, WaitingFor};
use super::input::{Input, SendOutcome, TimerId};
use super::run::Engine;
use super::shared::Shared;
use super::timing::STALL_WAIT_MS;
use crate::certificates::SignerMap;
use crate::values::{ActionHash, ConversationId};
use crate::verification::Position;

/// The conversations whose wait an input can change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Touched {
    /// None.
    None,
    /// One, if it is held.
    One(ConversationId),
    /// Every held one.
    Every,
}

impl Touched {
    pub(super) fn by(input: &Input) -> Self {
        match input {
            Input::RouterInstance { .. }
            | Input::SendOutcome {
                outcome: SendOutcome::RouterRestarted { .. },
                ..
            } => Touched::Every,
            Input::Delivered(delivered) => Touched::One(delivered.conversation_id),
            Input::FeedGap { conversation_id } => Touched::One(*conversation_id),
            Input::Rows { read_id, .. } => Touched::One(read_id.conversation_id),
            Input::Send(request) => Touched::One(*request.membership.conversation_id()),
            Input::Timer(
                TimerId::Resend(id) | TimerId::Drain(id) | TimerId::CatchUp(id) | TimerId::Stall(id),
            ) => Touched::One(*id),
            Input::Timer(TimerId::Attach(_) | TimerId::Delivery(_))
            | Input::InvitationDelivered(_)
            | Input::Acknowledge { .. }
            | Input::SendOutcome { .. } => Touched::None,
        }
    }
}

/// Whether a conversation waits for its members, and since which change of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Wait {
    /// For nobody, or on a schedule of recovery that is not spent.
    #[default]
    Not,
    /// Something is open at this position: the local proposal, or a locked action.
    Open(Position, Option<ActionHash>),
    /// It recovers, and its retries are spent.
    Paused,
}

/// What was told of a conversation last.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    wait: Wait,
    /// The wait has lasted for [`STALL_WAIT_MS`].
    lasts: bool,
    stall: Option<Stall>,
    recovery: Option<RecoveryState>,
}

impl Engine {
    /// What a held conversation waits for right now, and whom; none while nothing is open in it.
    ///
    /// Waiting is normal while a post is on its way. [`Effect::Stalled`] says when it has lasted.
    pub fn stall(&self, conversation_id: &ConversationId) -> Option<Stall> {
        self.conversations.get(conversation_id)?.stall(&self.shared)
    }

    /// What a held conversation that recovers waits for right now; none while it does not recover.
    pub fn recovery(&self, conversation_id: &ConversationId) -> Option<RecoveryState> {
        self.conversations
            .get(conversation_id)?
            .recovery_state(&self.shared)
    }

    /// Tells what changed for whoever watches.
    pub(super) fn show_waits(&mut self, touched: Touched, draft: &mut Draft<'_>) {
        match touched {
            Touched::None => {}
            Touched::One(id) => {
                if let Some(conversation) = self.conversations.get_mut(&id) {
                    conversation.show_wait(&self.shared, draft);
                }
            }
            Touched::Every => {
                for conversation in self.conversations.values_mut() {
                    conversation.show_wait(&self.shared, draft);
                }
            }
        }
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
            (Some(_), _) => (
                WaitingFor::ReanchorVotes,
                self.missing(self.reanchor_votes(shared)),
            ),
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

    /// The time of a wait is over. Whether it is a stall is said at the end of the step.
    pub(super) fn wait_lasts(&mut self) {
        self.told.lasts = matches!(self.told.wait, Wait::Open(..));
    }

    fn wait(&self) -> Wait {
        match self.run() {
            Some(run) if run.paused => Wait::Paused,
            Some(_) => Wait::Not,
            None if self.locked.is_some() || self.proposal.is_some() => {
                Wait::Open(self.position(), self.locked)
            }
            None => Wait::Not,
        }
    }

    fn show_wait(&mut self, shared: &Shared, draft: &mut Draft<'_>) {
        let conversation_id = *self.membership.conversation_id();
        let recovery = self.recovery_state(shared);
        if recovery != self.told.recovery {
            self.told.recovery.clone_from(&recovery);
            draft.effect(Effect::Recovery {
                conversation_id,
                recovery,
            });
        }
        let wait = self.wait();
        if wait != self.told.wait {
            let id = TimerId::Stall(conversation_id);
            match (self.told.wait, wait) {
                (_, Wait::Open(..)) => {
                    let at_ms = draft.now_ms + STALL_WAIT_MS;
                    draft.effect(Effect::SetTimer { id, at_ms });
                }
                (Wait::Open(..), _) => draft.effect(Effect::CancelTimer { id }),
                _ => {}
            }
            (self.told.wait, self.told.lasts) = (wait, false);
        }
        let stall = (wait == Wait::Paused || self.told.lasts)
            .then(|| self.stall(shared))
            .flatten();
        if stall != self.told.stall {
            self.told.stall.clone_from(&stall);
            draft.effect(Effect::Stalled {
                conversation_id,
                stall,
            });
        }
    }

    /// The votes to re-anchor to the current instance, once the local agent has voted.
    pub(super) fn reanchor_votes(&self, shared: &Shared) -> Option<&SignerMap> {
        let here = |instance| Some(instance) == shared.instance;
        let mut candidates = self.candidates.iter();
        candidates
            .find(|candidate| here(candidate.body.router_instance_id))
            .map(|candidate| &candidate.votes)
    }

    pub(super) fn missing(&self, held: Option<&SignerMap>) -> Vec<AgentId> {
        self.members(|member| !held.is_some_and(|held| held.contains(member)))
    }

    pub(super) fn members(&self, matches: impl Fn(&AgentId) -> bool) -> Vec<AgentId> {
        let mut members = self.membership.agent_ids();
        members.retain(|member| matches(member));
        members
    }
}

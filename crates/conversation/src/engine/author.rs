//! Binding a post, proposing it, resending the proposal, and proposing again at a new head.
//!
//! A conversation has at most one open proposal of the local agent: that of its oldest unfinished post. Posts behind it
//! could not win the same head anyway, because their author locks the first. For the same reason nothing is proposed while
//! another action holds the author's lock: a certificate needs its author's signature.

use super::Local;
use super::conversation::{Conversation, Intent, Proposal};
use super::draft::Draft;
use super::effect::Effect;
use super::error::Fatal;
use super::input::TimerId;
use super::shared::Shared;
use super::text::message_text;
use super::timing::{RESEND_BASE_MS, RESENDS_MAX, jittered};
use crate::binding::{InvitationError, seal_invitation};
use crate::ordered::OrderedSet;
use crate::planted::{Bug, has};
use crate::store::rows::OutboundInvitation;
use crate::values::{
    ActionCore, ActionProposal, ActionProposalKind, ClosedValue, DirectPacket, GenesisActionCore,
    GenesisActionKind, Null, PostActionCore, PostActionKind, PostIntent, RouterAnchor,
};

impl Conversation {
    /// Proposes the oldest unfinished post at the head, unless that is done already or cannot succeed.
    pub(super) fn propose(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        if let Some(proposal) = self.next_proposal(shared) {
            self.proposal = Some(proposal);
            self.send_proposal(shared, draft);
            self.schedule_resend(draft);
        }
    }

    /// As [`propose`](Self::propose), after a restart: a proposal that is still on its way is not put there again.
    pub(super) fn resume_proposal(
        &mut self,
        pending: &OrderedSet<Vec<u8>>,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) {
        let Some(proposal) = self.next_proposal(shared) else {
            return;
        };
        let on_its_way = pending.contains(&proposal.plaintext);
        self.proposal = Some(proposal);
        if !on_its_way {
            self.send_proposal(shared, draft);
        }
        self.schedule_resend(draft);
    }

    /// After a run: an open proposal goes on where its resends stood, and otherwise the oldest post is proposed.
    pub(super) fn resume_open_proposal(
        &mut self,
        pending: &OrderedSet<Vec<u8>>,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) {
        if self.proposal.is_some() {
            self.schedule_resend(draft);
        } else {
            self.resume_proposal(pending, shared, draft);
        }
    }

    /// The proposal to be made now, if there is one.
    fn next_proposal(&self, shared: &mut Shared) -> Option<Proposal> {
        let Intent { intent, .. } = self.intents.front()?;
        let may = self.is_recovered() || has(Bug::RebaseWhileFenced) || has(Bug::ProposeWhileFenced);
        if !may || shared.instance.is_none() {
            return None;
        }
        let Some(action) = self.action(intent) else {
            shared.fail(Fatal::OwnValue(
                "an empty conversation without a genesis anchor".to_owned(),
            ));
            return None;
        };
        let action_hash = action.hash();
        let open = self
            .proposal
            .as_ref()
            .is_some_and(|open| open.action_hash == action_hash);
        let lost = self.locked.is_some_and(|locked| locked != action_hash);
        let signed = self
            .locked_fold()
            .is_some_and(|own| own.staged || own.action_complete(&self.membership));
        if open || lost || signed {
            return None;
        }
        let packet: DirectPacket = ActionProposal {
            sharness_version: action.sharness_version(),
            kind: ActionProposalKind,
            action,
        }
        .into();
        Some(Proposal {
            action_hash,
            plaintext: packet.encode(),
            resends: 0,
        })
    }

    /// A timer for the next resend went off.
    pub(super) fn resend(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        if !self.is_recovered() || shared.instance.is_none() {
            return;
        }
        match &mut self.proposal {
            Some(open) if open.resends < RESENDS_MAX => open.resends += 1,
            _ => return,
        }
        self.send_proposal(shared, draft);
        self.schedule_resend(draft);
    }

    /// The open proposal ended, by a complete certificate or by another head.
    pub(super) fn close_proposal(&mut self, draft: &mut Draft<'_>) {
        if self.proposal.take().is_some() {
            draft.effect(Effect::CancelTimer {
                id: TimerId::Resend(*self.membership.conversation_id()),
            });
        }
    }

    /// The head's certified record, then the proposal; a GENESIS with its invitations instead of a head.
    fn send_proposal(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        let Some(open) = &self.proposal else { return };
        let mut invitations = Vec::new();
        match self.head_fold() {
            Some(head) => {
                let anchor = self.chain.anchor(head.record.anchor_hash());
                let record = anchor.and_then(|anchor| head.certified(anchor, &self.membership));
                let Some(record) = record else {
                    return shared.fail(Fatal::OwnValue("the head does not assemble".to_owned()));
                };
                let packet: DirectPacket = record.to_value().into();
                shared.enqueue(&self.membership, &packet.encode(), Vec::new(), None, draft);
            }
            None => invitations = self.invitations(shared, draft),
        }
        shared.enqueue(&self.membership, &open.plaintext, invitations, None, draft);
    }

    fn schedule_resend(&self, draft: &mut Draft<'_>) {
        let Some(open) = &self.proposal else { return };
        if open.resends < RESENDS_MAX {
            let at_ms = draft.now_ms + jittered(RESEND_BASE_MS, open.resends, draft.randomness);
            draft.effect(Effect::SetTimer {
                id: TimerId::Resend(*self.membership.conversation_id()),
                at_ms,
            });
        }
    }

    /// The action that carries a post at the head. Everything but the intent is copied from what the members share.
    fn action(&self, intent: &PostIntent) -> Option<ActionCore> {
        let post_intent_hash = intent.hash();
        Some(match self.head_record() {
            None => {
                let RouterAnchor::Genesis(anchor) = self.anchor.value() else {
                    return None;
                };
                GenesisActionCore {
                    sharness_version: intent.sharness_version,
                    kind: GenesisActionKind,
                    conversation_id: intent.conversation_id,
                    membership: self.membership.descriptor().clone(),
                    anchor: (**anchor).clone(),
                    previous_record_hash: Null,
                    post_intent: intent.clone(),
                    post_intent_hash,
                }
                .into()
            }
            Some(head) => PostActionCore {
                sharness_version: intent.sharness_version,
                kind: PostActionKind,
                conversation_id: intent.conversation_id,
                membership_hash: *self.membership.hash(),
                anchor_hash: *self.anchor.hash(),
                previous_record_hash: *head,
                post_intent: intent.clone(),
                post_intent_hash,
            }
            .into(),
        })
    }

    /// One invitation for every other member, each sealed to that member alone.
    fn invitations(&self, shared: &mut Shared, draft: &mut Draft<'_>) -> Vec<OutboundInvitation> {
        let Local {
            card,
            key,
            wire_version,
            ..
        } = &shared.local;
        let others = self
            .membership
            .agent_ids()
            .into_iter()
            .filter(|member| *member != shared.local_id);
        let sealed: Result<Vec<_>, _> = others
            .map(|invitee| {
                let message = seal_invitation(
                    &self.membership,
                    card,
                    key,
                    &invitee,
                    *wire_version,
                    draft.randomness,
                )?;
                Ok::<_, InvitationError>(OutboundInvitation {
                    recipient_agent_id: invitee.to_string(),
                    canonical_signed_message: message_text(message.encoded()),
                })
            })
            .collect();
        sealed.unwrap_or_else(|error| {
            shared.fail(Fatal::OwnValue(error.to_string()));
            Vec::new()
        })
    }
}

//! What an invitation does: it makes its conversation watched, and nothing else.
//!
//! Watched conversations are bounded for each inviter and in total, oldest dropped first, so that strangers cannot make an
//! agent read without end.

use conclave_harness::AgentId;

use super::Local;
use super::draft::Draft;
use super::effect::Effect;
use super::ignored::Ignored;
use super::input::{Feed, InvitationDelivered};
use super::limits::{WATCHED_MAX, WATCHED_PER_INVITER_MAX};
use super::shared::{Shared, take};
use super::text::canonical;
use crate::binding::{Invitation, open_invitation};
use crate::membership::Membership;
use crate::ordered::OrderedMap;
use crate::store::Transition;
use crate::store::rows::WatchedConversationRow;
use crate::store::transition::{UnwatchConversation, WatchConversation};
use crate::values::ConversationId;

/// A conversation that is read and of which nothing is held.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) membership: Membership,
    pub(super) inviter: AgentId,
    /// Number in the order of invitation.
    pub(super) sequence: u64,
}

/// Opens and verifies a delivered invitation.
pub(super) fn open(local: &Local, delivered: &InvitationDelivered) -> Result<Invitation, Ignored> {
    let message = delivered.message.as_ref().ok_or(Ignored::NoMessage)?;
    let inviter = delivered.sender_card.as_ref().ok_or(Ignored::InviterUnknown)?;
    let Local {
        card,
        key,
        registry,
        live,
        history,
        ..
    } = local;
    Ok(open_invitation(
        message, inviter, card, key, registry, live, history,
    )?)
}

/// Watches an invitation's conversation, and drops what the bounds no longer admit.
///
/// Returns the conversations that were dropped.
pub(super) fn watch(
    watched: &mut OrderedMap<ConversationId, Watched>,
    invitation: Invitation,
    shared: &mut Shared,
    draft: &mut Draft<'_>,
) -> Vec<ConversationId> {
    let inviter = *invitation.inviter();
    let membership = invitation.into_membership();
    let mut dropped = Vec::new();
    let of_inviter = watched.values().filter(|entry| entry.inviter == inviter).count();
    if of_inviter >= WATCHED_PER_INVITER_MAX {
        dropped.extend(oldest(watched, |entry| entry.inviter == inviter));
    } else if watched.len() >= WATCHED_MAX {
        dropped.extend(oldest(watched, |_| true));
    }
    for conversation_id in &dropped {
        watched.remove(conversation_id);
        draft.commit(Transition::UnwatchConversation(UnwatchConversation {
            conversation_id: conversation_id.to_string(),
            forget_cursor: true,
        }));
        draft.effect(Effect::Unwatch {
            feed: Feed::Conversation(*conversation_id),
        });
    }
    let conversation_id = *membership.conversation_id();
    let sequence = take(&mut shared.numbers.watch);
    draft.commit(Transition::WatchConversation(WatchConversation {
        watched: WatchedConversationRow {
            conversation_id: conversation_id.to_string(),
            inviter_agent_id: inviter.to_string(),
            watch_sequence: sequence,
            canonical_membership: canonical(membership.descriptor()),
        },
    }));
    watched.insert(
        conversation_id,
        Watched {
            membership,
            inviter,
            sequence,
        },
    );
    draft.effect(Effect::Watch {
        feed: Feed::Conversation(conversation_id),
        after: None,
    });
    dropped
}

fn oldest(
    watched: &OrderedMap<ConversationId, Watched>,
    admits: impl Fn(&Watched) -> bool,
) -> Option<ConversationId> {
    watched
        .iter()
        .filter(|(_, entry)| admits(entry))
        .min_by_key(|(_, entry)| entry.sequence)
        .map(|(conversation_id, _)| *conversation_id)
}

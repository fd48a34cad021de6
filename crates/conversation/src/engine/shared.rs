//! What all conversations of an engine share: the agent, the Router's instance, the numbers, the outbox.

use std::collections::BTreeMap;

use conclave_harness::{AgentId, RouterInstanceId};

use super::Local;
use super::draft::Draft;
use super::error::Fatal;
use super::outbox::{Envelope, Outbox};
use super::text::message_text;
use crate::certificates::EvidenceMemory;
use crate::membership::Membership;
use crate::outer_message::seal_outer_message;
use crate::store::Transition;
use crate::store::rows::{Disposition, OutboundInvitation, OutboundRow};
use crate::store::transition::{AttachObligation, Enqueue};
use crate::values::{ConversationId, DeliveryToken, RecordHash};

/// The next number of each sequence of the store, counted here because the engine is the store's only writer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    pub(super) intent: u64,
    pub(super) delivery: u64,
    pub(super) outbound: u64,
    pub(super) obligation: u64,
    pub(super) watch: u64,
}

/// Takes the next number.
pub(super) fn take(number: &mut u64) -> u64 {
    let taken = *number;
    *number += 1;
    taken
}

/// One delivery the host was, or is to be, given.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveryEntry {
    pub(super) conversation_id: ConversationId,
    pub(super) record_hash: RecordHash,
    pub(super) acknowledged: bool,
}

/// What all conversations share.
pub(super) struct Shared {
    pub(super) local: Local,
    pub(super) local_id: AgentId,
    /// None until the transport has reached the Router.
    pub(super) instance: Option<RouterInstanceId>,
    pub(super) numbers: Numbers,
    pub(super) memory: EvidenceMemory,
    pub(super) outbox: Outbox,
    pub(super) deliveries: BTreeMap<DeliveryToken, DeliveryEntry>,
    /// Conversations whose run ended in this step: their cursors become durable with it.
    pub(super) recovered: Vec<ConversationId>,
    /// Set once, and final.
    pub(super) fatal: Option<Fatal>,
}

impl Shared {
    /// Seals a plaintext to all members and puts it on its way, after everything on its way before.
    pub(super) fn enqueue(
        &mut self,
        membership: &Membership,
        plaintext: &[u8],
        invitations: Vec<OutboundInvitation>,
        obligation: Option<RecordHash>,
        draft: &mut Draft<'_>,
    ) {
        self.put_on_its_way(membership, plaintext, invitations, obligation, None, draft);
    }

    /// As [`enqueue`](Self::enqueue), in answer to a member's catch-up question.
    pub(super) fn enqueue_answer(
        &mut self,
        membership: &Membership,
        plaintext: &[u8],
        requester: AgentId,
        draft: &mut Draft<'_>,
    ) {
        self.put_on_its_way(membership, plaintext, Vec::new(), None, Some(requester), draft);
    }

    fn put_on_its_way(
        &mut self,
        membership: &Membership,
        plaintext: &[u8],
        invitations: Vec<OutboundInvitation>,
        obligation: Option<RecordHash>,
        answer_to: Option<AgentId>,
        draft: &mut Draft<'_>,
    ) {
        let Local {
            card,
            key,
            wire_version,
            ..
        } = &self.local;
        let sealed = seal_outer_message(plaintext, membership, card, key, *wire_version, draft.randomness);
        let message = match sealed {
            Ok(message) => message,
            // Every member's key was tried when the conversation began, and every packet fits.
            Err(error) => return self.fail(Fatal::OwnValue(error.to_string())),
        };
        let outbound_sequence = take(&mut self.numbers.outbound);
        let row = OutboundRow {
            outbound_sequence,
            outbound_id: message.message_id().to_string(),
            conversation_id: membership.conversation_id().to_string(),
            canonical_signed_message: message_text(message.encoded()),
            invitations,
            attempted: false,
            disposition: Disposition::Pending,
            wire_version: message.version().to_string(),
        };
        draft.commit(match obligation {
            None => Transition::Enqueue(Enqueue {
                outbound: row.clone(),
            }),
            Some(record_hash) => Transition::AttachObligation(AttachObligation {
                record_hash: record_hash.to_string(),
                outbound: row.clone(),
            }),
        });
        let envelope = Envelope {
            sequence: outbound_sequence,
            outbound_id: message.message_id(),
            digest: message.digest(),
            message: message.into_encoded(),
            invitations: row.invitations,
            attempted: false,
            answer_to,
        };
        self.outbox.push(*membership.conversation_id(), envelope);
    }

    /// Stops the engine for good. The first reason stays.
    pub(super) fn fail(&mut self, reason: Fatal) {
        self.fatal.get_or_insert(reason);
    }
}

//! What is on its way, watched, delivered and read.

use std::collections::BTreeMap;

use conclave_harness::{AgentCard, AgentId, EncodedSignedMessage, MessageId, WireVersions, sealed_body};

use crate::engine::Local;
use crate::engine::conversation::{Conversation, Cursor};
use crate::engine::draft::Draft;
use crate::engine::effect::{Delivery, Effect};
use crate::engine::error::{Corruption, OpenError};
use crate::engine::input::Feed;
use crate::engine::invitation::Watched;
use crate::engine::outbox::{Envelope, Outbox};
use crate::engine::run::Resume;
use crate::engine::shared::{DeliveryEntry, Numbers};
use crate::engine::stored::{Trust, column, corrupt, load_membership, require, surplus};
use crate::membership::Membership;
use crate::ordered::OrderedMap;
use crate::store::rows::{
    Disposition, OutboundRow, PendingDeliveryRow, Sequence, SequenceRow, TransportCursorRow,
    WatchedConversationRow,
};
use crate::store::{Key, Row, Snapshot, Table};
use crate::values::{ConversationId, DeliveryToken};

/// Admits a store by what waits to be sent: a pending envelope keeps the bytes it was signed with, so its version must still
/// be live. The first thing asked of a store that is opened, before a migration too.
///
/// # Errors
/// [`OpenError::OutboxTooOld`], or [`OpenError::Corrupt`] for a row whose version is not its envelope's.
pub fn admit_outbox(rows: &Snapshot, live: &WireVersions) -> Result<(), OpenError> {
    for row in rows.rows::<OutboundRow>()? {
        if row.disposition != Disposition::Pending {
            continue;
        }
        let message = pending_envelope(&row)?;
        require(
            &row,
            row.wire_version == message.version().to_string(),
            "the version is not the envelope's",
        )?;
        if !live.contains(message.version()) {
            return Err(OpenError::OutboxTooOld {
                outbound_id: row.outbound_id,
                version: row.wire_version,
            });
        }
    }
    Ok(())
}

fn pending_envelope(row: &OutboundRow) -> Result<EncodedSignedMessage, Corruption> {
    EncodedSignedMessage::from_canonical_bytes(row.canonical_signed_message.as_bytes())
        .map_err(|error| corrupt(row, error))
}

/// Verifies the envelopes on their way, and notes what they carry. They were admitted.
pub(super) fn load_outbox(
    rows: &Snapshot,
    local: &Local,
    conversations: &OrderedMap<ConversationId, Conversation>,
    unresumed: &mut OrderedMap<ConversationId, Resume>,
) -> Result<Outbox, OpenError> {
    let mut outbox = Outbox::default();
    for row in rows.rows::<OutboundRow>()? {
        let conversation_id: ConversationId = column(&row, &row.conversation_id)?;
        let conversation = conversations
            .get(&conversation_id)
            .ok_or_else(|| corrupt(&row, "the conversation is not held"))?;
        if row.disposition != Disposition::Pending {
            continue;
        }
        let message = pending_envelope(&row)?;
        let outbound_id: MessageId = column(&row, &row.outbound_id)?;
        require(
            &row,
            outbound_id == message.message_id(),
            "the id is not the envelope's",
        )?;
        let recipients = conversation.membership.agent_ids();
        require(
            &row,
            message.recipients() == recipients,
            "the recipients are not the members",
        )?;
        let verified = message
            .verify(&local.card, &local.live)
            .map_err(|error| corrupt(&row, error))?;
        let plaintext =
            sealed_body::open(&local.card, &local.key, &verified).map_err(|error| corrupt(&row, error))?;
        verify_invitations(&row, &conversation.membership, local)?;
        unresumed.or_default(conversation_id).pending.insert(plaintext);
        outbox.push(
            conversation_id,
            Envelope {
                sequence: row.outbound_sequence,
                outbound_id,
                digest: message.digest(),
                message,
                invitations: row.invitations,
                attempted: row.attempted,
                answer_to: None,
            },
        );
    }
    Ok(outbox)
}

/// Every invitation is ours, and for exactly the member it names.
fn verify_invitations(row: &OutboundRow, membership: &Membership, local: &Local) -> Result<(), Corruption> {
    for invitation in &row.invitations {
        let recipient: AgentId = column(row, &invitation.recipient_agent_id)?;
        let message =
            EncodedSignedMessage::from_canonical_bytes(invitation.canonical_signed_message.as_bytes())
                .map_err(|error| corrupt(row, error))?;
        let named = membership.card(&recipient).map(AgentCard::agent_id) == Some(recipient);
        require(
            row,
            named && message.recipients() == [recipient],
            "an invitation is for another agent",
        )?;
        message
            .verify(&local.card, &local.live)
            .map_err(|error| corrupt(row, error))?;
    }
    Ok(())
}

pub(super) fn load_watched(
    rows: &Snapshot,
    trust: &Trust<'_>,
) -> Result<OrderedMap<ConversationId, Watched>, Corruption> {
    let mut watched = OrderedMap::new();
    for row in rows.rows::<WatchedConversationRow>()? {
        let id: ConversationId = column(&row, &row.conversation_id)?;
        let held = rows.bytes(Table::Memberships, &row.key()).is_some();
        require(&row, !held, "a held conversation is not watched")?;
        let membership = load_membership(&row, &row.canonical_membership, &id, trust)?;
        let inviter = column(&row, &row.inviter_agent_id)?;
        watched.insert(
            id,
            Watched {
                membership,
                inviter,
                sequence: row.watch_sequence,
            },
        );
    }
    Ok(watched)
}

/// Every delivery by token; those not acknowledged are shown again, in the order of their commits.
pub(super) fn load_deliveries(
    rows: &Snapshot,
    draft: &mut Draft<'_>,
) -> Result<BTreeMap<DeliveryToken, DeliveryEntry>, Corruption> {
    let mut deliveries = BTreeMap::new();
    let mut pending = Vec::new();
    for row in rows.rows::<PendingDeliveryRow>()? {
        let delivery = Delivery {
            delivery_token: column(&row, &row.delivery_token)?,
            delivery_sequence: row.delivery_sequence,
            conversation_id: column(&row, &row.conversation_id)?,
            record_hash: column(&row, &row.record_hash)?,
            canonical_message: row.canonical_message.clone(),
        };
        let entry = DeliveryEntry {
            conversation_id: delivery.conversation_id,
            record_hash: delivery.record_hash,
            acknowledged: row.acknowledged,
        };
        let token = delivery.delivery_token;
        require(
            &row,
            deliveries.insert(token, entry).is_none(),
            "the token is another delivery's",
        )?;
        if !row.acknowledged {
            pending.push(delivery);
        }
    }
    pending.sort_by_key(|delivery| delivery.delivery_sequence);
    draft
        .step
        .effects
        .extend(pending.into_iter().map(Effect::Deliver));
    Ok(deliveries)
}

pub(super) fn load_cursors(rows: &Snapshot) -> Result<OrderedMap<Feed, Cursor>, Corruption> {
    let mut cursors = OrderedMap::new();
    for row in rows.rows::<TransportCursorRow>()? {
        let feed = match row.feed.as_str() {
            TransportCursorRow::INVITATIONS => Feed::Invitations,
            conversation => Feed::Conversation(column(&row, conversation)?),
        };
        let router_instance_id = column(&row, &row.router_instance_id)?;
        cursors.insert(
            feed,
            Cursor {
                router_instance_id,
                position: row.position,
            },
        );
    }
    Ok(cursors)
}

/// The next number of each sequence. Posts and deliveries are never removed, so as many must be there as were numbered: a
/// store that lost some has forgotten what it signed.
pub(super) fn load_numbers(rows: &Snapshot) -> Result<Numbers, Corruption> {
    let next = |sequence: Sequence| -> Result<u64, Corruption> {
        Ok(rows
            .row::<SequenceRow>(&sequence.key())?
            .map_or(0, |row| row.next))
    };
    let complete = |sequence: Sequence, table: Table| -> Result<u64, Corruption> {
        let next = next(sequence)?;
        if rows.count_below(table, &Key::new::<u64>([])) as u64 != next {
            let problem = "it counts more or fewer rows than are there";
            return Err(surplus(Table::Sequences, &sequence.key(), problem));
        }
        Ok(next)
    };
    Ok(Numbers {
        intent: complete(Sequence::Intent, Table::PostIntents)?,
        delivery: complete(Sequence::Delivery, Table::PendingDeliveries)?,
        outbound: next(Sequence::Outbound)?,
        obligation: next(Sequence::Obligation)?,
        watch: next(Sequence::Watch)?,
    })
}

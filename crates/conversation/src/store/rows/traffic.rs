//! Rows of what comes and goes: deliveries, envelopes, cursors, watched conversations, and the numbers they are given.

use serde::{Deserialize, Serialize};

use crate::store::{Key, Row, Table};

/// A remote post for the host.
///
/// Keyed by record, so that a record can never be delivered twice; `delivery_sequence` is the order of local commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingDeliveryRow {
    /// The conversation.
    pub conversation_id: String,
    /// The certified record.
    pub record_hash: String,
    /// Number in the order of local commits, from 0.
    pub delivery_sequence: u64,
    /// The stable opaque token, `dlv_` and 32 bytes.
    pub delivery_token: String,
    /// The local agent.
    pub recipient_agent_id: String,
    /// The message projection.
    pub canonical_message: String,
    /// Whether the host accepted it.
    pub acknowledged: bool,
}
row!(PendingDeliveryRow, PendingDeliveries, |row| Key::new([
    &row.conversation_id,
    &row.record_hash
]));

/// An invitation that travels with a GENESIS proposal, in the same atomic publish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutboundInvitation {
    /// Whom it invites.
    pub recipient_agent_id: String,
    /// The complete signed message.
    pub canonical_signed_message: String,
}

/// Where an envelope stands on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disposition {
    /// To be sent, or sent without a known outcome.
    Pending,
    /// Discarded, and left in place by an earlier release; never to be sent again.
    Discarded,
}

/// A complete signed envelope. It is never signed again nor replaced.
///
/// A row whose envelope the Router accepted is removed: the order of the Router holds the message from then on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutboundRow {
    /// Number in durable order, from 0.
    pub outbound_sequence: u64,
    /// The envelope's MessageId.
    pub outbound_id: String,
    /// The conversation.
    pub conversation_id: String,
    /// The envelope.
    pub canonical_signed_message: String,
    /// What is published in the same atomic publish.
    pub invitations: Vec<OutboundInvitation>,
    /// Whether a first attempt was begun.
    pub attempted: bool,
    /// Where it stands.
    pub disposition: Disposition,
    /// The version the envelope was signed under.
    pub wire_version: String,
}
row!(OutboundRow, OutboundMessages, |row| OutboundRow::key_of(
    row.outbound_sequence
));

impl OutboundRow {
    /// The key of an envelope.
    pub fn key_of(outbound_sequence: u64) -> Key {
        Key::new([outbound_sequence])
    }
}

/// The record copy this endpoint owes its conversation: its `ActionCertifiedRecord`, once for each staged record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObligationRow {
    /// The conversation.
    pub conversation_id: String,
    /// The staged record.
    pub record_hash: String,
    /// Number in the order of creation, from 0.
    pub obligation_sequence: u64,
    /// The envelope that carries the copy; none while none was made.
    pub outbound_id: Option<String>,
}
row!(ObligationRow, DisseminationObligations, |row| Key::new([
    &row.conversation_id,
    &row.record_hash
]));

/// How far one feed was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransportCursorRow {
    /// A conversation's id, or [`TransportCursorRow::INVITATIONS`].
    pub feed: String,
    /// The Router instance whose order the position counts in.
    pub router_instance_id: String,
    /// The sequence id of the last message whose effects are durable.
    pub position: u64,
}
row!(TransportCursorRow, TransportCursors, |row| Key::new([&row.feed]));

impl TransportCursorRow {
    /// The feed of invitations to the local agent.
    pub const INVITATIONS: &'static str = "invitations";
}

/// A conversation the endpoint was invited to and of which it has seen nothing yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchedConversationRow {
    /// The conversation.
    pub conversation_id: String,
    /// Who invited.
    pub inviter_agent_id: String,
    /// Number in the order of invitation, from 0.
    pub watch_sequence: u64,
    /// The membership the invitation carried, as a descriptor.
    pub canonical_membership: String,
}
row!(WatchedConversationRow, WatchedConversations, |row| Key::new([
    &row.conversation_id
]));

/// The sequences a store numbers its rows with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sequence {
    /// Post intents.
    Intent,
    /// Pending deliveries.
    Delivery,
    /// Outbound envelopes.
    Outbound,
    /// Dissemination obligations.
    Obligation,
    /// Watched conversations.
    Watch,
}

impl Sequence {
    /// The sequence's name in its row.
    pub const fn name(self) -> &'static str {
        match self {
            Sequence::Intent => "intent",
            Sequence::Delivery => "delivery",
            Sequence::Outbound => "outbound",
            Sequence::Obligation => "obligation",
            Sequence::Watch => "watch",
        }
    }

    /// The key of the sequence's row.
    pub fn key(self) -> Key {
        Key::new([self.name()])
    }
}

/// The next number of a sequence. A number is never given twice, even when the row it was given to is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequenceRow {
    /// The sequence's name.
    pub name: String,
    /// The number the next row gets.
    pub next: u64,
}
row!(SequenceRow, Sequences, |row| Key::new([&row.name]));

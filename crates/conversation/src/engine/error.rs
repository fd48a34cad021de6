//! How sends, acknowledgments, openings and engines fail.

use conclave_harness::MessageId;

use crate::store::{RowError, Table};
use crate::values::PostId;

/// Why a send ended without its post. Nothing was bound and nothing travelled, but for
/// [`DeliveryPending`](Self::DeliveryPending).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The membership is not one the local agent may send to.
    #[error("the local agent is not a member")]
    NotAMember,
    /// The conversation has another membership than the resolved one.
    #[error("the conversation has another membership than the resolved one")]
    MembershipDiffers,
    /// The Router was not reached in time.
    #[error("the Router was not reached")]
    NetworkUnavailable,
    /// The post is bound and the Router does not take its envelopes for now. It will be made, here or after a restart; to
    /// send it again would make another one.
    #[error("the post {post_id} is recorded and goes out when the Router is reached")]
    DeliveryPending {
        /// The post.
        post_id: PostId,
    },
    /// The local agent has a post of this id that says something else, or says it elsewhere.
    #[error("the post {post_id} exists with another content or address")]
    PostDiffers {
        /// The post.
        post_id: PostId,
    },
    /// Too many sends are unfinished.
    #[error("too many posts are unfinished")]
    TooManyUnfinished,
    /// The proposal cannot be sealed, because a member's key is not a key.
    #[error("the message cannot be sealed to every member")]
    NotSealable,
    /// The engine stopped.
    #[error("the engine stopped: {0}")]
    Stopped(Fatal),
}

/// Why an acknowledgment was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcknowledgeError {
    /// No delivery has this token.
    #[error("no delivery has this token")]
    UnknownDelivery,
}

/// Why an engine stopped for good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fatal {
    /// The Router's answer to an envelope breaks its contract. The envelope stays pending.
    #[error("the Router broke its contract on {outbound_id}: {what}")]
    RouterContract {
        /// The envelope.
        outbound_id: MessageId,
        /// How.
        what: RouterFault,
    },
    /// What this engine signed or stored itself does not verify.
    #[error("a value of our own does not verify: {0}")]
    OwnValue(String),
}

/// How a Router's answer breaks its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouterFault {
    /// Accepted under another digest than that of the bytes sent.
    #[error("it accepted other bytes")]
    OtherDigest,
    /// Accepted by another instance than the one expected.
    #[error("another instance accepted it")]
    OtherInstance,
    /// An `initial` whose retry identity is unknown.
    #[error("it has no retry identity for an initial")]
    IdentityUnknownToInitial,
    /// A `retry` of exactly the stored bytes conflicts.
    #[error("it holds other bytes under this id")]
    ConflictToRetry,
    /// The message is refused for what it is.
    #[error("it refuses the message")]
    MessageInvalid,
}

/// A stored row that cannot be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the row {key} of {} is corrupt: {problem}", table.name())]
pub struct Corruption {
    /// The table.
    pub table: Table,
    /// The row's key, as far as it is known.
    pub key: String,
    /// What is wrong.
    pub problem: String,
}

impl From<RowError> for Corruption {
    fn from(error: RowError) -> Self {
        Corruption {
            table: error.table,
            key: error.key.to_string(),
            problem: error.what,
        }
    }
}

impl From<RowError> for OpenError {
    fn from(error: RowError) -> Self {
        OpenError::Corrupt(error.into())
    }
}

/// Why an engine cannot be opened over a store. Nothing is repaired, skipped or deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The key is not the card's, or the store belongs to another agent or card.
    #[error("identity: {0}")]
    Identity(&'static str),
    /// A stored row is not one this crate wrote, disagrees with what it holds, or holds something that does not verify.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// A pending envelope was signed under a version that is no longer live: `outbox-too-old`.
    #[error("the pending envelope {outbound_id} was signed under the retired version {version}")]
    OutboxTooOld {
        /// The envelope.
        outbound_id: String,
        /// Its version.
        version: String,
    },
}

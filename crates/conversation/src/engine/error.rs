//! How sends, acknowledgments, openings and engines fail.

use conclave_harness::MessageId;

use super::effect::UnavailableReason;
use crate::store::RowError;

/// Why a send was refused. Nothing was bound and nothing travelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The membership is not one the local agent may send to.
    #[error("the local agent is not a member")]
    NotAMember,
    /// The conversation has another membership than the resolved one.
    #[error("the conversation has another membership than the resolved one")]
    MembershipDiffers,
    /// The conversation carries no traffic.
    #[error(transparent)]
    Unavailable(UnavailableReason),
    /// The Router was not reached in time.
    #[error("the Router was not reached")]
    NetworkUnavailable,
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

/// Why an engine cannot be opened over a store. Nothing is repaired, skipped or deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The key is not the card's, or the store belongs to another agent or card.
    #[error("identity: {0}")]
    Identity(&'static str),
    /// A row that this crate cannot have written.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A stored value does not verify, or disagrees with its row.
    #[error("the stored {what} {key} is corrupt: {problem}")]
    Corrupt {
        /// What kind of row.
        what: &'static str,
        /// Which.
        key: String,
        /// What is wrong.
        problem: String,
    },
    /// A pending envelope was signed under a version that is no longer live: `outbox-too-old`.
    #[error("the pending envelope {outbound_id} was signed under the retired version {version}")]
    OutboxTooOld {
        /// The envelope.
        outbound_id: String,
        /// Its version.
        version: String,
    },
}

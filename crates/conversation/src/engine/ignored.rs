//! Why a delivered message changed nothing. Each is its sender's doing or a matter of timing, never a local fault.

use crate::binding::InvitationError;
use crate::certificates::{EvidenceError, WrongSubject};
use crate::outer_message::OuterMessageError;
use crate::verification::VerificationError;

/// The reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ignored {
    /// The feed was read past this position before.
    #[error("the feed was read past this position")]
    AlreadyRead,
    /// The transport's envelope holds no outer message.
    #[error("the envelope holds no message")]
    NoMessage,
    /// Neither held nor watched.
    #[error("the conversation is unknown")]
    UnknownConversation,
    /// The conversation carries no traffic.
    #[error("the conversation is not recovered")]
    NotRecovered,
    /// No outer message of a member: its sender, recipients, signature, seal or plaintext is wrong.
    #[error(transparent)]
    Outer(#[from] OuterMessageError),
    /// A proposal came from another member than its author.
    #[error("the proposal's sender is not its author")]
    ForeignProposal,
    /// The packet's value does not verify.
    #[error(transparent)]
    Invalid(#[from] VerificationError),
    /// The message is no statement of a member.
    #[error(transparent)]
    InvalidEvidence(#[from] EvidenceError),
    /// A vote names another conversation or membership than its record's.
    #[error(transparent)]
    WrongSubject(#[from] WrongSubject),
    /// A member's card holds a key that bodies cannot be sealed to.
    #[error("a member's key is none that bodies can be sealed to")]
    NotSealable,
    /// It does not extend the head under the current anchor.
    #[error("it does not extend the head under the current anchor")]
    NotGapFree,
    /// Another action holds the lock at its predecessor.
    #[error("another action is locked at its predecessor")]
    Locked,
    /// The locked action is staged, so the record is refused.
    #[error("the locked action is staged")]
    LockedAndStaged,
    /// The post was made with another content before, or is certified already.
    #[error("the post exists already")]
    PostExists,
    /// A post in the local agent's name that this endpoint never bound: the key is in use elsewhere, or the store was lost.
    #[error("the post is in our name and not ours")]
    NotOurPost,
    /// It is known already.
    #[error("it is known already")]
    Duplicate,
    /// A signer's second, differently signed copy of a kept statement.
    #[error("another copy of the statement is kept")]
    DifferentCopy,
    /// Evidence about an action or a record that is not held.
    #[error("nothing is held that it is about")]
    NoSubject,
    /// The record is not staged, so its vote cannot be kept.
    #[error("the vote's record is not staged")]
    NotStaged,
    /// An answer, a vote or a completed re-anchor for a conversation that does not recover.
    #[error("the conversation does not recover")]
    NotRecovering,
    /// A vote to re-anchor a conversation that is anchored to the Router's instance.
    #[error("the conversation does not re-anchor")]
    NotReanchoring,
    /// Others began as many conversations as they may in which the local agent never posted.
    #[error("others began too many conversations")]
    TooManyConversations,
    /// The member repeats its questions faster than they are answered.
    #[error("the member repeats itself too often")]
    RepeatedTooOften,
    /// An answer to another question than the pending one.
    #[error("this was not asked")]
    NotAsked,
    /// The local agent's own question.
    #[error("the question is our own")]
    OwnRequest,
    /// The member has as many unsent answers as one member may have.
    #[error("too many answers to the member are on their way")]
    TooManyAnswers,
    /// The local agent voted to leave the anchor, so nothing more is staged or voted for under it.
    #[error("a re-anchor away from the anchor is staged")]
    CandidateStaged,
    /// The Registry knows no card of the invitation's sender.
    #[error("the invitation's sender has no card")]
    InviterUnknown,
    /// The invitation does not verify.
    #[error(transparent)]
    InvalidInvitation(#[from] InvitationError),
    /// The invitation names a conversation that is held or watched.
    #[error("the invitation's conversation is known")]
    InvitationKnown,
}

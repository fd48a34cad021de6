//! Why a delivered message changed nothing. Each is its sender's doing or a matter of timing, never a local fault.

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
    /// The outer bytes are no signed message of a live version.
    #[error("not a signed message: {0}")]
    NotASignedMessage(String),
    /// The outer sender is no member.
    #[error("the sender is not a member")]
    SenderNotAMember,
    /// The outer recipients are not exactly the members.
    #[error("the recipients are not the members")]
    WrongRecipients,
    /// The outer signature does not hold.
    #[error("the outer signature does not hold")]
    WrongSignature,
    /// The sealed body does not open.
    #[error("the sealed body does not open")]
    NotOpened,
    /// The plaintext is neither a packet nor one signed message.
    #[error("the plaintext is {0}")]
    NotAPlaintext(String),
    /// A proposal came from another member than its author.
    #[error("the proposal's sender is not its author")]
    ForeignProposal,
    /// The value does not verify.
    #[error("the value does not verify: {0}")]
    Invalid(String),
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
    /// A packet of recovery, which this release does not take part in.
    #[error("recovery is not built yet")]
    RecoveryNotBuilt,
    /// The invitation does not verify.
    #[error("the invitation does not verify: {0}")]
    InvalidInvitation(String),
    /// The invitation names a conversation that is held or watched.
    #[error("the invitation's conversation is known")]
    InvitationKnown,
}

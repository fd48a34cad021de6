//! What an engine holds at most. Whoever can send to an agent can make it hold this much and no more.

/// Folds of certified records that are kept in memory for late signatures and votes, for each conversation.
pub const RETAINED_FOLDS_MAX: usize = 4;

/// Messages of catch-up answers to one member, in one conversation, that the Router has not ordered yet. With more, the
/// member's next question is ignored; it asks again.
pub const ANSWERS_PENDING_PER_MEMBER_MAX: usize = 8;

/// Questions of one member, in one conversation, that ask again what was answered, or about no position that is known, before
/// [`REPEATED_ANSWER_INTERVAL_MS`] has to pass for each. The first question about a position further on is always answered.
pub const REPEATED_ANSWERS_MAX: u32 = 32;

/// Milliseconds after which a member may repeat one question more. A member's own schedule repeats far less often.
pub const REPEATED_ANSWER_INTERVAL_MS: u64 = 1_000;

/// Held conversations that others began and in which the local agent has never posted. With so many, the GENESIS of another
/// is not signed. A post of the local agent takes its conversation out of the count.
pub const UNASKED_CONVERSATIONS_MAX: usize = 1_024;

/// As [`UNASKED_CONVERSATIONS_MAX`], begun by one author.
pub const UNASKED_CONVERSATIONS_PER_AUTHOR_MAX: usize = 32;

/// Watched conversations in total. The oldest is dropped for a newer one.
pub const WATCHED_MAX: usize = 256;

/// Watched conversations of one inviter. The inviter's oldest is dropped for a newer one.
pub const WATCHED_PER_INVITER_MAX: usize = 16;

/// Sends that wait for the Router, and unfinished posts of one conversation: a send beyond is refused.
pub const UNFINISHED_SENDS_MAX: usize = 1_024;

/// Envelopes of one conversation on their way out. Evidence is never dropped, so this bounds only local sends: with this
/// many pending, a send is refused.
pub const PENDING_OUTBOUND_MAX: usize = 4_096;

/// Bytes of an outer message that are looked at: a complete signed message with a body of 262,144 bytes
/// (`harness-identity-router.md` 3.3).
pub const OUTER_MESSAGE_BYTES_MAX: usize = 471_674;

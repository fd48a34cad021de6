//! The limits of the chapter's values, in one place.
//!
//! # Depth
//!
//! The protocol states no nesting bound, and recursion without one would overflow a small stack. The bound belongs to
//! the content, because only content nests freely, and every container must admit the content it was given before:
//!
//! | container of the content | levels above it |
//! |---|---|
//! | `PostIntent` | 1 |
//! | `ActionProposal.action.postIntent` | 3 |
//! | `ActionCertifiedRecord.recordCore.action.postIntent` | 4 |
//! | `CertifiedRecord.actionCertifiedRecord.recordCore.action.postIntent` | 5 |
//! | `CatchUpPage.item.actionCertifiedRecord.recordCore.action.postIntent` | 6 |
//!
//! So a content value may nest [`CONTENT_DEPTH_MAX`] levels (its own array is the first, each part the second), and
//! every decode of a container admits [`VALUE_DEPTH_MAX`] = [`CONTENT_DEPTH_MAX`] + [`CONTAINER_DEPTH_MAX`] levels;
//! without content the deepest value (a card's signature inside a page with GENESIS) has ten. All recursion in this
//! crate and in the JSON parser is over these levels, a few hundred bytes of stack each.

/// Fewest members of a conversation.
pub const MEMBERS_MIN: usize = 2;
/// Most members of a conversation.
pub const MEMBERS_MAX: usize = 32;
/// Fewest members of a group; two members are a direct conversation.
pub const GROUP_MEMBERS_MIN: usize = 3;

/// Most bytes of a content value's canonical encoding.
pub const CONTENT_BYTES_MAX: usize = 32_768;
/// Most container levels of a content value, its own array counted as the first.
pub const CONTENT_DEPTH_MAX: usize = 64;
/// Most container levels above a content value in any packet: those of a `CatchUpPage`.
pub const CONTAINER_DEPTH_MAX: usize = 6;
/// Most container levels of any value of the chapter.
pub const VALUE_DEPTH_MAX: usize = CONTENT_DEPTH_MAX + CONTAINER_DEPTH_MAX;

/// Most canonical bytes of a plaintext, and so of any value in one: the largest plaintext that a 262,144-byte body
/// sealed to two members carries. Larger conversations carry less; their largest artifact is tested to fit.
pub const PLAINTEXT_BYTES_MAX: usize = 196_027;
/// Most plaintext bytes that a 262,144-byte body sealed to 32 members carries.
pub const PLAINTEXT_BYTES_MAX_AT_32_MEMBERS: usize = 192_180;
/// Most canonical bytes of an invitation: 32 cards and what surrounds them take less than half of it.
pub const INVITATION_BYTES_MAX: usize = 65_536;

//! Cross-field validation: from values that are well formed to values that are true of one membership.
//!
//! The types here can be made by verification alone, so whoever holds one need not check again. What depends on a
//! member's own history (locks, staged records, the current position) is the engine's to decide; a [`Position`]
//! comparison is all that is offered for it.
//!
//! May depend on [`crate::values`], [`crate::membership`] and [`crate::certificates`].

mod action;
mod catch_up;
mod error;
mod reanchor;
mod record;

pub use action::VerifiedAction;
pub use catch_up::{
    VerifiedCatchUpIncomplete, VerifiedCatchUpItem, VerifiedCatchUpPage, VerifiedCatchUpRequest,
};
pub use error::VerificationError;
pub use reanchor::{VerifiedCompletedReanchor, VerifiedRouterAnchor};
pub use record::{VerifiedActionCertifiedRecord, VerifiedCertifiedRecord, VerifiedRecordCore};

use crate::values::{AnchorHash, RecordHash};

/// A place in a conversation's history: what came last, and the anchor that is current there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The certified head; none before GENESIS.
    pub record_hash: Option<RecordHash>,
    /// The current anchor.
    pub anchor_hash: AnchorHash,
}

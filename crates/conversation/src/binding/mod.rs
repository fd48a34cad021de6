//! How conversations travel over the backend: topics, the framing of an outer message, invitations.
//!
//! Bytes in, bytes out: nothing here knows a transport. May depend on [`crate::values`] and [`crate::membership`].

mod attendance;
mod framing;
mod invitation;
pub mod invitations;
mod topic;

pub use attendance::{Attendance, SAVED_EVERY_MS};
pub use framing::{FRAME_BYTES_MAX, FramingError, frame_outer_message, parse_outer_message};
pub use invitation::{Invitation, InvitationError, open_invitation, seal_invitation};
pub use invitations::InvitationQueue;
pub use topic::{ConversationTopic, WelcomeTopic};

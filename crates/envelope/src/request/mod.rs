//! Whole requests: decoded, within their bounds, and turned into plans for the shards. Depends on
//! [`crate::admission`], [`crate::limits`] and [`crate::topic`].
//!
//! These are the rules of the contract's sections 3 to 7 that need no storage. A plan can be carried out as it
//! stands: nothing in it needs checking again.

pub mod identity;
pub mod publish;
pub mod read;
pub mod stream;
mod wire;

pub use identity::{decode_lookup, decode_verification};
pub use publish::{AdmittedPublish, PublishFailure};
pub use read::{NewestPlan, ReadPlan, RequestFailure, TopicPosition, parse_newest, parse_queries};
pub use stream::{StaticPlan, UpdatePlan, decode_frame, parse_static, parse_update};

#![forbid(unsafe_code)]
//! Envelopes: topics, the stored encoding and its hash, bounds, and admission by kind.
//!
//! What a request means before any storage is asked (Backend API contract, sections 2 to 5 and 7). Depends on the wire
//! types alone: no I/O, no clock, no randomness. Everything here is total: any bytes give a value or a typed refusal.
//!
//! - [`topic`]: what a topic is and which a request may name (TOPIC-001 to 003);
//! - [`limits`]: the published limits, their relations, and how long an envelope is kept;
//! - [`mls`]: the wire structures of RFC 9420 that a group message is made of;
//! - [`key_package`]: key packages, parsed and then validated at a time;
//! - [`admission`]: one published envelope becomes topic, stored bytes, hash and retention;
//! - [`request`]: whole requests become typed plans that fit their bounds.

pub mod admission;
pub mod key_package;
pub mod limits;
pub mod mls;
pub mod request;
pub mod topic;

pub use admission::{Admitted, Refused, Retention, Unchecked};
pub use limits::{Limits, RetentionSeconds};
pub use topic::{Topic, TopicError, TopicKind};

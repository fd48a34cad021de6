#![forbid(unsafe_code)]
//! Deterministic simulation of the backend and of conversations, with faults, replayable from a seed.
//!
//! [`executor`] and [`random`] are the ground: one thread, virtual time, every choice drawn from the seed. [`backend`]
//! simulates `topiclog`, [`conversation`] the conversation engine.

pub mod backend;
pub mod conversation;
pub mod executor;
pub mod fault_set;
mod names;
pub mod random;

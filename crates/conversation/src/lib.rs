#![forbid(unsafe_code)]
//! The conversation engine: verified messages in, transitions to persist and messages to send out.

pub mod store;

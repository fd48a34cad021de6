#![forbid(unsafe_code)]
//! Asks nodes of EVM chains whether smart contract wallets accept signatures (contract section 6, API-231, API-271).
//!
//! A node is somebody else's machine: its answers are bounded, read by total decoders and held against each other, and
//! whatever does not fit is an outage of the node, never a verdict. Pure: bytes leave and come back through a
//! [`Transport`], which also knows the time. Depends on `identity` for accounts and on `topiclog` for the questions.
//!
//! - [`validator`]: the program that judges a signature, for a node to run;
//! - [`rpc`]: the messages to a node and what can be read in its answers;
//! - [`header`]: what blocks say of each other and of the time;
//! - [`memo`]: verdicts that were reached before;
//! - [`client`]: a whole request, from questions to verdicts.

pub mod client;
#[cfg(test)]
mod client_tests;
pub mod header;
pub mod memo;
pub mod rpc;
pub mod validator;

pub use client::{EvmChains, Transport, TransportError};

//! Simulation of conversations: engines with their stores over one Router, and everything that can go wrong between them,
//! in one thread under virtual time (docs/decisions/0011-conversation-simulation.md).
//!
//! - `world`: the queue of what is going to happen; `shell`: what runs each engine; `network`: what lies between it and the
//!   Router; `member`, `router`, `agents`: who and what is in it;
//! - [`faults`], `chaos`: what goes wrong; [`bugs`]: what is made wrong on purpose; `adversary`: Byzantine members;
//! - `history`: what happened; [`checkers`]: what must hold of it;
//! - [`simulation`], `end`, [`report`]: from a seed to a verdict; [`seeds`]: those that once failed.

mod adversary;
mod agents;
pub mod bugs;
mod chaos;
pub mod checkers;
mod end;
pub mod faults;
mod history;
mod member;
mod network;
pub mod report;
mod router;
pub mod seeds;
mod shell;
pub mod simulation;
mod world;

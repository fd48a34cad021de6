//! Simulation of the backend: a whole deployment, its clients, and everything that can go wrong between them, in one
//! thread under virtual time (docs/decisions/0005-simulation.md).
//!
//! - `world`, `object`, `storage`, `machine`, `pipe`: the machine beneath the objects and its faults; `edge`: the Workers;
//! - [`faults`], [`bugs`], `planted`, `chaos`: what goes wrong, and what is made wrong on purpose;
//! - `client`, `reader`, `workload`, `envelopes`: who asks what;
//! - `history`: what they were answered; [`checkers`]: what must hold of it;
//! - [`simulation`], [`report`]: from a seed to a verdict; [`seeds`]: those that once failed.

pub mod bugs;
mod chaos;
pub mod checkers;
mod client;
mod edge;
mod envelopes;
pub mod faults;
mod history;
mod life;
mod machine;
mod object;
mod pipe;
mod planted;
mod reader;
pub mod report;
pub mod seeds;
pub mod simulation;
mod storage;
mod workload;
mod world;

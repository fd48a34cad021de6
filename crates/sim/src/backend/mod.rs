//! Simulation of the backend: a whole deployment, its clients, and everything that can go wrong between them, in one
//! thread under virtual time (docs/decisions/0005-simulation.md).
//!
//! - `world`, `object`, `run`, `alarm`, `sockets`, `storage`, `machine`, `pipe`: the machine beneath the objects and its
//!   faults; `edge`: the Workers;
//! - [`faults`], [`bugs`], `planted`, `chaos`: what goes wrong, and what is made wrong on purpose;
//! - `client`, `reader`, `subscriber`, `workload`, `contest`, `sweep`, `envelopes`: who asks what;
//! - `history`, `subscription`: what they were answered; [`checkers`]: what must hold of it;
//! - [`simulation`], [`report`]: from a seed to a verdict; [`seeds`]: those that once failed.

mod alarm;
pub mod bugs;
mod chaos;
pub mod checkers;
mod client;
mod contest;
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
mod run;
pub mod seeds;
pub mod simulation;
mod sockets;
mod storage;
mod subscriber;
mod subscription;
mod sweep;
mod workload;
mod world;

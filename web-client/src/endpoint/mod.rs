//! One agent's endpoint: the engine between a store and a deployment.
//!
//! ```text
//! JavaScript ── Handle ──┐                                   ┌── store (one strict transaction a batch)
//! feed, timers, outcomes ┴─> inbox ─> Driver ─> engine ─> step ─┤
//!                                                            └── effects: publish, watch, timers, deliveries
//! ```
//!
//! [`driver`] is the only one that touches the engine, and it takes one message after another; nothing here holds a lock.
//! May depend on: the engine, `store`, `transport`, `platform`, `failure`.

mod attendance;
mod deliveries;
mod driver;
mod handle;
mod identity;
mod invitations;
mod opening;
mod owner_reads;
mod pending;
mod progress;
mod registry;
mod requests;
mod timers;
mod verification;
mod views;

pub(crate) use handle::Handle;
pub(crate) use opening::{OpenOptions, open};
pub(crate) use requests::{Arguments, carry_out};

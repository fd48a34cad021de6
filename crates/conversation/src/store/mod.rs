//! What an endpoint keeps, and the only ways in which it may change.
//!
//! The tables are plain data: text keys, rows of text and numbers. Everything that changes them is a [`Transition`], a value
//! that carries all it needs. A transition names what it must read ([`Transition::reads`]) and decides, from exactly that,
//! what is to be written ([`Transition::decide`]). Both are pure, so every store runs the same rules: the browser's store
//! issues the reads, asks for the decision and issues the writes in one strict transaction, [`MemoryStore`] does the same
//! in memory.
//!
//! Nothing here verifies a signature or hashes a value: rows are trusted only after startup verification
//! (`crate::engine`), and the engine hands down only values it verified. This module depends on nothing but serde.
//!
//! Reference: `harness-client.md` 3.1 (tables) and 3.2 (transitions, by their numbers T1 to T19).

mod decision;
mod key;
mod memory;
pub mod migration;
pub mod opening;
mod read;
mod row;
pub mod rows;
mod schema;
mod snapshot;
mod table;
pub mod transition;

pub use decision::{Decision, Outcome, Refusal, Write};
pub use key::{Key, KeyPart};
pub use memory::{CommitError, Failpoint, MemoryStore};
pub use read::{Read, ReadSet};
pub use row::{Row, RowError};
pub use schema::{SCHEMA_BASELINE, SCHEMA_VERSION, SchemaRow};
pub use snapshot::Snapshot;
pub use table::Table;
pub use transition::Transition;

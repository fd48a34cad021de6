//! The transitions of the store, each through the store in memory: what they require, what they write, and that a refused
//! one leaves everything as it was.

mod commits;
mod conversations;
mod locks;
mod outbox;
mod reanchors;
mod records;
mod rows;
mod transport;

//! The Registry through its RPCs, over SQLite.

mod directory;
mod opening;
mod refused_requests;
mod registration;
mod support;

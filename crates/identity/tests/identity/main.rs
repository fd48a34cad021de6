//! The rules of identity updates, from outside: published vectors, other implementations, and each rule broken.

mod claims;
mod differential;
mod history;
mod limits;
mod properties;
mod rules;
mod sequences;
mod single_signatures;
mod support;
mod wallets;

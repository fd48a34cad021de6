#![forbid(unsafe_code)]
//! Deterministic simulation of the backend and of conversations, with faults, replayable from a seed.

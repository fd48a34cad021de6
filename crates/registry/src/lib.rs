#![forbid(unsafe_code)]
//! The Registry of agents: who registered which name and key, and the cards it signed.

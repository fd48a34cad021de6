#![forbid(unsafe_code)]
//! Layer 1 of a conversation: canonical JSON, identifiers, agent cards, signed messages and sealed bodies.

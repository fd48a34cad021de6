#![forbid(unsafe_code)]
//! Envelopes: topics, the stored encoding and its hash, bounds, and admission by kind.

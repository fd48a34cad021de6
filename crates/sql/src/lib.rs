#![forbid(unsafe_code)]
//! The few SQL operations the stores need, so that one body of SQL runs in a Durable Object and natively.

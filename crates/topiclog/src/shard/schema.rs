//! The tables of a shard.
//!
//! An envelope is one row and two index rows: by sequence id within its topic, which also finds a topic's head by one
//! seek, and by hash within its topic, the idempotency key. The body is the last column, so that reading metadata never
//! walks its pages. Nanoseconds are 8-byte big-endian blobs: they exceed what crosses as an integer.

use super::{associations, conditions, decide, prepared, retention};
use crate::{birth, sequencer::allocator, storage::Migration};

pub(super) const MIGRATIONS: &[Migration] = &[
    &[
        birth::TABLE,
        allocator::TABLE,
        super::ids::TABLE,
        "CREATE TABLE topic (id INTEGER PRIMARY KEY, topic BLOB NOT NULL UNIQUE)",
        "CREATE TABLE envelope (
        seq INTEGER PRIMARY KEY,
        topic_id INTEGER NOT NULL,
        hash BLOB NOT NULL,
        server_ns BLOB NOT NULL,
        expiry_ns BLOB NOT NULL,
        is_commit_or_proposal INTEGER NOT NULL,
        body BLOB NOT NULL
    )",
        "CREATE UNIQUE INDEX envelope_by_topic ON envelope (topic_id, seq)",
        "CREATE UNIQUE INDEX envelope_by_hash ON envelope (topic_id, hash)",
    ],
    &[
        conditions::TABLE,
        prepared::TABLE,
        prepared::CLAIM_TABLE,
        decide::TABLE,
        retention::TABLE,
    ],
    &[
        associations::TABLE,
        associations::LIVE_INDEX,
        prepared::ASSOCIATION_TABLE,
    ],
];

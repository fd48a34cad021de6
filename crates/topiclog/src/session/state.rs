//! What a session knows of its topics and shards. Depends on nothing here.

use std::collections::VecDeque;

use bytes::Bytes;

/// One topic.
#[derive(Debug)]
pub(super) struct TopicState {
    pub(super) topic: Bytes,
    /// Everything up to this sequence id was queued for the client, or is below its cursor.
    pub(super) delivered: u64,
    /// The highest sequence id known to exist, or one more than `delivered` when something above it does.
    pub(super) wanted: u64,
    /// Catch-up target: the head when the topic was registered.
    pub(super) target: u64,
}

impl TopicState {
    /// Whether something is known to exist that was not delivered.
    pub(super) fn is_behind(&self) -> bool {
        self.wanted > self.delivered
    }
}

/// A read that a shard has not answered: its topics, and what was wanted of each when it was asked.
#[derive(Debug)]
pub(super) struct PendingRead {
    pub(super) id: u64,
    pub(super) asked: Vec<(usize, u64)>,
    pub(super) has_waited: bool,
}

/// One shard.
#[derive(Debug)]
pub(super) struct ShardState {
    pub(super) shard: u32,
    /// Its topics, in the order they are registered.
    pub(super) topics: Vec<usize>,
    pub(super) is_registered: bool,
    pub(super) read: Option<PendingRead>,
    /// Topics that wait for their turn of this round.
    pub(super) round: VecDeque<usize>,
}

impl ShardState {
    pub(super) fn new(shard: u32) -> Self {
        Self {
            shard,
            topics: Vec::new(),
            is_registered: false,
            read: None,
            round: VecDeque::new(),
        }
    }
}

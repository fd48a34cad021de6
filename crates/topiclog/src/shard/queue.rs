//! What waits for the commit loop: bounded in number and bytes, taken out in order, what meets a held topic set aside
//! until the topic is free. No I/O.
//!
//! Whatever waits for a topic is passed by nothing that wants the same topic, so a publish of many topics is not
//! starved, and a topic's publishes are stored in the order they came.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{
    Association, Claim, NewEnvelope, Precondition, PrepareResponse, StoreResponse,
};
use futures_channel::oneshot;

use super::{
    decide::Deciding,
    holds::{Holds, Key, Transaction},
};
use crate::planted::{Bug, has};

/// The most envelopes of one batch, unless a single publish has more.
pub const BATCH_ENVELOPES_MAX: usize = 1_000;
/// The most bytes of one batch, unless a single publish has more.
pub const BATCH_BYTES_MAX: usize = 8 << 20;
/// The most publishes that wait.
pub const QUEUE_PUBLISHES_MAX: usize = 4_096;
/// The most bytes that wait, unless a single publish has more.
pub const QUEUE_BYTES_MAX: usize = 32 << 20;

/// Envelopes, what must hold for them to be stored, and what else is written with them.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub(super) envelopes: Vec<NewEnvelope>,
    pub(super) preconditions: Vec<Precondition>,
    pub(super) claims: Vec<Claim>,
    /// Hold nothing: their order is that of their sequence ids, whenever they are written.
    pub(super) associations: Vec<Association>,
}

impl Content {
    pub(super) fn bytes(&self) -> usize {
        self.envelopes.iter().map(|envelope| envelope.body.len()).sum()
    }

    /// Every topic and claim of it, each once.
    pub(super) fn keys(&self) -> HashSet<Key> {
        let topics = self
            .envelopes
            .iter()
            .map(|envelope| Key::Topic(envelope.topic.clone()));
        let claims = self.claims.iter().map(|claim| Key::Claim(claim.key.clone()));
        topics.chain(claims).collect()
    }

    /// The lowest request index that can be refused.
    pub(super) fn lowest_condition(&self) -> Option<u32> {
        let preconditions = self.preconditions.iter().map(|condition| condition.index);
        preconditions
            .chain(self.claims.iter().map(|claim| claim.index))
            .min()
    }
}

/// One publish of this shard alone.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) content: Content,
    pub(super) expected_router_instance: Option<String>,
    pub(super) reply: oneshot::Sender<Result<StoreResponse, Status>>,
}

/// This shard's part of a publish across shards.
#[derive(Debug)]
pub(super) struct Preparing {
    pub(super) transaction: Transaction,
    pub(super) content: Content,
    /// Whether to wait for held topics.
    pub(super) wait: bool,
    /// Whether this shard coordinates: it keeps nothing, because it decides.
    pub(super) is_home: bool,
    pub(super) reply: oneshot::Sender<Result<PrepareResponse, Status>>,
}

/// What waits.
#[derive(Debug)]
pub(super) enum Item {
    Publish(Waiting),
    Prepare(Preparing),
    /// All participants are prepared. Meets no held topic but its own.
    Decide(Deciding),
}

impl Item {
    fn content(&self) -> Option<&Content> {
        match self {
            Self::Publish(waiting) => Some(&waiting.content),
            Self::Prepare(preparing) => Some(&preparing.content),
            Self::Decide(_) => None,
        }
    }

    fn envelopes(&self) -> usize {
        match self {
            Self::Decide(deciding) => deciding.local.envelopes.len(),
            _ => self.content().map_or(0, |content| content.envelopes.len()),
        }
    }
}

#[derive(Debug)]
struct Entry {
    item: Item,
    keys: HashSet<Key>,
    bytes: usize,
}

/// There is no room for an item, and it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueFull;

/// What the loop does next.
#[derive(Debug)]
pub(super) enum Next {
    Nothing,
    /// Its topics are free.
    Prepare(Preparing),
    /// Some topic is not free, and it does not wait.
    Busy(Preparing),
    /// Publishes and decisions that are committed together.
    Batch(Vec<Item>),
}

/// The queue, first in, first out for every topic.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Entry>,
    /// What met a held topic, or one that something before it waits for.
    parked: VecDeque<Entry>,
    /// The topics and claims of what is parked.
    wanted: HashSet<Key>,
    bytes: usize,
}

impl Queue {
    /// Adds an item, unless there is no room. A decision always has room.
    pub(super) fn push(&mut self, item: Item) -> Result<(), QueueFull> {
        let (bytes, keys) = item
            .content()
            .map_or((0, HashSet::new()), |content| (content.bytes(), content.keys()));
        let length = self.waiting.len() + self.parked.len();
        let is_full = length >= QUEUE_PUBLISHES_MAX || self.bytes + bytes > QUEUE_BYTES_MAX;
        if is_full && length > 0 && !matches!(item, Item::Decide(_)) {
            return Err(QueueFull);
        }
        self.bytes += bytes;
        self.waiting.push_back(Entry { item, keys, bytes });
        Ok(())
    }

    /// Takes out what comes next.
    pub(super) fn next(&mut self, holds: &Holds) -> Next {
        let (mut batch, mut envelopes, mut bytes) = (Vec::new(), 0, 0);
        while let Some(entry) = self.waiting.pop_front() {
            let is_free = self.is_free(&entry, holds);
            if let Item::Prepare(preparing) = entry.item {
                if !is_free && preparing.wait {
                    self.park(Entry {
                        item: Item::Prepare(preparing),
                        ..entry
                    });
                } else if batch.is_empty() {
                    self.bytes -= entry.bytes;
                    return match is_free {
                        true => Next::Prepare(preparing),
                        false => Next::Busy(preparing),
                    };
                } else {
                    // It must see what is stored before it.
                    self.waiting.push_front(Entry {
                        item: Item::Prepare(preparing),
                        ..entry
                    });
                    break;
                }
                continue;
            }
            if !is_free {
                self.park(entry);
                continue;
            }
            let more = entry.item.envelopes();
            let fits = envelopes + more <= BATCH_ENVELOPES_MAX && bytes + entry.bytes <= BATCH_BYTES_MAX;
            if !fits && !batch.is_empty() {
                self.waiting.push_front(entry);
                break;
            }
            envelopes += more;
            bytes += entry.bytes;
            self.bytes -= entry.bytes;
            batch.push(entry.item);
        }
        if batch.is_empty() {
            return Next::Nothing;
        }
        Next::Batch(batch)
    }

    /// Topics were freed: what was set aside is looked at again, before everything that came later.
    pub(super) fn unpark(&mut self) {
        self.wanted.clear();
        self.parked.append(&mut self.waiting);
        std::mem::swap(&mut self.parked, &mut self.waiting);
    }

    /// Forgets what waits of an aborted transaction.
    pub(super) fn forget(&mut self, transaction: Transaction) {
        let bytes = &mut self.bytes;
        let mut keep = |entry: &Entry| {
            let goes = matches!(&entry.item, Item::Prepare(one) if one.transaction == transaction);
            *bytes -= if goes { entry.bytes } else { 0 };
            !goes
        };
        self.waiting.retain(&mut keep);
        self.parked.retain(&mut keep);
    }

    fn is_free(&self, entry: &Entry, holds: &Holds) -> bool {
        if has(Bug::DuplicateIgnoresPrepared) && matches!(entry.item, Item::Publish(_)) {
            return true;
        }
        !entry
            .keys
            .iter()
            .any(|key| holds.is_held(key) || self.wanted.contains(key))
    }

    fn park(&mut self, entry: Entry) {
        self.wanted.extend(entry.keys.iter().cloned());
        self.parked.push_back(entry);
    }
}

/// The topics of some envelopes, each once.
pub(super) fn topics_of<'a>(envelopes: impl IntoIterator<Item = &'a NewEnvelope>) -> HashSet<Bytes> {
    envelopes
        .into_iter()
        .map(|envelope| envelope.topic.clone())
        .collect()
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;

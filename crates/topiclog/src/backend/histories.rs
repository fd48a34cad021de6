//! The logs of inboxes, each read in one snapshot and replayed (API-232).
//!
//! A log grows at its end only and nothing is ever removed from it, so pages that follow each other up to one that ends
//! the log are together what the log was when that last page was read. Pages are replayed as they come: a log need not
//! fit in memory.

use std::collections::BTreeMap;

use bytes::Bytes;
use conclave_envelope::{Topic, admission::MessageHash, limits::STREAM_FRAME_BYTES};
use conclave_grpc_web::Status;
use conclave_identity::{History, HistoryEntry, IdentityFailure};
use conclave_proto::{
    conclave::internal::v1::{PageRequest, PageResponse, StoredEnvelope, TopicPosition},
    xmtp::backend::v1::{EnvelopeMeta, message_hash::Hash},
};
use futures_util::future::try_join_all;
use prost::Message as _;

use super::{Backend, CallContext, decode_answer};
use crate::platform::{ObjectName, Platform};

/// The most envelopes of a page of logs.
const PAGE_ENTRIES: u32 = 1_000;

/// The log of an inbox as an update of it finds it.
#[derive(Debug)]
pub(super) struct Log {
    topic: Topic,
    message_hash: MessageHash,
    /// The sequence id of its last entry; 0 for an empty one.
    pub(super) head: u64,
    /// Whether the update stands in it already. Nothing is replayed then.
    pub(super) is_stored: bool,
    /// What it comes to.
    pub(super) history: Result<History, IdentityFailure>,
}

impl<P: Platform> Backend<P> {
    /// Reads the log of each topic, for an update with this hash, in the order given.
    pub(super) async fn read_logs(
        &self,
        updates: impl Iterator<Item = (Topic, MessageHash)>,
        context: &CallContext,
    ) -> Result<Vec<Log>, Status> {
        let mut by_shard: BTreeMap<u32, Vec<(usize, Log)>> = BTreeMap::new();
        for (place, (topic, message_hash)) in updates.enumerate() {
            let shard = self.routing.shard_of(topic.as_bytes());
            let log = Log {
                topic,
                message_hash,
                head: 0,
                is_stored: false,
                history: Ok(History::default()),
            };
            by_shard.entry(shard).or_default().push((place, log));
        }
        let reads = by_shard
            .into_iter()
            .map(|(shard, logs)| self.read_logs_of(shard, logs, context));
        let mut logs: Vec<(usize, Log)> = try_join_all(reads).await?.into_iter().flatten().collect();
        logs.sort_by_key(|(place, _)| *place);
        Ok(logs.into_iter().map(|(_, log)| log).collect())
    }

    async fn read_logs_of(
        &self,
        shard: u32,
        mut logs: Vec<(usize, Log)>,
        context: &CallContext,
    ) -> Result<Vec<(usize, Log)>, Status> {
        // Pages go topic by topic, so everything before the last topic of a page is complete.
        let mut first = 0;
        loop {
            let positions = logs[first..].iter().map(|(_, log)| TopicPosition {
                topic: Bytes::copy_from_slice(log.topic.as_bytes()),
                after: log.head,
            });
            let request = PageRequest {
                positions: positions.collect(),
                limit: PAGE_ENTRIES,
                max_bytes: STREAM_FRAME_BYTES,
                whole: false,
            };
            let answer = self
                .call(ObjectName::Shard(shard), "page", request.encode_to_vec(), context)
                .await?;
            let page: PageResponse = decode_answer(answer)?;
            let is_last = !page.cut_by_bytes && !page.continuation.is_some_and(|page| page.has_more);
            if page.envelopes.is_empty() && !is_last {
                return Err(Status::internal("a stored envelope is longer than any may be"));
            }
            let mut rest = &page.envelopes[..];
            while let Some(envelope) = rest.first() {
                let topic = topic_of(envelope);
                let length = rest.iter().take_while(|other| topic_of(other) == topic).count();
                let (run, after) = rest.split_at(length);
                let place = logs[first..]
                    .iter()
                    .position(|(_, log)| Some(log.topic.as_bytes()) == topic)
                    .ok_or_else(|| Status::internal("a page holds a topic that was not asked for"))?;
                first += place;
                self.take(&mut logs[first].1, run)?;
                rest = after;
            }
            if is_last {
                return Ok(logs);
            }
        }
    }

    fn take(&self, log: &mut Log, run: &[StoredEnvelope]) -> Result<(), Status> {
        let mut entries = Vec::with_capacity(run.len());
        for stored in run {
            let (head, entry) = to_entry(stored)
                .ok_or_else(|| Status::internal("a stored envelope has no id, time or hash"))?;
            log.head = head;
            log.is_stored |= entry.message_hash == log.message_hash;
            entries.push(entry);
        }
        if !log.is_stored
            && let Ok(history) = &mut log.history
            && let Err(damage) = history.extend(&entries, &mut self.isolate.states().borrow_mut())
        {
            log.history = Err(damage);
        }
        Ok(())
    }
}

fn topic_of(stored: &StoredEnvelope) -> Option<&[u8]> {
    let topic = stored.meta.as_ref()?.topic.as_ref()?;
    Some(&topic.topic)
}

/// The sequence id of a stored envelope, and what a replay needs of it.
fn to_entry(stored: &StoredEnvelope) -> Option<(u64, HistoryEntry)> {
    let EnvelopeMeta {
        cursor,
        server_ns,
        message_hash,
        ..
    } = stored.meta.as_ref()?;
    let Some(Hash::Sha256(hash)) = message_hash.as_ref()?.hash.as_ref() else {
        return None;
    };
    let entry = HistoryEntry {
        message_hash: hash.as_ref().try_into().ok()?,
        server_ns: *server_ns,
        stored: stored.envelope.clone(),
    };
    Some((cursor.as_ref()?.sequence_id, entry))
}

//! A store in memory, with the crash behaviour of a durable one.

use std::sync::{Arc, Mutex, PoisonError};

use super::transition::decide_batch;
use super::{Key, Outcome, Read, ReadSet, Refusal, Snapshot, Table, Transition};

/// A store in memory. Clones share the same content, as two handles on one database do: dropping the engine and opening
/// another from a clone is what a crash and a restart are.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    content: Arc<Mutex<Content>>,
}

#[derive(Debug, Default)]
struct Content {
    rows: Snapshot,
    failpoint: Option<Failpoint>,
}

/// A fault to inject into the next commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failpoint {
    /// The next commit fails and writes nothing, as a full disk does.
    NextCommit,
}

/// A commit that did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// A transition of the batch was refused.
    #[error("transition {index} of the batch was refused: {refusal}")]
    Refused {
        /// Which transition of the batch.
        index: usize,
        /// Why.
        refusal: Refusal,
    },
    /// The store itself failed.
    #[error("the store failed")]
    Failed,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// A store with this content.
    pub fn from_snapshot(rows: Snapshot) -> Self {
        MemoryStore {
            content: Arc::new(Mutex::new(Content {
                rows,
                failpoint: None,
            })),
        }
    }

    /// Commits a batch: every transition in order, or nothing.
    pub fn apply(&self, transitions: &[Transition]) -> Result<Vec<Outcome>, CommitError> {
        let mut content = self.lock();
        if content.failpoint.take().is_some() {
            return Err(CommitError::Failed);
        }
        #[cfg(feature = "test-support")]
        let begun = cryptography();
        let mut reads = ReadSet::new();
        for read in transitions.iter().flat_map(Transition::reads) {
            let rows = content.rows.read(&read);
            reads.answer(read, rows);
        }
        let (outcomes, writes) = decide_batch(transitions, reads)
            .map_err(|(index, refusal)| CommitError::Refused { index, refusal })?;
        content.rows.apply(&writes);
        #[cfg(feature = "test-support")]
        assert_eq!(
            cryptography(),
            begun,
            "a transaction makes and checks no signature"
        );
        Ok(outcomes)
    }

    /// Everything the store holds now.
    pub fn snapshot(&self) -> Snapshot {
        self.lock().rows.clone()
    }

    /// The rows a read answers with.
    pub fn read(&self, read: &Read) -> ReadSet {
        let mut reads = ReadSet::new();
        reads.answer(read.clone(), self.lock().rows.read(read));
        reads
    }

    /// The rows of a read themselves, as [`Snapshot::insert`] takes them.
    pub fn rows(&self, read: &Read) -> Vec<(Key, Vec<u8>)> {
        self.lock().rows.read(read)
    }

    /// Puts rows there that no transition wrote, as a fault of the disk or a stranger does.
    pub fn put_by_hand(&self, rows: impl IntoIterator<Item = (Table, Key, Vec<u8>)>) {
        let mut content = self.lock();
        for (table, key, bytes) in rows {
            content.rows.insert(table, key, bytes);
        }
    }

    /// Arms a fault.
    pub fn fail(&self, failpoint: Failpoint) {
        self.lock().failpoint = Some(failpoint);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Content> {
        // A panic while the lock is held happens before anything was written, so the content is whole.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many signatures this thread made and was asked to check: a transaction must leave both as they are, because one that
/// waits for them ends before it was decided (`harness-client.md` 3.3).
#[cfg(feature = "test-support")]
fn cryptography() -> (u64, u64) {
    (
        conclave_harness::key::signatures(),
        conclave_harness::key::verifications(),
    )
}

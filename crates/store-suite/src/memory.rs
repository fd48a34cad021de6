//! The store in memory, as the cases use a store.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use conclave_conversation::store::{
    CommitError, Failpoint, Key, MemoryStore, Outcome, Read, Snapshot, Table, Transition,
};

use crate::Store;

impl Store for MemoryStore {
    async fn fresh() -> Self {
        MemoryStore::new()
    }

    async fn commit(&self, transitions: Vec<Transition>) -> Result<Vec<Outcome>, CommitError> {
        self.apply(&transitions)
    }

    async fn read(&self, reads: Vec<Read>) -> Snapshot {
        let mut snapshot = Snapshot::new();
        for read in reads {
            let (Read::Row(table, _) | Read::Prefix(table, _)) = read;
            for (key, bytes) in self.rows(&read) {
                snapshot.insert(table, key, bytes);
            }
        }
        snapshot
    }

    async fn snapshot(&self) -> Snapshot {
        MemoryStore::snapshot(self)
    }

    async fn put(&self, rows: Vec<(Table, Key, Vec<u8>)>) {
        self.put_by_hand(rows);
    }

    fn fail_next_commit(&self) {
        self.fail(Failpoint::NextCommit);
    }
}

/// Runs a case, which in memory waits for nothing.
pub(crate) fn run(case: impl Future<Output = ()>) {
    let polled = pin!(case).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Ready(()));
}

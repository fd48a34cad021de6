//! The store of one endpoint: one IndexedDB database, one object store per table of the engine and one of our own.
//!
//! Every batch of transitions is one read-write transaction with strict durability: what the engine sends afterwards
//! attests what is on the disk. The rules are the engine's (`Transition::reads` and `decide`); none is here. Whoever opens
//! a store must own it alone until it is closed: `ts/tabs` holds a Web Lock for that.
//!
//! A browser that lacks something gets a typed failure. There is no store in memory to fall back to: an endpoint that
//! forgets what it signed must not sign again.
//!
//! May depend on: the engine's `store` module, `platform`.

mod connection;
mod failure;
mod keys;
mod requests;

use conclave_conversation::ordered::OrderedSet;
use conclave_conversation::store::transition::decide_batch;
use conclave_conversation::store::{
    Key, Layout, Outcome, Read, ReadSet, Row as _, SchemaRow, Snapshot, Table, Transition, Write,
    judge_layout,
};
use futures_channel::oneshot;
use wasm_bindgen_futures::JsFuture;

use connection::{Connection, Mode};
pub(crate) use failure::{StoreFailure, StoreFault};
use requests::{Change, Lookup};

use crate::platform::{globals, scope::spawn};

/// The object store that is not the engine's: the agent's key, the registration, the pinned Registry and cards.
const LOCAL: &str = "local";

/// An open store.
pub(crate) struct IndexedDbStore {
    connection: Connection,
}

impl IndexedDbStore {
    /// Opens or creates the store, which the caller owns. The receiver hears once if it is taken away while open.
    pub(crate) async fn open(name: &str) -> Result<(Self, oneshot::Receiver<StoreFailure>), StoreFailure> {
        request_persistence();
        let stores = store_names();
        let (connection, taken) = Connection::open(name, &stores).await?;
        let store = IndexedDbStore { connection };
        store.judge().await?;
        Ok((store, taken))
    }

    /// Refuses a store this release must not touch, and marks an empty one as ours.
    async fn judge(&self) -> Result<(), StoreFailure> {
        let meta = Table::SchemaMeta.name();
        let found = self.connection.store_names();
        if !found.iter().any(|name| name == meta) {
            return Err(refuse(Layout::Unrecognized));
        }
        let versions = self
            .connection
            .transact(
                Mode::Read,
                &[meta],
                vec![Lookup::Below(meta, Key::new::<u64>([]))],
                |mut answers| Ok((answers.pop().unwrap_or_default(), Vec::new())),
            )
            .await?;
        let row = versions
            .iter()
            .find(|(key, _)| *key == SchemaRow::singleton_key())
            .map(|(_, bytes)| bytes.as_slice());
        let expected = store_names();
        let has_expected_stores = found.len() == expected.len()
            && expected
                .iter()
                .all(|name| found.iter().any(|other| other == name));
        match judge_layout(row, !versions.is_empty()) {
            Layout::Current if has_expected_stores => Ok(()),
            Layout::Current => Err(refuse(Layout::Unrecognized)),
            Layout::Empty if has_expected_stores && self.load().await?.is_empty() => {
                let row = SchemaRow::current();
                self.write(vec![Change::Put(meta, row.key(), row.encode())]).await
            }
            Layout::Empty => Err(refuse(Layout::Unrecognized)),
            other => Err(refuse(other)),
        }
    }

    /// Everything the engine keeps, from one transaction.
    pub(crate) async fn load(&self) -> Result<Snapshot, StoreFailure> {
        let tables = Table::ALL.map(Table::name);
        let lookups = tables
            .map(|table| Lookup::Below(table, Key::new::<u64>([])))
            .into();
        self.connection
            .transact(Mode::Read, &tables, lookups, |answers| {
                let mut snapshot = Snapshot::new();
                for (table, rows) in Table::ALL.into_iter().zip(answers) {
                    for (key, bytes) in rows {
                        snapshot.insert(table, key, bytes);
                    }
                }
                Ok((snapshot, Vec::new()))
            })
            .await
    }

    /// Commits a batch: every transition in order, or nothing. Durable when it returns.
    pub(crate) async fn apply(&self, transitions: Vec<Transition>) -> Result<Vec<Outcome>, StoreFailure> {
        let reads: OrderedSet<Read> = transitions.iter().flat_map(Transition::reads).collect();
        let lookups = reads.iter().map(lookup).collect();
        // Which tables a decision writes is not known before it is made.
        let tables = Table::ALL.map(Table::name);
        self.connection
            .transact(Mode::WriteDurably, &tables, lookups, move |answers| {
                let mut set = ReadSet::new();
                for (read, rows) in reads.into_iter().zip(answers) {
                    set.answer(read, rows);
                }
                let (outcomes, writes) = decide_batch(&transitions, set)
                    .map_err(|(index, refusal)| StoreFailure::Refused { index, refusal })?;
                Ok((outcomes, writes.into_iter().map(change).collect()))
            })
            .await
    }

    /// The rows some reads answer with, from one transaction.
    pub(crate) async fn read(&self, reads: Vec<Read>) -> Result<Snapshot, StoreFailure> {
        let lookups = reads.iter().map(lookup).collect();
        let tables = Table::ALL.map(Table::name);
        self.connection
            .transact(Mode::Read, &tables, lookups, move |answers| {
                let mut snapshot = Snapshot::new();
                for (read, rows) in reads.iter().zip(answers) {
                    let (Read::Row(table, _) | Read::Prefix(table, _)) = read;
                    for (key, bytes) in rows {
                        snapshot.insert(*table, key, bytes);
                    }
                }
                Ok((snapshot, Vec::new()))
            })
            .await
    }

    /// Ends the connection once its transactions have ended. Whatever uses the store afterwards hears that it is closed.
    pub(crate) fn close(&self) {
        self.connection.close();
    }

    /// One of the shell's own values.
    pub(crate) async fn local(&self, name: &str) -> Result<Option<Vec<u8>>, StoreFailure> {
        let lookup = Lookup::Row(LOCAL, Key::new([name]));
        self.connection
            .transact(Mode::Read, &[LOCAL], vec![lookup], |answers| {
                let found = answers.into_iter().flatten().next();
                Ok((found.map(|(_, bytes)| bytes), Vec::new()))
            })
            .await
    }

    /// Every one of the shell's own values whose name begins with `scope` and one more part.
    pub(crate) async fn local_below(&self, scope: &str) -> Result<Vec<Vec<u8>>, StoreFailure> {
        let lookup = Lookup::Below(LOCAL, Key::new([scope]));
        self.connection
            .transact(Mode::Read, &[LOCAL], vec![lookup], |answers| {
                Ok((
                    answers.into_iter().flatten().map(|(_, bytes)| bytes).collect(),
                    Vec::new(),
                ))
            })
            .await
    }

    /// Stores several of the shell's own values together.
    pub(crate) async fn put_local(&self, values: Vec<(Key, Vec<u8>)>) -> Result<(), StoreFailure> {
        self.write(
            values
                .into_iter()
                .map(|(key, bytes)| Change::Put(LOCAL, key, bytes))
                .collect(),
        )
        .await
    }

    async fn write(&self, changes: Vec<Change>) -> Result<(), StoreFailure> {
        // The same store twice does no harm.
        let stores: Vec<_> = changes
            .iter()
            .map(|change| match change {
                Change::Put(store, ..) | Change::Delete(store, _) => *store,
            })
            .collect();
        self.connection
            .transact(Mode::WriteDurably, &stores, Vec::new(), move |_| {
                Ok(((), changes))
            })
            .await
    }
}

fn store_names() -> Vec<&'static str> {
    Table::ALL.into_iter().map(Table::name).chain([LOCAL]).collect()
}

fn lookup(read: &Read) -> Lookup {
    match read {
        Read::Row(table, key) => Lookup::Row(table.name(), key.clone()),
        Read::Prefix(table, prefix) => Lookup::Below(table.name(), prefix.clone()),
    }
}

fn change(write: Write) -> Change {
    match write {
        Write::Put { table, key, bytes } => Change::Put(table.name(), key, bytes),
        Write::Delete { table, key } => Change::Delete(table.name(), key),
    }
}

fn refuse(layout: Layout) -> StoreFailure {
    match layout {
        Layout::Newer => StoreFailure::new(StoreFault::NewerSchema, "a newer release wrote this store"),
        Layout::BelowBaseline => StoreFailure::new(
            StoreFault::PreReset,
            "this store is older than the migration baseline; reset it",
        ),
        _ => StoreFailure::new(
            StoreFault::Incompatible,
            "this database is not a store of this package",
        ),
    }
}

/// Asks the browser not to evict the store. It may decline; an eviction is then found at the next opening.
fn request_persistence() {
    if let Some(request) = globals::storage().and_then(|storage| storage.persist().ok()) {
        spawn(Box::pin(async move {
            // A browser that declines answers false; one that fails has declined too.
            let _ = JsFuture::from(request).await;
        }));
    }
}

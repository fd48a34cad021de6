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
mod opening;
mod requests;
#[cfg(feature = "store-suite")]
pub(crate) mod suite;

use std::cell::Cell;

use conclave_conversation::ordered::OrderedSet;
use conclave_conversation::store::transition::decide_batch;
use conclave_conversation::store::{Key, Outcome, Read, ReadSet, Snapshot, Table, Transition, Write};
use futures_channel::oneshot;

use connection::{Connection, Mode};
pub(crate) use failure::{StoreFailure, StoreFault};
use opening::{Opened, STARTED, read_all, snapshot_of};
use requests::{Change, Lookup};

use crate::observer::Observer;

/// The object store that is not the engine's: the agent's key, the registration, the pinned Registry and cards.
const LOCAL: &str = "local";

/// The name there of the agent's key and the attempt to register it.
pub(crate) const AGENT: &str = "agent";

/// An open store.
pub(crate) struct IndexedDbStore {
    name: String,
    connection: Connection,
    unverified_since: Option<u32>,
    was_started: Cell<bool>,
}

impl IndexedDbStore {
    /// Opens the store, which the caller owns, making or migrating it where that is due. The receiver hears once if it is
    /// taken away while open.
    pub(crate) async fn open(
        name: &str,
        observer: &Observer,
    ) -> Result<(Self, oneshot::Receiver<StoreFailure>), StoreFailure> {
        let Opened {
            watched: (connection, taken),
            unverified_since,
            was_started,
        } = opening::open(name, observer).await?;
        let store = IndexedDbStore {
            name: name.to_owned(),
            connection,
            unverified_since,
            was_started: Cell::new(was_started),
        };
        Ok((store, taken))
    }

    /// What opening the store would do, in a word. Writes nothing, and works while another page has the store open.
    pub(crate) async fn inspect(name: &str) -> Result<&'static str, StoreFailure> {
        opening::inspect(name).await
    }

    /// Puts back the copy from before a migration after which no endpoint was started. The caller owns the store.
    pub(crate) async fn restore(name: &str) -> Result<(), StoreFailure> {
        opening::restore(name).await
    }

    /// The layout the store was migrated from, if no endpoint was started over it since.
    pub(crate) fn unverified_since(&self) -> Option<u32> {
        self.unverified_since
    }

    /// Notes that everything in the store was verified and that something may be signed from now on: there is no way back
    /// to the copy from before a migration any more.
    pub(crate) async fn mark_started(&self) -> Result<(), StoreFailure> {
        if self.was_started.replace(true) {
            return Ok(());
        }
        if self.unverified_since.is_some() {
            opening::supersede_backup(&self.name).await?;
        }
        self.put_local(vec![(Key::new([STARTED]), Vec::new())]).await
    }

    /// Everything the engine keeps. To be read before the first batch: it takes several transactions.
    pub(crate) async fn load(&self) -> Result<Snapshot, StoreFailure> {
        Ok(snapshot_of(read_all(&self.connection).await?))
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
        let answers = self
            .connection
            .answers(&Table::ALL.map(Table::name), lookups)
            .await?;
        let mut snapshot = Snapshot::new();
        for (read, rows) in reads.iter().zip(answers) {
            let (Read::Row(table, _) | Read::Prefix(table, _)) = read;
            for (key, bytes) in rows {
                snapshot.insert(*table, key, bytes);
            }
        }
        Ok(snapshot)
    }

    /// Ends the connection once its transactions have ended. Whatever uses the store afterwards hears that it is closed.
    pub(crate) fn close(&self) {
        self.connection.close();
    }

    /// One of the shell's own values.
    pub(crate) async fn local(&self, name: &str) -> Result<Option<Vec<u8>>, StoreFailure> {
        let rows = self.own(Lookup::Row(LOCAL, Key::new([name]))).await?;
        Ok(rows.into_iter().next())
    }

    /// Every one of the shell's own values whose name begins with `scope` and one more part.
    pub(crate) async fn local_below(&self, scope: &str) -> Result<Vec<Vec<u8>>, StoreFailure> {
        self.own(Lookup::Below(LOCAL, Key::new([scope]))).await
    }

    async fn own(&self, lookup: Lookup) -> Result<Vec<Vec<u8>>, StoreFailure> {
        let answers = self.connection.answers(&[LOCAL], vec![lookup]).await?;
        Ok(answers.into_iter().flatten().map(|(_, bytes)| bytes).collect())
    }

    /// Stores several of the shell's own values together.
    pub(crate) async fn put_local(&self, values: Vec<(Key, Vec<u8>)>) -> Result<(), StoreFailure> {
        let puts = values
            .into_iter()
            .map(|(key, bytes)| Change::Put(LOCAL, key, bytes));
        self.connection.write(&[LOCAL], puts.collect()).await
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

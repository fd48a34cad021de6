//! Opening, migrating, backing up and putting back the database of a store. What is to be done is decided by the engine's
//! `store::opening` and `store::migration`; here it is done.
//!
//! IndexedDB counts upgrades of a database by a version of its own. Every making and every migration is such an upgrade, so
//! that a page that still has the database open in an older release is told and lets go; which layout the rows are in is
//! stated by the schema row.

use conclave_conversation::engine::admit_outbox;
use conclave_conversation::store::migration::{Supplies, migrate};
use conclave_conversation::store::opening::{
    Backup, Found, FoundTables, Opening, OpeningRefusal, judge, judge_restore,
};
use conclave_conversation::store::rows::IdentityBindingRow;
use conclave_conversation::store::{Key, Row as _, SchemaRow, Snapshot, Table};
use conclave_harness::randomness::random_array;
use conclave_harness::{WireVersions, base64url};

use super::connection::{Connection, Watched};
use super::failure::{StoreFailure, StoreFault};
use super::requests::{Change, Lookup, PAGE_ROWS, Rows};
use super::{AGENT, LOCAL, change, store_names};
use crate::observer::{Observer, Phase};
use crate::platform::{chance::BrowserRandomness, scope};

/// The shell's name for the id of the store the agent's key belongs to.
const STORE_ID: &str = "store";
/// The shell's note that an endpoint was started over the store in its present layout.
pub(super) const STARTED: &str = "started";
/// The object store that only a backup has, with one row that says how it stands.
const BACKUP: &str = "backup";
/// It is whole, and the migrated store was not started.
const COMPLETE: &[u8] = b"complete";
/// The migrated store was started; the rows are gone.
const SUPERSEDED: &[u8] = b"superseded";

/// An opened store.
pub(super) struct Opened {
    pub(super) watched: Watched,
    /// The layout it was migrated from, if no endpoint was started over it since.
    pub(super) unverified_since: Option<u32>,
    pub(super) was_started: bool,
}

/// What was found where a store should be.
#[derive(Default)]
struct Looked {
    watched: Option<Watched>,
    tables: Option<FoundTables>,
    schema: Option<Vec<u8>>,
    agent: Option<Vec<u8>>,
    key_store_id: Option<Vec<u8>>,
    started: Option<Vec<u8>>,
    binding: Option<Vec<u8>>,
    holds_rows: bool,
    backup: Option<Backup>,
}

impl Looked {
    async fn at(name: &str) -> Result<Self, StoreFailure> {
        let mut looked = Looked::default();
        let Some(watched) = Connection::existing(name).await? else {
            return Ok(looked);
        };
        let connection = &watched.0;
        let (names, expected) = (connection.store_names(), store_names());
        let is_expected = names.len() == expected.len()
            && expected
                .iter()
                .all(|store| names.iter().any(|name| name == store));
        looked.tables = match names.len() {
            0 => None,
            _ if is_expected => Some(FoundTables::Expected),
            _ => Some(FoundTables::Other),
        };
        let meta = Table::SchemaMeta.name();
        let wanted = [
            (meta, SchemaRow::singleton_key(), &mut looked.schema),
            (LOCAL, Key::new([AGENT]), &mut looked.agent),
            (LOCAL, Key::new([STORE_ID]), &mut looked.key_store_id),
            (LOCAL, Key::new([STARTED]), &mut looked.started),
            (
                Table::IdentityBinding.name(),
                IdentityBindingRow::singleton_key(),
                &mut looked.binding,
            ),
        ];
        for (store, key, value) in wanted {
            if names.iter().any(|name| name == store) {
                *value = row(connection, store, key).await?;
            }
        }
        if looked.schema.is_none() && is_expected {
            looked.holds_rows = !snapshot_of(read_all(connection).await?).is_empty();
        }
        looked.watched = Some(watched);
        Ok(looked)
    }

    fn found(&self) -> Found<'_> {
        Found {
            tables: self.tables.unwrap_or(FoundTables::None),
            schema: self.schema.as_deref(),
            holds_rows: self.holds_rows,
            holds_key: self.agent.is_some(),
            key_store_id: self.key_store_id.as_deref(),
            was_started: self.started.is_some(),
            is_bound: self.binding.is_some(),
            backup: self.backup,
        }
    }

    /// Decides. Whether there is a backup is asked only when it matters.
    async fn judge(&mut self, name: &str) -> Result<Result<Opening, OpeningRefusal>, StoreFailure> {
        let judged = judge(&self.found());
        if let Ok(Opening::Migrate { .. }) = judged {
            self.backup = backup_of(name).await?.1;
            return Ok(judge(&self.found()));
        }
        Ok(judged)
    }
}

/// Opens the store of this name, making or migrating it where that is due. The caller owns it.
pub(super) async fn open(name: &str, observer: &Observer) -> Result<Opened, StoreFailure> {
    let mut looked = Looked::at(name).await?;
    let opening = looked.judge(name).await??;
    let was_started = looked.started.is_some();
    match (opening, looked.watched.take()) {
        (Opening::Reopen { unverified_since }, Some(watched)) => Ok(Opened {
            watched,
            unverified_since,
            was_started,
        }),
        (Opening::Migrate { from }, Some(watched)) => {
            observer.tell_opening(Phase::Migrating);
            Ok(Opened {
                watched: upgrade(name, from, watched).await?,
                unverified_since: Some(from),
                was_started: false,
            })
        }
        (_, watched) => {
            let version = watched.map_or(1, |(connection, _)| connection.next_version());
            let store_id = draw_store_id();
            let row = SchemaRow::fresh(&store_id);
            let changes = vec![
                Change::Put(Table::SchemaMeta.name(), row.key(), row.encode()),
                Change::Put(LOCAL, Key::new([STORE_ID]), store_id.into_bytes()),
            ];
            Ok(Opened {
                watched: Connection::upgrade(name, version, store_names(), changes).await?,
                unverified_since: None,
                was_started: false,
            })
        }
    }
}

/// What opening the store of this name would do, in a word. Writes nothing and makes nothing.
pub(super) async fn inspect(name: &str) -> Result<&'static str, StoreFailure> {
    let judged = Looked::at(name).await?.judge(name).await?;
    Ok(match judged {
        Ok(Opening::Initialize) => "create",
        Ok(Opening::Reopen { .. }) => "reopen",
        Ok(Opening::Migrate { .. }) => "migrate",
        Err(refusal) => StoreFailure::from(refusal).fault().code(),
    })
}

/// Admits the outbox, copies the store, and runs the migrations that are due in one transaction.
async fn upgrade(name: &str, from: u32, (connection, _): Watched) -> Result<Watched, StoreFailure> {
    let rows = read_all(&connection).await?;
    let snapshot = snapshot_of(rows.clone());
    admit_outbox(&snapshot, &WireVersions::live()).map_err(|error| StoreFailure::from(&error))?;
    back_up(name, rows).await?;
    let store_id = draw_store_id();
    let supplies = Supplies { store_id: &store_id };
    let writes = migrate(&snapshot, from, supplies).map_err(|error| migration_failed(&error.to_string()))?;
    let mut changes: Vec<_> = writes.into_iter().map(change).collect();
    changes.push(Change::Put(
        LOCAL,
        Key::new([STORE_ID]),
        store_id.clone().into_bytes(),
    ));
    changes.push(Change::Delete(LOCAL, Key::new([STARTED])));
    let version = connection.next_version();
    drop(connection);
    Connection::upgrade(name, version, store_names(), changes)
        .await
        .map_err(|failure| {
            if failure.fault().is_retryable() {
                failure
            } else {
                migration_failed(&failure.to_string())
            }
        })
}

fn migration_failed(cause: &str) -> StoreFailure {
    StoreFailure::new(
        StoreFault::MigrationFailed,
        format!("{cause}. Nothing was changed: the release that wrote the store still opens it"),
    )
}

/// Copies every row into the backup, in one transaction that also says that it is whole.
async fn back_up(name: &str, rows: Vec<(&'static str, Rows)>) -> Result<(), StoreFailure> {
    let name = backup_name(name);
    let version = match Connection::existing(&name).await? {
        Some((connection, _)) => connection.next_version(),
        None => 1,
    };
    let (connection, _) = Connection::upgrade(&name, version, backup_stores(), Vec::new()).await?;
    let mut changes: Vec<_> = puts(rows).collect();
    changes.push(Change::Put(BACKUP, Key::new([BACKUP]), COMPLETE.to_vec()));
    replace(&connection, &backup_stores(), changes).await
}

/// The backup, if there is one, and how it stands.
async fn backup_of(name: &str) -> Result<(Option<Watched>, Option<Backup>), StoreFailure> {
    let Some(watched) = Connection::existing(&backup_name(name)).await? else {
        return Ok((None, None));
    };
    if !watched.0.store_names().iter().any(|name| name == BACKUP) {
        return Ok((None, None));
    }
    let state = row(&watched.0, BACKUP, Key::new([BACKUP])).await?;
    let backup = match state.as_deref() {
        Some(COMPLETE) => Some(Backup::Complete),
        Some(SUPERSEDED) => Some(Backup::Superseded),
        _ => None,
    };
    Ok((Some(watched), backup))
}

/// Drops what the backup holds and notes that it may not be put back any more.
pub(super) async fn supersede_backup(name: &str) -> Result<(), StoreFailure> {
    let (Some((connection, _)), Some(_)) = backup_of(name).await? else {
        return Ok(());
    };
    let note = Change::Put(BACKUP, Key::new([BACKUP]), SUPERSEDED.to_vec());
    replace(&connection, &backup_stores(), vec![note]).await
}

/// Puts the backup back, in one transaction, if the migrated store was not started since. The caller owns the
/// store.
pub(super) async fn restore(name: &str) -> Result<(), StoreFailure> {
    let mut looked = Looked::at(name).await?;
    let (backup, state) = backup_of(name).await?;
    looked.backup = state;
    judge_restore(&looked.found())?;
    let (Some((connection, _)), Some((backup, _))) = (looked.watched, backup) else {
        return Ok(());
    };
    let rows = puts(read_all(&backup).await?).collect();
    replace(&connection, &store_names(), rows).await
}

/// Puts rows into object stores in place of all they hold, in one transaction.
async fn replace(
    connection: &Connection,
    stores: &[&'static str],
    rows: Vec<Change>,
) -> Result<(), StoreFailure> {
    let clears = stores.iter().map(|store| Change::Clear(store));
    connection.write(stores, clears.chain(rows).collect()).await
}

/// Every row of a store, its shell's included. Read a page at a time: nobody writes, because the store is owned alone. The
/// tables are read beside each other, so that the database works while rows of another table are taken over here.
pub(super) async fn read_all(connection: &Connection) -> Result<Vec<(&'static str, Rows)>, StoreFailure> {
    let mut tables: Vec<scope::Pending<'_, Result<(&'static str, Rows), StoreFailure>>> = Vec::new();
    for store in store_names() {
        tables.push(Box::pin(read_table(connection, store)));
    }
    scope::all(tables).await.into_iter().collect()
}

async fn read_table(
    connection: &Connection,
    store: &'static str,
) -> Result<(&'static str, Rows), StoreFailure> {
    let mut all = Rows::new();
    loop {
        let next = Lookup::Page(store, all.last().map(|(key, _)| key.clone()));
        let answers = connection.answers(&[store], vec![next]).await?;
        let page = answers.into_iter().next().unwrap_or_default();
        let is_last = page.len() < PAGE_ROWS as usize;
        all.extend(page);
        if is_last {
            return Ok((store, all));
        }
    }
}

/// What of these rows is the engine's.
pub(super) fn snapshot_of(rows: Vec<(&'static str, Rows)>) -> Snapshot {
    let mut snapshot = Snapshot::new();
    for (store, rows) in rows {
        let Some(table) = Table::ALL.into_iter().find(|table| table.name() == store) else {
            continue;
        };
        for (key, bytes) in rows {
            snapshot.insert(table, key, bytes);
        }
    }
    snapshot
}

fn puts(rows: Vec<(&'static str, Rows)>) -> impl Iterator<Item = Change> {
    rows.into_iter().flat_map(|(store, rows)| {
        rows.into_iter()
            .map(move |(key, bytes)| Change::Put(store, key, bytes))
    })
}

async fn row(
    connection: &Connection,
    store: &'static str,
    key: Key,
) -> Result<Option<Vec<u8>>, StoreFailure> {
    let answers = connection
        .answers(&[store], vec![Lookup::Row(store, key)])
        .await?;
    Ok(answers.into_iter().flatten().next().map(|(_, bytes)| bytes))
}

fn draw_store_id() -> String {
    base64url::encode(&random_array::<16>(&mut BrowserRandomness))
}

fn backup_name(name: &str) -> String {
    format!("{name} backup")
}

fn backup_stores() -> Vec<&'static str> {
    store_names().into_iter().chain([BACKUP]).collect()
}

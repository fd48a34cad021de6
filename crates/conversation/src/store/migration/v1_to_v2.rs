//! Version 2 gives the store an id of its own, which is kept beside the agent's key too.
//!
//! In version 1 a key whose tables had been emptied looked like the key of a fresh store, and would have signed again.

use serde::{Deserialize, Serialize};

use super::{Migration, Supplies};
use crate::store::{Row, RowError, Snapshot, Table, Write};

pub(super) const MIGRATION: Migration = Migration { from: 1, migrate };

/// The schema row of version 1.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaRowV1 {
    singleton: u64,
    version: u32,
    baseline: u32,
}

impl Row for SchemaRowV1 {
    const TABLE: Table = Table::SchemaMeta;

    fn key(&self) -> crate::store::Key {
        crate::store::SchemaRow::singleton_key()
    }
}

/// The schema row of version 2, as it was when this migration was written: later versions change theirs, not this one.
#[derive(Serialize)]
struct SchemaRowV2<'a> {
    singleton: u64,
    version: u32,
    baseline: u32,
    store_id: &'a str,
    migrated_from: Option<u32>,
}

fn migrate(rows: &Snapshot, supplies: Supplies<'_>) -> Result<Vec<Write>, RowError> {
    let key = crate::store::SchemaRow::singleton_key();
    let old: SchemaRowV1 = rows.row(&key)?.ok_or_else(|| RowError {
        table: Table::SchemaMeta,
        key: key.clone(),
        what: "the row is missing".to_owned(),
    })?;
    let new = SchemaRowV2 {
        singleton: old.singleton,
        version: 2,
        baseline: old.baseline,
        store_id: supplies.store_id,
        migrated_from: Some(old.version),
    };
    Ok(vec![Write::Put {
        table: Table::SchemaMeta,
        key,
        bytes: serde_json::to_vec(&new).expect("a row is made of text and numbers"),
    }])
}

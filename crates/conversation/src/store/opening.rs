//! What to do with what is found where a store should be, decided before anything in it is touched.
//!
//! An agent's key is worth nothing without the store that knows what the key signed. So the key lies beside the id of its
//! store, and the store states its own: when the two differ, or one is gone, nothing may be signed any more.
//!
//! Reference: `harness-client.md` 3.3 and 3.4.

use super::schema::stated_version;
use super::{Row as _, SCHEMA_BASELINE, SCHEMA_VERSION, SchemaRow};

/// Which tables were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundTables {
    /// None at all: absent, or never given any.
    None,
    /// Exactly those of every layout since the baseline.
    Expected,
    /// Others.
    Other,
}

/// A copy of the store from before a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backup {
    /// Complete, and the store has not been started since it was taken.
    Complete,
    /// The migrated store was started; only the note of it is left.
    Superseded,
}

/// What is found where a store should be.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The tables.
    pub tables: FoundTables,
    /// The row of `schema_meta`.
    pub schema: Option<&'a [u8]>,
    /// Whether any table of the engine holds a row. Asked only of a store without a schema row.
    pub holds_rows: bool,
    /// Whether an agent's key is kept there.
    pub holds_key: bool,
    /// The id kept beside the key.
    pub key_store_id: Option<&'a [u8]>,
    /// Whether an endpoint was started over it in its present version.
    pub was_started: bool,
    /// Whether the engine's tables are bound to an agent.
    pub is_bound: bool,
    /// The copy from before the latest migration.
    pub backup: Option<Backup>,
}

impl Found<'_> {
    /// Nothing at all.
    pub const NOTHING: Found<'static> = Found {
        tables: FoundTables::None,
        schema: None,
        holds_rows: false,
        holds_key: false,
        key_store_id: None,
        was_started: false,
        is_bound: false,
        backup: None,
    };
}

/// How a store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// It is absent or empty: made now.
    Initialize,
    /// It is of this version.
    Reopen {
        /// The version it was migrated from, if it was not started since.
        unverified_since: Option<u32>,
    },
    /// It is older, and numbered migrations lead here.
    Migrate {
        /// Its version.
        from: u32,
    },
}

/// Why a store is not opened. It is left as it is, byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpeningRefusal {
    /// `newer-schema`.
    #[error(
        "a newer release wrote this store (layout {version}; this release reads up to {SCHEMA_VERSION}): update the package"
    )]
    NewerSchema {
        /// Its version.
        version: u32,
    },
    /// `pre-reset`.
    #[error(
        "this store (layout {version}) is older than any this release migrates: reset it and take a new name"
    )]
    PreReset {
        /// Its version.
        version: u32,
    },
    /// `incompatible`.
    #[error("this is not a store of this package: {0}")]
    Incompatible(&'static str),
    /// `store-evicted`: the key outlived its history.
    #[error(
        "the key of this agent is here and what it signed is gone ({0}): it must not sign again. Reset the store and take a new name"
    )]
    Evicted(&'static str),
    /// `store-rolled-back`: the store is one from before it was last used.
    #[error(
        "this store was put back to a state from before it last signed: it must not sign again. Reset the store and take a new name"
    )]
    RolledBack,
}

/// Decides how a store is opened.
///
/// # Errors
/// [`OpeningRefusal`]; nothing may then be written.
pub fn judge(found: &Found<'_>) -> Result<Opening, OpeningRefusal> {
    if found.tables == FoundTables::None {
        return Ok(Opening::Initialize);
    }
    let version = found.schema.and_then(stated_version);
    // Another release's layout is judged by its version alone: it may have other tables and another schema row.
    match version {
        Some(version) if version > SCHEMA_VERSION => return Err(OpeningRefusal::NewerSchema { version }),
        Some(version) if version < SCHEMA_BASELINE => return Err(OpeningRefusal::PreReset { version }),
        _ => {}
    }
    let lost = |what| {
        Err(if found.holds_key {
            OpeningRefusal::Evicted(what)
        } else {
            OpeningRefusal::Incompatible(what)
        })
    };
    if found.tables == FoundTables::Other {
        return lost("its tables are not those of a store");
    }
    let (Some(row), Some(version)) = (found.schema, version) else {
        return if found.schema.is_some() || found.holds_rows {
            lost("it does not state its version")
        } else if found.holds_key {
            lost("its tables are empty")
        } else {
            Ok(Opening::Initialize)
        };
    };
    if version < SCHEMA_VERSION {
        return if found.backup == Some(Backup::Superseded) {
            Err(OpeningRefusal::RolledBack)
        } else {
            Ok(Opening::Migrate { from: version })
        };
    }
    let Ok(row) = SchemaRow::decode(&SchemaRow::singleton_key(), row) else {
        return lost("its version row is not one of this release");
    };
    if found.key_store_id != Some(row.store_id.as_bytes()) {
        return lost("the key belongs to another store");
    }
    if found.was_started && !found.is_bound {
        return lost("the tables belong to no agent any more");
    }
    Ok(Opening::Reopen {
        unverified_since: row.migrated_from.filter(|_| !found.was_started),
    })
}

/// Decides whether the copy from before a migration may be put back: only while the migrated store was never started.
///
/// # Errors
/// [`RestoreRefusal`]; nothing may then be written.
pub fn judge_restore(found: &Found<'_>) -> Result<(), RestoreRefusal> {
    match found.backup {
        None => Err(RestoreRefusal::NoBackup),
        Some(Backup::Superseded) => Err(RestoreRefusal::Superseded),
        Some(Backup::Complete) => match judge(found) {
            Ok(Opening::Reopen {
                unverified_since: Some(_),
            }) => Ok(()),
            Ok(Opening::Migrate { .. }) => Err(RestoreRefusal::NothingChanged),
            _ => Err(RestoreRefusal::Superseded),
        },
    }
}

/// Why a backup is not put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreRefusal {
    /// There is none.
    #[error("there is no backup of this store")]
    NoBackup,
    /// The migration did not change the store: it is as it was.
    #[error("the store is as it was before the migration: open it with the release that wrote it")]
    NothingChanged,
    /// The migrated store was started, and may have signed: to go back would be to forget it.
    #[error(
        "the store was started since it was migrated: to put the backup back would forget what it signed. Reset the store and take a new name"
    )]
    Superseded,
}

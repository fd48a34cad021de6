//! The version of the layout, and the row that states it.

use conclave_harness::canonical_json;
use serde::{Deserialize, Serialize};

use super::{Key, Row, Table};

/// The layout this crate writes.
pub const SCHEMA_VERSION: u32 = 2;
/// The oldest layout that numbered migrations start from.
pub const SCHEMA_BASELINE: u32 = 1;

/// The one row of `schema_meta`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaRow {
    /// Always 1.
    pub singleton: u64,
    /// The layout the store is in.
    pub version: u32,
    /// The oldest layout the writer could migrate from.
    pub baseline: u32,
    /// Drawn when the store was made, and kept beside the agent's key too: a key whose store has another id, or none, must
    /// not sign. Since version 2.
    pub store_id: String,
    /// The version the store was migrated from, if this release did not make it.
    pub migrated_from: Option<u32>,
}

impl Row for SchemaRow {
    const TABLE: Table = Table::SchemaMeta;

    fn key(&self) -> Key {
        Self::singleton_key()
    }
}

impl SchemaRow {
    /// The key of the one row.
    pub fn singleton_key() -> Key {
        Key::new([1_u64])
    }

    /// The row a fresh store gets.
    pub fn fresh(store_id: &str) -> Self {
        SchemaRow {
            singleton: 1,
            version: SCHEMA_VERSION,
            baseline: SCHEMA_BASELINE,
            store_id: store_id.to_owned(),
            migrated_from: None,
        }
    }
}

/// What every version of the row says, whatever else it holds.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// The version a schema row of any release states; none when it is no schema row.
pub(crate) fn stated_version(row: &[u8]) -> Option<u32> {
    canonical_json::read::<Versioned>(row).ok().map(|row| row.version)
}

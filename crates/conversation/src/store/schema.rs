//! The version of the layout, and what to do with a store of another one.

use serde::{Deserialize, Serialize};

use super::{Key, Row, Table};

/// The layout this crate writes.
pub const SCHEMA_VERSION: u32 = 1;
/// The oldest layout that numbered migrations start from. No migration is registered yet.
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
    pub fn current() -> Self {
        SchemaRow {
            singleton: 1,
            version: SCHEMA_VERSION,
            baseline: SCHEMA_BASELINE,
        }
    }
}

/// What a store is, judged before anything in it is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Absent or empty: to be initialised.
    Empty,
    /// In the current layout: to be opened.
    Current,
    /// Written by a newer release. Left untouched; surfaced as `newer-schema`.
    Newer,
    /// Older than the migration baseline. Left untouched; surfaced as `pre-reset`.
    BelowBaseline,
    /// Not one of ours. Left untouched; surfaced as `incompatible`.
    Unrecognized,
}

/// Judges a store from its version row and from whether it holds anything at all.
pub fn judge_layout(version_row: Option<&[u8]>, holds_rows: bool) -> Layout {
    let Some(bytes) = version_row else {
        return if holds_rows {
            Layout::Unrecognized
        } else {
            Layout::Empty
        };
    };
    match SchemaRow::decode(&SchemaRow::singleton_key(), bytes) {
        Err(_) => Layout::Unrecognized,
        Ok(row) if row.version > SCHEMA_VERSION => Layout::Newer,
        Ok(row) if row.version < SCHEMA_BASELINE => Layout::BelowBaseline,
        Ok(_) => Layout::Current,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(version: u32) -> Vec<u8> {
        SchemaRow {
            singleton: 1,
            version,
            baseline: version,
        }
        .encode()
    }

    #[test]
    fn a_store_is_created_reopened_or_left_alone_for_one_of_three_reasons() {
        assert_eq!(judge_layout(None, false), Layout::Empty);
        assert_eq!(
            judge_layout(Some(&SchemaRow::current().encode()), true),
            Layout::Current
        );
        assert_eq!(judge_layout(Some(&row(SCHEMA_VERSION + 1)), true), Layout::Newer);
        assert_eq!(
            judge_layout(Some(&row(SCHEMA_BASELINE - 1)), true),
            Layout::BelowBaseline
        );
        assert_eq!(judge_layout(None, true), Layout::Unrecognized);
        assert_eq!(judge_layout(Some(b"{}"), true), Layout::Unrecognized);
    }
}

//! The numbered migrations: one file each, from one version to the next.
//!
//! A migration is pure: the rows of the old layout in, the writes that turn them into the next one out. A store runs all
//! that are due in one transaction, after [`admit_outbox`](crate::engine::admit_outbox) admitted what waits to be sent and a
//! complete copy of the store was made, and verifies the result as at every start before anything is signed.

mod v1_to_v2;

use super::{RowError, Snapshot, Write};

/// What migrations may need beside the rows.
#[derive(Clone, Copy, Debug)]
pub struct Supplies<'a> {
    /// A fresh store id.
    pub store_id: &'a str,
}

/// One migration.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// The version it starts from; it leads to the one after.
    pub from: u32,
    /// What it writes.
    pub migrate: fn(&Snapshot, Supplies<'_>) -> Result<Vec<Write>, RowError>,
}

/// Every migration, in order. It begins at [`SCHEMA_BASELINE`](super::SCHEMA_BASELINE) and ends at
/// [`SCHEMA_VERSION`](super::SCHEMA_VERSION).
pub const MIGRATIONS: [Migration; 1] = [v1_to_v2::MIGRATION];

/// A migration that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the migration from layout {from} to {to} failed: {source}", to = from + 1)]
pub struct MigrationError {
    /// The version it starts from.
    pub from: u32,
    /// The row that stopped it.
    pub source: RowError,
}

/// The writes that turn a store of version `from` into one of this release's version, to be committed together.
///
/// # Errors
/// [`MigrationError`] for the first migration that finds a row it cannot read. Nothing may then be written.
pub fn migrate(rows: &Snapshot, from: u32, supplies: Supplies<'_>) -> Result<Vec<Write>, MigrationError> {
    run(&MIGRATIONS, rows, from, supplies)
}

fn run(
    migrations: &[Migration],
    rows: &Snapshot,
    from: u32,
    supplies: Supplies<'_>,
) -> Result<Vec<Write>, MigrationError> {
    let due: Vec<_> = migrations
        .iter()
        .filter(|migration| migration.from >= from)
        .collect();
    let mut current = rows.clone();
    let mut writes = Vec::new();
    for migration in due {
        let more = (migration.migrate)(&current, supplies).map_err(|source| MigrationError {
            from: migration.from,
            source,
        })?;
        current.apply(&more);
        writes.extend(more);
    }
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use super::super::{Key, SCHEMA_BASELINE, SCHEMA_VERSION, Table};
    use super::*;

    #[test]
    fn the_migrations_lead_from_the_baseline_to_the_current_version_without_a_gap() {
        let from: Vec<u32> = MIGRATIONS.iter().map(|migration| migration.from).collect();
        assert_eq!(from, (SCHEMA_BASELINE..SCHEMA_VERSION).collect::<Vec<_>>());
    }

    fn put(text: &'static str) -> Vec<Write> {
        vec![Write::Put {
            table: Table::SchemaMeta,
            key: Key::new([1_u64]),
            bytes: text.into(),
        }]
    }

    // CONV-G14
    #[test]
    fn each_migration_sees_what_those_before_it_wrote_and_one_that_fails_yields_no_write_at_all() {
        let first = Migration {
            from: 7,
            migrate: |_, _| Ok(put("first")),
        };
        let second = Migration {
            from: 8,
            migrate: |rows, _| {
                assert_eq!(
                    rows.bytes(Table::SchemaMeta, &Key::new([1_u64])),
                    Some(&b"first"[..])
                );
                Ok(put("second"))
            },
        };
        let failing = Migration {
            from: 9,
            migrate: |_, _| {
                Err(RowError {
                    table: Table::Anchors,
                    key: Key::new(["a"]),
                    what: "spoilt".to_owned(),
                })
            },
        };
        let supplies = Supplies { store_id: "id" };
        let rows = Snapshot::new();
        let both = run(&[first, second], &rows, 7, supplies).unwrap();
        assert_eq!(both, [put("first"), put("second")].concat());
        assert_eq!(run(&[first, second], &rows, 9, supplies), Ok(Vec::new()));
        let failed = run(&[first, second, failing], &rows, 7, supplies).unwrap_err();
        assert_eq!((failed.from, failed.source.table), (9, Table::Anchors));
    }
}

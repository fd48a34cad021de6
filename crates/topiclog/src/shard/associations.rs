//! Which inboxes an identifier belongs to: one row for each that ever added it, with what became of it last (API-270).
//!
//! A row is changed by the identity updates of its inbox alone. Updates of one inbox have rising sequence ids, so of two
//! changes the one with the greater id is the later, in whatever order they are written: a publish that is applied late
//! undoes nothing.

use conclave_proto::conclave::internal::v1::Association;
use conclave_sql::{Sql, SqlError, Value};

pub(super) const TABLE: &str = "CREATE TABLE association (
    key BLOB NOT NULL,
    inbox BLOB NOT NULL,
    seq INTEGER NOT NULL,
    is_live INTEGER NOT NULL,
    PRIMARY KEY (key, inbox)
) WITHOUT ROWID";

/// Finds the latest live one whatever number of inboxes had the identifier.
pub(super) const LIVE_INDEX: &str =
    "CREATE INDEX association_live ON association (key, seq) WHERE is_live = 1";

const WRITE: &str = "INSERT INTO association (key, inbox, seq, is_live) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (key, inbox) DO UPDATE SET seq = ?3, is_live = ?4 WHERE seq < ?3";

/// The inbox with the latest live association of each key of a list; empty where there is none.
pub(super) const LATEST: &str = "SELECT asked.key, \
     coalesce((SELECT inbox FROM association WHERE association.key = unhex(asked.value) AND is_live = 1 \
      ORDER BY seq DESC LIMIT 1), x'') \
     FROM json_each(?1) AS asked";

/// Writes a change that the update with this sequence id makes; 0 when that update was stored before, and the change
/// with it.
pub(super) fn write(sql: &impl Sql, association: &Association, sequence_id: u64) -> Result<(), SqlError> {
    if sequence_id == 0 {
        return Ok(());
    }
    sql.execute(
        WRITE,
        &[
            association.key.as_ref().into(),
            association.inbox.as_ref().into(),
            Value::integer(sequence_id)?,
            association.is_live.into(),
        ],
    )
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use conclave_sql::native::Database;

    use super::*;
    use crate::shard::read::topics_to_json;

    fn change(inbox: &'static [u8], is_live: bool) -> Association {
        Association {
            key: Bytes::from_static(b"key"),
            inbox: Bytes::from_static(inbox),
            is_live,
            envelope: 0,
        }
    }

    fn latest(database: &Database) -> Vec<u8> {
        let keys = topics_to_json(&[Bytes::from_static(b"key")]);
        let rows = database.query(LATEST, &[keys.into()]).expect("rows");
        rows[0].blob(1).expect("an inbox").to_vec()
    }

    fn table() -> Database {
        let database = Database::in_memory().expect("a database");
        for statement in [TABLE, LIVE_INDEX] {
            database.execute(statement, &[]).expect("a table");
        }
        database
    }

    // API-270
    #[test]
    fn changes_have_the_order_of_their_ids_whenever_they_are_written() {
        let changes = [
            (change(b"a", true), 1),
            (change(b"b", true), 2),
            (change(b"b", false), 3),
            (change(b"a", false), 4),
            (change(b"a", true), 5),
        ];
        for rotation in 0..changes.len() {
            let database = table();
            let mut order: Vec<_> = changes.iter().collect();
            order.rotate_left(rotation);
            for (association, id) in order {
                write(&database, association, *id).expect("written");
            }
            assert_eq!(latest(&database), b"a", "{rotation}");
            write(&database, &change(b"a", false), 6).expect("written");
            assert_eq!(latest(&database), b"");
        }
    }

    // API-222
    #[test]
    fn the_change_of_an_update_that_was_stored_before_is_not_made_again() {
        let database = table();
        write(&database, &change(b"a", true), 1).expect("written");
        write(&database, &change(b"a", false), 0).expect("skipped");
        assert_eq!(latest(&database), b"a");
    }

    #[test]
    fn the_latest_live_association_is_found_by_the_index() {
        let database = table();
        let plan = database
            .query(&format!("EXPLAIN QUERY PLAN {LATEST}"), &["[]".into()])
            .expect("a plan");
        let uses = |row: &conclave_sql::Row| row.text(3).is_ok_and(|text| text.contains("association_live"));
        assert!(plan.iter().any(uses));
    }
}

//! The schema of an object's database and its migrations. Depends on `sql` alone.
//!
//! Each object keeps the versions it has applied in a table of its own, because a Durable Object has no
//! `user_version`.

use conclave_sql::{Sql, SqlError};

/// Why an object cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The database failed or holds what it should not.
    #[error("the storage of the object cannot be opened: {0}")]
    Storage(#[from] SqlError),
    /// The database was written by a later build.
    #[error("the storage of the object has schema version {found}, and this build knows up to {known}")]
    LaterSchema {
        /// The version found.
        found: u64,
        /// The latest version of this build.
        known: u64,
    },
    /// The object's shard index is not below the shard count.
    #[error("shard {index} does not exist among {shard_count} shards")]
    NoSuchShard {
        /// The index of the object.
        index: u32,
        /// The configured shard count.
        shard_count: u32,
    },
}

impl OpenError {
    /// The encoded answer to every call to an object that cannot be opened: UNAVAILABLE, with the reason.
    #[must_use]
    pub fn answer(&self) -> Vec<u8> {
        crate::answer::encode(
            Err(conclave_grpc_web::Status::unavailable(self.to_string())),
            None,
        )
    }
}

/// One version of a schema: the statements that lead to it from the version before.
pub(crate) type Migration = &'static [&'static str];

/// Brings the database to the last of `migrations`, each in one transaction.
pub(crate) fn migrate(sql: &impl Sql, migrations: &[Migration]) -> Result<(), OpenError> {
    sql.execute(
        "CREATE TABLE IF NOT EXISTS migration (version INTEGER PRIMARY KEY)",
        &[],
    )?;
    let rows = sql.query("SELECT coalesce(max(version), 0) FROM migration", &[])?;
    let found = rows.first().map_or(Ok(0), |row| row.unsigned(0))?;
    let known = migrations.len() as u64;
    if found > known {
        return Err(OpenError::LaterSchema { found, known });
    }
    for (version, statements) in (1u32..).zip(migrations) {
        if u64::from(version) <= found {
            continue;
        }
        sql.transaction(|| {
            statements
                .iter()
                .try_for_each(|statement| sql.execute(statement, &[]))?;
            sql.execute("INSERT INTO migration (version) VALUES (?)", &[version.into()])
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use conclave_sql::native::Database;

    use super::*;

    const FIRST: Migration = &["CREATE TABLE a (x INTEGER)"];
    const SECOND: Migration = &["CREATE TABLE b (x INTEGER)", "INSERT INTO b VALUES (1)"];

    #[test]
    fn each_version_is_applied_once_and_a_later_schema_is_refused() {
        let database = Database::in_memory().expect("a database");
        migrate(&database, &[FIRST]).expect("the first version");
        migrate(&database, &[FIRST, SECOND]).expect("the second version");
        migrate(&database, &[FIRST, SECOND]).expect("nothing to do");
        assert_eq!(database.query("SELECT x FROM b", &[]).expect("rows").len(), 1);
        assert_eq!(
            migrate(&database, &[FIRST]),
            Err(OpenError::LaterSchema { found: 2, known: 1 })
        );
    }

    #[test]
    fn a_failed_version_leaves_nothing_behind() {
        let database = Database::in_memory().expect("a database");
        assert!(migrate(&database, &[&["CREATE TABLE c (x INTEGER)", "nonsense"]]).is_err());
        assert!(database.query("SELECT * FROM c", &[]).is_err());
        assert_eq!(migrate(&database, &[FIRST]), Ok(()));
    }
}

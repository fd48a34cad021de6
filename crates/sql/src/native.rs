//! SQLite in this process, for native tests and the simulation.

use std::{cell::Cell, path::Path};

use rusqlite::{
    Connection, ErrorCode,
    backup::{Backup, StepResult},
    types::{ToSqlOutput, ValueRef},
};

use crate::{Integer, Row, Sql, SqlError, Value};

/// What a backup takes to mean everything at once.
const ALL_PAGES: i32 = -1;

/// Statements kept prepared: more than one object has.
const PREPARED_STATEMENTS: usize = 128;

/// An SQLite database, in memory or in a file.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    depth: Cell<u32>,
    rows_written: Cell<u64>,
}

impl Database {
    /// A fresh database in memory.
    ///
    /// # Errors
    /// When SQLite cannot allocate one.
    pub fn in_memory() -> Result<Self, SqlError> {
        Connection::open_in_memory().map(Self::over).map_err(from_sqlite)
    }

    /// The database in the file at `path`, created where it is missing.
    ///
    /// # Errors
    /// When the file cannot be opened or is not a database.
    pub fn open(path: &Path) -> Result<Self, SqlError> {
        Connection::open(path).map(Self::over).map_err(from_sqlite)
    }

    /// A database in memory that holds what this one does. Not within a transaction.
    ///
    /// # Errors
    /// When SQLite cannot allocate one, or a transaction is open.
    pub fn copy(&self) -> Result<Self, SqlError> {
        let mut connection = Connection::open_in_memory().map_err(from_sqlite)?;
        let copied = Backup::new(&self.connection, &mut connection)
            .and_then(|backup| backup.step(ALL_PAGES))
            .map_err(from_sqlite)?;
        match copied {
            StepResult::Done => Ok(Self::over(connection)),
            other => Err(SqlError::Database {
                message: format!("the database cannot be copied now: {other:?}"),
            }),
        }
    }

    fn over(connection: Connection) -> Self {
        connection.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS);
        Self {
            connection,
            depth: Cell::new(0),
            rows_written: Cell::new(0),
        }
    }

    fn control(&self, statement: &str) -> Result<(), SqlError> {
        let mut prepared = self.connection.prepare_cached(statement).map_err(from_sqlite)?;
        prepared.execute([]).map(drop).map_err(from_sqlite)
    }
}

impl Sql for Database {
    fn query(&self, statement: &str, parameters: &[Value]) -> Result<Vec<Row>, SqlError> {
        let mut prepared = self.connection.prepare_cached(statement).map_err(from_sqlite)?;
        let columns = prepared.column_count();
        let mut found = prepared
            .query(rusqlite::params_from_iter(parameters))
            .map_err(from_sqlite)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(from_sqlite)? {
            let values = (0..columns)
                .map(|column| from_column(row.get_ref(column).map_err(from_sqlite)?, column))
                .collect::<Result<_, _>>()?;
            rows.push(Row::new(values));
        }
        drop(found);
        if !prepared.readonly() {
            self.rows_written
                .set(self.rows_written.get() + self.connection.changes());
        }
        Ok(rows)
    }

    fn transaction<T, E: From<SqlError>>(&self, body: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let depth = self.depth.get();
        self.control(&format!("SAVEPOINT nested_{depth}"))?;
        self.depth.set(depth + 1);
        let outcome = body();
        self.depth.set(depth);
        match outcome {
            Ok(value) => {
                self.control(&format!("RELEASE nested_{depth}"))?;
                Ok(value)
            }
            Err(error) => {
                self.control(&format!("ROLLBACK TO nested_{depth}"))?;
                self.control(&format!("RELEASE nested_{depth}"))?;
                Err(error)
            }
        }
    }

    /// Table rows only: SQLite does not count index rows here, a Durable Object does.
    fn rows_written(&self) -> u64 {
        self.rows_written.get()
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(value.get()),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
            Self::Blob(value) => ValueRef::Blob(value),
        }))
    }
}

fn from_column(value: ValueRef<'_>, column: usize) -> Result<Value, SqlError> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(Integer::try_from(i128::from(value))?),
        ValueRef::Real(_) => {
            return Err(SqlError::Shape {
                column,
                expected: "an exact value",
                found: "a floating-point number",
            });
        }
        ValueRef::Text(value) => Value::Text(
            std::str::from_utf8(value)
                .map_err(|_| SqlError::Shape {
                    column,
                    expected: "UTF-8 text",
                    found: "other bytes",
                })?
                .to_owned(),
        ),
        ValueRef::Blob(value) => Value::Blob(value.to_vec()),
    })
}

fn from_sqlite(error: rusqlite::Error) -> SqlError {
    let message = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => SqlError::Constraint { message },
        _ => SqlError::Database { message },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> Database {
        let database = Database::in_memory().expect("a database in memory");
        database
            .execute("CREATE TABLE number (value INTEGER PRIMARY KEY)", &[])
            .expect("a table");
        database
    }

    fn count(database: &Database) -> i64 {
        database.query("SELECT count(*) FROM number", &[]).expect("rows")[0]
            .integer(0)
            .expect("a count")
    }

    #[test]
    fn a_failed_transaction_leaves_nothing_behind() {
        let database = numbers();
        let outcome: Result<(), SqlError> = database.transaction(|| {
            database.execute("INSERT INTO number VALUES (?)", &[1.into()])?;
            database.execute("INSERT INTO number VALUES (?)", &[1.into()])
        });
        assert!(matches!(outcome, Err(SqlError::Constraint { .. })));
        assert_eq!(count(&database), 0);
    }

    #[test]
    fn an_inner_failure_undoes_only_the_inner_transaction() {
        let database = numbers();
        let outcome: Result<(), SqlError> = database.transaction(|| {
            database.execute("INSERT INTO number VALUES (?)", &[1.into()])?;
            let inner: Result<(), SqlError> = database.transaction(|| {
                database.execute("INSERT INTO number VALUES (?)", &[2.into()])?;
                database.execute("INSERT INTO number VALUES (?)", &[1.into()])
            });
            assert!(inner.is_err());
            Ok(())
        });
        assert_eq!(outcome, Ok(()));
        assert_eq!(count(&database), 1);
    }

    #[test]
    fn integers_that_a_float_cannot_carry_are_refused() {
        assert!(Value::integer(crate::INTEGER_MAX).is_ok());
        assert_eq!(
            Value::integer(1_i64 << 53),
            Err(SqlError::IntegerRange { value: 1 << 53 })
        );
    }
}

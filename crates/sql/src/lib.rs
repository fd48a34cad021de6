#![forbid(unsafe_code)]
//! The few SQL operations the stores need, so that one body of SQL runs in a Durable Object and natively.
//!
//! A leaf crate. [`Sql`] is implemented by `edge` over a Durable Object's storage and, behind the feature
//! `rusqlite`, by [`native::Database`] for tests and the simulation. Statements are SQLite's dialect as a Durable
//! Object accepts it: at most 100 bound parameters and 5 compound arms, so lists travel as one JSON or BLOB value.

mod value;

#[cfg(feature = "rusqlite")]
pub mod native;

pub use value::{Integer, Row, Value};

/// The largest integer that crosses into SQL: above it a Durable Object silently binds a floating-point number.
pub const INTEGER_MAX: i64 = (1 << 53) - 1;

/// Why a statement or a reading of its rows failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// The database refused or could not run the statement.
    #[error("the database failed: {message}")]
    Database {
        /// The database's own words.
        message: String,
    },
    /// A uniqueness, check or foreign-key constraint refused the change.
    #[error("a constraint refused the change: {message}")]
    Constraint {
        /// The database's own words.
        message: String,
    },
    /// A row does not have the shape its reader expects: the stored data breaks an invariant of ours.
    #[error("column {column} is {found}, expected {expected}")]
    Shape {
        /// Index of the column in the row, from 0.
        column: usize,
        /// What the reader wanted.
        expected: &'static str,
        /// What was there.
        found: &'static str,
    },
    /// An integer outside ±[`INTEGER_MAX`].
    #[error("the integer {value} does not survive the crossing into SQL")]
    IntegerRange {
        /// The refused number.
        value: i128,
    },
}

/// A synchronous SQL database with one writer: the code that holds it.
///
/// Without an `.await` between them, consecutive calls are one atomic turn on every platform, but a returned error
/// does not undo what came before it: every change of more than one row goes through [`Sql::transaction`].
pub trait Sql {
    /// Runs one statement and returns all of its rows.
    ///
    /// # Errors
    /// [`SqlError::Constraint`] when a constraint refuses the change, [`SqlError::Database`] for everything else.
    fn query(&self, statement: &str, parameters: &[Value]) -> Result<Vec<Row>, SqlError>;

    /// Runs `body` so that all of its changes are kept if it returns `Ok` and none otherwise. May be nested.
    ///
    /// # Errors
    /// What `body` returns, or the failure to begin or commit.
    fn transaction<T, E: From<SqlError>>(&self, body: impl FnOnce() -> Result<T, E>) -> Result<T, E>;

    /// Runs a statement whose rows do not matter.
    ///
    /// # Errors
    /// As [`Sql::query`].
    fn execute(&self, statement: &str, parameters: &[Value]) -> Result<(), SqlError> {
        self.query(statement, parameters).map(drop)
    }

    /// Runs a statement whose only row is one value of bytes, which it copies as seldom as it can.
    ///
    /// # Errors
    /// As [`Sql::query`], and [`SqlError::Shape`] where the statement gives no such row.
    fn query_blob(&self, statement: &str, parameters: &[Value]) -> Result<Vec<u8>, SqlError> {
        match self.query(statement, parameters)?.into_iter().next() {
            Some(row) => row.into_blob(0),
            None => Err(SqlError::Shape {
                column: 0,
                expected: "bytes",
                found: "no row",
            }),
        }
    }

    /// Rows written since this database was opened, index rows included. What a Durable Object is billed for.
    fn rows_written(&self) -> u64;
}

//! SQLite as an object sees it: writes stand in one open transaction until they are made durable.

use std::cell::Cell;

use conclave_sql::{Row, Sql, SqlError, Value, native::Database};

pub(crate) struct Storage {
    database: Database,
    is_open: Cell<bool>,
    is_dirty: Cell<bool>,
    syncs: Cell<u64>,
}

impl Storage {
    pub(crate) fn new() -> Self {
        let database = Database::in_memory().expect("a database in memory");
        Self {
            database,
            is_open: Cell::new(false),
            is_dirty: Cell::new(false),
            syncs: Cell::new(0),
        }
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.is_dirty.get()
    }

    /// Something besides rows waits to become durable.
    pub(crate) fn touch(&self) {
        self.is_dirty.set(true);
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.get()
    }

    pub(crate) fn commit(&self) {
        if self.is_dirty.replace(false) {
            self.syncs.set(self.syncs.get() + 1);
        }
        self.end("COMMIT");
    }

    pub(crate) fn roll_back(&self) {
        self.is_dirty.set(false);
        self.end("ROLLBACK");
    }

    fn end(&self, statement: &str) {
        if self.is_open.replace(false) {
            self.database.execute(statement, &[]).expect("a transaction ends");
        }
    }

    fn begin(&self) -> Result<(), SqlError> {
        if !self.is_open.replace(true) {
            self.database.execute("BEGIN", &[])?;
        }
        Ok(())
    }
}

impl Sql for Storage {
    fn query(&self, statement: &str, parameters: &[Value]) -> Result<Vec<Row>, SqlError> {
        assert!(
            parameters.len() <= 100,
            "a Durable Object binds at most 100 parameters"
        );
        assert!(
            statement.len() <= 100_000,
            "a Durable Object takes at most 100 KB of SQL"
        );
        self.begin()?;
        if !statement.starts_with("SELECT") && !statement.starts_with("EXPLAIN") {
            self.is_dirty.set(true);
        }
        self.database.query(statement, parameters)
    }

    fn transaction<T, E: From<SqlError>>(&self, body: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        self.begin()?;
        self.database.transaction(body)
    }

    fn rows_written(&self) -> u64 {
        self.database.rows_written()
    }
}

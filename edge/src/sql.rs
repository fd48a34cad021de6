//! A Durable Object's database as a [`Sql`]. Depends on [`runtime`] and [`packed`].

use std::{cell::Cell, rc::Rc};

use conclave_sql::{Row, Sql, SqlError, Value};
use wasm_bindgen::JsValue;

use crate::{
    packed,
    runtime::{self, SqlStorage, Storage, describe},
};

/// What the runtime's messages about refused changes have in common, whichever the constraint.
const CONSTRAINT_FAILED: &str = "constraint failed";

/// The database of one object.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    storage: Storage,
    sql: SqlStorage,
    rows_written: Rc<Cell<u64>>,
}

impl Database {
    pub(crate) fn new(storage: Storage) -> Self {
        Self {
            sql: storage.sql(),
            storage,
            rows_written: Rc::default(),
        }
    }
}

impl Sql for Database {
    fn query(&self, statement: &str, parameters: &[Value]) -> Result<Vec<Row>, SqlError> {
        let rows = runtime::query_rows(&self.sql, statement, &packed::pack(parameters))
            .map_err(|error| refused(&error))?;
        let (written, rows) = packed::unpack(&rows.to_vec())?;
        self.rows_written.set(self.rows_written.get() + written);
        Ok(rows)
    }

    fn execute(&self, statement: &str, parameters: &[Value]) -> Result<(), SqlError> {
        let written = runtime::execute_statement(&self.sql, statement, &packed::pack(parameters))
            .map_err(|error| refused(&error))?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of rows"
        )]
        self.rows_written.set(self.rows_written.get() + written as u64);
        Ok(())
    }

    fn query_blob(&self, statement: &str, parameters: &[Value]) -> Result<Vec<u8>, SqlError> {
        let value = runtime::query_blob(&self.sql, statement, &packed::pack(parameters))
            .map_err(|error| refused(&error))?;
        value.map(|bytes| bytes.to_vec()).ok_or(SqlError::Shape {
            column: 0,
            expected: "bytes",
            found: "another value",
        })
    }

    fn transaction<T, E: From<SqlError>>(&self, body: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut body = Some(body);
        let mut outcome = None;
        let finished = self.storage.transaction_sync(&mut || {
            let result = body.take().map(|body| body());
            let kept = matches!(result, Some(Ok(_)));
            outcome = result;
            // Whatever is thrown undoes the transaction.
            if kept { Ok(()) } else { Err(JsValue::NULL) }
        });
        match (outcome, finished) {
            (Some(Ok(value)), Ok(())) => Ok(value),
            (Some(Err(error)), _) => Err(error),
            (Some(Ok(_)) | None, Err(error)) => Err(refused(&error).into()),
            (None, Ok(())) => Err(SqlError::Database {
                message: "the transaction did not run".to_owned(),
            }
            .into()),
        }
    }

    fn rows_written(&self) -> u64 {
        self.rows_written.get()
    }
}

fn refused(error: &JsValue) -> SqlError {
    let message = describe(error);
    if message.contains(CONSTRAINT_FAILED) {
        SqlError::Constraint { message }
    } else {
        SqlError::Database { message }
    }
}

//! A Durable Object's database as a [`Sql`]. Depends on [`runtime`](crate::runtime).

use std::{cell::Cell, rc::Rc};

use conclave_sql::{Row, Sql, SqlError, Value};
use js_sys::{Array, ArrayBuffer, Uint8Array};
use wasm_bindgen::{JsCast as _, JsValue};

use crate::runtime::{SqlStorage, Storage, describe};

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
        let bound: Array = parameters.iter().map(to_js).collect();
        let cursor = self
            .sql
            .exec(statement, &bound)
            .map_err(|error| refused(&error))?;
        let rows = cursor.raw().to_array().map_err(|error| refused(&error))?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of rows"
        )]
        self.rows_written
            .set(self.rows_written.get() + cursor.rows_written() as u64);
        rows.iter().map(|row| read_row(&row)).collect()
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

fn to_js(value: &Value) -> JsValue {
    match value {
        Value::Null => JsValue::NULL,
        #[allow(clippy::cast_precision_loss, reason = "an `Integer` is exact in a f64")]
        Value::Integer(number) => JsValue::from_f64(number.get() as f64),
        Value::Text(text) => JsValue::from_str(text),
        Value::Blob(bytes) => Uint8Array::from(bytes.as_slice()).into(),
    }
}

fn read_row(row: &JsValue) -> Result<Row, SqlError> {
    let columns = row.unchecked_ref::<Array>();
    columns
        .iter()
        .enumerate()
        .map(|(column, value)| read_column(column, &value))
        .collect::<Result<_, _>>()
        .map(Row::new)
}

fn read_column(column: usize, value: &JsValue) -> Result<Value, SqlError> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    if let Some(number) = value.as_f64() {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the fraction is checked, and Value::integer checks the range"
        )]
        return match number as i128 {
            #[allow(
                clippy::cast_precision_loss,
                clippy::float_cmp,
                reason = "exactness is what is asked"
            )]
            whole if whole as f64 == number => Value::integer(whole),
            _ => Err(SqlError::Shape {
                column,
                expected: "a whole number",
                found: "a fraction",
            }),
        };
    }
    if let Some(buffer) = value.dyn_ref::<ArrayBuffer>() {
        return Ok(Value::Blob(Uint8Array::new(buffer).to_vec()));
    }
    match value.as_string() {
        Some(text) => Ok(Value::Text(text)),
        None => Err(SqlError::Shape {
            column,
            expected: "an SQL value",
            found: "something else",
        }),
    }
}

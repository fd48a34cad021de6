//! Values that cross into SQL and back, and the rows they come back in.

use crate::{INTEGER_MAX, SqlError};

/// An integer within ±[`INTEGER_MAX`], the range every platform carries exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Integer(i64);

impl Integer {
    /// The number itself.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }
}

impl TryFrom<i128> for Integer {
    type Error = SqlError;

    fn try_from(value: i128) -> Result<Self, SqlError> {
        match i64::try_from(value) {
            Ok(fits) if (-INTEGER_MAX..=INTEGER_MAX).contains(&fits) => Ok(Self(fits)),
            _ => Err(SqlError::IntegerRange { value }),
        }
    }
}

impl From<u32> for Integer {
    fn from(value: u32) -> Self {
        Self(i64::from(value))
    }
}

/// One bound parameter or one column of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// An exact integer.
    Integer(Integer),
    /// UTF-8 text.
    Text(String),
    /// Bytes, at most 2 MB.
    Blob(Vec<u8>),
}

impl Value {
    /// An integer parameter.
    ///
    /// # Errors
    /// [`SqlError::IntegerRange`] outside ±[`INTEGER_MAX`].
    pub fn integer(value: impl Into<i128>) -> Result<Self, SqlError> {
        Integer::try_from(value.into()).map(Self::Integer)
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Integer(_) => "an integer",
            Self::Text(_) => "text",
            Self::Blob(_) => "a blob",
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Integer(Integer::from(u32::from(value)))
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Integer(Integer::from(value))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Self {
        Self::Blob(value.to_vec())
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Blob(value)
    }
}

/// One row, read column by column with the type the reader expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row(Vec<Value>);

impl Row {
    /// A row of these columns, in order.
    #[must_use]
    pub fn new(columns: Vec<Value>) -> Self {
        Self(columns)
    }

    fn column(&self, column: usize, expected: &'static str) -> Result<&Value, SqlError> {
        self.0.get(column).ok_or(SqlError::Shape {
            column,
            expected,
            found: "missing",
        })
    }

    fn wrong(column: usize, expected: &'static str, found: &Value) -> SqlError {
        SqlError::Shape {
            column,
            expected,
            found: found.kind(),
        }
    }

    /// The integer in `column`.
    ///
    /// # Errors
    /// [`SqlError::Shape`] when the column is missing or something else.
    pub fn integer(&self, column: usize) -> Result<i64, SqlError> {
        match self.column(column, "an integer")? {
            Value::Integer(value) => Ok(value.get()),
            other => Err(Self::wrong(column, "an integer", other)),
        }
    }

    /// The bytes in `column`, taken out of the row.
    ///
    /// # Errors
    /// [`SqlError::Shape`] when the column is missing or something else.
    pub fn into_blob(mut self, column: usize) -> Result<Vec<u8>, SqlError> {
        match self.0.get_mut(column) {
            Some(Value::Blob(bytes)) => Ok(std::mem::take(bytes)),
            _ => self.blob(column).map(<[u8]>::to_vec),
        }
    }

    /// The integer in `column`, which is never negative.
    ///
    /// # Errors
    /// [`SqlError::Shape`] when the column is missing, something else, or negative.
    pub fn unsigned(&self, column: usize) -> Result<u64, SqlError> {
        let value = self.integer(column)?;
        u64::try_from(value).map_err(|_| SqlError::Shape {
            column,
            expected: "an integer of at least 0",
            found: "a negative integer",
        })
    }

    /// The integer in `column`, or `None` for NULL.
    ///
    /// # Errors
    /// As [`Row::unsigned`].
    pub fn optional_unsigned(&self, column: usize) -> Result<Option<u64>, SqlError> {
        match self.column(column, "an integer or null")? {
            Value::Null => Ok(None),
            _ => self.unsigned(column).map(Some),
        }
    }

    /// The text in `column`.
    ///
    /// # Errors
    /// [`SqlError::Shape`] when the column is missing or something else.
    pub fn text(&self, column: usize) -> Result<&str, SqlError> {
        match self.column(column, "text")? {
            Value::Text(value) => Ok(value),
            other => Err(Self::wrong(column, "text", other)),
        }
    }

    /// The bytes in `column`.
    ///
    /// # Errors
    /// [`SqlError::Shape`] when the column is missing or something else.
    pub fn blob(&self, column: usize) -> Result<&[u8], SqlError> {
        match self.column(column, "a blob")? {
            Value::Blob(value) => Ok(value),
            other => Err(Self::wrong(column, "a blob", other)),
        }
    }

    /// Exactly `N` bytes in `column`.
    ///
    /// # Errors
    /// [`SqlError::Shape`] when the column is missing, something else, or of another length.
    pub fn array<const N: usize>(&self, column: usize) -> Result<[u8; N], SqlError> {
        self.blob(column)?.try_into().map_err(|_| SqlError::Shape {
            column,
            expected: "a blob of its fixed length",
            found: "a blob of another length",
        })
    }
}

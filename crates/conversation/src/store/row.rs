//! How a row becomes bytes and is found again.

use conclave_harness::canonical_json;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Key, Table, Write};

/// A row of one table.
pub trait Row: Serialize + DeserializeOwned {
    /// The table the row lives in.
    const TABLE: Table;

    /// Where in the table.
    fn key(&self) -> Key;

    /// The bytes that are stored.
    fn encode(&self) -> Vec<u8> {
        // Rows hold text, numbers and lists of them: their encoding cannot fail.
        serde_json::to_vec(self).expect("a row is made of text and numbers")
    }

    /// The write that stores this row.
    fn put(&self) -> Write {
        Write::Put {
            table: Self::TABLE,
            key: self.key(),
            bytes: self.encode(),
        }
    }

    /// The write that removes this row.
    fn delete(&self) -> Write {
        Write::Delete {
            table: Self::TABLE,
            key: self.key(),
        }
    }

    /// Reads a row back, and checks that it stands where its content says.
    fn decode(key: &Key, bytes: &[u8]) -> Result<Self, RowError> {
        let row: Self = canonical_json::read(bytes).map_err(|error| RowError {
            table: Self::TABLE,
            key: key.clone(),
            what: error.to_string(),
        })?;
        if row.key() != *key {
            return Err(RowError {
                table: Self::TABLE,
                key: key.clone(),
                what: format!("the row's content belongs at {}", row.key()),
            });
        }
        Ok(row)
    }
}

/// A stored row that cannot be one this crate wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the row {key} of {} is corrupt: {what}", table.name())]
pub struct RowError {
    /// The table.
    pub table: Table,
    /// The row's key.
    pub key: Key,
    /// What is wrong.
    pub what: String,
}

//! Everything a store holds, at one moment.

use super::{Key, Read, Row, RowError, Table, Write};
use crate::ordered::OrderedMap;

/// A complete, consistent copy of a store: what the engine is opened from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    tables: OrderedMap<Table, OrderedMap<Key, Vec<u8>>>,
}

impl Snapshot {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one stored row, as a store that fills a snapshot does.
    pub fn insert(&mut self, table: Table, key: Key, bytes: Vec<u8>) {
        self.tables.or_default(table).insert(key, bytes);
    }

    /// The stored bytes at `key`.
    pub fn bytes(&self, table: Table, key: &Key) -> Option<&[u8]> {
        self.tables.get(&table)?.get(key).map(Vec::as_slice)
    }

    /// The rows a read answers with.
    pub fn read(&self, read: &Read) -> Vec<(Key, Vec<u8>)> {
        match read {
            Read::Row(table, key) => self
                .bytes(*table, key)
                .map(|bytes| (key.clone(), bytes.to_vec()))
                .into_iter()
                .collect(),
            Read::Prefix(table, prefix) => self
                .tables
                .get(table)
                .into_iter()
                .flat_map(|rows| rows.from(prefix))
                .take_while(|(key, _)| key.starts_with(prefix))
                .map(|(key, bytes)| (key.clone(), bytes.clone()))
                .collect(),
        }
    }

    /// Every row of one table, in key order.
    pub fn rows<R: Row>(&self) -> Result<Vec<R>, RowError> {
        self.tables
            .get(&R::TABLE)
            .into_iter()
            .flatten()
            .map(|(key, bytes)| R::decode(key, bytes))
            .collect()
    }

    /// Every row of one table whose key begins with these parts, in key order.
    pub fn below<R: Row>(&self, prefix: &Key) -> Result<Vec<R>, RowError> {
        let rows = self
            .tables
            .get(&R::TABLE)
            .into_iter()
            .flat_map(|rows| rows.from(prefix));
        rows.take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, bytes)| R::decode(key, bytes))
            .collect()
    }

    /// The keys of one table, in order.
    pub fn keys(&self, table: Table) -> impl Iterator<Item = &Key> {
        self.tables.get(&table).into_iter().flat_map(OrderedMap::keys)
    }

    /// How many rows of one table have keys that begin with these parts.
    pub fn count_below(&self, table: Table, prefix: &Key) -> usize {
        let rows = self
            .tables
            .get(&table)
            .into_iter()
            .flat_map(|rows| rows.from(prefix));
        rows.take_while(|(key, _)| key.starts_with(prefix)).count()
    }

    /// The row at `key`.
    pub fn row<R: Row>(&self, key: &Key) -> Result<Option<R>, RowError> {
        self.bytes(R::TABLE, key)
            .map(|bytes| R::decode(key, bytes))
            .transpose()
    }

    /// Whether no table holds a row.
    pub fn is_empty(&self) -> bool {
        self.tables.values().all(OrderedMap::is_empty)
    }

    /// Applies committed writes.
    pub(crate) fn apply(&mut self, writes: &[Write]) {
        for write in writes {
            match write {
                Write::Put { table, key, bytes } => self.insert(*table, key.clone(), bytes.clone()),
                Write::Delete { table, key } => {
                    if let Some(rows) = self.tables.get_mut(table) {
                        rows.remove(key);
                    }
                }
            }
        }
    }
}

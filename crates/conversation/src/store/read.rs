//! What a transition asks of the store before it decides.

use super::{Key, Refusal, Row, Table, Write};
use crate::ordered::{OrderedMap, OrderedSet};

/// One read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// The row at this key, if there is one.
    Row(Table, Key),
    /// Every row whose key begins with these parts.
    Prefix(Table, Key),
}

/// The answers to a list of reads, all taken from one consistent state of the store.
///
/// A batch of transitions is decided over one read set: the writes of each are laid over it before the next decides.
#[derive(Clone, Debug, Default)]
pub struct ReadSet {
    asked: OrderedSet<Read>,
    rows: OrderedMap<(Table, Key), Vec<u8>>,
}

impl ReadSet {
    /// An empty set, to be filled with [`ReadSet::answer`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that `read` was answered with exactly these rows (none, when there are none).
    pub fn answer(&mut self, read: Read, rows: impl IntoIterator<Item = (Key, Vec<u8>)>) {
        let table = match &read {
            Read::Row(table, _) | Read::Prefix(table, _) => *table,
        };
        for (key, bytes) in rows {
            self.rows.insert((table, key), bytes);
        }
        self.asked.insert(read);
    }

    /// The row at `key`.
    pub(crate) fn get<R: Row>(&self, key: &Key) -> Result<Option<R>, Refusal> {
        self.require_asked(R::TABLE, key)?;
        match self.rows.get(&(R::TABLE, key.clone())) {
            Some(bytes) => Ok(Some(R::decode(key, bytes)?)),
            None => Ok(None),
        }
    }

    /// Every row below `prefix`, in key order.
    pub(crate) fn below<R: Row>(&self, prefix: &Key) -> Result<Vec<R>, Refusal> {
        if !self.asked.contains(&Read::Prefix(R::TABLE, prefix.clone())) {
            return Err(Refusal::NotRead {
                table: R::TABLE,
                key: prefix.clone(),
            });
        }
        self.rows
            .from(&(R::TABLE, prefix.clone()))
            .take_while(|((table, key), _)| *table == R::TABLE && key.starts_with(prefix))
            .map(|((_, key), bytes)| R::decode(key, bytes).map_err(Refusal::from))
            .collect()
    }

    /// Lays writes over the answers, so that the next transition of a batch sees them.
    pub(crate) fn overlay(&mut self, writes: &[Write]) {
        for write in writes {
            match write {
                Write::Put { table, key, bytes } => {
                    self.rows.insert((*table, key.clone()), bytes.clone());
                }
                Write::Delete { table, key } => {
                    self.rows.remove(&(*table, key.clone()));
                }
            }
        }
    }

    fn require_asked(&self, table: Table, key: &Key) -> Result<(), Refusal> {
        let answered = self.asked.contains(&Read::Row(table, key.clone()))
            || self.asked.iter().any(|read| matches!(read, Read::Prefix(asked, prefix) if *asked == table && key.starts_with(prefix)));
        if answered {
            Ok(())
        } else {
            Err(Refusal::NotRead {
                table,
                key: key.clone(),
            })
        }
    }
}

//! What is asked of a database inside a transaction, and how it answers.

use conclave_conversation::store::Key;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::JsValue;
use web_sys::{IdbRequest, IdbTransaction};

use super::connection::failure;
use super::failure::StoreFailure;
use super::keys;

/// The most rows of one page: what a page of the web can read without its user noticing.
pub(super) const PAGE_ROWS: u32 = 512;

/// One read inside a transaction, by the name of an object store.
pub(super) enum Lookup {
    /// The row at this key.
    Row(&'static str, Key),
    /// Every row whose key begins with these parts; all of them for the empty key.
    Below(&'static str, Key),
    /// The next rows after a key, or the first ones: at most [`PAGE_ROWS`].
    Page(&'static str, Option<Key>),
}

/// One change inside a transaction.
pub(super) enum Change {
    /// Store the bytes at the key.
    Put(&'static str, Key, Vec<u8>),
    /// Remove the row at the key.
    Delete(&'static str, Key),
    /// Remove every row.
    Clear(&'static str),
}

/// The rows one lookup found.
pub(super) type Rows = Vec<(Key, Vec<u8>)>;

/// The requests of one lookup: its values, and for a range its keys.
pub(super) struct PendingLookup {
    key: Option<Key>,
    values: IdbRequest,
    keys: Option<IdbRequest>,
}

impl PendingLookup {
    pub(super) fn issue(transaction: &IdbTransaction, lookup: Lookup) -> Result<Self, JsValue> {
        match lookup {
            Lookup::Row(store, key) => {
                let values = transaction.object_store(store)?.get(&keys::to_js(&key))?;
                Ok(PendingLookup {
                    key: Some(key),
                    values,
                    keys: None,
                })
            }
            Lookup::Below(store, prefix) => {
                let (store, range) = (transaction.object_store(store)?, keys::range_below(&prefix)?);
                let values = store.get_all_with_key(&range)?;
                let keys = Some(store.get_all_keys_with_key(&range)?);
                Ok(PendingLookup {
                    key: None,
                    values,
                    keys,
                })
            }
            Lookup::Page(store, after) => {
                let (store, range) = (
                    transaction.object_store(store)?,
                    keys::range_after(after.as_ref())?,
                );
                let values = store.get_all_with_key_and_limit(&range, PAGE_ROWS)?;
                let keys = Some(store.get_all_keys_with_key_and_limit(&range, PAGE_ROWS)?);
                Ok(PendingLookup {
                    key: None,
                    values,
                    keys,
                })
            }
        }
    }

    pub(super) fn last_request(&self) -> &IdbRequest {
        self.keys.as_ref().unwrap_or(&self.values)
    }

    pub(super) fn answer(&self) -> Result<Rows, StoreFailure> {
        let values = self.values.result().map_err(failure)?;
        match (&self.key, &self.keys) {
            (Some(_), _) if values.is_undefined() => Ok(Vec::new()),
            (Some(key), _) => Ok(vec![(key.clone(), keys::bytes_from_js(&values)?)]),
            (None, Some(keys)) => Array::from(&keys.result().map_err(failure)?)
                .iter()
                .zip(Array::from(&values).iter())
                .map(|(key, value)| Ok((keys::from_js(&key)?, keys::bytes_from_js(&value)?)))
                .collect(),
            (None, None) => Ok(Vec::new()),
        }
    }
}

pub(super) fn write(transaction: &IdbTransaction, changes: Vec<Change>) -> Result<(), StoreFailure> {
    for change in changes {
        match change {
            Change::Put(store, key, bytes) => transaction.object_store(store).and_then(|store| {
                store.put_with_key(&Uint8Array::from(bytes.as_slice()), &keys::to_js(&key))
            }),
            Change::Delete(store, key) => transaction
                .object_store(store)
                .and_then(|store| store.delete(&keys::to_js(&key))),
            Change::Clear(store) => transaction.object_store(store).and_then(|store| store.clear()),
        }
        .map_err(failure)?;
    }
    Ok(())
}

//! The store as the cases of `conclave-store-suite` use a store, and the cases as a page runs them. Built for the tests
//! alone, with the feature `store-suite`; never in the package.
//!
//! A case that fails ends this instance of the module, as a panic does: the page hears the message on its console.

use std::cell::Cell;

use conclave_conversation::store::{CommitError, Key, Outcome, Read, Snapshot, Table, Transition};
use conclave_store_suite::{CASES, Store};
use wasm_bindgen::prelude::*;

use super::requests::Change;
use super::{IndexedDbStore, StoreFailure, StoreFault};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn say(message: &str);

    /// Of the page: lets the disk be full for the next batch, after its first row.
    #[wasm_bindgen(js_name = fillDiskForNextBatch)]
    fn fill_disk_for_next_batch();
}

thread_local! {
    /// How many stores this page made. Each has a name of its own.
    static MADE: Cell<u32> = const { Cell::new(0) };
}

/// The name of every case.
#[wasm_bindgen(js_name = storeSuiteCases)]
#[must_use]
pub fn store_suite_cases() -> Vec<String> {
    CASES.iter().map(|&case| case.to_owned()).collect()
}

/// Runs one case. Says whether there is a case of that name.
#[wasm_bindgen(js_name = runStoreSuiteCase)]
pub async fn run_store_suite_case(case: String) -> bool {
    std::panic::set_hook(Box::new(|panic| say(&panic.to_string())));
    conclave_store_suite::run::<IndexedDbStore>(&case).await
}

impl Store for IndexedDbStore {
    async fn fresh() -> Self {
        let number = MADE.get();
        MADE.set(number + 1);
        // A store that is made tells its observer nothing.
        let observer = JsValue::UNDEFINED.unchecked_into();
        let opened = IndexedDbStore::open(&format!("store {number} of a case"), &observer).await;
        opened.expect("a fresh store opens").0
    }

    async fn commit(&self, transitions: Vec<Transition>) -> Result<Vec<Outcome>, CommitError> {
        self.apply(transitions).await.map_err(|failure| match failure {
            StoreFailure::Refused { index, refusal } => CommitError::Refused { index, refusal },
            StoreFailure::Fault {
                fault: StoreFault::QuotaExceeded,
                ..
            } => CommitError::Failed,
            fault => panic!("the store failed by itself: {fault}"),
        })
    }

    async fn read(&self, reads: Vec<Read>) -> Snapshot {
        IndexedDbStore::read(self, reads).await.expect("a store answers")
    }

    async fn snapshot(&self) -> Snapshot {
        self.load().await.expect("a store can be copied")
    }

    async fn put(&self, rows: Vec<(Table, Key, Vec<u8>)>) {
        let puts = rows
            .into_iter()
            .map(|(table, key, bytes)| Change::Put(table.name(), key, bytes));
        let written = self
            .connection
            .write(&Table::ALL.map(Table::name), puts.collect())
            .await;
        written.expect("rows can be put there by hand");
    }

    fn fail_next_commit(&self) {
        fill_disk_for_next_batch();
    }
}

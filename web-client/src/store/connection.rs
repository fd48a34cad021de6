//! A connection to one IndexedDB database, and transactions on it.
//!
//! Written on the browser's own objects. A crate of futures over them (`indexed_db_futures` was looked at) continues a
//! transaction in a later microtask, for every read; here the reads, the decision and the writes are one callback deep, so
//! that nothing can come between them and a transaction cannot end early. It is also a quarter of the code size.

use std::cell::RefCell;
use std::rc::Rc;

use futures_channel::oneshot;
use js_sys::{Array, Function};
use wasm_bindgen::prelude::*;
use web_sys::{Event, IdbDatabase, IdbOpenDbRequest, IdbRequest, IdbTransaction};

use super::failure::{StoreFailure, StoreFault};
use super::requests::{Change, Lookup, PendingLookup, Rows, write};
use crate::platform::{describe, exception_name, globals};

#[wasm_bindgen]
extern "C" {
    /// `IDBDatabase`, for the one call that `web-sys` offers without its options only.
    #[wasm_bindgen(extends = IdbDatabase)]
    type DatabaseWithOptions;

    #[wasm_bindgen(method, catch, js_name = transaction)]
    fn transaction_with_options(
        this: &DatabaseWithOptions,
        stores: &Array,
        mode: &str,
        options: &JsValue,
    ) -> Result<IdbTransaction, JsValue>;
}

/// Whether a transaction may write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It may not.
    Read,
    /// It may; on completion the changes are on the disk, not just handed to the system.
    WriteDurably,
}

/// An open database.
pub(super) struct Connection {
    database: IdbDatabase,
    _on_version_change: Closure<dyn FnMut()>,
    _on_close: Closure<dyn FnMut()>,
}

impl Connection {
    /// Opens the database as it is, or creates it with these object stores.
    ///
    /// The receiver hears once when the browser or another page takes the database away.
    pub(super) async fn open(
        name: &str,
        stores: &[&'static str],
    ) -> Result<(Self, oneshot::Receiver<StoreFailure>), StoreFailure> {
        let factory = globals::indexed_db().ok_or_else(|| {
            StoreFailure::new(
                StoreFault::IndexedDbUnavailable,
                "this browser offers no IndexedDB here",
            )
        })?;
        let database = opened(factory.open(name).map_err(failure)?, stores).await?;
        let database = if database.object_store_names().length() == 0 {
            // A database somebody created and left empty. Only an upgrade may give it object stores.
            let version = database.version() as u32 + 1;
            database.close();
            opened(factory.open_with_u32(name, version).map_err(failure)?, stores).await?
        } else {
            database
        };
        Ok(Self::watch(database))
    }

    fn watch(database: IdbDatabase) -> (Self, oneshot::Receiver<StoreFailure>) {
        let (taken, receiver) = oneshot::channel();
        let taken = Rc::new(RefCell::new(Some(taken)));
        let tell = move |message: &str| {
            if let Some(taken) = taken.borrow_mut().take() {
                // Nobody listens any more when the endpoint is closing anyway.
                let _ = taken.send(StoreFailure::new(StoreFault::Closed, message));
            }
        };
        let on_version_change = Closure::new({
            let (database, tell) = (database.clone(), tell.clone());
            move || {
                database.close();
                tell("another page upgrades or deletes the database");
            }
        });
        let on_close = Closure::new(move || tell("the browser closed the database"));
        database.set_onversionchange(Some(function(&on_version_change)));
        database.set_onclose(Some(function(&on_close)));
        (
            Connection {
                database,
                _on_version_change: on_version_change,
                _on_close: on_close,
            },
            receiver,
        )
    }

    /// The names of the object stores that are there, sorted.
    pub(super) fn store_names(&self) -> Vec<String> {
        let names = self.database.object_store_names();
        (0..names.length()).filter_map(|index| names.get(index)).collect()
    }

    /// Reads, decides and writes in one transaction, and waits until it is complete.
    ///
    /// `decide` sees the answer to each lookup in turn. When it fails nothing is written. Dropping the future before its
    /// answers have come writes nothing either; dropping it later leaves it open what was written.
    pub(super) async fn transact<T: 'static>(
        &self,
        mode: Mode,
        stores: &[&'static str],
        lookups: Vec<Lookup>,
        decide: impl FnOnce(Vec<Rows>) -> Result<(T, Vec<Change>), StoreFailure> + 'static,
    ) -> Result<T, StoreFailure> {
        let result = Rc::new(RefCell::new(None));
        let slot = Rc::clone(&result);
        let decide = Box::new(move |answers: Vec<Rows>| {
            let (value, changes) = decide(answers)?;
            *slot.borrow_mut() = Some(value);
            Ok(changes)
        });
        self.run(mode, stores, lookups, decide).await?;
        let value = result.borrow_mut().take();
        value.ok_or_else(|| StoreFailure::new(StoreFault::Persistence, "a transaction ended undecided"))
    }

    /// [`transact`](Self::transact) without the type of its result, so that it is compiled once.
    async fn run(
        &self,
        mode: Mode,
        stores: &[&'static str],
        lookups: Vec<Lookup>,
        decide: Decide,
    ) -> Result<(), StoreFailure> {
        let transaction = self.begin(mode, stores)?;
        let (done, completion) = oneshot::channel();
        let done = Rc::new(RefCell::new(Some(done)));
        let mut handlers = Handlers::set(&transaction, &done);
        let requests: Vec<_> = lookups
            .into_iter()
            .map(|lookup| PendingLookup::issue(&transaction, lookup))
            .collect::<Result<_, _>>()
            .map_err(failure)?;
        let last = requests.last().map(|pending| pending.last_request().clone());
        let decided = Rc::new(RefCell::new(Ok(())));
        let decide_and_write = {
            let (transaction, decided) = (transaction.clone(), Rc::clone(&decided));
            move || {
                let answers = requests
                    .iter()
                    .map(PendingLookup::answer)
                    .collect::<Result<Vec<_>, _>>();
                let outcome = answers
                    .and_then(decide)
                    .and_then(|changes| write(&transaction, changes));
                if outcome.is_err() {
                    // It may have ended by itself already; either way nothing is kept.
                    let _ = transaction.abort();
                }
                *decided.borrow_mut() = outcome;
            }
        };
        // Requests of a transaction are answered in the order they were made, so the last answer is the end of all.
        match last {
            Some(last) => handlers.answered(last, Closure::once(decide_and_write)),
            None => decide_and_write(),
        }
        let is_complete = completion.await.unwrap_or(false);
        drop(handlers);
        let decided = std::mem::replace(&mut *decided.borrow_mut(), Ok(()));
        decided?;
        if is_complete {
            Ok(())
        } else {
            Err(transaction_failure(&transaction))
        }
    }

    fn begin(&self, mode: Mode, stores: &[&'static str]) -> Result<IdbTransaction, StoreFailure> {
        let names: Array = stores.iter().map(|name| JsValue::from_str(name)).collect();
        let options = js_sys::Object::new();
        let mode = match mode {
            Mode::Read => "readonly",
            Mode::WriteDurably => {
                js_sys::Reflect::set(&options, &"durability".into(), &"strict".into()).map_err(failure)?;
                "readwrite"
            }
        };
        self.database
            .unchecked_ref::<DatabaseWithOptions>()
            .transaction_with_options(&names, mode, &options)
            .map_err(failure)
    }

    /// Ends the connection once its transactions have.
    pub(super) fn close(&self) {
        self.database.set_onversionchange(None);
        self.database.set_onclose(None);
        self.database.close();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

/// What a transaction's answers lead to.
type Decide = Box<dyn FnOnce(Vec<Rows>) -> Result<Vec<Change>, StoreFailure>>;

/// The callbacks of a transaction that is waited for. Dropping them first takes them back from the browser, which must not
/// call what is gone.
struct Handlers {
    transaction: IdbTransaction,
    last: Option<(IdbRequest, Closure<dyn FnMut()>)>,
    _on_complete: Closure<dyn FnMut(Event)>,
    _on_abort: Closure<dyn FnMut(Event)>,
}

impl Handlers {
    fn set(transaction: &IdbTransaction, done: &Rc<RefCell<Option<oneshot::Sender<bool>>>>) -> Self {
        let on_complete = settle(done, true);
        let on_abort = settle(done, false);
        transaction.set_oncomplete(Some(function(&on_complete)));
        transaction.set_onabort(Some(function(&on_abort)));
        Handlers {
            transaction: transaction.clone(),
            last: None,
            _on_complete: on_complete,
            _on_abort: on_abort,
        }
    }

    fn answered(&mut self, last: IdbRequest, callback: Closure<dyn FnMut()>) {
        last.set_onsuccess(Some(function(&callback)));
        self.last = Some((last, callback));
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        self.transaction.set_oncomplete(None);
        self.transaction.set_onabort(None);
        if let Some((last, _)) = &self.last {
            last.set_onsuccess(None);
        }
    }
}

/// Waits for an opening; a database that did not exist gets its object stores in the same transaction.
async fn opened(request: IdbOpenDbRequest, stores: &[&'static str]) -> Result<IdbDatabase, StoreFailure> {
    let (done, answer) = oneshot::channel();
    let done = Rc::new(RefCell::new(Some(done)));
    let on_success = settle(&done, true);
    let on_error = settle(&done, false);
    let stores = stores.to_vec();
    let on_upgrade = Closure::<dyn FnMut()>::new({
        let request = request.clone();
        move || {
            let database: IdbDatabase = request.result().unwrap_or(JsValue::UNDEFINED).unchecked_into();
            for store in &stores {
                // A failure aborts the upgrade, and the opening fails with it.
                if database.create_object_store(store).is_err() {
                    break;
                }
            }
        }
    });
    request.set_onsuccess(Some(function(&on_success)));
    request.set_onerror(Some(function(&on_error)));
    request.set_onupgradeneeded(Some(function(&on_upgrade)));
    if answer.await.unwrap_or(false) {
        return request.result().map(JsCast::unchecked_into).map_err(failure);
    }
    Err(match request.error() {
        Ok(Some(exception)) => failure(exception.into()),
        _ => StoreFailure::new(StoreFault::Persistence, "the database did not open"),
    })
}

/// A callback that gives a one-time question this answer.
fn settle(done: &Rc<RefCell<Option<oneshot::Sender<bool>>>>, answer: bool) -> Closure<dyn FnMut(Event)> {
    let done = Rc::clone(done);
    Closure::new(move |_event: Event| {
        if let Some(done) = done.borrow_mut().take() {
            // Whoever asked may have gone.
            let _ = done.send(answer);
        }
    })
}

fn function<T: ?Sized>(closure: &Closure<T>) -> &Function {
    closure.as_ref().unchecked_ref()
}

fn transaction_failure(transaction: &IdbTransaction) -> StoreFailure {
    match transaction.error() {
        Some(exception) => failure(exception.into()),
        None => StoreFailure::new(
            StoreFault::Closed,
            "the transaction was aborted: the database is closing",
        ),
    }
}

/// What a thrown value says of the database.
pub(super) fn failure(thrown: JsValue) -> StoreFailure {
    StoreFailure::new(
        StoreFault::of_exception(exception_name(&thrown).as_deref()),
        describe(&thrown),
    )
}

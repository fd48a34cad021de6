//! A connection to one IndexedDB database, and transactions on it.
//!
//! Written on the browser's own objects. A crate of futures over them (`indexed_db_futures` was looked at) continues a
//! transaction in a later microtask, for every read; here the reads, the decision and the writes are one callback deep, so
//! that nothing can come between them and a transaction cannot end early. It is also a quarter of the code size.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use js_sys::{Array, Function};
use wasm_bindgen::prelude::*;
use web_sys::{Event, IdbDatabase, IdbOpenDbRequest, IdbRequest, IdbTransaction};

use super::failure::{StoreFailure, StoreFault};
use super::requests::{Change, Lookup, PendingLookup, Rows, write};
use crate::platform::{describe, exception_name, globals, timer::Delay};

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

/// A connection, and what hears once when the browser or another page takes the database away.
pub(super) type Watched = (Connection, oneshot::Receiver<StoreFailure>);

impl Connection {
    /// Opens the database as it is. Makes none: without one there is no connection.
    pub(super) async fn existing(name: &str) -> Result<Option<Watched>, StoreFailure> {
        let request = factory()?.open(name).map_err(failure)?;
        Ok(opened(request, None).await?.map(Self::watch))
    }

    /// Raises the database to `version`, making it if it is absent: gives it the object stores it lacks and makes `changes`,
    /// all or nothing.
    pub(super) async fn upgrade(
        name: &str,
        version: u32,
        stores: Vec<&'static str>,
        changes: Vec<Change>,
    ) -> Result<Watched, StoreFailure> {
        let request = factory()?.open_with_u32(name, version).map_err(failure)?;
        let opened = opened(request, Some(Upgrade { stores, changes })).await?;
        opened
            .map(Self::watch)
            .ok_or_else(|| StoreFailure::new(StoreFault::Closed, "the database is gone again"))
    }

    /// The version the next upgrade raises the database to. It counts upgrades; the schema row states the layout.
    pub(super) fn next_version(&self) -> u32 {
        self.database.version() as u32 + 1
    }

    fn watch(database: IdbDatabase) -> Watched {
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
        names(&self.database)
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

    /// What some lookups answer, from one transaction.
    pub(super) async fn answers(
        &self,
        stores: &[&'static str],
        lookups: Vec<Lookup>,
    ) -> Result<Vec<Rows>, StoreFailure> {
        self.transact(Mode::Read, stores, lookups, |answers| Ok((answers, Vec::new())))
            .await
    }

    /// Makes changes in one transaction; durable when it returns.
    pub(super) async fn write(
        &self,
        stores: &[&'static str],
        changes: Vec<Change>,
    ) -> Result<(), StoreFailure> {
        self.transact(Mode::WriteDurably, stores, Vec::new(), move |_| Ok(((), changes)))
            .await
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

/// What an upgrade does in its own transaction.
struct Upgrade {
    stores: Vec<&'static str>,
    changes: Vec<Change>,
}

impl Upgrade {
    fn carry_out(self, request: &IdbOpenDbRequest) -> Result<(), StoreFailure> {
        let database: IdbDatabase = request.result().map_err(failure)?.unchecked_into();
        let held = names(&database);
        for store in self
            .stores
            .iter()
            .filter(|store| !held.iter().any(|name| name == *store))
        {
            database.create_object_store(store).map_err(failure)?;
        }
        match request.transaction() {
            Some(transaction) => write(&transaction, self.changes),
            None => Ok(()),
        }
    }
}

/// How long an upgrade waits for other pages to let go of the database. Pages of this package let go at once.
const BLOCKED_WAIT: Duration = Duration::from_secs(5);

/// Waits for an opening. Without an `upgrade` none is made, and a database that does not exist is not made: `None`.
///
/// An opening cannot be taken back. One that nobody waits for any more changes nothing and closes what it opened.
async fn opened(
    request: IdbOpenDbRequest,
    upgrade: Option<Upgrade>,
) -> Result<Option<IdbDatabase>, StoreFailure> {
    let (done, answer) = oneshot::channel();
    let done = Rc::new(RefCell::new(Some(done)));
    let (blocked, is_blocked) = oneshot::channel::<()>();
    let is_absent = Rc::new(Cell::new(false));
    let upgrading = Rc::new(RefCell::new(Ok(())));
    let has_left = {
        let done = Rc::clone(&done);
        move || done.borrow().as_ref().is_none_or(oneshot::Sender::is_canceled)
    };
    let on_upgrade = Closure::once_into_js({
        let (request, is_absent, upgrading) = (request.clone(), Rc::clone(&is_absent), Rc::clone(&upgrading));
        let has_left = has_left.clone();
        move || {
            let outcome = match upgrade {
                Some(upgrade) if !has_left() => upgrade.carry_out(&request),
                _ => {
                    is_absent.set(true);
                    Err(StoreFailure::new(
                        StoreFault::Closed,
                        "the database is not to be made",
                    ))
                }
            };
            if outcome.is_err()
                && let Some(transaction) = request.transaction()
            {
                // It may have ended by itself already; either way nothing is kept.
                let _ = transaction.abort();
            }
            *upgrading.borrow_mut() = outcome;
        }
    });
    let on_success = Closure::once_into_js({
        let (request, done) = (request.clone(), Rc::clone(&done));
        move || {
            if has_left() {
                if let Ok(database) = request.result() {
                    database.unchecked_into::<IdbDatabase>().close();
                }
            } else if let Some(done) = done.borrow_mut().take() {
                let _ = done.send(true);
            }
        }
    });
    let on_error = Closure::once_into_js({
        let done = Rc::clone(&done);
        // Prevented, or the page hears of it as of an error of its own.
        move |event: Event| {
            event.prevent_default();
            if let Some(done) = done.borrow_mut().take() {
                let _ = done.send(false);
            }
        }
    });
    let on_blocked = Closure::once_into_js(move || {
        // Whoever opens may have gone.
        let _ = blocked.send(());
    });
    request.set_onupgradeneeded(Some(on_upgrade.unchecked_ref()));
    request.set_onsuccess(Some(on_success.unchecked_ref()));
    request.set_onerror(Some(on_error.unchecked_ref()));
    request.set_onblocked(Some(on_blocked.unchecked_ref()));
    let blocked_for_long = pin!(async {
        if is_blocked.await.is_ok() {
            Delay::new(BLOCKED_WAIT).await;
        } else {
            pending::<()>().await;
        }
    });
    match select(answer, blocked_for_long).await {
        Either::Left((Ok(true), _)) => request
            .result()
            .map(|database| Some(database.unchecked_into()))
            .map_err(failure),
        Either::Left(_) if is_absent.get() => Ok(None),
        Either::Left(_) => {
            std::mem::replace(&mut *upgrading.borrow_mut(), Ok(()))?;
            Err(match request.error() {
                Ok(Some(exception)) => failure(exception.into()),
                _ => StoreFailure::new(StoreFault::Persistence, "the database did not open"),
            })
        }
        Either::Right(_) => Err(StoreFailure::new(
            StoreFault::UpgradeBlocked,
            "another page keeps this store open in an older release: close it and try again",
        )),
    }
}

fn factory() -> Result<web_sys::IdbFactory, StoreFailure> {
    globals::indexed_db().ok_or_else(|| {
        StoreFailure::new(
            StoreFault::IndexedDbUnavailable,
            "this browser offers no IndexedDB here",
        )
    })
}

fn names(database: &IdbDatabase) -> Vec<String> {
    let names = database.object_store_names();
    (0..names.length()).filter_map(|index| names.get(index)).collect()
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

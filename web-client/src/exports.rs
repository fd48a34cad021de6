//! What JavaScript calls. Thin: `ts/` makes the idiomatic surface of it, and `ts/conclave_web_client.d.ts` describes it.

use std::pin::Pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;
use web_sys::AbortSignal;

use crate::endpoint::{self, Arguments, Handle, OpenOptions};
use crate::failure::Failure;
use crate::observer::Observer;
use crate::platform::abort::Aborted;
use crate::store::IndexedDbStore;
use crate::transport::Transport;

/// An open endpoint.
#[wasm_bindgen]
pub struct Core(Rc<Handle>);

/// Opens an endpoint. Ends early, with the store free again, when `signal` aborts.
#[wasm_bindgen]
#[allow(
    clippy::too_many_arguments,
    reason = "each is one argument of the one caller in `ts/`"
)]
pub async fn open(
    transport: Transport,
    name: String,
    registry_key: Option<String>,
    admission_token: Option<String>,
    storage_name: String,
    signal: Option<AbortSignal>,
    observer: Observer,
) -> Result<Core, JsValue> {
    let options = OpenOptions {
        transport,
        name,
        registry_key,
        admission_token,
        storage_name,
    };
    let opening = std::pin::pin!(endpoint::open(options, observer));
    let opened = match signal {
        None => opening.await,
        Some(signal) => match select(opening, Aborted::of(&signal)).await {
            Either::Left((opened, _)) => opened,
            Either::Right(((), _)) => return Err(signal.reason()),
        },
    };
    opened
        .map(|handle| Core(Rc::new(handle)))
        .map_err(|failure| failure.to_js())
}

/// What opening the store of this name would do: `create`, `reopen`, `migrate`, or the code of the refusal. Writes nothing.
#[wasm_bindgen]
pub async fn inspect(storage_name: String) -> Result<String, JsValue> {
    let inspected = IndexedDbStore::inspect(&storage_name).await;
    inspected
        .map(str::to_owned)
        .map_err(|failure| Failure::from(failure).to_js())
}

/// Puts back the copy of the store from before a migration after which nothing was started.
#[wasm_bindgen]
pub async fn restore(storage_name: String) -> Result<(), JsValue> {
    let restored = IndexedDbStore::restore(&storage_name).await;
    restored.map_err(|failure| Failure::from(failure).to_js())
}

#[wasm_bindgen]
impl Core {
    /// Carries out an operation by its name (`endpoint/requests.rs` has them all). Its arguments are a JSON object; its
    /// answer is JSON, or empty where there is nothing to say.
    pub fn request(&self, operation: String, arguments: String, signal: Option<AbortSignal>) -> Promise {
        let handle = Rc::clone(&self.0);
        let call: Call = Box::pin(async move {
            let is_cancelled = || signal.as_ref().is_some_and(AbortSignal::aborted);
            let arguments = Arguments::parse(&arguments)?;
            endpoint::carry_out(&handle, &operation, &arguments, &is_cancelled)
                .await
                .map(JsValue::from)
        });
        future_to_promise(async move { call.await.map_err(|failure| failure.to_js()) })
    }

    /// The latest progress of every post that is not certified yet, as JSON.
    pub fn open_posts(&self) -> Result<String, JsValue> {
        self.0.open_posts().map_err(|failure| failure.to_js())
    }

    /// Ends the endpoint; resolves when the store is free.
    pub fn close(&self) -> Promise {
        let handle = Rc::clone(&self.0);
        future_to_promise(async move {
            handle.close().await;
            Ok(JsValue::UNDEFINED)
        })
    }
}

/// A request under way, of one type, so that making a promise of it is compiled once.
type Call = Pin<Box<dyn Future<Output = Result<JsValue, Failure>>>>;

//! What JavaScript calls. Thin: `ts/` makes the idiomatic surface of it, and `ts/conclave_web_client.d.ts` describes it.

use std::pin::Pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use js_sys::Promise;
use serde_json::json;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;
use web_sys::AbortSignal;

use crate::endpoint::{self, Handle, OpenOptions, SubscriptionId};
use crate::failure::Failure;
use crate::observer::Observer;
use crate::platform::abort::Aborted;

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
    url: String,
    name: String,
    registry_key: Option<String>,
    admission_token: Option<String>,
    storage_name: Option<String>,
    signal: Option<AbortSignal>,
    observer: Observer,
) -> Result<Core, JsValue> {
    let options = OpenOptions {
        url,
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

#[wasm_bindgen]
impl Core {
    /// The local agent's id.
    pub fn agent_id(&self) -> String {
        self.0.agent_id()
    }

    /// Resolves with the post id when the post is certified. `content` is JSON.
    pub fn send(&self, to: String, content: String, signal: Option<AbortSignal>) -> Promise {
        let handle = Rc::clone(&self.0);
        promise(Box::pin(async move {
            let is_cancelled = || signal.as_ref().is_some_and(AbortSignal::aborted);
            handle.send(&to, &content, is_cancelled).await.map(JsValue::from)
        }))
    }

    /// Takes the one subscription.
    pub fn subscribe(&self) -> Result<Subscription, JsValue> {
        let id = self.0.subscribe().map_err(|failure| failure.to_js())?;
        Ok(Subscription {
            handle: Rc::clone(&self.0),
            id,
        })
    }

    /// Marks a delivery as taken.
    pub fn acknowledge(&self, token: String) -> Promise {
        let handle = Rc::clone(&self.0);
        promise(Box::pin(async move {
            handle.acknowledge(&token).await.map(|()| JsValue::UNDEFINED)
        }))
    }

    /// The certified posts at an address as JSON.
    pub fn history(&self, address: String) -> Promise {
        let handle = Rc::clone(&self.0);
        promise(Box::pin(async move {
            handle.history(&address).await.map(JsValue::from)
        }))
    }

    /// A `Verification` as JSON.
    pub fn verify(&self, address: String, position: u32) -> Promise {
        let handle = Rc::clone(&self.0);
        promise(Box::pin(async move {
            handle
                .verify(&address, position as usize)
                .await
                .map(JsValue::from)
        }))
    }

    /// The held conversations as JSON.
    pub fn conversations(&self) -> Promise {
        let handle = Rc::clone(&self.0);
        promise(Box::pin(async move {
            handle.conversations().await.map(JsValue::from)
        }))
    }

    /// The latest progress of every post that is not certified yet, as JSON.
    pub fn open_posts(&self) -> Result<String, JsValue> {
        self.0.open_posts().map_err(|failure| failure.to_js())
    }

    /// Ends the endpoint; resolves when the store is free.
    pub fn close(&self) -> Promise {
        let handle = Rc::clone(&self.0);
        promise(Box::pin(async move {
            handle.close().await;
            Ok(JsValue::UNDEFINED)
        }))
    }
}

/// The subscription to deliveries.
#[wasm_bindgen]
pub struct Subscription {
    handle: Rc<Handle>,
    id: SubscriptionId,
}

#[wasm_bindgen]
impl Subscription {
    /// The next delivery `{ token, message }` as JSON; `undefined` when the subscription has ended.
    pub fn next(&self) -> Promise {
        let (handle, id) = (Rc::clone(&self.handle), self.id);
        promise(Box::pin(async move {
            let Some(delivery) = handle.next_delivery(id).await else {
                return Ok(JsValue::UNDEFINED);
            };
            let token = json!(delivery.delivery_token.to_string());
            // The projection is canonical JSON already.
            Ok(format!("{{\"token\":{token},\"message\":{}}}", delivery.canonical_message).into())
        }))
    }

    /// Ends the subscription.
    pub fn cancel(&self) {
        self.handle.unsubscribe(self.id);
    }
}

/// A call under way, of one type, so that making a promise of it is compiled once.
type Call = Pin<Box<dyn Future<Output = Result<JsValue, Failure>>>>;

fn promise(call: Call) -> Promise {
    future_to_promise(async move { call.await.map_err(|failure| failure.to_js()) })
}

//! The exclusive claim on a store: one browser context owns it for the life of its endpoint.

use std::cell::RefCell;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::AbortController;

use super::failure::{StoreFailure, StoreFault};
use crate::platform::{describe, globals, scope::spawn, timer::Delay};

/// How long an opener waits for a lock that is held: a page that reloads finds its predecessor still letting go.
const LOCK_WAIT: Duration = Duration::from_millis(1500);

/// The claim; dropping it lets the next context have the store.
pub(super) struct StoreLock {
    release: js_sys::Function,
}

impl StoreLock {
    /// Claims the store of this name.
    pub(super) async fn acquire(store_name: &str) -> Result<Self, StoreFailure> {
        let locks = globals::locks().ok_or_else(|| {
            StoreFailure::new(
                StoreFault::LocksUnavailable,
                "this browser offers no Web Locks here (they need a secure context)",
            )
        })?;
        let (granted, grant) = oneshot::channel();
        let granted = RefCell::new(Some(granted));
        // The lock is held while the promise this callback returns is pending.
        let on_grant = Closure::<dyn FnMut(JsValue) -> Promise>::new(move |_lock: JsValue| {
            Promise::new(&mut |resolve, _reject| {
                match granted.borrow_mut().take() {
                    // Nobody waits any more: let go at once.
                    Some(granted) => drop(
                        granted
                            .send(resolve)
                            .map_err(|resolve| resolve.call0(&JsValue::NULL)),
                    ),
                    None => drop(resolve.call0(&JsValue::NULL)),
                }
            })
        });
        let controller = AbortController::new().map_err(unavailable)?;
        let options = js_sys::Object::new();
        js_sys::Reflect::set(&options, &"signal".into(), &controller.signal()).map_err(unavailable)?;
        let request = locks
            .request(
                &format!("conclave/{store_name}"),
                &options,
                on_grant.as_ref().unchecked_ref(),
            )
            .map_err(unavailable)?;
        // It settles when the lock is let go, or when the wait is given up; neither is news to anyone.
        spawn(Box::pin(async move {
            let _ = JsFuture::from(request).await;
            drop(on_grant);
        }));
        match select(grant, Delay::new(LOCK_WAIT)).await {
            Either::Left((Ok(release), _)) => Ok(StoreLock { release }),
            Either::Left((Err(_), _)) => Err(locked()),
            Either::Right(((), mut grant)) => {
                if let Ok(Some(release)) = grant.try_recv() {
                    return Ok(StoreLock { release });
                }
                controller.abort();
                Err(locked())
            }
        }
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        // Resolving a promise does not throw.
        let _ = self.release.call0(&JsValue::NULL);
    }
}

fn locked() -> StoreFailure {
    StoreFailure::new(
        StoreFault::StoreLocked,
        "another page or worker has this agent's store open",
    )
}

fn unavailable(thrown: JsValue) -> StoreFailure {
    StoreFailure::new(StoreFault::LocksUnavailable, describe(&thrown))
}

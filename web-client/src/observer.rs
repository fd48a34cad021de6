//! What JavaScript hears without asking.

use js_sys::Promise;
use serde::Serialize;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::failure::Failure;

#[wasm_bindgen]
extern "C" {
    /// `Observer` in `ts/conclave_web_client.d.ts`.
    pub type Observer;

    #[wasm_bindgen(method)]
    fn progress(this: &Observer, json: &str);

    #[wasm_bindgen(method)]
    pub(crate) fn stored(this: &Observer, transitions: u32);

    #[wasm_bindgen(method)]
    fn opening(this: &Observer, phase: &str, done: f64, total: f64);

    #[wasm_bindgen(method)]
    fn pause(this: &Observer) -> Promise;

    #[wasm_bindgen(method, js_name = "verify")]
    fn verify_packed(this: &Observer, packed: &[u8]) -> Promise;

    #[wasm_bindgen(method)]
    fn closed(this: &Observer, failure: &JsValue);
}

/// How far an opening is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The store is copied and brought to the present layout.
    Migrating,
    /// What is stored is verified: so many certified records of so many.
    Verifying { done: u64, total: u64 },
    /// The name is registered.
    Registering,
    /// Everything is there but the connection.
    Connecting,
}

impl Observer {
    pub(crate) fn tell_opening(&self, phase: Phase) {
        let (name, done, total) = match phase {
            Phase::Migrating => ("migrating", 0, 0),
            Phase::Verifying { done, total } => ("verifying", done, total),
            Phase::Registering => ("registering", 0, 0),
            Phase::Connecting => ("connecting", 0, 0),
        };
        // Counts of rows: a double holds them exactly.
        self.opening(name, done as f64, total as f64);
    }

    /// Lets the page do what it has to do.
    pub(crate) async fn breathe(&self) {
        // A page that cannot pause goes on.
        let _ = JsFuture::from(self.pause()).await;
    }

    /// Asks the platform about packed signatures, at once. The answer has a 1 for each that it vouches for.
    pub(crate) fn verify(&self, packed: &[u8]) -> JsFuture {
        JsFuture::from(self.verify_packed(packed))
    }

    pub(crate) fn tell_progress(&self, event: &impl Serialize) {
        // Events are made of texts and numbers: their encoding cannot fail.
        if let Ok(json) = serde_json::to_string(event) {
            self.progress(&json);
        }
    }

    pub(crate) fn tell_closed(&self, failure: Option<&Failure>) {
        self.closed(&failure.map_or(JsValue::UNDEFINED, Failure::to_js));
    }
}

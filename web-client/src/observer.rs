//! What JavaScript hears without asking.

use serde::Serialize;
use wasm_bindgen::prelude::*;

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
    fn closed(this: &Observer, failure: &JsValue);
}

impl Observer {
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

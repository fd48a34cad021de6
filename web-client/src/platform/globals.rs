//! Globals that windows and workers share. `web-sys` has them on `Window` and on `WorkerGlobalScope` only, or behind its
//! unstable switch (Web Locks, transaction options).

use js_sys::{Function, Uint8Array};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    pub(crate) fn set_timeout(callback: &Function, delay_ms: f64) -> JsValue;

    #[wasm_bindgen(js_name = clearTimeout)]
    pub(crate) fn clear_timeout(timeout: &JsValue);

    /// `globalThis.crypto.getRandomValues`: at most 65,536 bytes a call.
    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues)]
    pub(crate) fn get_random_values(bytes: &Uint8Array) -> Uint8Array;
}

/// A property of `globalThis`, or of an object in it; `None` when it is absent, null or refused.
fn global(path: &[&str]) -> Option<JsValue> {
    path.iter()
        .try_fold(JsValue::from(js_sys::global()), |object, name| {
            js_sys::Reflect::get(&object, &JsValue::from_str(name))
                .ok()
                .filter(|value| !value.is_undefined() && !value.is_null())
        })
}

/// `indexedDB`, where the browser offers it.
pub(crate) fn indexed_db() -> Option<web_sys::IdbFactory> {
    global(&["indexedDB"]).map(JsCast::unchecked_into)
}

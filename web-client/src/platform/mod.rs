//! What the browser gives: globals, time, chance. Everything that names a browser object and is neither the store nor the
//! transport stands here. May depend on wasm-bindgen only.

pub(crate) mod abort;
pub(crate) mod chance;
pub(crate) mod globals;
pub(crate) mod queue;
pub(crate) mod scope;
pub(crate) mod timer;

use wasm_bindgen::{JsCast as _, JsValue};

/// The `name` and `message` of a thrown value, for error texts.
pub(crate) fn describe(thrown: &JsValue) -> String {
    match thrown.dyn_ref::<web_sys::DomException>() {
        Some(exception) => format!("{}: {}", exception.name(), exception.message()),
        None => match thrown.dyn_ref::<js_sys::Error>() {
            Some(error) => format!(
                "{}: {}",
                String::from(error.name()),
                String::from(error.message())
            ),
            None => thrown
                .as_string()
                .unwrap_or_else(|| "a value that is no error was thrown".to_owned()),
        },
    }
}

/// The name of a thrown `DOMException`, such as `QuotaExceededError`.
pub(crate) fn exception_name(thrown: &JsValue) -> Option<String> {
    thrown
        .dyn_ref::<web_sys::DomException>()
        .map(web_sys::DomException::name)
}

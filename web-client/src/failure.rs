//! What went wrong, on its way to JavaScript: an operation, a stable code, words, and what led to it.
//!
//! `ts/errors.ts` makes a typed error of it. Everything but [`Failure::to_js`] is pure.

use js_sys::{Object, Reflect};
use wasm_bindgen::JsValue;

use crate::store::{StoreFailure, StoreFault};

/// The operation that failed: one per error class of the package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// `Endpoint.send`.
    Send,
    /// Iterating messages.
    Listen,
    /// `Delivery.acknowledge`.
    Acknowledge,
    /// `Endpoint.open`, apart from the store.
    Open,
    /// Opening the store, or the store while the endpoint is open.
    Store,
    /// `Endpoint.history` and `Endpoint.conversations`.
    History,
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Operation::Send => "send",
            Operation::Listen => "listen",
            Operation::Acknowledge => "acknowledge",
            Operation::Open => "open",
            Operation::Store => "store",
            Operation::History => "history",
        }
    }
}

/// A failure of the package's surface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    /// What failed.
    pub(crate) operation: Operation,
    /// The stable code.
    pub(crate) code: &'static str,
    /// In words.
    pub(crate) message: String,
    /// Whether the same call can succeed later.
    pub(crate) is_retryable: bool,
    /// What led to it.
    pub(crate) source: Option<Box<Failure>>,
}

impl Failure {
    /// A failure that will not go away by itself.
    pub(crate) fn new(operation: Operation, code: &'static str, message: impl Into<String>) -> Self {
        Failure {
            operation,
            code,
            message: message.into(),
            is_retryable: false,
            source: None,
        }
    }

    /// The same failure, which may go away by itself.
    pub(crate) fn retryable(mut self) -> Self {
        self.is_retryable = true;
        self
    }

    /// The same failure with what led to it.
    pub(crate) fn because(mut self, source: Failure) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// The plain object that crosses.
    pub(crate) fn to_js(&self) -> JsValue {
        let object = Object::new();
        let set = |name: &str, value: &JsValue| {
            // Setting a property of a fresh plain object does not fail.
            let _ = Reflect::set(&object, &JsValue::from_str(name), value);
        };
        set("operation", &self.operation.name().into());
        set("code", &self.code.into());
        set("message", &self.message.as_str().into());
        set("retryable", &self.is_retryable.into());
        if let Some(source) = &self.source {
            set("cause", &source.to_js());
        }
        object.into()
    }
}

impl From<StoreFailure> for Failure {
    fn from(failure: StoreFailure) -> Self {
        let fault = failure.fault();
        Failure {
            operation: Operation::Store,
            code: fault.code(),
            message: failure.to_string(),
            is_retryable: fault.is_retryable(),
            source: None,
        }
    }
}

/// A store that holds something that does not verify.
pub(crate) fn corrupt(message: impl Into<String>) -> Failure {
    Failure::new(Operation::Store, StoreFault::Corrupt.code(), message)
}

//! What is recorded of a request, from its arrival until its response is over. Depends on `telemetry` for what that may be.
//!
//! A [`Recording`] that is dropped writes the line and counts the request. One that was not told how the request ended was
//! dropped with a client that went away.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use conclave_configuration::Settings;
use conclave_grpc_web::Code;
use conclave_telemetry::{
    Completion, Counters, Route, TraceId,
    completion::{RequestIdentity, rejection_line},
};

use crate::runtime::{self, Headers, log_line, now_ms};

thread_local! {
    static COUNTERS: RefCell<Counters> = RefCell::default();
    static COUNTING_SINCE_SECONDS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Counts a fetch of the key set.
pub(crate) fn key_set_settled(is_fetched: bool) {
    COUNTERS.with_borrow_mut(|counters| counters.key_set_settled(is_fetched));
}

/// The counters of this process.
pub(crate) fn counters() -> Counters {
    COUNTERS.with_borrow(Counters::clone)
}

/// When this process began to count, in seconds since the Unix epoch.
pub(crate) fn counting_since_seconds() -> u64 {
    let since = COUNTING_SINCE_SECONDS.get().unwrap_or_else(|| now_ms() / 1_000);
    COUNTING_SINCE_SECONDS.set(Some(since));
    since
}

/// How many bytes of a request's body were read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceivedBytes(Rc<Cell<u64>>);

impl ReceivedBytes {
    /// So many more.
    pub(crate) fn add(&self, bytes: usize) {
        self.0.set(self.0.get() + bytes as u64);
    }
}

/// One request.
pub(crate) struct Recording {
    route: Route,
    request: RequestIdentity,
    /// None while the configuration cannot be used, which another line says.
    settings: Option<Rc<Settings>>,
    started_ms: u64,
    request_bytes: ReceivedBytes,
    response_bytes: Cell<u64>,
    code: Cell<Option<Code>>,
    principal: RefCell<Option<String>>,
}

impl Recording {
    /// A request arrived.
    pub(crate) fn begin(route: Route, headers: &Headers, settings: Option<Rc<Settings>>) -> Self {
        let started_ms = now_ms();
        counting_since_seconds();
        COUNTERS.with_borrow_mut(|counters| counters.started(route));
        Self {
            route,
            request: RequestIdentity {
                request_id: runtime::random_uuid(),
                trace_id: headers
                    .get("traceparent")
                    .and_then(|value| TraceId::of_traceparent(&value)),
            },
            settings,
            started_ms,
            request_bytes: ReceivedBytes::default(),
            response_bytes: Cell::new(0),
            code: Cell::new(None),
            principal: RefCell::new(None),
        }
    }

    /// The id of this request, for `x-request-id`.
    pub(crate) fn request_id(&self) -> &str {
        &self.request.request_id
    }

    /// An API key of this name was presented.
    pub(crate) fn admitted(&self, principal: String) {
        self.principal.replace(Some(principal));
    }

    /// The credential was refused.
    pub(crate) fn rejected(&self, reason: &'static str) {
        COUNTERS.with_borrow_mut(|counters| counters.rejected(reason));
        if let Some(settings) = self.settings_that_log() {
            log_line(&rejection_line(
                &self.request,
                &settings.backend.identifier,
                reason,
            ));
        }
    }

    /// So many bytes of the request's body were read.
    pub(crate) fn received(&self, bytes: usize) {
        self.request_bytes.add(bytes);
    }

    /// Where a body is counted that is read while the response is sent.
    pub(crate) fn received_bytes(&self) -> ReceivedBytes {
        self.request_bytes.clone()
    }

    /// So many bytes of the response's body were handed on.
    pub(crate) fn sent(&self, bytes: usize) {
        self.response_bytes.set(self.response_bytes.get() + bytes as u64);
    }

    /// The request ended so.
    pub(crate) fn ended(&self, code: Code) {
        self.code.set(Some(code));
    }

    fn settings_that_log(&self) -> Option<&Settings> {
        self.settings
            .as_deref()
            .filter(|settings| settings.operations.request_logger && !self.route.is_health())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let completion = Completion {
            route: self.route,
            code: self.code.get().unwrap_or(Code::Cancelled),
            // Clocks may be set back.
            duration_ms: now_ms().saturating_sub(self.started_ms),
            request_bytes: self.request_bytes.0.get(),
            response_bytes: self.response_bytes.get(),
        };
        COUNTERS.with_borrow_mut(|counters| counters.handled(&completion));
        if let Some(settings) = self.settings_that_log() {
            let principal = self.principal.borrow();
            log_line(&completion.line(&self.request, &settings.backend.identifier, principal.as_deref()));
        }
    }
}

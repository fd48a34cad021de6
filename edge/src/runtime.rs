//! Every function of JavaScript this crate calls: the Workers runtime's own, and those of `edge/js`.

#![allow(
    unreachable_pub,
    reason = "exported functions take some of these types, and wasm-bindgen exports only what is public"
)]

use js_sys::{Array, Object, Promise, Uint8Array};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// A Durable Object's context.
    #[derive(Clone, Debug)]
    pub type ObjectContext;

    #[wasm_bindgen(method, getter)]
    pub(crate) fn storage(this: &ObjectContext) -> Storage;

    /// A Durable Object's storage.
    #[derive(Clone, Debug)]
    pub(crate) type Storage;

    #[wasm_bindgen(method, getter)]
    pub(crate) fn sql(this: &Storage) -> SqlStorage;

    /// Runs `body`; what it wrote is undone if it throws.
    #[wasm_bindgen(method, catch, js_name = transactionSync)]
    pub(crate) fn transaction_sync(
        this: &Storage,
        body: &mut dyn FnMut() -> Result<(), JsValue>,
    ) -> Result<(), JsValue>;

    #[wasm_bindgen(method)]
    pub(crate) fn sync(this: &Storage) -> Promise;

    /// A Durable Object's database.
    #[derive(Clone, Debug)]
    pub(crate) type SqlStorage;

    /// What keeps a Worker's invocation alive.
    #[derive(Clone, Debug)]
    pub type InvocationContext;

    #[wasm_bindgen(method, js_name = waitUntil)]
    pub(crate) fn wait_until(this: &InvocationContext, work: &Promise);

    /// A HTTP request.
    pub type Request;

    #[wasm_bindgen(method, getter)]
    pub(crate) fn method(this: &Request) -> String;

    #[wasm_bindgen(method, getter)]
    pub(crate) fn url(this: &Request) -> String;

    #[wasm_bindgen(method, getter)]
    pub(crate) fn headers(this: &Request) -> Headers;

    /// The headers of a request.
    pub(crate) type Headers;

    #[wasm_bindgen(method)]
    pub(crate) fn get(this: &Headers, name: &str) -> Option<String>;

    /// Another Worker, such as the one that serves static files.
    pub(crate) type Fetcher;

    #[wasm_bindgen(method)]
    pub(crate) fn fetch(this: &Fetcher, request: &Request) -> Promise;

    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues)]
    pub(crate) fn fill_random(bytes: &mut [u8]);

    #[wasm_bindgen(js_namespace = crypto, js_name = randomUUID)]
    pub(crate) fn random_uuid() -> String;

    #[wasm_bindgen(js_namespace = console, js_name = error)]
    pub(crate) fn log_error(message: &str);

    /// The text of a number or a boolean.
    #[wasm_bindgen(js_name = String)]
    pub(crate) fn to_text(value: &JsValue) -> String;

    #[wasm_bindgen(js_namespace = console, js_name = log)]
    pub(crate) fn log_line(line: &str);
}

#[wasm_bindgen(raw_module = "./http.js")]
extern "C" {
    /// Reads the body to its end and keeps at most its first `keep_bytes` bytes.
    #[wasm_bindgen(js_name = readBody)]
    pub(crate) fn read_body(request: &Request, keep_bytes: f64) -> Promise;

    /// `headers` holds names and values in turn, `body` its parts in order.
    #[wasm_bindgen(js_name = wholeResponse)]
    pub(crate) fn whole_response(status: u16, headers: Vec<String>, body: Option<Array>) -> JsValue;

    /// `headers` holds names and values in turn.
    #[wasm_bindgen(js_name = streamResponse)]
    pub(crate) fn stream_response(
        status: u16,
        headers: Vec<String>,
        source: crate::body::BodySource,
    ) -> JsValue;

    /// As [`stream_response`]; the request's body goes to `requests`.
    #[wasm_bindgen(js_name = duplexResponse)]
    pub(crate) fn duplex_response(
        status: u16,
        headers: Vec<String>,
        source: crate::body::BodySource,
        requests: crate::requests::RequestSink,
        request: &Request,
    ) -> JsValue;

    /// A response that is a WebSocket.
    #[wasm_bindgen(js_name = streamSocket)]
    pub(crate) fn stream_socket(
        headers: Vec<String>,
        source: crate::body::BodySource,
        requests: crate::requests::RequestSink,
    ) -> JsValue;

    /// A response that is a WebSocket, told a status and closed.
    #[wasm_bindgen(js_name = refuseSocket)]
    pub(crate) fn refuse_socket(headers: Vec<String>, trailers: Uint8Array, status: u32) -> JsValue;
}

#[wasm_bindgen(raw_module = "./credentials.js")]
extern "C" {
    /// Fetches a key set, with the outcomes of [`post_json`].
    #[wasm_bindgen(js_name = fetchKeySet)]
    pub(crate) fn fetch_key_set(url: &str, max_bytes: f64, deadline_ms: u32) -> Promise;

    /// Resolves with whether `key`, a JSON Web Key as text or the bytes of a SubjectPublicKeyInfo, has signed.
    #[wasm_bindgen(js_name = verifySignature)]
    pub(crate) fn verify_signature(
        algorithm: &str,
        key: &JsValue,
        signed: &Uint8Array,
        signature: &Uint8Array,
    ) -> Promise;
}

#[wasm_bindgen(raw_module = "./sql.js")]
extern "C" {
    /// Runs a statement and returns its rows, packed ([`crate::packed`]), to be taken before the next statement runs.
    #[wasm_bindgen(catch, js_name = queryRows)]
    pub(crate) fn query_rows(
        sql: &SqlStorage,
        statement: &str,
        parameters: &[u8],
    ) -> Result<Uint8Array, JsValue>;

    /// Runs a statement that writes nothing, and returns its only value if that is bytes.
    #[wasm_bindgen(catch, js_name = queryBlob)]
    pub(crate) fn query_blob(
        sql: &SqlStorage,
        statement: &str,
        parameters: &[u8],
    ) -> Result<Option<Uint8Array>, JsValue>;

    /// Runs a statement whose rows do not matter; the number of rows written.
    #[wasm_bindgen(catch, js_name = executeStatement)]
    pub(crate) fn execute_statement(
        sql: &SqlStorage,
        statement: &str,
        parameters: &[u8],
    ) -> Result<f64, JsValue>;
}

#[wasm_bindgen(raw_module = "./platform.js")]
extern "C" {
    /// A timeout.
    pub(crate) type Timer;

    #[wasm_bindgen(constructor)]
    pub(crate) fn new(milliseconds: u32) -> Timer;

    #[wasm_bindgen(method, getter)]
    pub(crate) fn elapsed(this: &Timer) -> Promise;

    #[wasm_bindgen(method)]
    pub(crate) fn cancel(this: &Timer);

    /// Resolves with a `Uint8Array`, or with `undefined` at the deadline.
    #[wasm_bindgen(js_name = callObject)]
    pub(crate) fn call_object(
        namespace: &Object,
        name: &str,
        method: &str,
        body: Uint8Array,
        deadline_ms: u32,
    ) -> Promise;

    /// Posts a JSON document. Resolves with a `Uint8Array`, a HTTP status other than 200, `null` for an answer of more than
    /// `max_bytes` bytes, or `undefined` at the deadline.
    #[wasm_bindgen(js_name = postJson)]
    pub(crate) fn post_json(url: &str, body: Uint8Array, max_bytes: f64, deadline_ms: u32) -> Promise;

    /// A message stream that is being opened.
    pub(crate) type Connecting;

    #[wasm_bindgen(constructor)]
    pub(crate) fn new(namespace: &Object, name: &str, deadline_ms: u32) -> Connecting;

    /// Resolves with a [`Socket`], or with `undefined` at the deadline.
    #[wasm_bindgen(method, getter)]
    pub(crate) fn opened(this: &Connecting) -> Promise;

    #[wasm_bindgen(method, js_name = giveUp)]
    pub(crate) fn give_up(this: &Connecting);

    /// The Worker's end of a message stream.
    #[wasm_bindgen(js_name = Upstream)]
    pub(crate) type Socket;

    #[wasm_bindgen(method)]
    pub(crate) fn listen(this: &Socket, wake: &Closure<dyn FnMut()>);

    #[wasm_bindgen(method)]
    pub(crate) fn send(this: &Socket, message: Uint8Array);

    /// Messages that wait, or `None` at the end.
    #[wasm_bindgen(method)]
    pub(crate) fn take(this: &Socket) -> Option<Array>;

    #[wasm_bindgen(method)]
    pub(crate) fn drop(this: &Socket);

    #[wasm_bindgen(js_name = sendOnSocket)]
    pub(crate) fn send_on_socket(context: &ObjectContext, socket: f64, message: Uint8Array);

    #[wasm_bindgen(js_name = sendOnSockets)]
    pub(crate) fn send_on_sockets(context: &ObjectContext, sockets: &[f64], message: Uint8Array);

    #[wasm_bindgen(js_name = closeSocket)]
    pub(crate) fn close_socket(context: &ObjectContext, socket: f64, reason: &str);

    #[wasm_bindgen(js_name = openSockets)]
    pub(crate) fn open_sockets(context: &ObjectContext) -> Vec<f64>;

    #[wasm_bindgen(js_name = setAlarmNoLaterThan)]
    pub(crate) fn set_alarm_no_later_than(context: &ObjectContext, at_ms: f64) -> Promise;
}

const NANOSECONDS_PER_MILLISECOND: u64 = 1_000_000;

/// The time in milliseconds since the Unix epoch.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "milliseconds since 1970, whole"
)]
pub(crate) fn now_ms() -> u64 {
    js_sys::Date::now() as u64
}

/// The time in nanoseconds since the Unix epoch, whole milliseconds.
pub(crate) fn now_ns() -> u64 {
    now_ms() * NANOSECONDS_PER_MILLISECOND
}

/// The words of a JavaScript error.
pub(crate) fn describe(error: &JsValue) -> String {
    match error.dyn_ref::<js_sys::Error>() {
        Some(error) => String::from(error.message()),
        None => format!("{error:?}"),
    }
}

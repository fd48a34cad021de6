//! gRPC-Web calls over `fetch`, for windows and workers.
//!
//! Dropping a call's future or its stream aborts the fetch. A call that ran to its end has read its body to the end, so that
//! the browser uses the connection again.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::time::Duration;

use bytes::Bytes;
use conclave_grpc_web::client::{End, Event, ResponseDecoder, ResponseHead, request_body, request_headers};
use conclave_grpc_web::{Code, Status};
use conclave_harness::RouterInstanceId;
use conclave_proto::Rpc;
use futures_util::future::{Either, select};
use js_sys::{Reflect, Uint8Array};
use prost::Message as _;
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    AbortController, Headers, ReadableStreamDefaultReader, RequestCredentials, RequestInit, Response,
};

use crate::platform::{describe, globals, timer::Delay};

/// The longest response message that is read: the most the backend can be configured to send (API-282).
const MAX_MESSAGE_BYTES: usize = 25 * 1024 * 1024;
/// How long a unary call may take.
const UNARY_DEADLINE: Duration = Duration::from_secs(15);
/// How long a stream may take to begin.
const STREAM_START_DEADLINE: Duration = Duration::from_secs(15);
/// Names the Router instance that answered.
const ROUTER_INSTANCE: &str = "conclave-router-instance";
/// Names the only Router instance that may order what a publish carries.
const EXPECTED_ROUTER_INSTANCE: &str = "conclave-expected-router-instance";

/// A call that failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{status}")]
pub(crate) struct CallError {
    /// What it came to.
    pub(crate) status: Status,
    /// Whether the server said so. If not, the call may have had its effect.
    pub(crate) is_stated: bool,
    /// The Router instance that answered, if one did.
    pub(crate) router_instance: Option<RouterInstanceId>,
}

impl CallError {
    /// A failure this side draws itself: the outcome is unknown.
    pub(super) fn drawn(status: Status) -> Self {
        CallError {
            status,
            is_stated: false,
            router_instance: None,
        }
    }

    fn ended(end: End, router_instance: Option<RouterInstanceId>) -> Self {
        CallError {
            status: end.status,
            is_stated: end.is_stated,
            router_instance,
        }
    }

    /// Whether the same call may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        !self.is_stated
            || matches!(
                self.status.code,
                Code::Unavailable
                    | Code::DeadlineExceeded
                    | Code::ResourceExhausted
                    | Code::Aborted
                    | Code::Cancelled
            )
    }
}

/// A unary answer.
pub(crate) struct Answer<M> {
    /// The message.
    pub(crate) message: M,
    /// The Router instance that answered, where the response names it.
    pub(crate) router_instance: Option<RouterInstanceId>,
}

/// Where a deployment answers.
#[derive(Clone, Debug)]
pub(crate) struct Deployment {
    base_url: String,
}

impl Deployment {
    /// The deployment at this address, which has no trailing slash.
    pub(crate) fn new(base_url: String) -> Self {
        Deployment { base_url }
    }

    /// Calls a unary RPC.
    pub(crate) async fn unary<R: Rpc>(&self, request: &R::Request) -> Result<Answer<R::Response>, CallError> {
        self.unary_expecting::<R>(request, None).await
    }

    /// Calls a unary RPC that only this Router instance may carry out.
    pub(crate) async fn unary_expecting<R: Rpc>(
        &self,
        request: &R::Request,
        expected_router_instance: Option<&RouterInstanceId>,
    ) -> Result<Answer<R::Response>, CallError> {
        let answer = self.unary_bytes(R::PATH, request_body(request), expected_router_instance);
        let Answer {
            message,
            router_instance,
        } = within(UNARY_DEADLINE, Box::pin(answer)).await?;
        let message = R::Response::decode(message).map_err(|error| malformed(&error))?;
        Ok(Answer {
            message,
            router_instance,
        })
    }

    /// A unary call in bytes, so that it is compiled once.
    async fn unary_bytes(
        &self,
        path: &str,
        body: Bytes,
        expected_router_instance: Option<&RouterInstanceId>,
    ) -> Result<Answer<Bytes>, CallError> {
        let fetched = self
            .fetch(path, body, Some(UNARY_DEADLINE), expected_router_instance)
            .await?;
        let body = fetched
            .response
            .array_buffer()
            .map(JsFuture::from)
            .map_err(|thrown| lost(&thrown))?;
        let body = Uint8Array::new(&body.await.map_err(|thrown| lost(&thrown))?).to_vec();
        let router_instance = fetched.head.router_instance();
        let mut decoder = ResponseDecoder::new(&fetched.head.as_response_head(), MAX_MESSAGE_BYTES);
        decoder.push(&body);
        let mut messages = Vec::new();
        while let Some(Event::Message(message)) = decoder.next_event() {
            messages.push(message);
        }
        let end = decoder.finish();
        if !end.status.is_ok() {
            return Err(CallError::ended(end, router_instance));
        }
        match <[Bytes; 1]>::try_from(messages) {
            Ok([message]) => Ok(Answer {
                message,
                router_instance,
            }),
            Err(messages) => Err(CallError::drawn(Status::internal(format!(
                "a unary response of {} messages",
                messages.len()
            )))),
        }
    }

    /// Calls a server-streaming RPC; returns when the response has begun.
    pub(crate) async fn server_stream<R: Rpc>(
        &self,
        request: &R::Request,
    ) -> Result<MessageStream<R>, CallError> {
        let fetched = within(
            STREAM_START_DEADLINE,
            Box::pin(self.fetch(R::PATH, request_body(request), None, None)),
        )
        .await?;
        let decoder = ResponseDecoder::new(&fetched.head.as_response_head(), MAX_MESSAGE_BYTES);
        let reader = fetched
            .response
            .body()
            .map(|body| body.get_reader().unchecked_into());
        Ok(MessageStream {
            router_instance: fetched.head.router_instance(),
            decoder: Some(decoder),
            reader,
            reading: None,
            ready: VecDeque::new(),
            _abort: fetched.abort,
            rpc: PhantomData,
        })
    }

    async fn fetch(
        &self,
        path: &str,
        body: Bytes,
        timeout: Option<Duration>,
        expected_router_instance: Option<&RouterInstanceId>,
    ) -> Result<Fetched, CallError> {
        let abort = AbortOnDrop(AbortController::new().map_err(|thrown| lost(&thrown))?);
        let init = request_init(&body, timeout, expected_router_instance).map_err(|thrown| lost(&thrown))?;
        init.set_signal(Some(&abort.0.signal()));
        let url = format!("{}{path}", self.base_url);
        let response: Response = JsFuture::from(globals::fetch(&url, &init))
            .await
            .map_err(|thrown| lost(&thrown))?
            .unchecked_into();
        Ok(Fetched {
            head: Head::of(&response),
            response,
            abort,
        })
    }
}

/// The messages of a server stream.
pub(crate) struct MessageStream<R: Rpc> {
    router_instance: Option<RouterInstanceId>,
    decoder: Option<ResponseDecoder>,
    reader: Option<ReadableStreamDefaultReader>,
    /// The read that is under way. Kept here so that a caller may drop [`MessageStream::next`] without losing a piece.
    reading: Option<JsFuture>,
    ready: VecDeque<Bytes>,
    _abort: AbortOnDrop,
    rpc: PhantomData<R>,
}

impl<R: Rpc> MessageStream<R> {
    /// The Router instance that answers, where the response names it.
    pub(crate) fn router_instance(&self) -> Option<&RouterInstanceId> {
        self.router_instance.as_ref()
    }

    /// The next message. The end of a stream is an error too: what it came to. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Result<R::Response, CallError> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return R::Response::decode(message).map_err(|error| malformed(&error));
            }
            let Some(decoder) = self.decoder.as_mut() else {
                return Err(CallError::drawn(Status::unavailable("the stream has ended")));
            };
            let Some(reader) = &self.reader else {
                return Err(CallError::drawn(Status::unavailable("the response has no body")));
            };
            let reading = self.reading.get_or_insert_with(|| JsFuture::from(reader.read()));
            let read = reading.await;
            self.reading = None;
            match piece(read)? {
                Some(piece) => {
                    decoder.push(&piece);
                    // The end is taken from `finish`, once the body has ended.
                    while let Some(Event::Message(message)) = decoder.next_event() {
                        self.ready.push_back(message);
                    }
                }
                None => {
                    let end = self.decoder.take().map(ResponseDecoder::finish);
                    let end =
                        end.unwrap_or_else(|| End::assumed(Status::unavailable("the stream has ended")));
                    return Err(CallError::ended(end, self.router_instance));
                }
            }
        }
    }
}

/// The piece of a body that a read gave; none at its end.
fn piece(read: Result<JsValue, JsValue>) -> Result<Option<Vec<u8>>, CallError> {
    let read = read.map_err(|thrown| lost(&thrown))?;
    let property = |name: &str| Reflect::get(&read, &JsValue::from_str(name)).unwrap_or(JsValue::UNDEFINED);
    if property("done").is_truthy() {
        return Ok(None);
    }
    Ok(Some(Uint8Array::new(&property("value")).to_vec()))
}

struct Fetched {
    response: Response,
    head: Head,
    abort: AbortOnDrop,
}

/// The headers of a response that matter here.
struct Head {
    http_status: u16,
    content_type: Option<String>,
    grpc_status: Option<String>,
    grpc_message: Option<String>,
    grpc_status_details: Option<String>,
    router_instance: Option<String>,
}

impl Head {
    fn of(response: &Response) -> Self {
        let headers = response.headers();
        let header = |name: &str| headers.get(name).ok().flatten();
        Head {
            http_status: response.status(),
            content_type: header("content-type"),
            grpc_status: header("grpc-status"),
            grpc_message: header("grpc-message"),
            grpc_status_details: header("grpc-status-details-bin"),
            router_instance: header(ROUTER_INSTANCE),
        }
    }

    fn as_response_head(&self) -> ResponseHead<'_> {
        ResponseHead {
            http_status: self.http_status,
            content_type: self.content_type.as_deref(),
            grpc_status: self.grpc_status.as_deref(),
            grpc_message: self.grpc_message.as_deref(),
            grpc_status_details: self.grpc_status_details.as_deref(),
        }
    }

    fn router_instance(&self) -> Option<RouterInstanceId> {
        self.router_instance.as_deref()?.parse().ok()
    }
}

/// Aborts a fetch that is given up. Aborting one that has ended does nothing.
struct AbortOnDrop(AbortController);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn request_init(
    body: &Bytes,
    timeout: Option<Duration>,
    expected_router_instance: Option<&RouterInstanceId>,
) -> Result<RequestInit, JsValue> {
    let headers = Headers::new()?;
    for (name, value) in request_headers(timeout) {
        headers.set(name, &value)?;
    }
    if let Some(instance) = expected_router_instance {
        headers.set(EXPECTED_ROUTER_INSTANCE, &instance.to_string())?;
    }
    let init = RequestInit::new();
    init.set_method("POST");
    init.set_headers(&headers);
    init.set_body(&Uint8Array::from(body.as_ref()));
    // A deployment knows agents by their keys; cookies are not its business.
    init.set_credentials(RequestCredentials::Omit);
    Ok(init)
}

/// The outcome of `call`, unless it takes too long.
async fn within<T>(
    deadline: Duration,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    match select(std::pin::pin!(call), Delay::new(deadline)).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(((), _)) => Err(CallError::drawn(Status::deadline_exceeded(format!(
            "no answer within {} s",
            deadline.as_secs()
        )))),
    }
}

/// The server answered with something else than the message it should.
fn malformed(error: &prost::DecodeError) -> CallError {
    CallError::drawn(Status::internal(format!("the response does not decode: {error}")))
}

/// The connection was lost, or never made.
fn lost(thrown: &JsValue) -> CallError {
    CallError::drawn(Status::unavailable(describe(thrown)))
}

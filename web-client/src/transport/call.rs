//! Calls over the connection that `ts/transport` makes: typed messages here, bytes there.
//!
//! The connection has the frames, the credential, the deadlines and the counts. Dropping a call ends it.

use std::marker::PhantomData;

use bytes::Bytes;
use conclave_grpc_web::{Code, Status};
use conclave_harness::RouterInstanceId;
use conclave_proto::Rpc;
use js_sys::Promise;
use prost::Message as _;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    /// `CoreTransport` in `ts/transport/core_transport.ts`. Each method copies the bytes it is given before it returns.
    #[derive(Clone)]
    pub type Transport;

    #[wasm_bindgen(method)]
    fn unary(
        this: &Transport,
        path: &str,
        message: &[u8],
        expected_router_instance: Option<String>,
    ) -> Exchange;

    #[wasm_bindgen(method)]
    fn open(this: &Transport, path: &str, message: &[u8]) -> Exchange;

    #[wasm_bindgen(method)]
    fn open_duplex(this: &Transport, path: &str) -> Exchange;

    #[wasm_bindgen(method)]
    fn can_duplex(this: &Transport) -> bool;

    #[wasm_bindgen(method)]
    fn pause(this: &Transport, delay_ms: f64) -> Promise;

    #[wasm_bindgen(method)]
    fn reconnect_now(this: &Transport);

    /// A call under way.
    type Exchange;

    #[wasm_bindgen(method)]
    fn next(this: &Exchange) -> Promise;

    #[wasm_bindgen(method)]
    fn send(this: &Exchange, message: &[u8]);

    #[wasm_bindgen(method)]
    fn expect(this: &Exchange, silence_ms: f64, probe: &[u8]);

    #[wasm_bindgen(method)]
    fn close(this: &Exchange);

    /// What a call came to, or a message of a stream.
    type Outcome;

    #[wasm_bindgen(method, getter)]
    fn code(this: &Outcome) -> u32;

    #[wasm_bindgen(method, getter)]
    fn text(this: &Outcome) -> String;

    #[wasm_bindgen(method, getter, js_name = isStated)]
    fn is_stated(this: &Outcome) -> bool;

    #[wasm_bindgen(method, getter)]
    fn message(this: &Outcome) -> Option<Vec<u8>>;

    #[wasm_bindgen(method, getter, js_name = routerInstance)]
    fn router_instance(this: &Outcome) -> Option<String>;
}

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
#[derive(Clone)]
pub(crate) struct Deployment {
    transport: Transport,
}

impl Deployment {
    /// The deployment at the other end of this connection.
    pub(crate) fn new(transport: Transport) -> Self {
        Deployment { transport }
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
        let expected = expected_router_instance.map(ToString::to_string);
        let exchange = self.transport.unary(R::PATH, &request.encode_to_vec(), expected);
        let Answer {
            message,
            router_instance,
        } = OpenExchange::of(exchange).next().await?;
        Ok(Answer {
            message: R::Response::decode(message).map_err(|error| malformed(&error))?,
            router_instance,
        })
    }

    /// Opens a server-streaming RPC.
    pub(crate) fn server_stream<R: Rpc>(&self, request: &R::Request) -> MessageStream<R> {
        MessageStream::of(self.transport.open(R::PATH, &request.encode_to_vec()))
    }

    /// Opens a stream in both directions.
    pub(crate) fn duplex<R: Rpc>(&self) -> MessageStream<R> {
        MessageStream::of(self.transport.open_duplex(R::PATH))
    }

    /// Whether a stream in both directions gets through here, as far as is known.
    pub(crate) fn can_duplex(&self) -> bool {
        self.transport.can_duplex()
    }

    /// Waits so long, or until there is reason to believe that the deployment is reached again.
    pub(crate) fn pause(&self, delay: std::time::Duration) -> JsFuture {
        JsFuture::from(self.transport.pause(delay.as_secs_f64() * 1000.0))
    }

    /// The network may have changed, or the machine slept: every pause ends, and every open stream is asked for a sign of life.
    pub(crate) fn reconnect_now(&self) {
        self.transport.reconnect_now();
    }
}

/// The messages of a stream.
pub(crate) struct MessageStream<R: Rpc> {
    exchange: OpenExchange,
    rpc: PhantomData<R>,
}

impl<R: Rpc> MessageStream<R> {
    fn of(exchange: Exchange) -> Self {
        MessageStream {
            exchange: OpenExchange::of(exchange),
            rpc: PhantomData,
        }
    }

    /// The next message. The end of a stream is an error too: what it came to. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Result<R::Response, CallError> {
        let answer = self.exchange.next().await?;
        R::Response::decode(answer.message).map_err(|error| malformed(&error))
    }

    /// Sends a message. It waits for the stream to begin, if it has not yet.
    pub(crate) fn send(&self, request: &R::Request) {
        self.exchange.exchange.send(&request.encode_to_vec());
    }

    /// From now on the stream is over when nothing comes for so long. `probe` is answered at once by the other side.
    pub(crate) fn expect(&self, silence: std::time::Duration, probe: &R::Request) {
        let silence_ms = silence.as_secs_f64() * 1000.0;
        self.exchange.exchange.expect(silence_ms, &probe.encode_to_vec());
    }
}

/// A call in bytes, so that it is compiled once. Ends with its owner; ending one that is over does nothing.
struct OpenExchange {
    exchange: Exchange,
    /// What is waited for. Kept here so that a caller may drop [`OpenExchange::next`] without losing a message.
    reading: Option<JsFuture>,
}

impl OpenExchange {
    fn of(exchange: Exchange) -> Self {
        OpenExchange {
            exchange,
            reading: None,
        }
    }

    async fn next(&mut self) -> Result<Answer<Bytes>, CallError> {
        let exchange = &self.exchange;
        let reading = self
            .reading
            .get_or_insert_with(|| JsFuture::from(exchange.next()));
        let outcome = reading.await;
        self.reading = None;
        // The connection tells of every failure by a value.
        let outcome: Outcome = outcome
            .map_err(|thrown| CallError::drawn(Status::internal(crate::platform::describe(&thrown))))?
            .unchecked_into();
        let router_instance = outcome.router_instance().and_then(|id| id.parse().ok());
        match outcome.message() {
            Some(message) => Ok(Answer {
                message: message.into(),
                router_instance,
            }),
            None => Err(CallError {
                status: Status::new(
                    Code::from_number(outcome.code()).unwrap_or(Code::Unknown),
                    outcome.text(),
                ),
                is_stated: outcome.is_stated(),
                router_instance,
            }),
        }
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        self.exchange.close();
    }
}

/// The server answered with something else than the message it should.
fn malformed(error: &prost::DecodeError) -> CallError {
    CallError::drawn(Status::internal(format!("the response does not decode: {error}")))
}

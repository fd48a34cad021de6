//! The machine beneath `topiclog`: Workers and Durable Objects. Depends on the modules around it.

use std::future::Future;

use bytes::Bytes;
use conclave_harness::Randomness;
use conclave_topiclog::{
    answer::{self, Answered},
    platform::{CallError, ObjectName, ObjectPlatform, Passed, Platform, SocketId},
};
use js_sys::{Promise, Uint8Array};
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::{JsFuture, future_to_promise, spawn_local};

use crate::{
    admission,
    environment::{Environment, to_name},
    runtime::{self, InvocationContext, ObjectContext, describe},
    sql::Database,
    timer,
    upstream::Upstream,
};

/// How long the opening of a message stream may take, in milliseconds.
const CONNECT_DEADLINE_MS: u32 = 10_000;

fn unknown(error: &JsValue) -> CallError {
    CallError::OutcomeUnknown {
        reason: describe(error),
    }
}

fn unbound(binding: &str) -> CallError {
    CallError::OutcomeUnknown {
        reason: format!("the deployment declares no binding {binding}"),
    }
}

/// Awaits what resolves with `undefined` at its deadline.
async fn within_deadline(promise: Promise, deadline_ms: u32) -> Result<JsValue, CallError> {
    match JsFuture::from(promise).await {
        Ok(value) if value.is_undefined() => Err(CallError::DeadlineExceeded { deadline_ms }),
        Ok(value) => Ok(value),
        Err(error) => Err(unknown(&error)),
    }
}

async fn call(
    environment: &Environment,
    to: ObjectName,
    method: &str,
    request: Vec<u8>,
    deadline_ms: u32,
) -> Result<Uint8Array, CallError> {
    let namespace = environment.namespace(to).map_err(unbound)?;
    let body = Uint8Array::from(request.as_slice());
    let answer = runtime::call_object(&namespace, &to_name(to), method, body, deadline_ms);
    let answer = within_deadline(answer, deadline_ms).await?;
    Ok(answer.unchecked_into())
}

/// A response as the runtime received it, or one made here.
#[derive(Clone, Debug)]
pub(crate) enum PassedResponse {
    Made(Bytes),
    Received(Uint8Array),
}

impl From<Bytes> for PassedResponse {
    fn from(response: Bytes) -> Self {
        Self::Made(response)
    }
}

impl Passed for PassedResponse {
    fn length(&self) -> usize {
        match self {
            Self::Made(response) => response.len(),
            Self::Received(response) => response.length() as usize,
        }
    }
}

impl PassedResponse {
    pub(crate) fn into_bytes(self) -> Bytes {
        match self {
            Self::Made(response) => response,
            Self::Received(response) => response.to_vec().into(),
        }
    }
}

/// Takes an answer apart without copying its response out of the runtime.
#[allow(
    clippy::cast_possible_truncation,
    reason = "parts of an array of 32-bit length"
)]
fn take_apart(answer: &Uint8Array) -> Answered<PassedResponse> {
    let length = answer.length();
    let head = answer.subarray(0, length.min(answer::HEAD_BYTES as u32)).to_vec();
    match answer::response_range(&head, length as usize) {
        Some(range) => {
            let (begin, end) = (range.start as u32, range.end as u32);
            let response = PassedResponse::Received(answer.subarray(begin, end));
            answer::decode_around(response, &answer.subarray(end, length).to_vec())
        }
        None => {
            let answered = answer::decode(answer.to_vec());
            Answered {
                result: answered.result.map(PassedResponse::from),
                router_instance: answered.router_instance,
            }
        }
    }
}

/// A message stream that is being opened, given up unless it is taken.
struct Attempt(Option<runtime::Connecting>);

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(connecting) = &self.0 {
            connecting.give_up();
        }
    }
}

async fn connect(environment: &Environment, shard: u32) -> Result<Upstream, CallError> {
    let to = ObjectName::Shard(shard);
    let namespace = environment.namespace(to).map_err(unbound)?;
    let connecting = runtime::Connecting::new(&namespace, &to_name(to), CONNECT_DEADLINE_MS);
    let opened = connecting.opened();
    let mut attempt = Attempt(Some(connecting));
    let socket = within_deadline(opened, CONNECT_DEADLINE_MS).await?;
    attempt.0 = None;
    Ok(Upstream::new(socket.unchecked_into()))
}

/// The runtime's source of randomness.
pub(crate) struct RuntimeRandomness;

impl Randomness for RuntimeRandomness {
    fn fill(&mut self, bytes: &mut [u8]) {
        runtime::fill_random(bytes);
    }
}

/// One invocation of the Worker.
#[derive(Clone, Debug)]
pub(crate) struct WorkerPlatform {
    environment: Environment,
    invocation: InvocationContext,
}

impl WorkerPlatform {
    pub(crate) fn new(environment: Environment, invocation: InvocationContext) -> Self {
        Self {
            environment,
            invocation,
        }
    }
}

impl Platform for WorkerPlatform {
    type Passed = PassedResponse;
    type Upstream = Upstream;

    async fn is_ready(&self) -> bool {
        let Ok(settings) = self.environment.settings() else {
            return false;
        };
        match &settings.credentials {
            Some(credentials) => admission::is_ready(credentials, &self.invocation).await,
            None => true,
        }
    }

    fn now_ns(&self) -> u64 {
        runtime::now_ns()
    }

    fn random(&self, bytes: &mut [u8]) {
        runtime::fill_random(bytes);
    }

    async fn call(
        &self,
        to: ObjectName,
        method: &str,
        request: Vec<u8>,
        deadline_ms: u32,
    ) -> Result<Vec<u8>, CallError> {
        let answer = call(&self.environment, to, method, request, deadline_ms).await?;
        Ok(answer.to_vec())
    }

    async fn call_passing(
        &self,
        to: ObjectName,
        method: &str,
        request: Vec<u8>,
        deadline_ms: u32,
    ) -> Result<Answered<PassedResponse>, CallError> {
        let answer = call(&self.environment, to, method, request, deadline_ms).await?;
        Ok(take_apart(&answer))
    }

    async fn connect(&self, shard: u32) -> Result<Upstream, CallError> {
        connect(&self.environment, shard).await
    }

    async fn delay(&self, milliseconds: u32) {
        timer::delay(milliseconds).await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let work = future_to_promise(async move {
            task.await;
            Ok(JsValue::UNDEFINED)
        });
        self.invocation.wait_until(&work);
    }
}

/// One Durable Object.
#[derive(Clone, Debug)]
pub(crate) struct DurableObject {
    environment: Environment,
    context: ObjectContext,
    database: Database,
}

impl DurableObject {
    pub(crate) fn new(environment: Environment, context: ObjectContext) -> Self {
        let database = Database::new(context.storage());
        Self {
            environment,
            context,
            database,
        }
    }
}

impl Platform for DurableObject {
    type Passed = Bytes;
    type Upstream = Upstream;

    fn now_ns(&self) -> u64 {
        runtime::now_ns()
    }

    fn random(&self, bytes: &mut [u8]) {
        runtime::fill_random(bytes);
    }

    async fn call(
        &self,
        to: ObjectName,
        method: &str,
        request: Vec<u8>,
        deadline_ms: u32,
    ) -> Result<Vec<u8>, CallError> {
        let answer = call(&self.environment, to, method, request, deadline_ms).await?;
        Ok(answer.to_vec())
    }

    async fn connect(&self, shard: u32) -> Result<Upstream, CallError> {
        connect(&self.environment, shard).await
    }

    async fn delay(&self, milliseconds: u32) {
        timer::delay(milliseconds).await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        spawn_local(task);
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "socket ids are below 2^53, and so are times"
)]
impl ObjectPlatform for DurableObject {
    type Sql = Database;

    fn sql(&self) -> &Database {
        &self.database
    }

    async fn sync(&self) -> Result<(), CallError> {
        #[cfg(feature = "test-panics")]
        crate::failure::wait_while_held().await;
        JsFuture::from(self.context.storage().sync())
            .await
            .map(drop)
            .map_err(|error| unknown(&error))
    }

    fn set_alarm(&self, at_ms: u64) {
        let setting = runtime::set_alarm_no_later_than(&self.context, at_ms as f64);
        spawn_local(async move {
            if let Err(error) = JsFuture::from(setting).await {
                runtime::log_error(&format!("an alarm could not be set: {}", describe(&error)));
            }
        });
    }

    fn send(&self, socket: SocketId, message: Vec<u8>) {
        runtime::send_on_socket(
            &self.context,
            socket.0 as f64,
            Uint8Array::from(message.as_slice()),
        );
    }

    fn send_to_all(&self, sockets: &[SocketId], message: &[u8]) {
        let sockets: Vec<f64> = sockets.iter().map(|socket| socket.0 as f64).collect();
        runtime::send_on_sockets(&self.context, &sockets, Uint8Array::from(message));
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ids are whole and not negative"
    )]
    fn sockets(&self) -> Vec<SocketId> {
        runtime::open_sockets(&self.context)
            .into_iter()
            .map(|id| SocketId(id as u64))
            .collect()
    }

    fn close(&self, socket: SocketId, reason: &str) {
        runtime::close_socket(&self.context, socket.0 as f64, reason);
    }
}

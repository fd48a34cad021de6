//! The stateless half of the backend: decodes and checks a request, calls the objects, answers. Depends on `envelope`
//! for what a request means.
//!
//! - [`publish`]: Publish, with [`validation`] against [`histories`] and [`finds`];
//! - [`query`]: Query and QueryNewest; [`inboxes`]: GetInboxIds; `wallets`: VerifySmartContractWalletSignatures;
//! - [`notification`]: push and attachments, which a deployment has none of;
//! - [`health`]: the health protocol; [`streams`]: what opens a stream;
//! - [`routes`]: which paths there are.

mod finds;
mod health;
mod histories;
mod inboxes;
mod notification;
mod publish;
mod query;
mod routes;
mod streams;
mod validation;
mod wallets;

use std::{cell::RefCell, rc::Rc};

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::RpcKind;
use prost::Message;

use crate::{
    Configuration, Isolate,
    answer::{self, Answered},
    platform::{ObjectName, Passed as _, Platform},
    routing::Routing,
    session::{Requests, StreamSession},
    status,
};
use routes::Route;

/// What came with a call besides its message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallContext {
    /// Time the caller allows, in milliseconds from now (`grpc-timeout`).
    pub deadline_ms: Option<u32>,
    /// The header `conclave-expected-router-instance`. Only Publish reads it.
    pub expected_router_instance: Option<String>,
}

/// What a unary RPC came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<R = Bytes> {
    /// The encoded response message, or the status.
    pub result: Result<R, Status>,
    /// The value of the response header `conclave-router-instance`, where one is known.
    pub router_instance: Option<String>,
}

/// The RPCs of a deployment. Holds no state that matters: any number may run at once, anywhere.
#[derive(Debug)]
pub struct Backend<P: Platform> {
    platform: P,
    configuration: Rc<Configuration>,
    isolate: Rc<Isolate>,
    routing: Routing,
    /// The Router instance last seen in an answer, for responses that need no call.
    router_instance: RefCell<Option<String>>,
}

impl<P: Platform> Backend<P> {
    /// A backend on this platform that remembers nothing of others and knows no chains.
    #[must_use]
    pub fn new(platform: P, configuration: Rc<Configuration>) -> Self {
        Self::in_isolate(platform, configuration, Rc::default())
    }

    /// A backend on this platform, with the memory of its process.
    #[must_use]
    pub fn in_isolate(platform: P, configuration: Rc<Configuration>, isolate: Rc<Isolate>) -> Self {
        let routing = Routing::at_birth(configuration.shard_count);
        Self {
            platform,
            configuration,
            isolate,
            routing,
            router_instance: RefCell::new(None),
        }
    }

    /// How messages travel for the RPC at `path`, `/package.Service/Method`, or `None` when nothing is known there.
    /// Server streams go to [`Backend::stream`], bidirectional ones to [`Backend::duplex`], everything else to
    /// [`Backend::unary`].
    #[must_use]
    pub fn kind(path: &str) -> Option<RpcKind> {
        routes::kind(path)
    }

    /// The path of an RPC that is served, as this program spells it: one of a fixed number, whatever is asked for.
    #[must_use]
    pub fn served_path(path: &str) -> Option<&'static str> {
        routes::served_path(path)
    }

    /// Runs the unary RPC at `path`. `wire_length` is the length of the request message in bytes as the client encoded
    /// it.
    ///
    /// A response that is longer than max_response_bytes fails with OUT_OF_RANGE, though a publish may have committed
    /// by then (API-224, API-283).
    pub async fn unary(
        &self,
        path: &str,
        message: Bytes,
        wire_length: usize,
        context: &CallContext,
    ) -> Reply<P::Passed> {
        let result = match self.check_wire_length(wire_length.max(message.len())) {
            Ok(()) => self.dispatch(path, message, context).await,
            Err(refusal) => Err(refusal),
        };
        Reply {
            result,
            router_instance: self.router_instance.borrow().clone(),
        }
    }

    /// Opens the server stream at `path`. Resolves when its first frame is ready.
    ///
    /// # Errors
    /// The status the stream fails with before its first frame.
    pub async fn stream(
        &self,
        path: &str,
        message: Bytes,
        wire_length: usize,
        context: &CallContext,
    ) -> Result<StreamSession<P>, Status> {
        self.check_wire_length(wire_length.max(message.len()))?;
        match routes::find(path) {
            Some(Route::SubscribeStatic) => self.subscribe_static(message, context).await,
            Some(Route::HealthWatch) => self.watch_health(message, context),
            _ => Err(routes::not_served(path)),
        }
    }

    /// Opens the bidirectional stream at `path`, before anything the client sends on it is read (API-250). Resolves when
    /// its first frame is ready.
    ///
    /// # Errors
    /// The status the stream fails with before its first frame.
    pub async fn duplex(
        &self,
        path: &str,
        context: &CallContext,
    ) -> Result<(StreamSession<P>, Requests<P>), Status> {
        match routes::find(path) {
            Some(Route::Subscribe) => self.subscribe(context).await,
            _ => Err(routes::not_served(path)),
        }
    }

    async fn dispatch(&self, path: &str, message: Bytes, context: &CallContext) -> Result<P::Passed, Status> {
        let response = match routes::find(path) {
            Some(Route::GetConfiguration) => {
                return Ok(Bytes::from(self.configuration.to_wire().encode_to_vec()).into());
            }
            Some(Route::Query) => self.query(message, context).await?,
            _ => Bytes::from(self.dispatch_small(path, message, context).await?).into(),
        };
        self.check_response_length(response.length())?;
        Ok(response)
    }

    /// The RPCs whose responses are made here.
    async fn dispatch_small(
        &self,
        path: &str,
        message: Bytes,
        context: &CallContext,
    ) -> Result<Vec<u8>, Status> {
        match routes::find(path) {
            Some(Route::Publish) => self.publish(message, context).await,
            Some(Route::QueryNewest) => self.query_newest(message, context).await,
            Some(Route::GetInboxIds) => self.get_inbox_ids(message, context).await,
            Some(Route::GetInstance) => self.ask_sequencer("instance", context).await,
            Some(Route::GetStatus) => self.ask_sequencer("status", context).await,
            Some(Route::Registry) => self
                .call(ObjectName::Registry, path, message.to_vec(), context)
                .await
                .map(|response| response.to_vec()),
            Some(Route::VerifyWalletSignatures) => self.verify_wallet_signatures(message, context).await,
            Some(Route::RegisterRecipient) => Err(notification::register(message)),
            Some(Route::UnregisterRecipient) => Err(notification::unregister(message)),
            Some(Route::UpdateSubscriptions) => Err(notification::update_subscriptions(message)),
            Some(Route::CreateUpload) => Err(notification::create_upload(message)),
            Some(Route::HealthCheck) => self.check_health(message, context).await,
            Some(Route::HealthList) => self.list_health(context).await,
            _ => Err(routes::not_served(path)),
        }
    }

    /// How long one call to an object or a chain may take, in milliseconds.
    fn call_deadline_ms(&self, context: &CallContext) -> u32 {
        let max = self.configuration.max_call_duration_ms;
        context.deadline_ms.map_or(max, |ms| ms.min(max))
    }

    async fn ask_sequencer(&self, method: &str, context: &CallContext) -> Result<Vec<u8>, Status> {
        self.call(self.sequencer(), method, Vec::new(), context)
            .await
            .map(|response| response.to_vec())
    }

    /// The object that plays the Sequencer.
    fn sequencer(&self) -> ObjectName {
        match self.configuration.shard_count {
            1 => ObjectName::Shard(0),
            _ => ObjectName::Sequencer,
        }
    }

    /// Calls an object, and remembers the Router instance its answer names.
    async fn call(
        &self,
        to: ObjectName,
        method: &str,
        request: Vec<u8>,
        context: &CallContext,
    ) -> Result<Bytes, Status> {
        let answered = self
            .platform
            .call(to, method, request, self.call_deadline_ms(context))
            .await
            .map_err(|error| status::from_call_error(&error))?;
        self.heard(answer::decode(answered))
    }

    /// Calls an object whose response is the RPC's own, byte for byte.
    async fn call_passing(
        &self,
        to: ObjectName,
        method: &str,
        request: Vec<u8>,
        context: &CallContext,
    ) -> Result<P::Passed, Status> {
        let answered = self
            .platform
            .call_passing(to, method, request, self.call_deadline_ms(context))
            .await
            .map_err(|error| status::from_call_error(&error))?;
        self.heard(answered)
    }

    fn heard<R>(&self, answered: Answered<R>) -> Result<R, Status> {
        if answered.router_instance.is_some() {
            *self.router_instance.borrow_mut() = answered.router_instance;
        }
        answered.result
    }

    fn check_wire_length(&self, wire_length: usize) -> Result<(), Status> {
        let max = self.configuration.limits.max_request_bytes;
        if wire_length as u64 > max {
            return Err(Status::out_of_range(format!(
                "the request of {wire_length} bytes is longer than max_request_bytes, {max}"
            )));
        }
        Ok(())
    }

    fn check_response_length(&self, length: usize) -> Result<(), Status> {
        let max = self.configuration.limits.max_response_bytes;
        if length as u64 > max {
            return Err(crate::shard::too_long(max));
        }
        Ok(())
    }
}

/// A request message that does not decode can never succeed.
fn decode<T: Message + Default>(message: Bytes) -> Result<T, Status> {
    T::decode(message)
        .map_err(|error| Status::invalid_argument(format!("the request does not decode: {error}")))
}

/// An object's answer that does not decode breaks an invariant of ours.
fn decode_answer<T: Message + Default>(answer: Bytes) -> Result<T, Status> {
    T::decode(answer)
        .map_err(|error| Status::internal(format!("the answer of an object does not decode: {error}")))
}

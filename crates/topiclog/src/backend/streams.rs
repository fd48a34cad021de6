//! What opens a stream: Subscribe, SubscribeStatic and the health Watch.

use std::rc::Rc;

use bytes::Bytes;
use conclave_envelope::request::StaticPlan;
use conclave_grpc_web::Status;
use conclave_proto::grpc::health::v1::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
};
use futures_util::stream::{self, StreamExt as _};
use prost::Message as _;

use super::{Backend, CallContext, decode, health, query::invalid};
use crate::{
    platform::Platform,
    session::{Requests, StreamSession, open_bidirectional, open_static},
};

/// How often a watched deployment is looked at, in milliseconds.
const WATCH_INTERVAL_MS: u32 = 30_000;

impl<P: Platform> Backend<P> {
    pub(super) async fn subscribe_static(
        &self,
        message: Bytes,
        context: &CallContext,
    ) -> Result<StreamSession<P>, Status> {
        let plan =
            StaticPlan::decode(message, &self.configuration.limits).map_err(|error| invalid(&error))?;
        let session = open_static(
            &self.platform,
            &self.configuration,
            &self.routing,
            plan,
            context.deadline_ms,
        )
        .await?;
        *self.router_instance.borrow_mut() = session.router_instance().map(str::to_owned);
        Ok(session)
    }

    /// Asks the Sequencer for the Router instance, which no shard has named yet, so that the response can name it.
    pub(super) async fn subscribe(
        &self,
        context: &CallContext,
    ) -> Result<(StreamSession<P>, Requests<P>), Status> {
        self.ask_sequencer("instance", context).await?;
        let router_instance = self.router_instance.borrow().clone();
        open_bidirectional(
            &self.platform,
            &self.configuration,
            &self.routing,
            router_instance,
            context.deadline_ms,
        )
    }

    /// One status now, and one whenever it changes. A service nobody knows is reported so, and watched for ever.
    pub(super) fn watch_health(
        &self,
        message: Bytes,
        context: &CallContext,
    ) -> Result<StreamSession<P>, Status> {
        let HealthCheckRequest { service } = decode(message)?;
        let router_instance = self.router_instance.borrow().clone();
        if !health::is_known(&service) {
            let unknown = HealthCheckResponse {
                status: ServingStatus::ServiceUnknown.into(),
            };
            let frames = stream::iter([Ok(unknown.encode_to_vec())]).chain(stream::pending());
            return Ok(StreamSession::over_frames(Box::pin(frames), router_instance));
        }
        let watcher = Self::in_isolate(
            self.platform.clone(),
            self.configuration.clone(),
            Rc::clone(&self.isolate),
        );
        let call = CallContext {
            deadline_ms: context.deadline_ms,
            ..CallContext::default()
        };
        let frames = stream::unfold((watcher, call, None), |(watcher, call, reported)| async move {
            loop {
                let health = watcher.health(&call).await;
                if reported != Some(health) {
                    return Some((Ok(health.encode_to_vec()), (watcher, call, Some(health))));
                }
                watcher.platform.delay(WATCH_INTERVAL_MS).await;
            }
        });
        Ok(StreamSession::over_frames(Box::pin(frames), router_instance))
    }
}

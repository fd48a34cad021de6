//! What an operator reads: the counters of this process and the state of the deployment, as Prometheus text. Depends on
//! `telemetry` for the text and on `topiclog` for the state.
//!
//! The path is served while the operator's token is set, and only to who presents it: not to whom other credentials admit.

use std::rc::Rc;

use bytes::Bytes;
use conclave_configuration::Settings;
use conclave_credentials::bearer;
use conclave_proto::{
    Rpc,
    conclave::operator::v1::operator_service::GetStatus,
    grpc::health::v1::{health::Check, health_check_response::ServingStatus},
};
use conclave_telemetry::{Gauges, exposition};
use conclave_topiclog::{Backend, CallContext, SERVER_VERSION};
use prost::Message as _;
use wasm_bindgen::JsValue;

use crate::{
    admission,
    environment::Environment,
    platform::WorkerPlatform,
    recording,
    runtime::{InvocationContext, Request},
    worker::{self, NO_HEADERS, whole},
};

/// Where the text is read.
pub(crate) const PATH: &str = "/metrics";

/// How long the deployment may take to tell its state, in milliseconds.
const STATE_DEADLINE_MS: u32 = 5_000;

/// Answers a request for the text.
pub(crate) async fn answer(
    request: &Request,
    environment: &Environment,
    invocation: &InvocationContext,
) -> JsValue {
    let Ok(settings) = environment.settings() else {
        return whole(503, NO_HEADERS, None);
    };
    let Some(operator) = &settings.operations.token else {
        return whole(404, NO_HEADERS, None);
    };
    let credential = request.headers().get("authorization");
    let token = bearer::from_header(credential.as_deref());
    if token.ok().and_then(|token| operator.name_of(token)).is_none() {
        return whole(401, [("www-authenticate", "Bearer")], None);
    }
    if request.method() != "GET" {
        return whole(405, [("allow", "GET")], None);
    }
    let gauges = gauges(environment, invocation, &settings).await;
    let text = exposition::exposition(&recording::counters(), &gauges);
    let headers = [
        ("content-type", exposition::CONTENT_TYPE),
        ("cache-control", "no-store"),
    ];
    whole(200, headers, Some(&Bytes::from(text)))
}

async fn gauges(environment: &Environment, invocation: &InvocationContext, settings: &Settings) -> Gauges {
    let platform = WorkerPlatform::new(environment.clone(), invocation.clone());
    let configuration = Rc::clone(&settings.backend);
    let isolate = worker::isolate(&configuration);
    let backend = Backend::in_isolate(platform, configuration, isolate);
    let health = ask::<Check>(&backend).await;
    let status = ask::<GetStatus>(&backend).await;
    Gauges {
        version: SERVER_VERSION,
        is_ready: health.is_some_and(|health| health.status() == ServingStatus::Serving),
        key_count: settings.credentials.as_ref().map_or(0, admission::key_count),
        counting_since_seconds: recording::counting_since_seconds(),
        last_sequence_id: status.as_ref().map(|status| status.last_allocated_sequence_id),
        closed_boundary: status.and_then(|status| status.closed_allocation_boundary),
    }
}

/// What an RPC answers to an empty message.
async fn ask<R: Rpc>(backend: &Backend<WorkerPlatform>) -> Option<R::Response> {
    let context = CallContext {
        deadline_ms: Some(STATE_DEADLINE_MS),
        ..CallContext::default()
    };
    let reply = backend.unary(R::PATH, Bytes::new(), 0, &context).await;
    R::Response::decode(reply.result.ok()?.into_bytes()).ok()
}

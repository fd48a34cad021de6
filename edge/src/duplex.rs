//! A bidirectional stream, in the bodies of a request and its response or on a WebSocket
//! (docs/decisions/0012-streams-on-the-wire.md). Depends on [`worker`](crate::worker), whose calls it answers.

use std::{borrow::Cow, rc::Rc};

use conclave_grpc_web::{
    Encoding, Status,
    cors::{REQUEST_ID_HEADER, ROUTER_INSTANCE_HEADER},
    server::{self, Accepted},
};
use conclave_topiclog::{Backend, CallContext, Configuration, Requests, StreamSession};
use js_sys::Uint8Array;
use wasm_bindgen::JsValue;

use crate::{
    body::BodySource,
    platform::WorkerPlatform,
    requests::RequestSink,
    runtime,
    worker::{Call, bytes_limit, call_headers, flatten, isolate, whole_milliseconds, within},
};

impl Call<'_> {
    /// Opens a bidirectional stream whose frames travel in the bodies of the request and of the response.
    pub(crate) async fn run_duplex(self, accepted: Accepted, configuration: Rc<Configuration>) -> JsValue {
        let Accepted { encoding, timeout } = accepted;
        let limits = configuration.limits;
        match self
            .open_duplex(timeout.map(whole_milliseconds), &configuration)
            .await
        {
            Ok((session, requests)) => {
                let headers = call_headers(encoding, session.router_instance());
                let headers = flatten(headers);
                let requests = RequestSink::new(requests, encoding, bytes_limit(limits.max_request_bytes));
                let source = BodySource::new(session, encoding, bytes_limit(limits.max_response_bytes));
                let status = server::RESPONSE_HTTP_STATUS;
                runtime::duplex_response(status, headers, source, requests, self.request)
            }
            Err(status) => self.refuse(encoding, &status).await,
        }
    }

    /// Opens a bidirectional stream whose frames travel on a WebSocket.
    pub(crate) async fn run_on_socket(self) -> JsValue {
        let encoding = Encoding::Binary;
        let opened = match self.environment.settings() {
            Ok(settings) => {
                let configuration = Rc::clone(&settings.backend);
                let opened = self.open_duplex(None, &configuration).await;
                opened.map(|opened| (opened, configuration.limits))
            }
            Err(_) => Err(Status::unavailable(
                "the deployment's configuration cannot be used",
            )),
        };
        match opened {
            Ok(((session, requests), limits)) => {
                let headers = flatten(socket_headers(session.router_instance()));
                let requests = RequestSink::new(requests, encoding, bytes_limit(limits.max_request_bytes));
                let source = BodySource::frame_by_frame(session, bytes_limit(limits.max_response_bytes));
                runtime::stream_socket(headers, source, requests)
            }
            Err(status) => {
                let trailers = Uint8Array::from(server::error_response(encoding, &status).as_ref());
                runtime::refuse_socket(
                    flatten(socket_headers(None)),
                    trailers,
                    status.code.number().into(),
                )
            }
        }
    }

    async fn open_duplex(
        &self,
        deadline_ms: Option<u32>,
        configuration: &Rc<Configuration>,
    ) -> Result<(StreamSession<WorkerPlatform>, Requests<WorkerPlatform>), Status> {
        let context = CallContext {
            deadline_ms,
            ..CallContext::default()
        };
        let platform = WorkerPlatform::new(self.environment.clone(), self.invocation.clone());
        let backend = Backend::in_isolate(platform, Rc::clone(configuration), isolate(configuration));
        within(deadline_ms, backend.duplex(self.path, &context)).await
    }
}

/// The headers of an answer that is a WebSocket.
pub(crate) fn socket_headers(
    router_instance: Option<&str>,
) -> impl Iterator<Item = (&'static str, Cow<'static, str>)> + use<> {
    let instance = router_instance.map(|instance| (ROUTER_INSTANCE_HEADER, Cow::Owned(instance.to_owned())));
    [(REQUEST_ID_HEADER, Cow::Owned(runtime::random_uuid()))]
        .into_iter()
        .chain(instance)
}

/// Whether an `upgrade` header asks for a WebSocket.
pub(crate) fn is_upgrade(header: Option<&str>) -> bool {
    header.is_some_and(|value| value.trim().eq_ignore_ascii_case("websocket"))
}

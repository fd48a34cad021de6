//! A bidirectional stream, in the bodies of a request and its response or on a WebSocket
//! (docs/decisions/0012-streams-on-the-wire.md). Depends on [`worker`](crate::worker), whose calls it answers.

use std::{borrow::Cow, rc::Rc};

use conclave_credentials::bearer;
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
    worker::{Call, bytes_limit, flatten, isolate, whole_milliseconds, within},
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
                let headers = flatten(self.headers(encoding, session.router_instance()));
                let max_request_bytes = bytes_limit(limits.max_request_bytes);
                let received = self.recording.received_bytes();
                let requests = RequestSink::new(requests, encoding, max_request_bytes, received);
                let max_response_bytes = bytes_limit(limits.max_response_bytes);
                let source = BodySource::new(session, encoding, max_response_bytes, self.recording);
                let status = server::RESPONSE_HTTP_STATUS;
                runtime::duplex_response(status, headers, source, requests, self.request)
            }
            Err(status) => self.refuse(encoding, &status).await,
        }
    }

    /// Opens a bidirectional stream whose frames travel on a WebSocket.
    pub(crate) async fn run_on_socket(self, configuration: Rc<Configuration>) -> JsValue {
        let limits = configuration.limits;
        match self.open_duplex(None, &configuration).await {
            Ok((session, requests)) => {
                let headers = flatten(self.socket_headers(session.router_instance()));
                let encoding = Encoding::Binary;
                let max_request_bytes = bytes_limit(limits.max_request_bytes);
                let received = self.recording.received_bytes();
                let requests = RequestSink::new(requests, encoding, max_request_bytes, received);
                let max_response_bytes = bytes_limit(limits.max_response_bytes);
                let source = BodySource::frame_by_frame(session, max_response_bytes, self.recording);
                runtime::stream_socket(headers, source, requests)
            }
            Err(status) => self.refuse_socket(&status),
        }
    }

    /// Accepts a WebSocket only to say why there is no stream: a page is not told why one was not accepted.
    pub(crate) fn refuse_socket(self, status: &Status) -> JsValue {
        self.recording.ended(status.code);
        let trailers = server::error_response(Encoding::Binary, status);
        self.recording.sent(trailers.len());
        runtime::refuse_socket(
            flatten(self.socket_headers(None)),
            Uint8Array::from(trailers.as_ref()),
            status.code.number().into(),
        )
    }

    /// The headers of an answer that is a WebSocket. A browser that offered subprotocols must be told which of them it is.
    fn socket_headers(
        &self,
        router_instance: Option<&str>,
    ) -> impl Iterator<Item = (&'static str, Cow<'static, str>)> + use<> {
        let instance =
            router_instance.map(|instance| (ROUTER_INSTANCE_HEADER, Cow::Owned(instance.to_owned())));
        let request_id = Cow::Owned(self.recording.request_id().to_owned());
        let offered = self.request.headers().get("sec-websocket-protocol");
        let subprotocol = offered
            .and_then(|offered| bearer::chosen_subprotocol(&offered))
            .map(|chosen| ("sec-websocket-protocol", Cow::Owned(chosen)));
        [(REQUEST_ID_HEADER, request_id)]
            .into_iter()
            .chain(instance)
            .chain(subprotocol)
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

/// Whether an `upgrade` header asks for a WebSocket.
pub(crate) fn is_upgrade(header: Option<&str>) -> bool {
    header.is_some_and(|value| value.trim().eq_ignore_ascii_case("websocket"))
}

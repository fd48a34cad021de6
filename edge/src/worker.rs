//! One HTTP request to the Worker. Depends on `grpc-web` for what the bytes mean and on `topiclog` for what they do.

use std::{borrow::Cow, cell::OnceCell, rc::Rc, time::Duration};

use bytes::Bytes;
use conclave_configuration::Settings;
use conclave_credentials::{Admission, public_path};
use conclave_grpc_web::{
    Code, Encoding, Status,
    cors::{self, EXPECTED_ROUTER_INSTANCE_HEADER, REQUEST_ID_HEADER, ROUTER_INSTANCE_HEADER},
    server::{self, Accepted, Refusal, RequestHead, UnaryRequest},
};
use conclave_proto::{Rpc as _, RpcKind, xmtp::backend::v1::configuration_service::GetConfiguration};
use conclave_telemetry::Route;
use conclave_topiclog::{Backend, CallContext, Configuration, Isolate, Reply, TRANSPORT_CEILING_BYTES};
use futures_util::{
    FutureExt as _,
    future::{Either, select},
    pin_mut,
};
use js_sys::{Array, Object, Promise, Uint8Array};
use wasm_bindgen::{JsCast as _, JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::{JsFuture, future_to_promise};

use crate::{
    admission::{self, Refusal as CredentialRefusal},
    body::BodySource,
    chains,
    duplex::is_upgrade,
    environment::Environment,
    metrics,
    platform::{PassedResponse, WorkerPlatform},
    recording::Recording,
    runtime::{self, InvocationContext, Request, describe, log_error},
    timer,
};

/// How many bytes of a body that is refused anyway are kept while it is read to its end.
const KEEP_NOTHING: usize = 0;

/// Answers a request. Never rejects.
#[wasm_bindgen(js_name = handleFetch)]
#[allow(unreachable_pub, reason = "wasm-bindgen exports only what is public")]
pub fn handle_fetch(request: Request, env: Object, invocation: InvocationContext) -> Promise {
    future_to_promise(async move {
        let environment = Environment::new(env);
        Ok(answer(&request, environment, invocation).await)
    })
}

async fn answer(request: &Request, environment: Environment, invocation: InvocationContext) -> JsValue {
    let (method, url) = (request.method(), request.url());
    let path = path_of(&url);
    #[cfg(feature = "test-panics")]
    if let Some(response) = crate::failure::in_worker(&environment, path).await {
        return response;
    }
    if method == "OPTIONS" {
        let asked = request.headers().get("access-control-request-headers");
        let headers = cors::preflight_headers(asked.as_deref());
        return whole(
            cors::PREFLIGHT_HTTP_STATUS,
            headers.map(|(name, value)| (name, value)),
            None,
        );
    }
    if path == metrics::PATH {
        return metrics::answer(request, &environment, &invocation).await;
    }
    let is_file = !is_rpc_path(path) && matches!(method.as_str(), "GET" | "HEAD");
    if is_file {
        return serve_file(request, &environment).await;
    }
    let settings = environment.settings().ok();
    let route = Route::of(Backend::<WorkerPlatform>::served_path(path));
    let call = Call {
        request,
        environment,
        invocation,
        path,
        recording: Recording::begin(route, &request.headers(), settings),
    };
    call.answer(&method).await
}

/// The path of an absolute URL.
fn path_of(url: &str) -> &str {
    let after_scheme = url.find("://").map_or(0, |index| index + "://".len());
    let path = url[after_scheme..]
        .find('/')
        .map_or("/", |index| &url[after_scheme + index..]);
    path.split(['?', '#']).next().unwrap_or(path)
}

/// Whether a path is of the form `/package.Service/Method`.
fn is_rpc_path(path: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let Some((service, method)) = path.strip_prefix('/').and_then(|path| path.split_once('/')) else {
        return false;
    };
    service.contains('.') && service.split('.').all(is_word) && is_word(method)
}

/// The site, where there is one. Everybody may read it.
async fn serve_file(request: &Request, environment: &Environment) -> JsValue {
    let Some(assets) = environment.assets() else {
        return whole(404, NO_HEADERS, None);
    };
    match JsFuture::from(assets.fetch(request)).await {
        Ok(response) => response,
        Err(error) => {
            log_error(&format!("the static files cannot be read: {}", describe(&error)));
            whole(502, NO_HEADERS, None)
        }
    }
}

pub(crate) const NO_HEADERS: [(&str, &str); 0] = [];

async fn read(request: &Request, keep_bytes: usize) -> Result<Vec<u8>, JsValue> {
    #[allow(clippy::cast_precision_loss, reason = "a limit of a few MiB")]
    let body = JsFuture::from(runtime::read_body(request, keep_bytes as f64)).await?;
    Ok(body.unchecked_into::<Uint8Array>().to_vec())
}

/// The longest body that holds one message of `max_request_bytes`, and a little more, so that one that is longer shows.
fn body_bytes_max(max_request_bytes: usize) -> usize {
    const FRAMING_BYTES: usize = 64;
    let base64 = max_request_bytes.div_ceil(3) * 4;
    base64 + FRAMING_BYTES
}

pub(crate) fn whole<'a, N: AsRef<str> + 'a, V: AsRef<str> + 'a>(
    status: u16,
    headers: impl IntoIterator<Item = (N, V)>,
    body: Option<&Bytes>,
) -> JsValue {
    let body = body.map(|body| Array::of1(&Uint8Array::from(body.as_ref())));
    runtime::whole_response(status, flatten(headers), body)
}

pub(crate) fn flatten<N: AsRef<str>, V: AsRef<str>>(
    headers: impl IntoIterator<Item = (N, V)>,
) -> Vec<String> {
    headers
        .into_iter()
        .flat_map(|(name, value)| [name.as_ref().to_owned(), value.as_ref().to_owned()])
        .collect()
}

fn unusable() -> Status {
    Status::unavailable("the deployment's configuration cannot be used")
}

/// A request that is to be answered as a call, even if nobody serves its path.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a Request,
    pub(crate) environment: Environment,
    pub(crate) invocation: InvocationContext,
    pub(crate) path: &'a str,
    pub(crate) recording: Recording,
}

impl Call<'_> {
    async fn answer(self, method: &str) -> JsValue {
        let headers = self.request.headers();
        let content_type = headers.get("content-type");
        let grpc_encoding = headers.get("grpc-encoding");
        let content_encoding = headers.get("content-encoding");
        let grpc_timeout = headers.get("grpc-timeout");
        let head = RequestHead {
            method,
            content_type: content_type.as_deref(),
            grpc_encoding: grpc_encoding.as_deref(),
            content_encoding: content_encoding.as_deref(),
            grpc_timeout: grpc_timeout.as_deref(),
        };
        let checked = head.check();
        let is_socket = self.is_bidirectional() && is_upgrade(headers.get("upgrade").as_deref());
        let settings = self.environment.settings();
        if let Ok(settings) = &settings
            && let Err(refusal) = self.admit(settings).await
        {
            if is_socket {
                return self.refuse_socket(&refusal.status());
            }
            return self
                .refuse_credential(checked.map(|accepted| accepted.encoding), refusal)
                .await;
        }
        if is_socket {
            return match settings {
                Ok(settings) => self.run_on_socket(Rc::clone(&settings.backend)).await,
                Err(_) => self.refuse_socket(&unusable()),
            };
        }
        match checked {
            Err(Refusal::Http { .. }) if !is_rpc_path(self.path) => self.refuse_http(404, NO_HEADERS).await,
            Err(Refusal::Http { status }) => self.refuse_http(status, cors::RESPONSE_HEADERS).await,
            Err(Refusal::Call { encoding, status }) => self.refuse(encoding, &status).await,
            Ok(accepted) => match settings {
                Ok(settings) if self.is_bidirectional() => {
                    self.run_duplex(accepted, Rc::clone(&settings.backend)).await
                }
                Ok(settings) => self.run(accepted, &settings).await,
                Err(_) => self.refuse(accepted.encoding, &unusable()).await,
            },
        }
    }

    /// Asks for the credential that the path needs, before anything else of the request matters (AUTH-001).
    async fn admit(&self, settings: &Settings) -> Result<(), CredentialRefusal> {
        let Some(credentials) = &settings.credentials else {
            return Ok(());
        };
        if public_path::is_public(self.path) {
            return Ok(());
        }
        let credential = admission::credential_of(&self.request.headers());
        match admission::admit(credentials, credential.as_deref(), &self.invocation).await {
            Ok(Admission::ApiKey(name)) => self.recording.admitted(name),
            Ok(Admission::Token) => {}
            Err(refusal) => {
                if let CredentialRefusal::Rejected(rejection) = refusal {
                    self.recording.rejected(rejection.reason());
                }
                return Err(refusal);
            }
        }
        Ok(())
    }

    async fn refuse_credential(
        self,
        encoding: Result<Encoding, Refusal>,
        refusal: CredentialRefusal,
    ) -> JsValue {
        match encoding {
            Ok(encoding) | Err(Refusal::Call { encoding, .. }) => {
                self.refuse(encoding, &refusal.status()).await
            }
            Err(Refusal::Http { .. }) => {
                let challenge = ("www-authenticate", "Bearer");
                let headers = cors::RESPONSE_HEADERS.into_iter().chain([challenge]);
                self.refuse_http(refusal.http_status(), headers).await
            }
        }
    }

    async fn refuse_http(
        self,
        status: u16,
        headers: impl IntoIterator<Item = (&'static str, &'static str)>,
    ) -> JsValue {
        self.drain().await;
        self.recording.ended(Code::from_http_status(status));
        let fixed: Vec<(&str, &str)> = headers.into_iter().collect();
        let request_id = (REQUEST_ID_HEADER, self.recording.request_id());
        whole(status, fixed.into_iter().chain([request_id]), None)
    }

    /// Reads the request to its end and answers it with an error.
    pub(crate) async fn refuse(self, encoding: Encoding, status: &Status) -> JsValue {
        self.drain().await;
        self.fail(encoding, status)
    }

    /// Reads the request to its end, unless it is one that may have none before its answer.
    async fn drain(&self) {
        if !self.is_bidirectional() {
            // What comes of it does not matter: the client is answered either way.
            let _body = read(self.request, KEEP_NOTHING).await;
        }
    }

    fn is_bidirectional(&self) -> bool {
        Backend::<WorkerPlatform>::kind(self.path) == Some(RpcKind::BidirectionalStream)
    }

    async fn run(self, accepted: Accepted, settings: &Settings) -> JsValue {
        let Accepted { encoding, timeout } = accepted;
        let configuration = Rc::clone(&settings.backend);
        let max_request_bytes = bytes_limit(configuration.limits.max_request_bytes);
        let max_response_bytes = bytes_limit(configuration.limits.max_response_bytes);
        let body = match read(self.request, body_bytes_max(max_request_bytes)).await {
            Ok(body) => body,
            Err(error) => {
                let status = Status::cancelled(format!("the request did not arrive: {}", describe(&error)));
                return self.fail(encoding, &status);
            }
        };
        self.recording.received(body.len());
        let mut reader = UnaryRequest::new(encoding, max_request_bytes);
        reader.push(&body);
        drop(body);
        let message = match reader.finish() {
            Ok(message) => message,
            Err(status) => return self.fail(encoding, &status),
        };
        let context = CallContext {
            deadline_ms: timeout.map(whole_milliseconds),
            expected_router_instance: self.request.headers().get(EXPECTED_ROUTER_INSTANCE_HEADER),
        };
        let published = match self.published(settings).await {
            Ok(published) => published,
            Err(status) => return self.fail(encoding, &status),
        };
        let platform = WorkerPlatform::new(self.environment.clone(), self.invocation.clone());
        let backend = Backend::in_isolate(platform, published, isolate(&configuration));
        let wire_length = message.len();
        match Backend::<WorkerPlatform>::kind(self.path) {
            Some(RpcKind::ServerStream) => {
                let opened = backend.stream(self.path, message, wire_length, &context);
                match within(context.deadline_ms, opened).await {
                    Ok(session) => {
                        let instance = session.router_instance().map(str::to_owned);
                        let headers = flatten(self.headers(encoding, instance.as_deref()));
                        let source = BodySource::new(session, encoding, max_response_bytes, self.recording);
                        runtime::stream_response(server::RESPONSE_HTTP_STATUS, headers, source)
                    }
                    Err(status) => self.fail(encoding, &status),
                }
            }
            _ => {
                let unary = backend.unary(self.path, message, wire_length, &context).map(Ok);
                match within(context.deadline_ms, unary).await {
                    // The backend has held it to its own bound, from which the configuration is exempt (CONF-009).
                    Ok(reply) => self.respond_unary(encoding, reply, bytes_limit(TRANSPORT_CEILING_BYTES)),
                    Err(status) => self.fail(encoding, &status),
                }
            }
        }
    }

    /// The configuration, with the keys that are published of a key set where that is what is asked for.
    async fn published(&self, settings: &Settings) -> Result<Rc<Configuration>, Status> {
        match &settings.credentials {
            Some(credentials) if self.path == GetConfiguration::PATH => {
                let keys = admission::published_keys(credentials, &self.invocation).await;
                let mut published = (*settings.backend).clone();
                published.auth.keys = keys.ok_or_else(|| CredentialRefusal::NoKeys.status())?;
                Ok(Rc::new(published))
            }
            _ => Ok(Rc::clone(&settings.backend)),
        }
    }

    /// The headers of every answer to a call.
    pub(crate) fn headers(
        &self,
        encoding: Encoding,
        router_instance: Option<&str>,
    ) -> impl Iterator<Item = (&'static str, Cow<'_, str>)> {
        let instance =
            router_instance.map(|instance| (ROUTER_INSTANCE_HEADER, Cow::Owned(instance.to_owned())));
        let fixed = server::response_headers(encoding).map(|(name, value)| (name, Cow::Borrowed(value)));
        let request_id = Cow::Borrowed(self.recording.request_id());
        fixed
            .into_iter()
            .chain([(REQUEST_ID_HEADER, request_id)])
            .chain(instance)
    }

    fn respond_unary(
        &self,
        encoding: Encoding,
        reply: Reply<PassedResponse>,
        max_response_bytes: usize,
    ) -> JsValue {
        let instance = reply.router_instance.as_deref();
        let result = match reply.result {
            // What the runtime received is put between its frame's ends where it lies.
            Ok(PassedResponse::Received(response)) if encoding == Encoding::Binary => {
                let length = response.length() as usize;
                match server::unary_response_around(length, max_response_bytes) {
                    Ok((before, after)) => {
                        self.recording.sent(before.len() + length + after.len());
                        self.recording.ended(Code::Ok);
                        let before = Uint8Array::from(before.as_ref());
                        let after = Uint8Array::from(after.as_ref());
                        let body = Array::of3(&before, &response, &after);
                        let headers = flatten(self.headers(encoding, instance));
                        return runtime::whole_response(server::RESPONSE_HTTP_STATUS, headers, Some(body));
                    }
                    Err(error) => Err(error.out_of_range()),
                }
            }
            result => result.map(PassedResponse::into_bytes),
        };
        let body = server::unary_response(encoding, &result, max_response_bytes);
        self.recording
            .ended(result.map_or_else(|status| status.code, |_| Code::Ok));
        self.respond(encoding, instance, &body)
    }

    fn fail(&self, encoding: Encoding, status: &Status) -> JsValue {
        self.recording.ended(status.code);
        self.respond(encoding, None, &server::error_response(encoding, status))
    }

    fn respond(&self, encoding: Encoding, router_instance: Option<&str>, body: &Bytes) -> JsValue {
        self.recording.sent(body.len());
        whole(
            server::RESPONSE_HTTP_STATUS,
            self.headers(encoding, router_instance),
            Some(body),
        )
    }
}

thread_local! {
    /// One isolate is one process, and serves one deployment.
    static ISOLATE: OnceCell<Rc<Isolate>> = const { OnceCell::new() };
}

pub(crate) fn isolate(configuration: &Configuration) -> Rc<Isolate> {
    ISOLATE
        .with(|isolate| Rc::clone(isolate.get_or_init(|| Rc::new(Isolate::new(chains::of(configuration))))))
}

pub(crate) fn whole_milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

pub(crate) fn bytes_limit(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// What `work` comes to, or DEADLINE_EXCEEDED.
pub(crate) async fn within<T>(
    deadline_ms: Option<u32>,
    work: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let Some(deadline_ms) = deadline_ms else {
        return work.await;
    };
    let exceeded = || Status::deadline_exceeded(format!("the call took longer than {deadline_ms} ms"));
    // The work is looked at first, so a time that is over already has to be asked for.
    if deadline_ms == 0 {
        return Err(exceeded());
    }
    let deadline = timer::delay(deadline_ms);
    pin_mut!(work, deadline);
    match select(work, deadline).await {
        Either::Left((result, _)) => result,
        Either::Right(((), _)) => Err(exceeded()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_what_stands_between_the_host_and_the_query() {
        for (url, path) in [
            ("http://127.0.0.1:8787/a.B/C?x=/y", "/a.B/C"),
            ("https://host", "/"),
            ("https://host/#/a", "/"),
            ("https://host/a%20b", "/a%20b"),
        ] {
            assert_eq!(path_of(url), path, "{url}");
        }
    }

    #[test]
    fn only_a_dotted_service_and_a_method_make_a_call() {
        assert!(is_rpc_path("/xmtp.backend.v1.QueryService/Query"));
        for path in [
            "/",
            "/index.html",
            "/docs/index.html",
            "/a.b/",
            "/a.b/c/d",
            "/a..b/c",
            "/assets/app.js",
        ] {
            assert!(!is_rpc_path(path), "{path}");
        }
    }

    #[test]
    fn a_message_of_the_longest_allowed_length_fits_the_body_that_is_kept_in_either_encoding() {
        for max_request_bytes in [0, 1, 2, 3, 4 << 20] {
            let framed = max_request_bytes + conclave_grpc_web::frame::HEADER_BYTES;
            assert!(body_bytes_max(max_request_bytes) >= framed.div_ceil(3) * 4);
        }
    }
}

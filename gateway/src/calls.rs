//! What becomes of a request: sent to the backend, and its answer carried back in the caller's own terms. Depends on all
//! the parts of a call.

use std::{convert::Infallible, sync::Arc};

use conclave_grpc_web::{Code, ContentType, Encoding, FrameRelay, Status, Trailers, deadline};
use http_body_util::BodyExt as _;
use hyper::{HeaderMap, Request, Response, StatusCode, body::Incoming, header::CONTENT_TYPE};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until},
};

use crate::{
    Body,
    drain::{DrainWatch, Phase},
    heads::{remove_fields_of_one_connection, to_native, to_upstream},
    kind::{Kind, text},
    reply,
    request_body::{Refusal, RequestBody},
    response_body::{Ending, Form, ResponseBody, deadline_exceeded, shutting_down},
    settings::{ANSWER_WITHIN, DEADLINE_GRACE, Settings},
    tunnel,
    upstream::Backend,
};

/// What every call of a gateway shares.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) settings: Settings,
    pub(crate) backend: Backend,
    pub(crate) drain: DrainWatch,
    places: Arc<Semaphore>,
}

impl Calls {
    pub(crate) fn new(settings: Settings, drain: DrainWatch) -> Calls {
        Calls {
            places: Arc::new(Semaphore::new(settings.max_calls)),
            backend: Backend::new(),
            settings,
            drain,
        }
    }

    /// Answers one request, whatever it is. Dropped when its caller goes: then so does everything that was begun for it.
    pub(crate) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let kind = Kind::of(&request);
        Ok(match (kind, self.admit()) {
            (Kind::Refused(status), _) => reply::plain(status, "not carried here"),
            (Kind::Preflight, Err(_)) => reply::preflight(request.headers()),
            (_, Err(status)) => reply::failure(kind, &status, StatusCode::SERVICE_UNAVAILABLE),
            (Kind::Upgrade, Ok(place)) => tunnel::open(&self, request, place).await,
            (_, Ok(place)) => self.forward(kind, request, place).await,
        })
    }

    /// A place among the calls there may be.
    fn admit(&self) -> Result<OwnedSemaphorePermit, Status> {
        if self.drain.has_begun() {
            return Err(shutting_down());
        }
        let place = self.places.clone().try_acquire_owned();
        place.map_err(|_| Status::unavailable("too many calls at once"))
    }

    async fn forward(
        &self,
        kind: Kind,
        request: Request<Incoming>,
        place: OwnedSemaphorePermit,
    ) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let asked = (kind == Kind::Preflight).then(|| parts.headers.clone());
        let deadline = deadline_of(kind, &parts.headers);
        let refusal = Refusal::default();
        let relay = (kind == Kind::Native).then(|| FrameRelay::new(self.settings.max_message_bytes));
        let (body, call) = RequestBody::new(body, parts.version, relay, refusal.clone());
        to_upstream(&mut parts, kind, self.settings.upstream.authority());
        let request = Request::from_parts(parts, body.boxed_unsync());

        let begin_by = begin_by(Instant::now(), deadline);
        let failed = tokio::select! {
            answer = self.backend.send(request) => match answer {
                Ok(answer) => {
                    let ending = Ending { deadline, drain: self.drain.clone(), refusal, call, place };
                    return self.carry_back(kind, answer, ending);
                }
                Err(error) => match (refusal.get(), asked) {
                    (Some(refusal), _) => (refusal.clone(), StatusCode::PAYLOAD_TOO_LARGE),
                    (None, Some(headers)) => return reply::preflight(&headers),
                    (None, None) => (unreachable_status(&error), StatusCode::BAD_GATEWAY),
                },
            },
            () = sleep_until(begin_by) => (deadline_exceeded(), StatusCode::GATEWAY_TIMEOUT),
            () = self.drain.clone().wait_for(Phase::Over) => (shutting_down(), StatusCode::SERVICE_UNAVAILABLE),
        };
        reply::failure(kind, &failed.0, failed.1)
    }

    /// The backend's answer in the terms of its caller.
    fn carry_back(&self, kind: Kind, answer: Response<Incoming>, ending: Ending) -> Response<Body> {
        let (mut parts, body) = answer.into_parts();
        let encoding = text(&parts.headers, CONTENT_TYPE)
            .and_then(ContentType::parse)
            .map(ContentType::encoding);
        let form = match (kind, encoding) {
            (Kind::Native, _) => {
                if let Some(status) = status_by_head(parts.status, encoding, &parts.headers) {
                    let mut response = reply::native(&status);
                    to_native(&mut parts.headers);
                    for (name, value) in &parts.headers {
                        response
                            .headers_mut()
                            .entry(name)
                            .or_insert_with(|| value.clone());
                    }
                    return response;
                }
                to_native(&mut parts.headers);
                Form::Native
            }
            (Kind::Web(_), Some(encoding)) => Form::Web(encoding),
            _ => Form::Plain,
        };
        remove_fields_of_one_connection(&mut parts.headers);
        let body = ResponseBody::new(body, form, self.settings.max_message_bytes, ending);
        Response::from_parts(parts, body.boxed_unsync())
    }
}

/// When a call must be over: its caller's deadline, with a grace in which the backend says so itself. One that cannot be
/// read is for the backend to refuse.
fn deadline_of(kind: Kind, headers: &HeaderMap) -> Option<Instant> {
    if !matches!(kind, Kind::Native | Kind::Web(_)) {
        return None;
    }
    let timeout = deadline::parse(text(headers, "grpc-timeout")?).ok()?;
    Instant::now().checked_add(timeout)?.checked_add(DEADLINE_GRACE)
}

/// How a call ended if the head of its answer says all: an error told in headers, or no gRPC-Web at all.
fn status_by_head(
    http_status: StatusCode,
    encoding: Option<Encoding>,
    headers: &HeaderMap,
) -> Option<Status> {
    let told = Trailers::from_headers(
        text(headers, "grpc-status"),
        text(headers, "grpc-message"),
        text(headers, "grpc-status-details-bin"),
    );
    match (told.status(), http_status) {
        (Some(status), _) if !status.is_ok() => Some(status),
        (_, StatusCode::OK) => (encoding != Some(Encoding::Binary))
            .then(|| Status::unknown("the backend's answer is not gRPC-Web")),
        (_, other) => Some(Status::new(
            Code::from_http_status(other.as_u16()),
            format!("the backend answered with HTTP status {}", other.as_u16()),
        )),
    }
}

/// Why there is no answer.
pub(crate) fn unreachable_status(error: &hyper_util::client::legacy::Error) -> Status {
    Status::unavailable(if error.is_connect() {
        "the backend cannot be reached"
    } else {
        "the backend went away before it answered: the outcome of the call is unknown"
    })
}

/// When the backend must have begun its answer. A caller may ask for less time than every call has, not for more.
fn begin_by(now: Instant, deadline: Option<Instant>) -> Instant {
    let longest = now + ANSWER_WITHIN;
    deadline.map_or(longest, |deadline| deadline.min(longest))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn by_head(
        http_status: u16,
        content_type: Option<Encoding>,
        told: Option<&'static str>,
    ) -> Option<Status> {
        let mut headers = HeaderMap::new();
        if let Some(told) = told {
            headers.insert("grpc-status", HeaderValue::from_static(told));
            headers.insert("grpc-message", HeaderValue::from_static("a%20b"));
        }
        let http_status = StatusCode::from_u16(http_status).expect("a status");
        status_by_head(http_status, content_type, &headers)
    }

    #[test]
    fn a_head_that_says_all_ends_the_call() {
        let binary = Some(Encoding::Binary);
        assert_eq!(by_head(200, binary, None), None);
        assert_eq!(
            by_head(200, binary, Some("0")),
            None,
            "OK promises nothing: the trailers do"
        );
        assert_eq!(
            by_head(200, binary, Some("12")),
            Some(Status::unimplemented("a b"))
        );
        for (http_status, code) in [
            (404, Code::Unimplemented),
            (503, Code::Unavailable),
            (415, Code::Unknown),
        ] {
            assert_eq!(
                by_head(http_status, None, None).map(|status| status.code),
                Some(code)
            );
        }
        assert_eq!(
            by_head(200, None, None).map(|status| status.code),
            Some(Code::Unknown)
        );
    }

    #[test]
    fn a_deadline_is_the_callers_and_only_a_calls() {
        let mut headers = HeaderMap::new();
        assert_eq!(deadline_of(Kind::Native, &headers), None);
        headers.insert("grpc-timeout", HeaderValue::from_static("1S"));
        assert!(deadline_of(Kind::Native, &headers).is_some());
        assert!(deadline_of(Kind::Web(Encoding::Text), &headers).is_some());
        assert_eq!(deadline_of(Kind::Plain, &headers), None);
        headers.insert("grpc-timeout", HeaderValue::from_static("soon"));
        assert_eq!(deadline_of(Kind::Native, &headers), None);
        headers.insert("grpc-timeout", HeaderValue::from_static("99999999H"));
        assert!(deadline_of(Kind::Native, &headers).is_some());
    }

    #[test]
    fn a_long_deadline_gives_the_backend_no_more_time_to_begin() {
        let now = Instant::now();
        assert_eq!(begin_by(now, None), now + ANSWER_WITHIN);
        assert_eq!(begin_by(now, Some(now + ANSWER_WITHIN * 2)), now + ANSWER_WITHIN);
        assert_eq!(begin_by(now, Some(now + DEADLINE_GRACE)), now + DEADLINE_GRACE);
    }
}

//! What the gateway says itself, when there is nobody behind it to say it. Depends on `grpc-web`.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use bytes::{Bytes, BytesMut};
use conclave_grpc_web::{Encoding, Status, Trailers, cors, frame};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::{
    HeaderMap, Response, StatusCode,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};

use crate::{
    Body,
    heads::{NATIVE_CONTENT_TYPE, trailer_map},
    kind::{Kind, text},
};

/// A body without a byte.
pub(crate) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Answers a request of some kind with a failure, in the words of that kind, and says so in the log under the id that
/// the caller is told. `http_status` is for what is no call.
pub(crate) fn failure(kind: Kind, status: &Status, http_status: StatusCode) -> Response<Body> {
    let id = request_id();
    crate::log(format_args!(
        "request {id}: {}: {}",
        status.code.name(),
        status.message
    ));
    let mut response = match kind {
        Kind::Native => native(status),
        Kind::Web(encoding) => web(encoding, status),
        Kind::Upgrade | Kind::Preflight | Kind::Plain | Kind::Refused(_) => {
            plain(http_status, &status.message)
        }
    };
    if let Ok(id) = HeaderValue::from_str(&id) {
        response
            .headers_mut()
            .insert(HeaderName::from_static(cors::REQUEST_ID_HEADER), id);
    }
    response
}

/// A native call that failed: one head that is the whole response.
pub(crate) fn native(status: &Status) -> Response<Body> {
    let mut response = Response::new(empty());
    *response.headers_mut() = trailer_map(&Trailers::from_status(status));
    response.headers_mut().insert(CONTENT_TYPE, NATIVE_CONTENT_TYPE);
    response
}

/// A gRPC-Web call that failed, readable by pages of any origin.
fn web(encoding: Encoding, status: &Status) -> Response<Body> {
    let mut response = Response::new(full(trailer_frame(encoding, status)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(encoding.content_type()));
    for (name, value) in cors::RESPONSE_HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

/// The frame that ends a gRPC-Web response.
pub(crate) fn trailer_frame(encoding: Encoding, status: &Status) -> Bytes {
    let mut frames = BytesMut::new();
    frame::put_trailers(&mut frames, &Trailers::from_status(status));
    frame::seal(frames, encoding)
}

/// An answer to a request that is no call.
pub(crate) fn plain(status: StatusCode, message: &str) -> Response<Body> {
    let mut response = Response::new(full(format!("{message}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

/// The answer to a browser that asks whether it may call, when the backend cannot give it: so that the call itself is
/// made, and its failure can be read.
pub(crate) fn preflight(headers: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    for (name, value) in cors::preflight_headers(text(headers, "access-control-request-headers")) {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response
                .headers_mut()
                .insert(HeaderName::from_static(name), value);
        }
    }
    response
}

/// A name for a request that the backend gave none, in the form of a random UUID. It need only be unlike others.
fn request_id() -> String {
    let random = || RandomState::new().build_hasher().finish();
    let (high, low) = (random(), random());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        0x8000 | (low >> 48) & 0x3fff,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_are_uuids_and_differ() {
        let (one, other) = (request_id(), request_id());
        assert_ne!(one, other);
        let lengths: Vec<_> = one.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert!(
            one.chars()
                .all(|letter| letter == '-' || letter.is_ascii_hexdigit()),
            "{one}"
        );
        assert_eq!(&one[14..15], "4");
    }

    #[test]
    fn a_failure_speaks_as_it_was_asked() {
        let status = Status::unavailable("no backend");
        let native = failure(Kind::Native, &status, StatusCode::BAD_GATEWAY);
        assert_eq!(native.status(), StatusCode::OK);
        assert_eq!(native.headers()["grpc-status"], "14");
        assert_eq!(native.headers()["grpc-message"], "no backend");
        assert!(hyper::body::Body::is_end_stream(native.body()), "one head is all");
        let web = failure(Kind::Web(Encoding::Binary), &status, StatusCode::BAD_GATEWAY);
        assert_eq!(web.headers()["access-control-allow-origin"], "*");
        assert_eq!(web.headers()["content-type"], "application/grpc-web+proto");
        assert_eq!(
            failure(Kind::Plain, &status, StatusCode::BAD_GATEWAY).status(),
            StatusCode::BAD_GATEWAY
        );
        for response in [native, web] {
            assert!(response.headers().contains_key("x-request-id"));
        }
    }
}

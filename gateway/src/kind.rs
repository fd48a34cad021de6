//! What a request is, by its head alone. Depends on `grpc-web`.

use conclave_grpc_web::{ContentType, Encoding};
use hyper::{
    HeaderMap, Method, Request, StatusCode, Version,
    header::{ACCESS_CONTROL_REQUEST_METHOD, CONTENT_TYPE, UPGRADE},
};

/// What a request is, and with it how it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A call in native gRPC, to be translated.
    Native,
    /// A call in gRPC-Web, which passes through.
    Web(Encoding),
    /// A request for a WebSocket. Other protocols that are offered are not taken up, which leaves the request it came with.
    Upgrade,
    /// A browser's question whether it may call.
    Preflight,
    /// Anything else: the site, or what the backend will refuse.
    Plain,
    /// Nothing that is carried; the HTTP status says why.
    Refused(StatusCode),
}

impl Kind {
    /// What `request` is.
    pub(crate) fn of<B>(request: &Request<B>) -> Kind {
        let content_type = text(request.headers(), CONTENT_TYPE).unwrap_or_default();
        if request.method() == Method::CONNECT {
            Kind::Refused(StatusCode::METHOD_NOT_ALLOWED)
        } else if let Some(encoding) = ContentType::parse(content_type).map(ContentType::encoding) {
            Kind::Web(encoding)
        } else if is_any_native(content_type) {
            native(request, content_type)
        } else if is_websocket(request) {
            Kind::Upgrade
        } else if request.method() == Method::OPTIONS
            && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        {
            Kind::Preflight
        } else {
            Kind::Plain
        }
    }
}

/// A header as text.
pub(crate) fn text(headers: &HeaderMap, name: impl hyper::header::AsHeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn is_websocket<B>(request: &Request<B>) -> bool {
    let offered = text(request.headers(), UPGRADE);
    request.method() == Method::GET
        && request.version() <= Version::HTTP_11
        && offered.is_some_and(|offered| offered.trim().eq_ignore_ascii_case("websocket"))
}

fn native<B>(request: &Request<B>, content_type: &str) -> Kind {
    if request.version() != Version::HTTP_2 {
        // Its trailers have no place there.
        Kind::Refused(StatusCode::HTTP_VERSION_NOT_SUPPORTED)
    } else if request.method() != Method::POST {
        Kind::Refused(StatusCode::METHOD_NOT_ALLOWED)
    } else if is_native(content_type) {
        Kind::Native
    } else {
        Kind::Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE)
    }
}

/// The media type without its parameters.
fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Whether messages are protobuf in native gRPC.
fn is_native(content_type: &str) -> bool {
    let media_type = media_type(content_type);
    ["application/grpc", "application/grpc+proto"]
        .iter()
        .any(|name| media_type.eq_ignore_ascii_case(name))
}

/// Whether it is native gRPC of any kind of messages.
fn is_any_native(content_type: &str) -> bool {
    let media_type = media_type(content_type).to_ascii_lowercase();
    media_type == "application/grpc" || media_type.starts_with("application/grpc+")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(method: Method, version: Version, headers: &[(&str, &str)]) -> Kind {
        let mut request = Request::builder().method(method).version(version);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Kind::of(&request.body(()).expect("a request"))
    }

    #[test]
    fn native_grpc_is_told_from_grpc_web_and_needs_http_2() {
        let (h1, h2) = (Version::HTTP_11, Version::HTTP_2);
        let of = |version, content_type| kind(Method::POST, version, &[("content-type", content_type)]);
        for native in ["application/grpc", "Application/gRPC+Proto; x=y"] {
            assert_eq!(of(h2, native), Kind::Native, "{native}");
            assert_eq!(
                of(h1, native),
                Kind::Refused(StatusCode::HTTP_VERSION_NOT_SUPPORTED)
            );
        }
        assert_eq!(
            of(h2, "application/grpc+json"),
            Kind::Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        );
        for version in [h1, h2] {
            assert_eq!(
                of(version, "application/grpc-web+proto"),
                Kind::Web(Encoding::Binary)
            );
            assert_eq!(
                of(version, "application/grpc-web-text"),
                Kind::Web(Encoding::Text)
            );
            assert_eq!(of(version, "application/grpc-unheard-of"), Kind::Plain);
            assert_eq!(of(version, "text/html"), Kind::Plain);
        }
        let get = kind(Method::GET, h2, &[("content-type", "application/grpc")]);
        assert_eq!(get, Kind::Refused(StatusCode::METHOD_NOT_ALLOWED));
    }

    #[test]
    fn what_is_no_call_is_told_apart_too() {
        let h1 = Version::HTTP_11;
        assert_eq!(kind(Method::GET, h1, &[]), Kind::Plain);
        assert_eq!(kind(Method::GET, h1, &[("upgrade", "websocket")]), Kind::Upgrade);
        for (method, version, offered) in [
            (Method::GET, h1, "h2c"),
            (Method::POST, h1, "websocket"),
            (Method::GET, Version::HTTP_2, "websocket"),
        ] {
            assert_eq!(
                kind(method, version, &[("upgrade", offered)]),
                Kind::Plain,
                "{offered}"
            );
        }
        assert_eq!(kind(Method::OPTIONS, h1, &[]), Kind::Plain);
        let preflight = kind(Method::OPTIONS, h1, &[("access-control-request-method", "POST")]);
        assert_eq!(preflight, Kind::Preflight);
        assert_eq!(
            kind(Method::CONNECT, h1, &[]),
            Kind::Refused(StatusCode::METHOD_NOT_ALLOWED)
        );
    }
}

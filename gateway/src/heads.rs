//! Carrying heads over from one side to the other: which fields stay, and which are of one connection only. Depends on
//! `grpc-web`.

use conclave_grpc_web::Trailers;
use hyper::{
    HeaderMap, Uri, Version,
    header::{
        ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, HeaderName, HeaderValue, TE, TRAILER,
        TRANSFER_ENCODING, UPGRADE,
    },
    http::{
        request,
        uri::{Authority, PathAndQuery, Scheme},
    },
};

use crate::kind::Kind;

/// The content type of native gRPC, as it is answered.
pub(crate) const NATIVE_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/grpc+proto");
const WEB_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/grpc-web+proto");

/// Fields that speak of one connection and not of the request (RFC 9110, 7.6.1), and what hyper says itself.
const OF_ONE_CONNECTION: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    EXPECT,
];

/// Removes the fields that speak of one connection, and those that its `connection` field names.
pub(crate) fn remove_fields_of_one_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_ONE_CONNECTION) {
        headers.remove(name);
    }
}

/// Makes the head of a request to the backend at `upstream` of one that came in.
pub(crate) fn to_upstream(parts: &mut request::Parts, kind: Kind, upstream: &Authority) {
    let asked = parts
        .uri
        .authority()
        .and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    let host = asked
        .or_else(|| parts.headers.get(HOST).cloned())
        .or_else(|| HeaderValue::from_str(upstream.as_str()).ok());
    let upgrade = (kind == Kind::Upgrade)
        .then(|| parts.headers.get(UPGRADE).cloned())
        .flatten();
    remove_fields_of_one_connection(&mut parts.headers);
    if let Some(host) = host {
        parts.headers.insert(HOST, host);
    }
    if let Some(upgrade) = upgrade {
        // No body is carried before another protocol begins. A length without one would make the backend take what comes
        // next on the connection for it.
        parts.headers.remove(CONTENT_LENGTH);
        parts
            .headers
            .insert(CONNECTION, HeaderValue::from_static("upgrade"));
        parts.headers.insert(UPGRADE, upgrade);
    }
    if kind == Kind::Native {
        parts.headers.insert(CONTENT_TYPE, WEB_CONTENT_TYPE);
        parts.headers.insert(ACCEPT, WEB_CONTENT_TYPE);
    }
    let path = parts.uri.path_and_query().cloned();
    parts.uri = upstream_uri(upstream, path);
    parts.version = Version::HTTP_11;
}

fn upstream_uri(upstream: &Authority, path: Option<PathAndQuery>) -> Uri {
    Uri::builder()
        .scheme(Scheme::HTTP)
        .authority(upstream.clone())
        .path_and_query(path.unwrap_or_else(|| PathAndQuery::from_static("/")))
        .build()
        .expect("all three parts are there")
}

/// Makes the head of a native response of a gRPC-Web one: what browsers alone read goes.
pub(crate) fn to_native(headers: &mut HeaderMap) {
    remove_fields_of_one_connection(headers);
    headers.remove(CONTENT_LENGTH);
    let of_browsers: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("access-control-"))
        .cloned()
        .collect();
    for name in of_browsers {
        headers.remove(name);
    }
    headers.insert(CONTENT_TYPE, NATIVE_CONTENT_TYPE);
}

/// Trailers as HTTP has them. An entry that HTTP cannot carry is left out.
pub(crate) fn trailer_map(trailers: &Trailers) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in trailers.iter() {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            map.append(name, value);
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn carried(kind: Kind, uri: &str, headers: &[(&str, &str)]) -> request::Parts {
        let mut request = Request::builder().uri(uri).version(Version::HTTP_2);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).expect("a request").into_parts();
        to_upstream(&mut parts, kind, &Authority::from_static("127.0.0.1:1"));
        parts
    }

    #[test]
    fn a_native_call_becomes_a_grpc_web_call() {
        let parts = carried(
            Kind::Native,
            "http://api.example/a.B/C",
            &[
                ("content-type", "application/grpc"),
                ("te", "trailers"),
                ("grpc-timeout", "1S"),
                ("grpc-encoding", "gzip"),
                ("authorization", "Bearer x"),
                ("conclave-expected-router-instance", "rti_x"),
            ],
        );
        assert_eq!(parts.uri, "http://127.0.0.1:1/a.B/C");
        assert_eq!(parts.version, Version::HTTP_11);
        let get = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        assert_eq!(get("host"), Some("api.example"));
        assert_eq!(get("content-type"), Some("application/grpc-web+proto"));
        assert_eq!(get("te"), None);
        for (name, value) in [
            ("grpc-timeout", "1S"),
            ("grpc-encoding", "gzip"),
            ("authorization", "Bearer x"),
        ] {
            assert_eq!(get(name), Some(value));
        }
        assert_eq!(get("conclave-expected-router-instance"), Some("rti_x"));
    }

    #[test]
    fn fields_of_one_connection_stay_on_it() {
        let headers = [
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
            ("keep-alive", "5"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("host", "a.example"),
            ("x-end", "2"),
        ];
        let parts = carried(Kind::Plain, "/page?q=1", &headers);
        let mut names: Vec<_> = parts.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["host", "x-end"]);
        assert_eq!(parts.uri, "http://127.0.0.1:1/page?q=1");
        let parts = carried(Kind::Upgrade, "/", &headers);
        assert_eq!(
            parts.headers.get("upgrade").map(HeaderValue::as_bytes),
            Some(&b"websocket"[..])
        );
        assert_eq!(
            parts.headers.get("connection").map(HeaderValue::as_bytes),
            Some(&b"upgrade"[..])
        );
    }

    #[test]
    fn a_native_response_has_nothing_of_browsers() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "application/grpc-web+proto"),
            ("access-control-allow-origin", "*"),
            ("access-control-expose-headers", "grpc-status"),
            ("x-request-id", "r"),
            ("content-length", "5"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        to_native(&mut headers);
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-type", "x-request-id"]);
        assert_eq!(headers["content-type"], "application/grpc+proto");
    }
}

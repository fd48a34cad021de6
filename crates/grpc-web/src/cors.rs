//! What a browser of another origin needs to call an RPC and read its status (API-285). Depends on nothing.
//!
//! Any origin may call: the service knows no cookies, a credential travels in a header the page sets itself.

use std::borrow::Cow;

/// The header that names the Router instance a response speaks for.
pub const ROUTER_INSTANCE_HEADER: &str = "conclave-router-instance";
/// The header with which a publish states the Router instance it expects.
pub const EXPECTED_ROUTER_INSTANCE_HEADER: &str = "conclave-expected-router-instance";
/// The header that names a request in the log.
pub const REQUEST_ID_HEADER: &str = "x-request-id";

/// The response headers a page of another origin may read.
pub const EXPOSED_HEADERS: &str =
    "grpc-status, grpc-message, grpc-status-details-bin, x-request-id, conclave-router-instance";
/// The methods a page of another origin may use.
pub const ALLOWED_METHODS: &str = "POST, OPTIONS";
/// The request headers that are allowed when a preflight asks for none in particular.
pub const DEFAULT_ALLOWED_HEADERS: &str = "content-type, grpc-timeout, x-grpc-web, x-user-agent, authorization, \
     x-request-id, traceparent, tracestate, conclave-expected-router-instance";
/// How long a browser may keep the answer to a preflight, in seconds. Browsers cap it lower on their own.
pub const PREFLIGHT_MAX_AGE_SECONDS: &str = "86400";

/// The status of a preflight's answer. It has no body: not even an empty one may be set on it.
pub const PREFLIGHT_HTTP_STATUS: u16 = 204;

/// The header fields to set on every response to a call, errors included.
pub const RESPONSE_HEADERS: [(&str, &str); 2] = [
    ("access-control-allow-origin", "*"),
    ("access-control-expose-headers", EXPOSED_HEADERS),
];

/// The header fields that answer a preflight on any path, beside [`PREFLIGHT_HTTP_STATUS`].
///
/// The headers the browser asked for are mirrored; a value that is not a list of header names is answered with
/// [`DEFAULT_ALLOWED_HEADERS`].
#[must_use]
pub fn preflight_headers(requested_headers: Option<&str>) -> [(&'static str, Cow<'static, str>); 5] {
    let allowed = requested_headers
        .filter(|list| is_header_list(list))
        .map_or(Cow::Borrowed(DEFAULT_ALLOWED_HEADERS), |list| {
            Cow::Owned(list.to_owned())
        });
    [
        ("access-control-allow-origin", "*".into()),
        ("access-control-allow-methods", ALLOWED_METHODS.into()),
        ("access-control-allow-headers", allowed),
        ("access-control-max-age", PREFLIGHT_MAX_AGE_SECONDS.into()),
        ("vary", "access-control-request-headers".into()),
    ]
}

/// Whether a value is header names (RFC 9110 tokens), separated by commas and spaces.
fn is_header_list(list: &str) -> bool {
    !list.trim().is_empty()
        && list
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~, ".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(requested: Option<&str>) -> String {
        let headers = preflight_headers(requested);
        headers
            .iter()
            .find(|(name, _)| *name == "access-control-allow-headers")
            .expect("set")
            .1
            .to_string()
    }

    // API-285
    #[test]
    fn the_status_headers_are_exposed() {
        for name in [
            "grpc-status",
            "grpc-message",
            "grpc-status-details-bin",
            REQUEST_ID_HEADER,
            ROUTER_INSTANCE_HEADER,
        ] {
            assert!(
                EXPOSED_HEADERS.split(", ").any(|exposed| exposed == name),
                "{name}"
            );
        }
        assert!(RESPONSE_HEADERS.contains(&("access-control-expose-headers", EXPOSED_HEADERS)));
    }

    #[test]
    fn a_preflight_mirrors_the_headers_it_asks_for() {
        assert_eq!(
            allowed(Some("x-grpc-web,content-type, X-Own")),
            "x-grpc-web,content-type, X-Own"
        );
    }

    // OPS-012
    #[test]
    fn a_preflight_that_asks_for_nothing_in_particular_is_allowed_what_we_read() {
        let allowed: Vec<&str> = DEFAULT_ALLOWED_HEADERS.split(',').map(str::trim).collect();
        for name in [
            EXPECTED_ROUTER_INSTANCE_HEADER,
            "authorization",
            "traceparent",
            "tracestate",
        ] {
            assert!(allowed.contains(&name), "{name}");
        }
    }

    #[test]
    fn what_is_no_list_of_names_is_not_mirrored() {
        for requested in [
            None,
            Some(""),
            Some("  "),
            Some("a\r\nset-cookie: b"),
            Some("a:b"),
            Some("ä"),
        ] {
            assert_eq!(allowed(requested), DEFAULT_ALLOWED_HEADERS, "{requested:?}");
        }
    }
}

//! What an operator may choose, and the limits that hold whatever is chosen. Depends on nothing.

use std::time::Duration;

use hyper::http::uri::{Authority, Scheme, Uri};

/// The longest message that is carried either way, in bytes, unless the operator says less (API-282).
pub const MAX_MESSAGE_BYTES: usize = 26_214_400;
/// How long calls under way may go on after the gateway was told to end, unless the operator says otherwise.
pub const DRAIN_WITHIN: Duration = Duration::from_secs(10);
/// Connections at once, unless the operator says otherwise. Further ones wait in the system's queue.
pub const MAX_CONNECTIONS: usize = 10_000;
/// Calls at once over all connections, unless the operator says otherwise. Each holds one connection to the backend.
pub const MAX_CALLS: usize = 10_000;

/// Calls at once on one HTTP/2 connection.
pub(crate) const MAX_STREAMS_PER_CONNECTION: u32 = 256;
/// What a caller may send on one HTTP/2 stream before the backend has taken it, in bytes.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 512 * 1024;
/// The same over all streams of a connection: eight callers that wait for the backend do not hold up the others.
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 8 * STREAM_WINDOW_BYTES;
/// What waits for a caller that does not read, for each stream, in bytes. Beyond that the backend waits.
pub(crate) const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// What a request or response head may take, in bytes, in HTTP/1.1 and in HTTP/2.
pub(crate) const MAX_HEAD_BYTES: u32 = 64 * 1024;
/// How long a new connection may take to say what it is, its TLS handshake included.
pub(crate) const BEGIN_WITHIN: Duration = Duration::from_secs(10);
/// How long an HTTP/1.1 connection may wait for its next request, and a request for its head.
pub(crate) const HEAD_WITHIN: Duration = Duration::from_secs(75);
/// How often an HTTP/2 connection is asked whether anybody is there.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(30);
/// How long the answer to that may take. Then the connection and its calls are over.
pub(crate) const PING_WITHIN: Duration = Duration::from_secs(20);
/// How long a connection to the backend may take to come about.
pub(crate) const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long an idle connection to the backend is kept: workerd ends one after five seconds, and a request must not meet that.
pub(crate) const KEEP_IDLE: Duration = Duration::from_secs(3);
/// Idle connections to the backend that are kept.
pub(crate) const MAX_IDLE: usize = 256;
/// How long the backend may take to begin its answer, whatever the caller's deadline.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(300);
/// What the backend is given beyond a caller's deadline, so that it says itself that the deadline passed.
pub(crate) const DEADLINE_GRACE: Duration = Duration::from_millis(500);
/// How long the rest of a body may take that nobody wants any more: of an answer after its trailers, for its connection to
/// be used again, and of a request that is answered already.
pub(crate) const REST_WITHIN: Duration = Duration::from_secs(5);
/// How long connections may take to send what was said last, after the drain.
pub(crate) const FLUSH_WITHIN: Duration = Duration::from_secs(1);

/// What an operator may choose.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the backend listens.
    pub upstream: Upstream,
    /// The longest message that is carried either way, in bytes; at most [`MAX_MESSAGE_BYTES`].
    pub max_message_bytes: usize,
    /// Connections at once.
    pub max_connections: usize,
    /// Calls at once over all connections.
    pub max_calls: usize,
    /// How long calls under way may go on after the gateway was told to end.
    pub drain_within: Duration,
}

impl Settings {
    /// The settings in front of `upstream`, all others at their defaults.
    #[must_use]
    pub fn new(upstream: Upstream) -> Settings {
        Settings {
            upstream,
            max_message_bytes: MAX_MESSAGE_BYTES,
            max_connections: MAX_CONNECTIONS,
            max_calls: MAX_CALLS,
            drain_within: DRAIN_WITHIN,
        }
    }
}

/// Where the backend listens: a host and a port, without TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    authority: Authority,
}

/// An address that is none for a backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not of the form http://HOST:PORT")]
pub struct InvalidUpstream(String);

impl Upstream {
    /// The host and the port.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }
}

impl std::str::FromStr for Upstream {
    type Err = InvalidUpstream;

    fn from_str(text: &str) -> Result<Upstream, InvalidUpstream> {
        let uri: Uri = text.parse().map_err(|_| InvalidUpstream(text.to_owned()))?;
        let is_bare = uri.scheme() == Some(&Scheme::HTTP) && uri.path() == "/" && uri.query().is_none();
        uri.into_parts()
            .authority
            .filter(|authority| {
                is_bare && authority.port_u16().is_some() && !authority.as_str().contains('@')
            })
            .map(|authority| Upstream { authority })
            .ok_or_else(|| InvalidUpstream(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_a_host_and_a_port_without_tls() {
        for good in [
            "http://127.0.0.1:8081",
            "http://[::1]:1/",
            "http://backend.internal:80",
        ] {
            assert!(good.parse::<Upstream>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "127.0.0.1:8081",
            "https://127.0.0.1:8081",
            "http://127.0.0.1",
            "http://127.0.0.1:8081/path",
            "http://127.0.0.1:8081/?query",
            "http://user@127.0.0.1:8081",
            "http://127.0.0.1:99999",
        ] {
            let error = bad.parse::<Upstream>().expect_err(bad);
            assert!(error.to_string().contains("http://HOST:PORT"), "{error}");
        }
    }
}

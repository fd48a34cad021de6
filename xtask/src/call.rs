//! A blocking gRPC-Web call over plain HTTP/1.1, one connection each: enough to ask a deployment how it is.

use std::{
    io::{Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use conclave_grpc_web::{
    Status,
    client::{self, ResponseHead},
};
use conclave_proto::Rpc;

/// The most that a response may hold. Those asked for here hold a few hundred bytes.
const RESPONSE_BYTES_MAX: u64 = 1 << 20;

/// Where a deployment answers, and what is presented there.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct Origin {
    authority: String,
    credential: Option<String>,
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{self}")
    }
}

impl Origin {
    /// Reads `http://host:port`.
    ///
    /// # Errors
    ///
    /// It is not such a URL.
    pub(crate) fn parse(url: &str) -> anyhow::Result<Self> {
        let Some(rest) = url.strip_prefix("http://") else {
            bail!(
                "`{url}` is not of the form http://HOST:PORT (this tool speaks no TLS: ask through a local proxy)"
            );
        };
        let authority = rest.trim_end_matches('/');
        ensure!(
            !authority.is_empty() && !authority.contains(['/', '@', '?']),
            "`{url}` is not of the form http://HOST:PORT"
        );
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        Ok(Self {
            authority: if has_port {
                authority.to_owned()
            } else {
                format!("{authority}:80")
            },
            credential: None,
        })
    }

    /// The same, where every call presents this API key or token.
    ///
    /// # Errors
    ///
    /// It could not stand in a header, or everybody between here and there could read it.
    pub(crate) fn with_credential(self, credential: String) -> anyhow::Result<Self> {
        ensure!(
            !credential.is_empty() && credential.bytes().all(|byte| byte.is_ascii_graphic()),
            "the credential is empty or holds more than visible ASCII characters"
        );
        ensure!(
            self.is_this_machine(),
            "a credential is not sent to {self}: this tool speaks no TLS, so everybody on the way could read it. Ask through a \
             proxy on this machine"
        );
        Ok(Self {
            credential: Some(credential),
            ..self
        })
    }
}

impl Origin {
    fn is_this_machine(&self) -> bool {
        let host = self
            .authority
            .rsplit_once(':')
            .map_or(&*self.authority, |(host, _)| host);
        let address: Option<std::net::IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        host.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "http://{}", self.authority)
    }
}

/// An answer that is not a success.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) String);

impl std::fmt::Display for Refused {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Calls a unary RPC.
///
/// # Errors
///
/// Nothing answers within `timeout`; [`Refused`], with the status, where an answer is not a success.
pub(crate) fn unary<R: Rpc>(
    origin: &Origin,
    request: &R::Request,
    timeout: Duration,
) -> anyhow::Result<R::Response> {
    let body = client::request_body(request);
    let mut head = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n",
        R::PATH,
        origin.authority,
        body.len()
    );
    for (name, value) in client::request_headers(Some(timeout)) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(credential) = &origin.credential {
        head.push_str(&format!("authorization: Bearer {credential}\r\n"));
    }
    head.push_str("\r\n");

    let address = origin
        .authority
        .to_socket_addrs()?
        .next()
        .context("the host has no address")?;
    let mut stream =
        TcpStream::connect_timeout(&address, timeout).with_context(|| format!("{origin} does not answer"))?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)?;
    let mut bytes = Vec::new();
    stream
        .take(RESPONSE_BYTES_MAX)
        .read_to_end(&mut bytes)
        .with_context(|| format!("{origin} does not answer in time"))?;

    let response = Response::read(&bytes)?;
    let head = ResponseHead {
        http_status: response.status,
        content_type: response.header("content-type"),
        grpc_status: response.header("grpc-status"),
        grpc_message: response.header("grpc-message"),
        grpc_status_details: response.header("grpc-status-details-bin"),
    };
    let limit = usize::try_from(RESPONSE_BYTES_MAX)?;
    match client::read_unary(&head, &response.body, limit) {
        Ok((message, _)) => Ok(message),
        Err(end) => {
            let Status { code, message, .. } = end.status;
            Err(Refused(format!("{} answers {code}: {message}", R::PATH)).into())
        }
    }
}

/// A whole HTTP/1.1 response.
#[derive(Debug)]
struct Response<'a> {
    status: u16,
    headers: Vec<(&'a str, &'a str)>,
    body: Vec<u8>,
}

impl<'a> Response<'a> {
    fn read(bytes: &'a [u8]) -> anyhow::Result<Self> {
        let end = bytes
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .context("the response has no end of headers")?;
        let (head, body) = bytes.split_at(end + 4);
        let mut lines = std::str::from_utf8(head)
            .context("the response's head is not text")?
            .split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1))
            .and_then(|status| status.parse().ok());
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim(), value.trim()))
            .collect();
        let mut response = Self {
            status: status.context("the response has no status")?,
            headers,
            body: Vec::new(),
        };
        let chunked = response
            .header("transfer-encoding")
            .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
        response.body = if chunked { joined(body)? } else { body.to_owned() };
        Ok(response)
    }

    fn header(&self, name: &str) -> Option<&'a str> {
        self.headers
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }
}

/// The content of a body in chunks.
fn joined(mut rest: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest
            .windows(2)
            .position(|window| window == b"\r\n")
            .context("a chunk is cut short")?;
        let size = std::str::from_utf8(&rest[..line])?
            .split(';')
            .next()
            .unwrap_or_default()
            .trim();
        let size = usize::from_str_radix(size, 16).context("a chunk's size is not a number")?;
        if size == 0 {
            return Ok(body);
        }
        let chunk = rest[line + 2..].get(..size).context("a chunk is cut short")?;
        body.extend_from_slice(chunk);
        rest = rest[line + 2 + size..]
            .strip_prefix(b"\r\n")
            .context("a chunk does not end")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_does_not_leave_this_machine_unencrypted() -> anyhow::Result<()> {
        for url in ["http://127.0.0.1:8787", "http://localhost", "http://[::1]:8787"] {
            assert!(
                Origin::parse(url)?.with_credential("secret".to_owned()).is_ok(),
                "{url}"
            );
        }
        for url in [
            "http://talk.example",
            "http://10.0.0.1:8787",
            "http://127.0.0.1.talk.example",
            "http://localhost.talk.example:80",
        ] {
            let error = Origin::parse(url)?
                .with_credential("secret".to_owned())
                .expect_err(url);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        Ok(())
    }

    #[test]
    fn an_origin_is_http_with_a_host() -> anyhow::Result<()> {
        assert_eq!(
            Origin::parse("http://127.0.0.1:8787/")?.to_string(),
            "http://127.0.0.1:8787"
        );
        assert_eq!(Origin::parse("http://localhost")?.authority, "localhost:80");
        for wrong in [
            "https://example.org",
            "127.0.0.1:8787",
            "http://",
            "http://a/b",
            "http://user@host:1",
        ] {
            assert!(Origin::parse(wrong).is_err(), "{wrong}");
        }
        Ok(())
    }

    #[test]
    fn a_response_in_chunks_is_joined() -> anyhow::Result<()> {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\na;x=1\r\n0123456789\r\n0\r\n\r\n";
        let response = Response::read(bytes)?;
        assert_eq!(
            (response.status, response.header("content-type")),
            (200, Some("text/plain"))
        );
        assert_eq!(response.body, b"abc0123456789");
        Ok(())
    }

    #[test]
    fn a_response_cut_anywhere_is_an_error_and_never_a_panic() {
        let bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        for end in 0..bytes.len() - 4 {
            assert!(Response::read(&bytes[..end]).is_err(), "cut at {end}");
        }
    }
}

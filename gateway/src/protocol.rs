//! Which protocol a connection speaks, before anything of it is read. Depends on nothing.
//!
//! With TLS the handshake says it. Without, HTTP/2 begins with a preface that no HTTP/1.1 request begins with.

use std::{io, time::Duration};

use tokio::{net::TcpStream, time};

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// What HTTP/2 begins with, as far as it takes to tell it from every method of HTTP/1.1.
const PREFACE_START: &[u8] = b"PRI ";

/// How often a connection that has sent too little is looked at again.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Looks at what a connection without TLS begins with.
///
/// # Errors
/// The connection failed or ended.
pub(crate) async fn peek(stream: &TcpStream) -> io::Result<Protocol> {
    let mut start = [0; PREFACE_START.len()];
    loop {
        let length = stream.peek(&mut start).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if start[..length] != PREFACE_START[..length] {
            return Ok(Protocol::Http1);
        }
        if length == PREFACE_START.len() {
            return Ok(Protocol::Http2);
        }
        time::sleep(LOOK_EVERY).await;
    }
}

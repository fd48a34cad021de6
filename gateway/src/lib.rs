#![forbid(unsafe_code)]
//! One port for native gRPC, gRPC-Web and the site, in front of workerd, which speaks HTTP/1.1 and gRPC-Web alone.
//!
//! Native gRPC is translated; everything else passes through. Messages are framed alike on both sides, so none is ever
//! held: bytes pass as they come, as fast as the slower side takes them, and only status and trailers change their place.
//!
//! - [`settings`]: what may be chosen, and the limits that may not;
//! - [`server`]: connections, in HTTP/1.1 and HTTP/2 on one port; [`tls`] and [`protocol`] are how one begins;
//! - [`calls`]: what becomes of a request; [`kind`] says what it is, [`heads`] carries its head over;
//! - [`request_body`] and [`response_body`]: the two directions of a call; [`tunnel`]: WebSockets;
//! - [`upstream`]: connections to the backend;
//! - [`reply`]: what the gateway says itself, when there is nobody behind it to say it;
//! - [`drain`]: ending without losing what is under way.
//!
//! It knows nothing of topics, envelopes or conversations: it depends on `grpc-web` and on hyper.

mod calls;
mod drain;
mod heads;
mod kind;
mod protocol;
mod reply;
mod request_body;
mod response_body;
mod server;
pub mod settings;
#[cfg(feature = "tls")]
mod tls;
mod tunnel;
mod upstream;

use std::{error::Error, io, net::TcpListener};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;

pub use drain::Drain;
pub use server::serve;
#[cfg(feature = "tls")]
pub use server::serve_tls;
pub use settings::Settings;
#[cfg(feature = "tls")]
pub use tls::{Certificate, TlsError};

/// Serves what `listener` accepts, without TLS, in the calling thread and a few of its own, until `drain` has begun and
/// what was under way then has ended.
///
/// # Errors
/// The operating system gives no threads or does not take the listener.
pub fn serve_blocking(listener: TcpListener, settings: Settings, drain: Drain) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        serve(tokio::net::TcpListener::from_std(listener)?, settings, drain).await;
        Ok(())
    })
}

/// Any error, as hyper carries it.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// The body of a request or of a response.
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Says something in the log: standard error, a line each.
pub(crate) fn log(line: std::fmt::Arguments<'_>) {
    eprintln!("gateway: {line}");
}

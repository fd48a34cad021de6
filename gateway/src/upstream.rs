//! Connections to the backend: kept while idle, ended at once with the call that holds them. Depends on nothing.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use hyper::{Request, Response, Uri, body::Incoming};
use hyper_util::{
    client::legacy::{self, Client},
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use tokio::{net::TcpStream, time::timeout};
use tower_service::Service;

use crate::{
    Body,
    settings::{CONNECT_WITHIN, KEEP_IDLE, MAX_IDLE, SEND_BUFFER_BYTES},
};

/// Sends requests to the backend, over a connection that is idle or a new one.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    client: Client<Connector, Body>,
}

impl Backend {
    /// Nothing is connected before it is needed.
    pub(crate) fn new() -> Backend {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEEP_IDLE)
            .pool_max_idle_per_host(MAX_IDLE)
            .http1_max_buf_size(SEND_BUFFER_BYTES)
            .set_host(false)
            .build(Connector);
        Backend { client }
    }

    /// Sends one request. It is sent again only where nothing of it had left; dropping what is returned, or the body of
    /// the answer, closes the connection at once.
    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, legacy::Error> {
        self.client.request(request).await
    }
}

#[derive(Clone, Copy, Debug)]
struct Connector;

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<TcpStream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(connect(uri))
    }
}

async fn connect(uri: Uri) -> io::Result<TokioIo<TcpStream>> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = uri.port_u16().unwrap_or_default();
    let stream = timeout(CONNECT_WITHIN, TcpStream::connect((host, port)))
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, too_slow(CONNECT_WITHIN)))??;
    stream.set_nodelay(true)?;
    // workerd notices a connection that is reset at once, and one that is closed only when it next writes. Nothing can
    // be lost by it: a connection is closed when its answer was read, or when it is not wanted any more.
    stream.set_zero_linger()?;
    Ok(TokioIo::new(stream))
}

fn too_slow(limit: Duration) -> String {
    format!("no connection within {} s", limit.as_secs())
}

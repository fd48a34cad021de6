//! Connections to the backend: kept while idle, ended at once with the call that holds them. Depends on nothing.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use hyper::{
    Request, Response, Uri,
    body::Incoming,
    rt::{Read, ReadBufCursor, Write},
};
use hyper_util::{
    client::legacy::{
        self, Client,
        connect::{Connected, Connection},
    },
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
    type Response = BackendStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<BackendStream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(connect(uri))
    }
}

async fn connect(uri: Uri) -> io::Result<BackendStream> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = uri.port_u16().unwrap_or_default();
    let stream = timeout(CONNECT_WITHIN, TcpStream::connect((host, port)))
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, too_slow(CONNECT_WITHIN)))??;
    stream.set_nodelay(true)?;
    // workerd notices a connection that is reset at once, and one that is closed only when it next writes. Nothing can
    // be lost by it: a connection is closed when its answer was read, or when it is not wanted any more.
    stream.set_zero_linger()?;
    Ok(BackendStream {
        stream: TokioIo::new(stream),
        is_deaf: false,
    })
}

fn too_slow(limit: Duration) -> String {
    format!("no connection within {} s", limit.as_secs())
}

/// One connection to the backend.
///
/// A backend may answer a call before it has read the request to its end, and close: then nothing more can be written, and
/// the answer must be read all the same. So what can no longer be written is let go, and how the connection ended is told by
/// what is read.
#[derive(Debug)]
pub(crate) struct BackendStream {
    stream: TokioIo<TcpStream>,
    /// The backend reads no more.
    is_deaf: bool,
}

impl BackendStream {
    /// What came of writing `length` bytes.
    fn written(&mut self, result: Poll<io::Result<usize>>, length: usize) -> Poll<io::Result<usize>> {
        match result {
            Poll::Ready(Err(error)) if has_closed(&error) => {
                self.is_deaf = true;
                Poll::Ready(Ok(length))
            }
            other => other,
        }
    }
}

/// Whether a write failed because the other end has closed.
fn has_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted
    )
}

impl Connection for BackendStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for BackendStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for BackendStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_deaf {
            return Poll::Ready(Ok(bytes.len()));
        }
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(result, bytes.len())
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = parts.iter().map(|part| part.len()).sum();
        if self.is_deaf {
            return Poll::Ready(Ok(length));
        }
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.written(result, length)
    }
}

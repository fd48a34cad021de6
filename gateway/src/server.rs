//! Connections to the port: HTTP/1.1 and HTTP/2, with TLS or without, from the first byte to the last. Depends on
//! [`crate::calls`].

use std::{
    future::pending,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hyper::{
    Request,
    body::Incoming,
    rt::{Read, Write},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};

#[cfg(feature = "tls")]
use crate::tls::Certificate;
use crate::{
    calls::Calls,
    drain::{Drain, DrainWatch, Phase},
    log,
    protocol::{self, Protocol},
    settings::{
        BEGIN_WITHIN, CONNECTION_WINDOW_BYTES, FLUSH_WITHIN, HEAD_WITHIN, MAX_HEAD_BYTES,
        MAX_STREAMS_PER_CONNECTION, PING_EVERY, PING_WITHIN, SEND_BUFFER_BYTES, STREAM_WINDOW_BYTES,
        Settings,
    },
};

/// How long to wait when the system has no connection left to give.
const EXHAUSTED_FOR: Duration = Duration::from_millis(100);

/// What a connection begins with, before HTTP.
#[derive(Clone)]
enum Opening {
    Plain,
    #[cfg(feature = "tls")]
    Tls(Certificate),
}

/// Serves what `listener` accepts, without TLS, until `drain` has begun and what was under way then has ended.
///
/// To be called in a tokio runtime with I/O and time enabled.
pub async fn serve(listener: TcpListener, settings: Settings, drain: Drain) {
    serve_with(listener, Opening::Plain, settings, drain).await;
}

/// [`serve`] with TLS: HTTP/2 and HTTP/1.1, as the handshake agrees.
#[cfg(feature = "tls")]
pub async fn serve_tls(listener: TcpListener, certificate: Certificate, settings: Settings, drain: Drain) {
    serve_with(listener, Opening::Tls(certificate), settings, drain).await;
}

async fn serve_with(listener: TcpListener, opening: Opening, settings: Settings, drain: Drain) {
    let places = Arc::new(Semaphore::new(settings.max_connections));
    let drain_within = settings.drain_within;
    let calls = Arc::new(Calls::new(settings, drain.watch()));
    let mut connections = JoinSet::new();
    let begun = drain.watch().wait_for(Phase::Draining);
    tokio::pin!(begun);
    loop {
        // Asked for first: while there is none, connections wait in the system's queue.
        let accepted = async {
            let place = places.clone().acquire_owned().await;
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            accepted = accepted => accepted,
            Some(_) = connections.join_next() => continue,
            () = &mut begun => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (opening, calls, watch) = (opening.clone(), calls.clone(), drain.watch());
                connections.spawn(async move {
                    let _place = place;
                    // A connection that fails fails its caller, who is told by that.
                    let _ = connection(stream, opening, calls, watch).await;
                });
            }
            Err(error) => {
                log(format_args!("a connection cannot be accepted: {error}"));
                sleep(EXHAUSTED_FOR).await;
            }
        }
    }
    drop(listener);
    let at_work = connections.len();
    log(format_args!("ending; {at_work} connections are open"));
    if timeout(drain_within, wait_for_all(&mut connections))
        .await
        .is_err()
    {
        drain.advance(Phase::Over);
        let _ = timeout(FLUSH_WITHIN, wait_for_all(&mut connections)).await;
        log(format_args!("{} connections were cut off", connections.len()));
    }
}

async fn wait_for_all(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// Serves one connection to its end.
async fn connection(
    stream: TcpStream,
    opening: Opening,
    calls: Arc<Calls>,
    drain: DrainWatch,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    match opening {
        Opening::Plain => {
            let protocol = timeout(BEGIN_WITHIN, protocol::peek(&stream)).await??;
            serve_http(TokioIo::new(stream), protocol, calls, drain).await
        }
        #[cfg(feature = "tls")]
        Opening::Tls(certificate) => {
            let (stream, protocol) = timeout(BEGIN_WITHIN, certificate.accept(stream)).await??;
            serve_http(TokioIo::new(stream), protocol, calls, drain).await
        }
    }
}

async fn serve_http<I>(io: I, protocol: Protocol, calls: Arc<Calls>, drain: DrainWatch) -> io::Result<()>
where
    I: Read + Write + Unpin + Send + 'static,
{
    let has_asked = Arc::new(AtomicBool::new(false));
    let asks = has_asked.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        asks.store(true, Ordering::Relaxed);
        calls.clone().answer(request)
    });
    let begun = drain.wait_for(Phase::Draining);
    // Told to end, a connection takes no further request and closes when those it has are answered. One that has asked
    // nothing has nothing to wait for: it may never have spoken HTTP/2 beyond its first bytes.
    macro_rules! drive {
        ($connection:expr) => {{
            let mut connection = std::pin::pin!($connection);
            tokio::select! {
                result = connection.as_mut() => return result.map_err(io::Error::other),
                () = begun => {}
                () = silence(&has_asked, HEAD_WITHIN) => {}
            }
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                result = connection => result.map_err(io::Error::other),
                () = silence(&has_asked, FLUSH_WITHIN) => Err(io::ErrorKind::TimedOut.into()),
            }
        }};
    }
    match protocol {
        Protocol::Http1 => drive!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_WITHIN)
                .max_buf_size(MAX_HEAD_BYTES as usize)
                .serve_connection(io, service)
                .with_upgrades()
        ),
        Protocol::Http2 => drive!(
            http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .initial_stream_window_size(STREAM_WINDOW_BYTES)
                .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                .max_concurrent_streams(MAX_STREAMS_PER_CONNECTION)
                .max_send_buf_size(SEND_BUFFER_BYTES)
                .max_header_list_size(MAX_HEAD_BYTES)
                .keep_alive_interval(PING_EVERY)
                .keep_alive_timeout(PING_WITHIN)
                .serve_connection(io, service)
        ),
    }
}

/// Done when so much time has passed on a connection that has asked nothing; never once it has.
async fn silence(has_asked: &AtomicBool, limit: Duration) {
    sleep(limit).await;
    if has_asked.load(Ordering::Relaxed) {
        pending::<()>().await;
    }
}

//! `conclave-gateway`: one port for native gRPC, gRPC-Web and the site, in front of workerd.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use clap::Parser;
use conclave_gateway::{
    Drain, Settings,
    settings::{DRAIN_WITHIN, MAX_CALLS, MAX_CONNECTIONS, MAX_MESSAGE_BYTES, Upstream},
};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

/// One port for native gRPC, gRPC-Web, WebSockets and the site, in front of workerd.
#[derive(Debug, Parser)]
#[command(
    name = "conclave-gateway",
    version,
    after_help = "Examples:\n  \
        conclave-gateway --upstream http://127.0.0.1:8081\n  \
        conclave-gateway --listen 0.0.0.0:443 --tls-certificate chain.pem --tls-key key.pem --upstream http://127.0.0.1:8081\n\n\
        HTTP/1.1 and HTTP/2 are served on the one port, without TLS too. Prints one line on standard output, `ready ADDRESS`,\n\
        once it listens; everything else is said on standard error. The health of the deployment is the backend's own:\n\
        grpc.health.v1.Health through this port. SIGTERM and SIGINT end it gracefully; SIGHUP reads the certificate again."
)]
struct Arguments {
    /// The address and port to listen on; port 0 takes a free one.
    #[arg(
        long,
        env = "CONCLAVE_GATEWAY_LISTEN",
        default_value = "127.0.0.1:8787",
        value_name = "ADDRESS"
    )]
    listen: SocketAddr,
    /// Where workerd listens, as http://HOST:PORT.
    #[arg(long, env = "CONCLAVE_GATEWAY_UPSTREAM", value_name = "URL")]
    upstream: Upstream,
    /// The certificate chain in PEM, the server's own certificate first. Without it there is no TLS.
    #[arg(
        long,
        env = "CONCLAVE_GATEWAY_TLS_CERTIFICATE",
        value_name = "FILE",
        requires = "tls_key"
    )]
    tls_certificate: Option<PathBuf>,
    /// The certificate's private key in PEM.
    #[arg(
        long,
        env = "CONCLAVE_GATEWAY_TLS_KEY",
        value_name = "FILE",
        requires = "tls_certificate"
    )]
    tls_key: Option<PathBuf>,
    /// How many seconds calls under way may go on after SIGTERM. Streams end at once.
    #[arg(long, env = "CONCLAVE_GATEWAY_DRAIN_SECONDS", default_value_t = DRAIN_WITHIN.as_secs(), value_name = "N",
          value_parser = clap::value_parser!(u64).range(..=3600))]
    drain_seconds: u64,
    /// The longest message carried either way, in bytes. The backend has bounds of its own below it.
    #[arg(long, env = "CONCLAVE_GATEWAY_MAX_MESSAGE_BYTES", default_value_t = MAX_MESSAGE_BYTES, value_name = "N",
          value_parser = bounded::<MAX_MESSAGE_BYTES>)]
    max_message_bytes: usize,
    /// How many connections are open at once; further ones wait.
    #[arg(long, env = "CONCLAVE_GATEWAY_MAX_CONNECTIONS", default_value_t = MAX_CONNECTIONS, value_name = "N",
          value_parser = bounded::<MOST_AT_ONCE>)]
    max_connections: usize,
    /// How many calls, streams included, are under way at once; further ones are UNAVAILABLE.
    #[arg(long, env = "CONCLAVE_GATEWAY_MAX_CALLS", default_value_t = MAX_CALLS, value_name = "N",
          value_parser = bounded::<MOST_AT_ONCE>)]
    max_calls: usize,
}

/// More connections or calls than this no process has file descriptors for.
const MOST_AT_ONCE: usize = 1_000_000;

/// A number from 1 to `MOST`.
fn bounded<const MOST: usize>(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| (1..=MOST).contains(number))
        .ok_or_else(|| format!("it is not a number from 1 to {MOST}"))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("cannot start: {error}")),
    };
    match runtime.block_on(run(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => failed(&reason),
    }
}

fn failed(reason: &str) -> ExitCode {
    eprintln!("conclave-gateway: {reason}");
    ExitCode::FAILURE
}

async fn run(arguments: Arguments) -> Result<(), String> {
    let settings = Settings {
        upstream: arguments.upstream,
        max_message_bytes: arguments.max_message_bytes,
        max_connections: arguments.max_connections,
        max_calls: arguments.max_calls,
        drain_within: Duration::from_secs(arguments.drain_seconds),
    };
    let listener = TcpListener::bind(arguments.listen)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}", arguments.listen))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let drain = Drain::new();
    end_with_signals(&drain)?;
    match arguments.tls_certificate.zip(arguments.tls_key) {
        None => {
            println!("ready http://{address}");
            conclave_gateway::serve(listener, settings, drain).await;
        }
        Some((chain, key)) => serve_tls(listener, address, &chain, &key, settings, drain).await?,
    }
    Ok(())
}

#[cfg(feature = "tls")]
async fn serve_tls(
    listener: TcpListener,
    address: SocketAddr,
    chain: &std::path::Path,
    key: &std::path::Path,
    settings: Settings,
    drain: Drain,
) -> Result<(), String> {
    let certificate = conclave_gateway::Certificate::read(chain, key).map_err(|error| error.to_string())?;
    reload_with_signals(certificate.clone())?;
    println!("ready https://{address}");
    conclave_gateway::serve_tls(listener, certificate, settings, drain).await;
    Ok(())
}

#[cfg(not(feature = "tls"))]
async fn serve_tls(
    _: TcpListener,
    _: SocketAddr,
    _: &std::path::Path,
    _: &std::path::Path,
    _: Settings,
    _: Drain,
) -> Result<(), String> {
    Err("it was built without TLS".to_owned())
}

/// Begins the end at SIGTERM or SIGINT.
fn end_with_signals(drain: &Drain) -> Result<(), String> {
    let watch = |kind| signal(kind).map_err(|error| format!("cannot watch for signals: {error}"));
    let (mut terminate, mut interrupt) = (watch(SignalKind::terminate())?, watch(SignalKind::interrupt())?);
    let drain = drain.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        drain.begin();
    });
    Ok(())
}

/// Reads the certificate again at each SIGHUP.
#[cfg(feature = "tls")]
fn reload_with_signals(certificate: conclave_gateway::Certificate) -> Result<(), String> {
    let mut hangup =
        signal(SignalKind::hangup()).map_err(|error| format!("cannot watch for signals: {error}"))?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            match certificate.reload() {
                Ok(()) => eprintln!("gateway: the certificate was read again"),
                Err(error) => eprintln!("gateway: the old certificate stays in use: {error}"),
            }
        }
    });
    Ok(())
}

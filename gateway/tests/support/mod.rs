//! A gateway in front of a backend that a test plays itself, byte by byte, and callers on the other side.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod backend;
pub(crate) mod caller;

use std::{net::SocketAddr, time::Duration};

use conclave_gateway::{Drain, Settings};
use tokio::{net::TcpListener, task::JoinHandle, time::timeout};

use self::backend::Connection;

/// How long a test waits for what should happen soon, on a slow and busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Waits for something that should happen soon.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(SOON, future)
        .await
        .unwrap_or_else(|_| panic!("waited too long for {what}"))
}

/// A gateway, the backend's side of which the test plays.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) drain: Drain,
    pub(crate) served: JoinHandle<()>,
    backend: TcpListener,
}

impl Gateway {
    /// Starts one.
    pub(crate) async fn start() -> Gateway {
        Gateway::start_with(|_| {}).await
    }

    /// Starts one whose settings are not the defaults.
    pub(crate) async fn start_with(change: impl FnOnce(&mut Settings)) -> Gateway {
        let backend = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let upstream = format!("http://{}", backend.local_addr().expect("an address"));
        let mut settings = Settings::new(upstream.parse().expect("an address"));
        change(&mut settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let drain = Drain::new();
        let served = tokio::spawn(conclave_gateway::serve(listener, settings, drain.clone()));
        Gateway {
            address,
            drain,
            served,
            backend,
        }
    }

    /// The next connection that the gateway makes to the backend.
    pub(crate) async fn backend(&self) -> Connection {
        let (stream, _) = soon("a connection to the backend", self.backend.accept())
            .await
            .expect("a connection");
        Connection::new(stream)
    }

    /// Ends the backend: nobody listens there any more.
    pub(crate) fn without_backend(self) -> (SocketAddr, Drain) {
        (self.address, self.drain)
    }
}

/// A frame of a message, or of trailers with flag 0x80.
pub(crate) fn frame(flag: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short");
    [&[flag][..], &length.to_be_bytes(), payload].concat()
}

/// A frame of a message.
pub(crate) fn message(payload: &[u8]) -> Vec<u8> {
    frame(0, payload)
}

/// A frame of trailers.
pub(crate) fn trailers(text: &str) -> Vec<u8> {
    frame(0x80, text.as_bytes())
}

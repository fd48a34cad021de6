//! The port that is served, and the gateway on it: in this process, so that it is there as soon as the port is.

use std::{
    net::{SocketAddr, TcpListener},
    os::fd::AsFd as _,
    thread,
};

use anyhow::Context as _;
use conclave_gateway::{Drain, Settings};

use crate::{call::Origin, progress};

/// Connections that may wait while nobody accepts them: while a runtime is started again, for one.
const WAITING_CONNECTIONS_MAX: i32 = 4096;

/// Takes a port on this machine, so that it is known to be free before anything is built. 0 takes a free one.
///
/// # Errors
///
/// The port is taken.
pub(super) fn listen(port: u16) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(("127.0.0.1", port)).with_context(|| {
        format!("port {port} on 127.0.0.1 cannot be used: end what holds it, or choose another with --port (0 takes a free one)")
    })?;
    rustix::net::listen(listener.as_fd(), WAITING_CONNECTIONS_MAX).context("listening")?;
    Ok(listener)
}

/// Where a listener is reached.
///
/// # Errors
///
/// It has no address.
pub(super) fn origin_of(listener: &TcpListener) -> anyhow::Result<Origin> {
    let address: SocketAddr = listener.local_addr().context("a socket without an address")?;
    Origin::parse(&format!("http://{address}"))
}

/// Serves the port by a gateway in front of `upstream`, until this process ends.
///
/// # Errors
///
/// There is no thread for it.
pub(super) fn serve(listener: TcpListener, upstream: &Origin) -> anyhow::Result<()> {
    let settings = Settings::new(upstream.to_string().parse().context("the runtime's address")?);
    thread::Builder::new()
        .name("gateway".to_owned())
        .spawn(move || {
            if let Err(error) = conclave_gateway::serve_blocking(listener, settings, Drain::new()) {
                progress::failure(&anyhow::Error::new(error).context("the gateway ended"));
            }
        })
        .context("starting the gateway")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_an_error_that_says_what_to_do() -> anyhow::Result<()> {
        let listener = listen(0)?;
        let error = listen(listener.local_addr()?.port()).expect_err("the port is taken");
        assert!(error.to_string().contains("--port"), "{error}");
        Ok(())
    }
}

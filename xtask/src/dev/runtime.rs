//! One workerd, kept alive: it is handed a listening socket, and started again on it when it dies.
//!
//! The socket belongs to this process, so while no runtime lives connections wait in its queue and none is refused. It
//! is the gateway's way in, or the port itself.

use std::{
    net::TcpListener,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use conclave_proto::{
    conclave::router::v1::{GetInstanceRequest, router_service},
    grpc::health::v1::{HealthCheckRequest, health, health_check_response::ServingStatus},
};

use super::{port, runtime_config::SOCKET};
use crate::{
    call::{self, Origin, Refused},
    children::{self, Guarded},
    progress,
};

/// A runtime that lived this long did not die of its start.
const SETTLED: Duration = Duration::from_secs(5);

/// The longest wait before a runtime that keeps dying is started again.
const BACK_OFF_MAX: Duration = Duration::from_secs(2);

/// How often a runtime may die before it first answers; then its configuration or the worker is at fault.
const DEATHS_BEFORE_READY_MAX: u32 = 3;

/// How long a runtime may take to answer for the first time.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// How long a worker may answer that it does not serve; then it is not a matter of starting any more.
const REFUSES_AT_MOST: Duration = Duration::from_secs(5);

/// How long one health check may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// How often the runtime is looked at.
const POLL: Duration = Duration::from_millis(10);

/// A workerd behind a socket.
pub(super) struct Runtime {
    workerd: PathBuf,
    config: PathBuf,
    listener: TcpListener,
    origin: Origin,
    child: Option<Guarded>,
    started: Instant,
    deaths_in_a_row: u32,
}

impl Runtime {
    /// A runtime that is not started yet.
    ///
    /// # Errors
    ///
    /// The socket has no address.
    pub(super) fn new(workerd: PathBuf, config: &Path, listener: TcpListener) -> anyhow::Result<Self> {
        let origin = port::origin_of(&listener)?;
        Ok(Self {
            workerd,
            config: config.to_owned(),
            listener,
            origin,
            child: None,
            started: Instant::now(),
            deaths_in_a_row: 0,
        })
    }

    /// Where the runtime itself is reached.
    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Starts the runtime, or replaces the one that lives. State and port stay.
    ///
    /// # Errors
    ///
    /// It cannot be started at all.
    pub(super) fn start(&mut self) -> anyhow::Result<()> {
        self.child = None;
        let mut command = children::bound_to_this_process(&self.workerd)?;
        command
            .arg("serve")
            .arg(&self.config)
            .args(["-S", &format!("{SOCKET}=0")]);
        // Standard input is how the socket travels: descriptor 0 needs nothing that the standard library lacks.
        let socket = OwnedFd::from(self.listener.try_clone().context("sharing the socket")?);
        self.started = Instant::now();
        self.child = Some(children::start(command.stdin(socket).stdout(std::io::stderr()))?);
        Ok(())
    }

    /// Starts the runtime again if it has died, after a wait that grows while it keeps dying and is bounded.
    ///
    /// # Errors
    ///
    /// It cannot be started at all.
    pub(super) fn keep_alive(&mut self) -> anyhow::Result<()> {
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        let Some(status) = child.try_wait()? else {
            return Ok(());
        };
        if self.started.elapsed() >= SETTLED {
            self.deaths_in_a_row = 0;
        }
        self.deaths_in_a_row = self.deaths_in_a_row.saturating_add(1);
        progress::step(format_args!(
            "the runtime died ({status}); starting it again on the same state"
        ));
        std::thread::sleep(back_off(self.deaths_in_a_row));
        self.start()
    }

    /// Waits until the worker answers a health check.
    ///
    /// # Errors
    ///
    /// The runtime keeps dying, or does not answer in time; the message says what it last answered.
    pub(super) fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        let mut refused_since = None;
        loop {
            let last = match check(&self.origin) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            self.keep_alive()?;
            refused_since = last
                .is::<Refused>()
                .then(|| refused_since.unwrap_or_else(Instant::now));
            if refused_since.is_some_and(|since| since.elapsed() > REFUSES_AT_MOST) {
                return Err(last.context("the worker starts and does not serve; what it said is above"));
            }
            if self.deaths_in_a_row >= DEATHS_BEFORE_READY_MAX {
                bail!(
                    "the runtime died {DEATHS_BEFORE_READY_MAX} times before it answered; what it said is above"
                );
            }
            if began.elapsed() > READY_WITHIN {
                return Err(last.context(format!(
                    "the worker was not healthy within {} s",
                    READY_WITHIN.as_secs()
                )));
            }
            std::thread::sleep(POLL);
        }
    }
}

/// How long to wait before the next start after so many deaths in a row: not at all after the first.
fn back_off(deaths_in_a_row: u32) -> Duration {
    match deaths_in_a_row {
        0 | 1 => Duration::ZERO,
        more => BACK_OFF_MAX.min(Duration::from_millis(50).saturating_mul(1 << more.min(10))),
    }
}

fn check(origin: &Origin) -> anyhow::Result<()> {
    let request = HealthCheckRequest::default();
    let answer = call::unary::<health::Check>(origin, &request, CHECK_TIMEOUT)?;
    match answer.status() {
        ServingStatus::Serving => Ok(()),
        // Health has no room for a reason; any call that needs the objects gives it.
        other => {
            call::unary::<router_service::GetInstance>(origin, &GetInstanceRequest {}, CHECK_TIMEOUT)?;
            Err(Refused(format!("its health is {}", other.as_str_name())).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_death_is_mended_at_once_and_the_wait_after_many_is_bounded() {
        assert_eq!(back_off(1), Duration::ZERO);
        assert!(back_off(2) < back_off(3));
        assert_eq!(back_off(50), BACK_OFF_MAX);
        assert_eq!(back_off(u32::MAX), BACK_OFF_MAX);
    }
}

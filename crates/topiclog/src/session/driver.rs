//! Carries messages between a session, its shards and its client.
//!
//! A task of its own takes what shards send, however slowly the client reads, so that what waits for the client is
//! bounded by the session and not by whatever lies below. The client's half takes frames. Both share one cell; dropping
//! the client's half closes every stream to a shard at once, because nothing may poll the task again.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use conclave_envelope::request::StaticPlan;
use conclave_grpc_web::Status;
use futures_util::{
    future::{Either, select},
    stream::{self, StreamExt as _, TryStreamExt as _},
};

use super::{StreamSession, static_session::StaticSession};
use crate::{
    Configuration,
    platform::{Platform, Upstream as _},
    routing::Routing,
    status,
};

/// Streams to shards opened at once: production lets six wait for their headers.
const CONNECT_WAVE: usize = 6;
/// Messages taken from one shard before the others get their turn.
const MESSAGES_PER_POLL: usize = 64;
/// How often reads that no shard has answered are looked for, in milliseconds. One seen twice ends the stream.
const READ_PATIENCE_MS: u32 = 15_000;
/// How long a stream may take to start, in milliseconds.
const START_DEADLINE_MS: u32 = 10_000;
const NANOS_PER_MILLI: u64 = 1_000_000;

type Timer = Pin<Box<dyn Future<Output = ()>>>;

struct Shared<P: Platform> {
    session: StaticSession,
    upstreams: Vec<P::Upstream>,
    /// What the stream ends with, after the frames that wait.
    failure: Option<Status>,
    is_over: bool,
    /// When the client took its last frame, in nanoseconds since the Unix epoch.
    last_frame_ns: u64,
    client: Option<Waker>,
    task: Option<Waker>,
}

/// The client's half.
pub(super) struct Driver<P: Platform> {
    platform: P,
    shared: Rc<RefCell<Shared<P>>>,
}

/// Opens a SubscribeStatic stream. Resolves when its Started frame is ready.
pub(crate) async fn open_static<P: Platform>(
    platform: &P,
    configuration: &Configuration,
    routing: &Routing,
    plan: &StaticPlan,
    deadline_ms: Option<u32>,
) -> Result<StreamSession<P>, Status> {
    let session = StaticSession::new(
        plan,
        routing,
        configuration.limits.max_response_bytes,
        configuration.keepalive_interval_ms,
    );
    let upstreams = stream::iter(session.shards())
        .map(|shard| platform.connect(shard))
        .buffered(CONNECT_WAVE)
        .try_collect()
        .await
        .map_err(|error| status::from_call_error(&error))?;
    let shared = Rc::new(RefCell::new(Shared {
        session,
        upstreams,
        failure: None,
        is_over: false,
        last_frame_ns: platform.now_ns(),
        client: None,
        task: None,
    }));
    shared.borrow_mut().flush();
    platform.spawn(run(
        platform.clone(),
        Rc::clone(&shared),
        configuration.keepalive_interval_ms,
        deadline_ms,
    ));
    let driver = Driver {
        platform: platform.clone(),
        shared,
    };
    let limit = platform.clone();
    let deadline = Box::pin(async move { limit.delay(START_DEADLINE_MS).await });
    match select(poll_fn(|context| driver.poll_started(context)), deadline).await {
        Either::Left((started, _)) => {
            let router_instance = started?;
            Ok(StreamSession::over_shards(driver, router_instance))
        }
        Either::Right(_) => Err(Status::unavailable("a shard does not answer")),
    }
}

impl<P: Platform> Driver<P> {
    /// The next frame, then the status, then `None`.
    pub(super) fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Status>>> {
        let mut shared = self.shared.borrow_mut();
        if let Some(frame) = shared.session.pop_frame() {
            shared.last_frame_ns = self.platform.now_ns();
            shared.flush();
            return Poll::Ready(Some(Ok(frame)));
        }
        if let Some(failure) = shared.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        if shared.is_over {
            return Poll::Ready(None);
        }
        shared.client = Some(context.waker().clone());
        Poll::Pending
    }

    /// The Router instance, once Started is queued.
    fn poll_started(&self, context: &mut Context<'_>) -> Poll<Result<Option<String>, Status>> {
        let mut shared = self.shared.borrow_mut();
        if shared.session.is_started() {
            return Poll::Ready(Ok(shared.session.router_instance().map(str::to_owned)));
        }
        if let Some(failure) = shared.failure.take() {
            return Poll::Ready(Err(failure));
        }
        shared.client = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<P: Platform> Drop for Driver<P> {
    fn drop(&mut self) {
        let (upstreams, task) = {
            let mut shared = self.shared.borrow_mut();
            shared.is_over = true;
            (std::mem::take(&mut shared.upstreams), shared.task.take())
        };
        drop(upstreams);
        task.iter().for_each(Waker::wake_by_ref);
    }
}

impl<P: Platform> Shared<P> {
    /// Sends what the session has to say.
    fn flush(&mut self) {
        for (place, message) in self.session.take_outbox() {
            if let Some(upstream) = self.upstreams.get(place) {
                upstream.send(message);
            }
        }
    }

    /// Takes what shards sent. Whether some may have sent more.
    fn receive(&mut self, context: &mut Context<'_>) -> Result<bool, Status> {
        let mut may_have_more = false;
        for (place, upstream) in self.upstreams.iter_mut().enumerate() {
            let mut taken = 0;
            while let Poll::Ready(message) = upstream.poll_receive(context) {
                let message =
                    message.ok_or_else(|| Status::unavailable("the connection to a shard was lost"))?;
                self.session.receive(place, message)?;
                taken += 1;
                if taken == MESSAGES_PER_POLL {
                    may_have_more = true;
                    break;
                }
            }
        }
        Ok(may_have_more)
    }

    /// Ends the stream, after the frames that wait.
    fn fail(&mut self, failure: Status) -> Vec<P::Upstream> {
        self.failure = Some(failure);
        self.is_over = true;
        std::mem::take(&mut self.upstreams)
    }

    fn wake_client(&mut self) {
        if self.session.has_frame() || self.session.is_started() || self.is_over {
            self.client.take().iter().for_each(Waker::wake_by_ref);
        }
    }
}

/// The task: until the client's half is dropped or the stream fails.
async fn run<P: Platform>(
    platform: P,
    shared: Rc<RefCell<Shared<P>>>,
    keepalive_interval_ms: u32,
    deadline_ms: Option<u32>,
) {
    let mut keepalive = start_timer(&platform, keepalive_interval_ms);
    let mut patience = start_timer(&platform, READ_PATIENCE_MS);
    let mut deadline = deadline_ms.map(|milliseconds| start_timer(&platform, milliseconds));
    poll_fn(|context| {
        let mut state = shared.borrow_mut();
        if state.is_over {
            return Poll::Ready(());
        }
        state.task = Some(context.waker().clone());
        let mut outcome = state.receive(context);
        state.flush();
        while outcome.is_ok() && keepalive.as_mut().poll(context).is_ready() {
            let wait_ms = keep_alive(&platform, &mut state, keepalive_interval_ms);
            keepalive = start_timer(&platform, wait_ms);
        }
        while outcome.is_ok() && patience.as_mut().poll(context).is_ready() {
            patience = start_timer(&platform, READ_PATIENCE_MS);
            outcome = state.session.check_waiting().and(outcome);
        }
        if deadline
            .as_mut()
            .is_some_and(|timer| timer.as_mut().poll(context).is_ready())
        {
            outcome = Err(Status::deadline_exceeded(
                "the time the client allows for this stream is over",
            ));
        }
        let upstreams = match outcome {
            Ok(may_have_more) => {
                if may_have_more {
                    context.waker().wake_by_ref();
                }
                Vec::new()
            }
            Err(failure) => state.fail(failure),
        };
        state.wake_client();
        let is_over = state.is_over;
        drop(state);
        // Closed with nothing borrowed: closing may call back.
        drop(upstreams);
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Queues a keepalive if the silence has lasted long enough (API-255). How long to wait next, in milliseconds.
fn keep_alive<P: Platform>(platform: &P, state: &mut Shared<P>, interval_ms: u32) -> u32 {
    if state.session.has_frame() {
        // The client does not read; there is no silence to break.
        return interval_ms;
    }
    let silent_ns = platform.now_ns().saturating_sub(state.last_frame_ns);
    let silent_ms = u32::try_from(silent_ns / NANOS_PER_MILLI).unwrap_or(u32::MAX);
    if silent_ms >= interval_ms {
        state.session.push_keepalive();
        return interval_ms;
    }
    interval_ms - silent_ms
}

fn start_timer<P: Platform>(platform: &P, milliseconds: u32) -> Timer {
    let platform = platform.clone();
    Box::pin(async move { platform.delay(milliseconds).await })
}

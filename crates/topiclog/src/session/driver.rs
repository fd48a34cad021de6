//! Carries messages between a session, its shards and its client.
//!
//! A task of its own takes what shards send, however slowly the client reads, so that what waits for the client is
//! bounded by the session and not by whatever lies below. The client's half takes frames, and feeds request frames in by
//! [`Requests`]. All share one cell; dropping the client's half closes every stream to a shard at once, because nothing
//! may poll the task again.

use std::{
    cell::RefCell,
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    rc::{Rc, Weak},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use conclave_envelope::request::StaticPlan;
use conclave_grpc_web::Status;
use futures_util::{
    future::{Either, select},
    stream::{FuturesUnordered, Stream as _},
};

use super::{
    StreamSession,
    machine::{PATIENCE_MS, Session},
};
use crate::{
    Configuration,
    platform::{CallError, Platform, Upstream as _},
    routing::Routing,
    status,
};

/// Streams to shards opened at once: production lets six wait for their headers.
const CONNECT_WAVE: usize = 6;
/// Messages taken from one shard before the others get their turn.
const MESSAGES_PER_POLL: usize = 64;
/// How long a static stream may take to start, in milliseconds.
const START_DEADLINE_MS: u32 = 10_000;

type Timer = Pin<Box<dyn Future<Output = ()>>>;
type Connecting<U> = Pin<Box<dyn Future<Output = (usize, Result<U, CallError>)>>>;

/// The stream to one shard, and what waits to be sent until it is open.
enum Link<U> {
    Opening(Vec<Vec<u8>>),
    Open(U),
}

struct Shared<P: Platform> {
    platform: P,
    session: Session,
    /// By place.
    links: Vec<Link<P::Upstream>>,
    /// Places that are not being connected to yet, with their shards.
    unconnected: VecDeque<(usize, u32)>,
    /// What the stream ends with, after the frames that wait.
    failure: Option<Status>,
    is_over: bool,
    client: Option<Waker>,
    requests: Option<Waker>,
    task: Option<Waker>,
}

/// The client's half.
pub(super) struct Driver<P: Platform> {
    shared: Rc<RefCell<Shared<P>>>,
}

/// What a client sends on a Subscribe stream. Outlives the stream, and then does nothing.
pub struct Requests<P: Platform> {
    shared: Weak<RefCell<Shared<P>>>,
}

/// Opens a SubscribeStatic stream. Resolves when its Started frame is ready.
pub(crate) async fn open_static<P: Platform>(
    platform: &P,
    configuration: &Configuration,
    routing: &Routing,
    plan: StaticPlan,
    deadline_ms: Option<u32>,
) -> Result<StreamSession<P>, Status> {
    let session = Session::new_static(plan, configuration, routing, platform.now_ns())?;
    let driver = start(platform, session, configuration, deadline_ms);
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

/// Opens a Subscribe stream. Its Started frame is ready.
pub(crate) fn open_bidirectional<P: Platform>(
    platform: &P,
    configuration: &Configuration,
    routing: &Routing,
    router_instance: Option<String>,
    deadline_ms: Option<u32>,
) -> Result<(StreamSession<P>, Requests<P>), Status> {
    let session = Session::new_bidirectional(configuration, routing, platform.now_ns())?;
    let driver = start(platform, session, configuration, deadline_ms);
    let requests = Requests {
        shared: Rc::downgrade(&driver.shared),
    };
    Ok((StreamSession::over_shards(driver, router_instance), requests))
}

fn start<P: Platform>(
    platform: &P,
    session: Session,
    configuration: &Configuration,
    deadline_ms: Option<u32>,
) -> Driver<P> {
    let shared = Rc::new(RefCell::new(Shared {
        platform: platform.clone(),
        session,
        links: Vec::new(),
        unconnected: VecDeque::new(),
        failure: None,
        is_over: false,
        client: None,
        requests: None,
        task: None,
    }));
    let timers = Timers {
        silence: start_timer(platform, configuration.keepalive_interval_ms),
        patience: start_timer(platform, PATIENCE_MS),
        pong: None,
        max_pong_wait_ms: configuration.max_pong_wait_ms,
        deadline: deadline_ms.map(|milliseconds| start_timer(platform, milliseconds)),
    };
    shared.borrow_mut().flush();
    platform.spawn(run(Rc::clone(&shared), timers));
    Driver { shared }
}

impl<P: Platform> Driver<P> {
    /// The next frame, then the status, then `None`.
    pub(super) fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Status>>> {
        let mut shared = self.shared.borrow_mut();
        let now_ns = shared.platform.now_ns();
        if let Some(frame) = shared.session.pop_frame(now_ns) {
            shared.flush();
            // A Ping that has left has to be waited for, and for the last frame nobody waits any more.
            let is_last = shared.session.is_finished() || shared.is_over;
            if shared.session.awaited_pong().is_some() || is_last {
                shared.wake_task();
            }
            return Poll::Ready(Some(Ok(frame)));
        }
        if let Some(failure) = shared.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        if shared.is_over || shared.session.is_finished() {
            return Poll::Ready(None);
        }
        shared.client = Some(context.waker().clone());
        Poll::Pending
    }

    /// Whether nothing is left but what the stream ended with.
    pub(super) fn is_spent(&self) -> bool {
        let shared = self.shared.borrow();
        shared.is_over && !shared.session.has_frame()
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
        let (links, wakers) = {
            let mut shared = self.shared.borrow_mut();
            shared.is_over = true;
            shared.session.forget_frames();
            let wakers = [shared.task.take(), shared.requests.take()];
            (std::mem::take(&mut shared.links), wakers)
        };
        drop(links);
        wakers.iter().flatten().for_each(Waker::wake_by_ref);
    }
}

impl<P: Platform> Requests<P> {
    /// Takes in one request frame, as it was encoded.
    pub fn push(&self, message: Bytes) {
        self.act(|shared| {
            let now_ns = shared.platform.now_ns();
            shared.session.receive_client(message, now_ns)
        });
    }

    /// The client sends nothing more: the stream ends without an error once what it asked is done (API-259).
    pub fn end(&self) {
        self.act(|shared| shared.session.end_requests());
    }

    /// What the client sends cannot be read: the stream fails, after the frames that wait.
    pub fn fail(&self, status: Status) {
        self.act(|_| Err(status));
    }

    /// Whether the client's next frame may be read.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.shared.upgrade().is_none_or(|shared| {
            let shared = shared.borrow();
            shared.is_over || shared.session.has_room_for_requests()
        })
    }

    /// Resolves when the client's next frame may be read: at once, unless earlier ones have to be dealt with first.
    pub async fn ready(&self) {
        poll_fn(|context| {
            if self.is_ready() {
                return Poll::Ready(());
            }
            if let Some(shared) = self.shared.upgrade() {
                shared.borrow_mut().requests = Some(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    fn act(&self, act: impl FnOnce(&mut Shared<P>) -> Result<(), Status>) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let mut state = shared.borrow_mut();
        if state.is_over {
            return;
        }
        let outcome = act(&mut state);
        state.flush();
        let links = match outcome {
            Ok(()) => Vec::new(),
            Err(failure) => state.fail(failure),
        };
        state.wake();
        state.wake_task();
        drop(state);
        drop(links);
    }
}

impl<P: Platform> fmt::Debug for Requests<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Requests").finish_non_exhaustive()
    }
}

impl<P: Platform> Shared<P> {
    /// Sends what the session has to say.
    fn flush(&mut self) {
        for shard in self.session.take_connects() {
            self.unconnected.push_back((self.links.len(), shard));
            self.links.push(Link::Opening(Vec::new()));
        }
        for (place, message) in self.session.take_outbox() {
            match self.links.get_mut(place) {
                Some(Link::Open(upstream)) => upstream.send(message),
                Some(Link::Opening(unsent)) => unsent.push(message),
                None => {}
            }
        }
    }

    /// Takes a stream to a shard that was opened.
    fn take_link(&mut self, place: usize, opened: Result<P::Upstream, CallError>) -> Result<(), Status> {
        let upstream = opened.map_err(|error| status::from_call_error(&error))?;
        if let Some(link @ Link::Opening(_)) = self.links.get_mut(place)
            && let Link::Opening(unsent) = std::mem::replace(link, Link::Open(upstream))
            && let Link::Open(upstream) = link
        {
            unsent.into_iter().for_each(|message| upstream.send(message));
        }
        Ok(())
    }

    /// Takes what shards sent. Whether some may have sent more.
    fn receive(&mut self, context: &mut Context<'_>) -> Result<bool, Status> {
        let mut may_have_more = false;
        for (place, link) in self.links.iter_mut().enumerate() {
            let Link::Open(upstream) = link else { continue };
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
    fn fail(&mut self, failure: Status) -> Vec<Link<P::Upstream>> {
        self.failure = Some(failure);
        self.is_over = true;
        self.session.retire();
        std::mem::take(&mut self.links)
    }

    fn wake(&mut self) {
        if self.session.has_frame() || self.is_over || self.session.is_finished() {
            self.client.take().iter().for_each(Waker::wake_by_ref);
        }
        if self.is_over || self.session.has_room_for_requests() {
            self.requests.take().iter().for_each(Waker::wake_by_ref);
        }
    }

    fn wake_task(&self) {
        self.task.iter().for_each(Waker::wake_by_ref);
    }
}

/// What a stream waits for besides its shards and its client.
struct Timers {
    silence: Timer,
    patience: Timer,
    /// How long the Ping with this nonce may go on unanswered.
    pong: Option<(u64, Timer)>,
    max_pong_wait_ms: u32,
    deadline: Option<Timer>,
}

impl Timers {
    /// Tells the session what time it is.
    fn poll<P: Platform>(&mut self, shared: &mut Shared<P>, context: &mut Context<'_>) -> Result<(), Status> {
        while self.silence.as_mut().poll(context).is_ready() {
            let now_ns = shared.platform.now_ns();
            let wait_ms = shared.session.check_silence(now_ns)?;
            self.silence = start_timer(&shared.platform, wait_ms);
        }
        while self.patience.as_mut().poll(context).is_ready() {
            self.patience = start_timer(&shared.platform, PATIENCE_MS);
            shared.session.check_waiting()?;
        }
        let awaited = shared.session.awaited_pong();
        if self.pong.as_ref().map(|(nonce, _)| *nonce) != awaited {
            self.pong = awaited.map(|nonce| (nonce, start_timer(&shared.platform, self.max_pong_wait_ms)));
        }
        while let Some((nonce, timer)) = &mut self.pong
            && timer.as_mut().poll(context).is_ready()
        {
            let goes_on = shared.session.check_pong(*nonce)?;
            let timer = start_timer(&shared.platform, self.max_pong_wait_ms);
            self.pong = goes_on.then_some((*nonce, timer));
        }
        let deadline = self.deadline.as_mut();
        if deadline.is_some_and(|timer| timer.as_mut().poll(context).is_ready()) {
            return Err(Status::deadline_exceeded(
                "the time the client allows for this stream is over",
            ));
        }
        Ok(())
    }
}

/// Opens the streams to shards that are wanted, some at once.
fn connect<P: Platform>(
    shared: &mut Shared<P>,
    connecting: &mut FuturesUnordered<Connecting<P::Upstream>>,
    context: &mut Context<'_>,
) -> Result<(), Status> {
    loop {
        while connecting.len() < CONNECT_WAVE
            && let Some((place, shard)) = shared.unconnected.pop_front()
        {
            let platform = shared.platform.clone();
            connecting.push(Box::pin(async move { (place, platform.connect(shard).await) }));
        }
        match Pin::new(&mut *connecting).poll_next(context) {
            Poll::Ready(Some((place, opened))) => shared.take_link(place, opened)?,
            Poll::Ready(None) | Poll::Pending => return Ok(()),
        }
    }
}

/// Whether frames of a stream that is over wait for its client still, and may.
fn lingers<P: Platform>(shared: &mut Shared<P>, timers: &mut Timers, context: &mut Context<'_>) -> bool {
    while shared.session.has_frame() && timers.patience.as_mut().poll(context).is_ready() {
        timers.patience = start_timer(&shared.platform, PATIENCE_MS);
        // The client is told what the stream failed with, if it ever reads on.
        let _given_up = shared.session.check_unread();
    }
    shared.session.has_frame()
}

/// The task: until the client's half is dropped, or the stream has ended and its frames are taken or given up.
async fn run<P: Platform>(shared: Rc<RefCell<Shared<P>>>, mut timers: Timers) {
    let mut connecting = FuturesUnordered::new();
    poll_fn(|context| {
        let mut state = shared.borrow_mut();
        state.task = Some(context.waker().clone());
        if state.is_over {
            return match lingers(&mut state, &mut timers, context) {
                true => Poll::Pending,
                false => Poll::Ready(()),
            };
        }
        let outcome = connect(&mut state, &mut connecting, context)
            .and_then(|()| state.receive(context))
            .and_then(|may_have_more| timers.poll(&mut state, context).map(|()| may_have_more));
        state.flush();
        let mut left = Vec::new();
        match outcome {
            Ok(may_have_more) => {
                if may_have_more || !state.unconnected.is_empty() && connecting.len() < CONNECT_WAVE {
                    context.waker().wake_by_ref();
                }
                if state.session.is_finished() {
                    state.is_over = true;
                    left = std::mem::take(&mut state.links);
                }
            }
            Err(failure) => left = state.fail(failure),
        }
        state.wake();
        let is_done = state.is_over && !lingers(&mut state, &mut timers, context);
        drop(state);
        // Closed with nothing borrowed: closing may call back.
        drop(left);
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

fn start_timer<P: Platform>(platform: &P, milliseconds: u32) -> Timer {
    let platform = platform.clone();
    Box::pin(async move { platform.delay(milliseconds).await })
}

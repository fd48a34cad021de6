//! A deployment inside one thread: objects on SQLite whose writes are lost in a crash unless they were made durable, an
//! output gate, a clock that only moves when told, seeded randomness, and faults on demand.

mod executor;
mod machine;
mod object;
mod storage;
mod worker;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    future::Future,
    pin::pin,
    rc::Rc,
};

use conclave_proto::conclave::internal::v1::FromShard;
use conclave_topiclog::{
    Backend, Configuration,
    platform::{CallError, ObjectName},
};

use futures_util::future::{Either, select};

pub(crate) use executor::yield_now;
pub(crate) use worker::Worker;

use executor::Executor;
use object::Object;

/// 2027-01-01 in nanoseconds.
const START_NS: u64 = 1_798_761_600_000_000_000;

/// What happens to a message from a shard to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Deliver,
    Drop,
    Duplicate,
    /// Delivered after the next message of the same stream.
    Overtake,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFate {
    Answer,
    /// It never runs.
    LoseRequest,
    /// It runs, and its answer is lost.
    LoseAnswer,
    /// It runs twice; the answer of the first run is the one that comes back.
    Repeat,
    /// It runs, and its answer stays on its way until all such answers are let go.
    HoldAnswer,
}

type MessageFault = Box<dyn FnMut(&FromShard) -> Fate>;
type CallFault = Box<dyn FnMut(ObjectName, &str) -> CallFate>;

/// The parts of a deployment that everything shares.
pub(crate) struct Shared {
    executor: Executor,
    configuration: RefCell<Rc<Configuration>>,
    clock_ns: Cell<u64>,
    random: Cell<u64>,
    objects: RefCell<BTreeMap<ObjectName, Rc<Object>>>,
    message_fault: RefCell<Option<MessageFault>>,
    call_fault: RefCell<Option<CallFault>>,
    calls: RefCell<Vec<(ObjectName, String)>>,
    next_socket: Cell<u64>,
    held_answers: RefCell<Vec<futures_channel::oneshot::Sender<()>>>,
}

/// A deployment.
pub(crate) struct World {
    pub(crate) shared: Rc<Shared>,
}

impl World {
    pub(crate) fn new(shard_count: u32) -> Self {
        Self::with(Configuration {
            shard_count,
            ..Configuration::default()
        })
    }

    pub(crate) fn with(configuration: Configuration) -> Self {
        Self::seeded(configuration, 1)
    }

    pub(crate) fn seeded(configuration: Configuration, seed: u64) -> Self {
        let shared = Shared {
            executor: Executor::new(),
            configuration: RefCell::new(Rc::new(configuration)),
            clock_ns: Cell::new(START_NS),
            random: Cell::new(seed),
            objects: RefCell::default(),
            message_fault: RefCell::default(),
            call_fault: RefCell::default(),
            calls: RefCell::default(),
            next_socket: Cell::new(1),
            held_answers: RefCell::default(),
        };
        Self {
            shared: Rc::new(shared),
        }
    }

    /// The stateless half, as one Worker invocation has it.
    pub(crate) fn backend(&self) -> Backend<Worker> {
        Backend::new(Worker::new(Rc::clone(&self.shared)), self.configuration())
    }

    pub(crate) fn configuration(&self) -> Rc<Configuration> {
        Rc::clone(&self.shared.configuration.borrow())
    }

    /// Restarts everything under another configuration, as a deployment does.
    pub(crate) fn redeploy(&self, configuration: Configuration) {
        *self.shared.configuration.borrow_mut() = Rc::new(configuration);
        let names: Vec<ObjectName> = self.shared.objects.borrow().keys().copied().collect();
        names.into_iter().for_each(|name| self.crash(name));
    }

    /// Runs a future to its end, with everything it waits for. Panics if it waits for the clock or for ever.
    pub(crate) fn run<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> T {
        self.try_run(future)
            .expect("the future waits for something that never comes")
    }

    /// Runs a future as far as it comes.
    pub(crate) fn try_run<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> Option<T> {
        let slot = self.start(future);
        self.settle();
        slot.take()
    }

    /// Starts a future without running anything yet.
    pub(crate) fn start<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> Rc<Cell<Option<T>>> {
        let slot = Rc::new(Cell::new(None));
        let out = Rc::clone(&slot);
        self.shared
            .executor
            .spawn(async move { out.set(Some(future.await)) });
        slot
    }

    /// Runs everything until nothing moves.
    pub(crate) fn settle(&self) {
        self.shared.executor.run_until_stalled();
    }

    /// Runs everything for at most `steps` rounds.
    pub(crate) fn step(&self, steps: usize) {
        self.shared.executor.step(steps);
    }

    /// Moves the clock on, timer by timer.
    pub(crate) fn advance_ms(&self, milliseconds: u64) {
        let end = self.shared.clock_ns.get() + milliseconds * 1_000_000;
        self.settle();
        while let Some(due) = self.shared.executor.next_timer().filter(|due| *due <= end) {
            self.shared.clock_ns.set(due);
            self.shared.executor.fire_timers(due);
            self.settle();
        }
        self.shared.clock_ns.set(end);
    }

    /// Sets the clock, in either direction.
    pub(crate) fn set_clock_ns(&self, now_ns: u64) {
        self.shared.clock_ns.set(now_ns);
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.shared.clock_ns.get()
    }

    /// The object breaks: what was not durable is lost, its streams end.
    pub(crate) fn crash(&self, name: ObjectName) {
        let object = self.shared.object(name);
        object.crash();
        object.close_sockets();
    }

    /// The object breaks, and its streams stay open.
    pub(crate) fn crash_keeping_streams(&self, name: ObjectName) {
        self.shared.object(name).crash();
    }

    /// The object sleeps: its memory is gone, its writes and streams stay.
    pub(crate) fn hibernate(&self, name: ObjectName) {
        self.settle();
        self.shared.object(name).sleep();
    }

    /// Whether the object is in memory.
    pub(crate) fn is_awake(&self, name: ObjectName) -> bool {
        self.shared.object(name).is_awake()
    }

    /// How long until the object's alarm goes off, in milliseconds.
    pub(crate) fn alarm_in_ms(&self, name: ObjectName) -> Option<u64> {
        let due = self.shared.object(name).alarm_ms()?;
        Some(due.saturating_sub(self.now_ns() / 1_000_000))
    }

    /// How often the object made its writes durable.
    pub(crate) fn syncs(&self, name: ObjectName) -> u64 {
        self.shared.object(name).storage.syncs()
    }

    /// Makes the next wait for durability fail, which breaks the object.
    pub(crate) fn fail_next_sync(&self, name: ObjectName) {
        self.shared.object(name).fail_next_sync();
    }

    /// No alarm of this object goes off any more.
    pub(crate) fn delay_alarms(&self, name: ObjectName) {
        self.shared.object(name).delay_alarms();
    }

    /// Lets nothing of this object become durable until it is released.
    pub(crate) fn hold_syncs(&self, name: ObjectName, hold: bool) {
        self.shared.object(name).hold_syncs(hold);
    }

    pub(crate) fn open_streams(&self, shard: u32) -> usize {
        self.shared.object(ObjectName::Shard(shard)).socket_count()
    }

    pub(crate) fn on_message(&self, fault: impl FnMut(&FromShard) -> Fate + 'static) {
        *self.shared.message_fault.borrow_mut() = Some(Box::new(fault));
    }

    pub(crate) fn on_call(&self, fault: impl FnMut(ObjectName, &str) -> CallFate + 'static) {
        *self.shared.call_fault.borrow_mut() = Some(Box::new(fault));
    }

    pub(crate) fn without_faults(&self) {
        *self.shared.message_fault.borrow_mut() = None;
        *self.shared.call_fault.borrow_mut() = None;
        self.shared
            .objects
            .borrow()
            .values()
            .for_each(|object| object.spare_next_sync());
    }

    /// Lets every held answer arrive.
    pub(crate) fn let_answers_go(&self) {
        self.shared.held_answers.take();
    }

    /// How many calls of a method were made to an object so far.
    pub(crate) fn calls(&self, to: ObjectName, method: &str) -> usize {
        self.shared
            .calls
            .borrow()
            .iter()
            .filter(|call| call.0 == to && call.1 == method)
            .count()
    }

    pub(crate) fn all_calls(&self) -> usize {
        self.shared.calls.borrow().len()
    }
}

impl Shared {
    pub(crate) fn object(&self, name: ObjectName) -> Rc<Object> {
        let mut objects = self.objects.borrow_mut();
        Rc::clone(objects.entry(name).or_insert_with(|| Rc::new(Object::new(name))))
    }

    /// SplitMix64.
    pub(crate) fn next_random(&self) -> u64 {
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.next_random().to_le_bytes()[0]);
    }

    pub(crate) async fn sleep_ms(&self, milliseconds: u64) {
        let due = self.clock_ns.get() + milliseconds * 1_000_000;
        self.executor.sleep_until(due).await;
    }

    /// Lets others run for a short, random while.
    pub(crate) async fn dawdle(&self) {
        for _ in 0..self.next_random() % 4 {
            yield_now().await;
        }
    }

    /// A call as the platform carries it: the callee runs it to its end whatever becomes of the caller.
    pub(crate) async fn call(
        self: &Rc<Self>,
        to: ObjectName,
        method: &str,
        request: Vec<u8>,
        deadline_ms: u32,
    ) -> Result<Vec<u8>, CallError> {
        self.calls.borrow_mut().push((to, method.to_owned()));
        let fate = match self.call_fault.borrow_mut().as_mut() {
            Some(fault) => fault(to, method),
            None => CallFate::Answer,
        };
        let lost = || CallError::OutcomeUnknown {
            reason: "the call was lost".to_owned(),
        };
        if fate == CallFate::LoseRequest {
            return Err(lost());
        }
        self.dawdle().await;
        let object = self.object(to);
        let answer = object.call(self, method, request.clone());
        if fate == CallFate::Repeat {
            drop(object.call(self, method, request));
        }
        let deadline = pin!(self.sleep_ms(deadline_ms.into()));
        let answer = match select(answer, deadline).await {
            Either::Left((answer, _)) => answer.map_err(|_| lost())?,
            Either::Right(_) => return Err(CallError::DeadlineExceeded { deadline_ms }),
        };
        if fate == CallFate::HoldAnswer {
            let (sender, release) = futures_channel::oneshot::channel();
            self.held_answers.borrow_mut().push(sender);
            let _ = release.await;
        }
        self.dawdle().await;
        match fate {
            CallFate::LoseAnswer => Err(lost()),
            _ => Ok(answer),
        }
    }
}

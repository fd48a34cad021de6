//! One object: its storage, its streams, and the run that is in memory now.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Poll, Waker},
};

use conclave_proto::conclave::internal::v1::FromShard;
use conclave_topiclog::{
    Sequencer, Shard, answer,
    platform::{ObjectName, SocketId},
    storage::OpenError,
};
use futures_util::future::poll_fn;
use prost::Message as _;

use super::{Fate, Shared, machine::Machine, storage::Storage, yield_now};

pub(crate) struct Object {
    name: ObjectName,
    pub(crate) storage: Rc<Storage>,
    run: RefCell<Option<Run>>,
    pub(crate) sockets: RefCell<BTreeMap<SocketId, Rc<Pipe>>>,
    /// Messages that wait for durability.
    gated: RefCell<Vec<(SocketId, Vec<u8>)>>,
    is_sync_failing: Cell<bool>,
    is_alarm_late: Cell<bool>,
    are_syncs_held: Cell<bool>,
    held: RefCell<Vec<Waker>>,
    /// When the alarm goes off, in milliseconds. Part of what is durable only once it was synced.
    alarm: Cell<Option<u64>>,
    durable_alarm: Cell<Option<u64>>,
}

/// What is in memory between two crashes.
#[derive(Clone)]
struct Run {
    program: Program,
    life: Life,
}

#[derive(Clone)]
enum Program {
    Shard(Rc<Shard<Machine>>),
    Sequencer(Rc<Sequencer<Machine>>),
    /// Answers every call with its request.
    Registry,
}

/// Ends with the run it belongs to.
#[derive(Clone, Default)]
pub(crate) struct Life(Rc<LifeState>);

#[derive(Default)]
struct LifeState {
    is_over: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Life {
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_over.get()
    }

    fn end(&self) {
        self.0.is_over.set(true);
        self.0.waiting.take().iter().for_each(Waker::wake_by_ref);
    }

    fn register(&self, waker: &Waker) {
        let mut waiting = self.0.waiting.borrow_mut();
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    /// A future that stops where it is when the run ends.
    pub(crate) async fn limit<T>(self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = Box::pin(future);
        poll_fn(|context| {
            if self.is_over() {
                return Poll::Ready(None);
            }
            self.register(context.waker());
            Pin::new(&mut future).poll(context).map(Some)
        })
        .await
    }
}

/// Both directions of one stream.
#[derive(Default)]
pub(crate) struct Pipe {
    pub(crate) to_worker: RefCell<VecDeque<Vec<u8>>>,
    overtaken: RefCell<Option<Vec<u8>>>,
    to_shard: RefCell<VecDeque<Vec<u8>>>,
    is_delivering: Cell<bool>,
    pub(crate) is_closed: Cell<bool>,
    pub(crate) waker: RefCell<Option<Waker>>,
}

impl Pipe {
    fn wake(&self) {
        self.waker.borrow_mut().take().iter().for_each(Waker::wake_by_ref);
    }
}

impl Object {
    pub(crate) fn new(name: ObjectName) -> Self {
        Self {
            name,
            storage: Rc::new(Storage::new()),
            run: RefCell::default(),
            sockets: RefCell::default(),
            gated: RefCell::default(),
            is_sync_failing: Cell::new(false),
            is_alarm_late: Cell::new(false),
            are_syncs_held: Cell::new(false),
            held: RefCell::default(),
            alarm: Cell::default(),
            durable_alarm: Cell::default(),
        }
    }

    pub(crate) fn alarm_ms(&self) -> Option<u64> {
        self.alarm.get()
    }

    pub(crate) fn set_alarm(self: &Rc<Self>, shared: &Rc<Shared>, at_ms: u64) {
        if self.alarm.get().is_some_and(|set| set <= at_ms) {
            return;
        }
        self.alarm.set(Some(at_ms));
        self.storage.touch();
        self.watch_alarm(shared, at_ms);
    }

    /// Waits for the clock beside everything else, as long as this alarm stands.
    fn watch_alarm(self: &Rc<Self>, shared: &Rc<Shared>, at_ms: u64) {
        let (object, world) = (Rc::clone(self), Rc::clone(shared));
        let timer = shared.executor.sleep_until(at_ms * 1_000_000);
        shared.executor.spawn(async move {
            timer.await;
            if object.alarm.get() != Some(at_ms) || object.is_alarm_late.get() {
                return;
            }
            object.alarm.set(None);
            object.durable_alarm.set(None);
            let Ok(run) = object.open(&world) else { return };
            let life = run.life.clone();
            let gate = Rc::clone(&object);
            let shared = Rc::clone(&world);
            let work = async move {
                match run.program {
                    Program::Shard(shard) => shard.alarm().await,
                    Program::Sequencer(sequencer) => sequencer.alarm().await,
                    Program::Registry => {}
                }
                gate.wait_until_durable(&shared, &run.life).await
            };
            if !matches!(life.limit(work).await, Some(Ok(()))) {
                // The runtime sends a failed alarm again.
                object.set_alarm(&world, shared_retry_ms(&world));
                object.durable_alarm.set(object.alarm.get());
            }
        });
    }

    pub(crate) fn is_awake(&self) -> bool {
        self.run.borrow().is_some()
    }

    pub(crate) fn socket_count(&self) -> usize {
        self.sockets.borrow().len()
    }

    pub(crate) fn fail_next_sync(&self) {
        self.is_sync_failing.set(true);
    }

    pub(crate) fn delay_alarms(&self) {
        self.is_alarm_late.set(true);
    }

    pub(crate) fn spare_next_sync(&self) {
        self.is_sync_failing.set(false);
    }

    pub(crate) fn hold_syncs(&self, hold: bool) {
        self.are_syncs_held.set(hold);
        self.held.take().iter().for_each(Waker::wake_by_ref);
    }

    /// Runs a call to its end, in this object's time. `Err` when the object broke first.
    pub(crate) fn call(
        self: &Rc<Self>,
        shared: &Rc<Shared>,
        method: &str,
        request: Vec<u8>,
    ) -> futures_channel::oneshot::Receiver<Vec<u8>> {
        let (sender, receiver) = futures_channel::oneshot::channel();
        let (object, world, method) = (Rc::clone(self), Rc::clone(shared), method.to_owned());
        shared.executor.spawn(async move {
            let answer = match object.open(&world) {
                Err(error) => Some(error.answer()),
                Ok(run) => {
                    let life = run.life.clone();
                    let gate = Rc::clone(&object);
                    let world = Rc::clone(&world);
                    let work = async move {
                        let answer = run.handle(&method, &request).await;
                        gate.wait_until_durable(&world, &run.life).await.map(|()| answer)
                    };
                    life.limit(work).await.and_then(Result::ok)
                }
            };
            if let Some(answer) = answer {
                let _ = sender.send(answer);
            }
        });
        receiver
    }

    /// The output gate: nothing leaves before everything written so far is durable.
    pub(crate) async fn wait_until_durable(&self, shared: &Rc<Shared>, life: &Life) -> Result<(), ()> {
        if !self.storage.is_dirty() {
            return Ok(());
        }
        self.sync(shared, life).await
    }

    pub(crate) async fn sync(&self, shared: &Rc<Shared>, life: &Life) -> Result<(), ()> {
        yield_now().await;
        shared.dawdle().await;
        poll_fn(|context| {
            if !self.are_syncs_held.get() || life.is_over() {
                return Poll::Ready(());
            }
            self.held.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
        if self.is_sync_failing.replace(false) {
            self.crash();
        }
        if life.is_over() {
            return Err(());
        }
        self.storage.commit();
        self.durable_alarm.set(self.alarm.get());
        let gated = self.gated.take();
        gated
            .into_iter()
            .for_each(|(socket, message)| self.deliver(shared, socket, message));
        Ok(())
    }

    pub(crate) fn crash(&self) {
        if let Some(run) = self.run.borrow_mut().take() {
            run.life.end();
        }
        self.storage.roll_back();
        self.alarm.set(self.durable_alarm.get());
        self.gated.borrow_mut().clear();
    }

    pub(crate) fn sleep(&self) {
        self.storage.commit();
        self.durable_alarm.set(self.alarm.get());
        self.crash();
    }

    pub(crate) fn close_sockets(&self) {
        for pipe in std::mem::take(&mut *self.sockets.borrow_mut()).into_values() {
            pipe.is_closed.set(true);
            pipe.wake();
        }
    }

    pub(crate) fn close_socket(&self, socket: SocketId) {
        let pipe = self.sockets.borrow_mut().remove(&socket);
        if let Some(pipe) = pipe {
            pipe.is_closed.set(true);
            pipe.wake();
        }
    }

    /// A stream is accepted.
    pub(crate) fn connect(&self, shared: &Rc<Shared>) -> Result<(SocketId, Rc<Pipe>), OpenError> {
        let run = self.open(shared)?;
        let socket = SocketId(shared.next_socket.replace(shared.next_socket.get() + 1));
        let pipe = Rc::new(Pipe::default());
        self.sockets.borrow_mut().insert(socket, Rc::clone(&pipe));
        if let Program::Shard(shard) = run.program {
            shard.opened(socket);
        }
        Ok((socket, pipe))
    }

    /// The other end closed a stream.
    pub(crate) fn disconnect(&self, socket: SocketId) {
        self.sockets.borrow_mut().remove(&socket);
        if let Some(Run {
            program: Program::Shard(shard),
            ..
        }) = self.run.borrow().clone()
        {
            shard.closed(socket);
        }
    }

    /// A message from the shard, held by the output gate.
    pub(crate) fn send(&self, shared: &Rc<Shared>, socket: SocketId, message: Vec<u8>) {
        if self.storage.is_dirty() || !self.gated.borrow().is_empty() {
            self.gated.borrow_mut().push((socket, message));
        } else {
            self.deliver(shared, socket, message);
        }
    }

    fn deliver(&self, shared: &Rc<Shared>, socket: SocketId, message: Vec<u8>) {
        let Some(pipe) = self.sockets.borrow().get(&socket).cloned() else {
            return;
        };
        let fate = match shared.message_fault.borrow_mut().as_mut() {
            Some(fault) => fault(&FromShard::decode(&message[..]).expect("a message of a shard")),
            None => Fate::Deliver,
        };
        let mut queue = pipe.to_worker.borrow_mut();
        let overtaken = pipe.overtaken.borrow_mut().take();
        match fate {
            Fate::Drop => {}
            Fate::Deliver => queue.push_back(message),
            Fate::Duplicate => queue.extend([message.clone(), message]),
            Fate::Overtake => *pipe.overtaken.borrow_mut() = Some(message),
        }
        queue.extend(overtaken);
        drop(queue);
        pipe.wake();
    }

    /// A message to the shard, handled in order.
    pub(crate) fn receive(
        self: &Rc<Self>,
        shared: &Rc<Shared>,
        socket: SocketId,
        pipe: &Rc<Pipe>,
        message: Vec<u8>,
    ) {
        pipe.to_shard.borrow_mut().push_back(message);
        if pipe.is_delivering.replace(true) {
            return;
        }
        let (object, world, pipe) = (Rc::clone(self), Rc::clone(shared), Rc::clone(pipe));
        shared.executor.spawn(async move {
            loop {
                world.dawdle().await;
                let Some(message) = pipe.to_shard.borrow_mut().pop_front() else {
                    break;
                };
                let Ok(run) = object.open(&world) else { break };
                let Program::Shard(shard) = run.program.clone() else {
                    break;
                };
                let (gate, shared) = (Rc::clone(&object), Rc::clone(&world));
                let life = run.life.clone();
                let work = async move {
                    shard.message(socket, &message).await;
                    let _ = gate.wait_until_durable(&shared, &run.life).await;
                };
                life.limit(work).await;
            }
            pipe.is_delivering.set(false);
        });
    }

    fn open(&self, shared: &Rc<Shared>) -> Result<Run, OpenError> {
        if let Some(run) = self.run.borrow().clone() {
            return Ok(run);
        }
        let life = Life::default();
        let machine = Machine::new(
            Rc::clone(shared),
            shared.object(self.name),
            Rc::clone(&self.storage),
            life.clone(),
        );
        let configuration = Rc::clone(&shared.configuration.borrow());
        let program = match self.name {
            ObjectName::Shard(index) => Program::Shard(Shard::open(machine, index, configuration)?),
            ObjectName::Sequencer => Program::Sequencer(Sequencer::open(machine, configuration)?),
            ObjectName::Registry => Program::Registry,
        };
        let run = Run { program, life };
        *self.run.borrow_mut() = Some(run.clone());
        Ok(run)
    }
}

/// When the runtime tries a failed alarm again.
fn shared_retry_ms(shared: &Shared) -> u64 {
    shared.clock_ns.get() / 1_000_000 + 2_000
}

impl Run {
    async fn handle(&self, method: &str, request: &[u8]) -> Vec<u8> {
        match self.program.clone() {
            Program::Shard(shard) => shard.handle(method, request).await,
            Program::Sequencer(sequencer) => sequencer.handle(method, request).await,
            Program::Registry => answer::encode(Ok(request.to_vec()), None),
        }
    }
}

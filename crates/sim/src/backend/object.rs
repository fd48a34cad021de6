//! One object: its disk, its streams, and its runs. At most one run is the object; a predecessor that was succeeded may
//! still be finishing what it had begun, and can no longer write.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    future::{Future, poll_fn},
    pin::Pin,
    rc::Rc,
    task::{Poll, Waker},
};

use conclave_topiclog::{
    Sequencer, Shard, answer,
    platform::{ObjectName, SocketId},
    storage::OpenError,
};
use futures_channel::oneshot;

use super::{
    bugs::Breach,
    faults::Fault,
    life::Life,
    machine::Machine,
    pipe::Pipe,
    storage::{Disk, View},
    world::{MILLI_NS, World},
};

/// How often the platform runs an alarm that fails, the first time included.
const ALARM_ATTEMPTS: u32 = 6;

pub(super) struct Object {
    pub(super) name: ObjectName,
    disk: Rc<Disk>,
    run: RefCell<Option<Rc<Run>>>,
    pub(super) sockets: RefCell<BTreeMap<SocketId, Rc<Pipe>>>,
    /// How far this object's clock is from the true one.
    pub(super) clock_offset_ns: Cell<i64>,
    armed_ms: Cell<Option<u64>>,
}

/// What is in memory from one start to the next.
pub(super) struct Run {
    program: RefCell<Option<Program>>,
    pub(super) view: View,
    pub(super) life: Life,
    /// Requests and tasks that have not ended.
    busy: Cell<usize>,
    is_flushing: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
    /// Messages on streams that wait for durability, each with the count of writes it follows.
    gated: RefCell<VecDeque<(u64, SocketId, Vec<u8>)>>,
}

#[derive(Clone)]
enum Program {
    Shard(Rc<Shard<Machine>>),
    Sequencer(Rc<Sequencer<Machine>>),
    /// Answers every call with its request.
    Registry,
}

struct Busy(Rc<Run>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.set(self.0.busy.get() - 1);
    }
}

/// The writes were lost.
pub(super) struct Lost;

impl Run {
    fn begin(self: &Rc<Self>) -> Busy {
        self.busy.set(self.busy.get() + 1);
        Busy(Rc::clone(self))
    }

    fn program(&self) -> Option<Program> {
        self.program.borrow().clone()
    }

    fn end(&self) {
        self.life.end();
        self.waiting.take().iter().for_each(Waker::wake_by_ref);
        self.gated.borrow_mut().clear();
        drop(self.program.borrow_mut().take());
    }

    /// Waits until everything written so far is durable.
    pub(super) async fn wait_until_durable(&self) -> Result<(), Lost> {
        let position = self.view.written();
        poll_fn(|context| {
            if self.life.is_over() {
                return Poll::Ready(Err(Lost));
            }
            if self.view.durable() >= position {
                return Poll::Ready(Ok(()));
            }
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// The output gate.
    pub(super) async fn pass_gate(&self, world: &World) -> Result<(), Lost> {
        if world.has(Breach::OutputGateIgnored) || world.has(Breach::DurabilityRelaxed) {
            return Ok(());
        }
        self.wait_until_durable().await
    }
}

impl Object {
    pub(super) fn new(name: ObjectName) -> Self {
        Self {
            name,
            disk: Rc::default(),
            run: RefCell::default(),
            sockets: RefCell::default(),
            clock_offset_ns: Cell::new(0),
            armed_ms: Cell::new(None),
        }
    }

    /// The object's own clock, in nanoseconds since the Unix epoch.
    pub(super) fn clock_ns(&self, world: &World) -> u64 {
        world.wall_ns().saturating_add_signed(self.clock_offset_ns.get())
    }

    /// Runs a call to its end, in this object's time. The receiver fails when the object broke first.
    pub(super) fn call(
        self: &Rc<Self>,
        world: &Rc<World>,
        method: &str,
        request: Vec<u8>,
    ) -> oneshot::Receiver<Vec<u8>> {
        let (sender, receiver) = oneshot::channel();
        let method = method.to_owned();
        match self.open(world) {
            Err(error) => drop(sender.send(error.answer())),
            Ok(run) => {
                let (gate, gate_world) = (Rc::clone(&run), Rc::clone(world));
                self.spawn(world, &run, async move {
                    let answer = match gate.program() {
                        Some(Program::Shard(shard)) => shard.handle(&method, &request).await,
                        Some(Program::Sequencer(sequencer)) => sequencer.handle(&method, &request).await,
                        Some(Program::Registry) => answer::encode(Ok(request), None),
                        None => return,
                    };
                    if gate.pass_gate(&gate_world).await.is_ok() {
                        let _ = sender.send(answer);
                    }
                });
            }
        }
        receiver
    }

    /// Runs work of a run; at each of its awaits the object may break.
    pub(super) fn spawn(
        self: &Rc<Self>,
        world: &Rc<World>,
        run: &Rc<Run>,
        work: impl Future<Output = ()> + 'static,
    ) {
        let guarded = self.guard(world, run, work);
        world.executor.spawn(async move {
            guarded.await;
        });
    }

    fn guard<T: 'static>(
        self: &Rc<Self>,
        world: &Rc<World>,
        run: &Rc<Run>,
        work: impl Future<Output = T> + 'static,
    ) -> impl Future<Output = Option<T>> + 'static {
        let (object, world, run) = (Rc::clone(self), Rc::clone(world), Rc::clone(run));
        let busy = run.begin();
        let mut work = Box::pin(work);
        let mut is_registered = false;
        async move {
            let _busy = busy;
            poll_fn(move |context| {
                if !run.life.is_over() && object.is_current(&run) && world.strikes(Fault::Crash) {
                    object.break_down(&world);
                }
                if run.life.is_over() {
                    return Poll::Ready(None);
                }
                if !std::mem::replace(&mut is_registered, true) {
                    run.life.register(context.waker());
                }
                let polled = Pin::new(&mut work).poll(context).map(Some);
                object.flush_soon(&world, &run);
                polled
            })
            .await
        }
    }

    fn is_current(&self, run: &Rc<Run>) -> bool {
        self.run
            .borrow()
            .as_ref()
            .is_some_and(|current| Rc::ptr_eq(current, run))
    }

    /// What was written becomes durable by itself, some time later.
    fn flush_soon(self: &Rc<Self>, world: &Rc<World>, run: &Rc<Run>) {
        if run.view.durable() == run.view.written() || run.is_flushing.replace(true) {
            return;
        }
        let (object, world, run) = (Rc::clone(self), Rc::clone(world), Rc::clone(run));
        let delay_ns = match world.random.below(20) {
            0 => world.random.between(50, 1_500) * MILLI_NS,
            _ => world.random.between(MILLI_NS / 2, 20 * MILLI_NS),
        };
        let executor = Rc::clone(&world);
        executor.executor.spawn(async move {
            world.executor.sleep_ns(delay_ns).await;
            run.is_flushing.set(false);
            if run.life.is_over() {
                return;
            }
            if !run.view.flush() {
                run.end();
                return;
            }
            object.arm(&world);
            run.waiting.take().iter().for_each(Waker::wake_by_ref);
            object.open_gate(&world, &run);
        });
    }

    fn open_gate(self: &Rc<Self>, world: &Rc<World>, run: &Rc<Run>) {
        loop {
            let next = {
                let mut gated = run.gated.borrow_mut();
                match gated.front() {
                    Some((position, ..)) if *position <= run.view.durable() => gated.pop_front(),
                    _ => None,
                }
            };
            let Some((_, socket, message)) = next else { break };
            self.deliver(world, socket, message);
        }
    }

    /// A message from this object on a stream, held by the output gate.
    pub(super) fn send(
        self: &Rc<Self>,
        world: &Rc<World>,
        run: &Rc<Run>,
        socket: SocketId,
        message: Vec<u8>,
    ) {
        if !self.is_current(run) {
            return;
        }
        let position = match world.breach {
            Some(Breach::OutputGateIgnored | Breach::DurabilityRelaxed) => 0,
            _ => run.view.written(),
        };
        run.gated.borrow_mut().push_back((position, socket, message));
        self.open_gate(world, run);
    }

    fn deliver(&self, world: &Rc<World>, socket: SocketId, message: Vec<u8>) {
        if let Some(pipe) = self.sockets.borrow().get(&socket) {
            pipe.send_to_worker(world, message);
        }
    }

    /// The run that is the object, started if there is none.
    fn open(self: &Rc<Self>, world: &Rc<World>) -> Result<Rc<Run>, OpenError> {
        if let Some(run) = self.run.borrow().clone() {
            return Ok(run);
        }
        let steps = Rc::downgrade(world);
        let view = self.disk.begin_run(Rc::new(move || {
            steps.upgrade().map_or(0, |world| world.executor.steps())
        }));
        let run = Rc::new(Run {
            program: RefCell::new(None),
            view,
            life: Life::default(),
            busy: Cell::new(0),
            is_flushing: Cell::new(false),
            waiting: RefCell::default(),
            gated: RefCell::default(),
        });
        let machine = Machine::new(Rc::clone(world), Rc::clone(self), Rc::clone(&run));
        let configuration = Rc::clone(&world.configuration);
        let program = match self.name {
            ObjectName::Shard(index) => Program::Shard(Shard::open(machine, index, configuration)?),
            ObjectName::Sequencer => Program::Sequencer(Sequencer::open(machine, configuration)?),
            ObjectName::Registry => Program::Registry,
        };
        *run.program.borrow_mut() = Some(program);
        *self.run.borrow_mut() = Some(Rc::clone(&run));
        self.flush_soon(world, &run);
        Ok(run)
    }

    /// The object breaks: its memory and what it had not made durable are gone; its streams end, or stay.
    pub(super) fn break_down(&self, world: &World) {
        let Some(run) = self.run.borrow_mut().take() else {
            return;
        };
        let torn = world.has(Breach::TornTransactions);
        if torn || world.random.chance(300) {
            run.view.flush_some(|bound| world.random.below(bound), torn);
        }
        let keeps_streams = world.random.chance(300);
        world.note(format!("{:?} breaks", self.name));
        run.end();
        if !keeps_streams {
            self.close_sockets();
        }
    }

    /// The object sleeps, if it is idle. Whether it does.
    pub(super) fn hibernate(&self, world: &World) -> bool {
        let run = self.run.borrow().clone();
        let Some(run) = run.filter(|run| run.busy.get() == 0 && run.view.durable() == run.view.written())
        else {
            return false;
        };
        world.note(format!("{:?} sleeps", self.name));
        *self.run.borrow_mut() = None;
        run.end();
        true
    }

    /// A successor starts at the next call, while this run goes on for a while without being able to write.
    pub(super) fn succeed(self: &Rc<Self>, world: &Rc<World>) {
        let Some(run) = self.run.borrow_mut().take() else {
            return;
        };
        world.note(format!("{:?} is succeeded", self.name));
        self.close_sockets();
        run.view.detach();
        let lasts_ms = world.random.between(0, 5_000);
        let (object, ending) = (Rc::clone(self), Rc::clone(world));
        if object.open(world).is_err() {
            run.end();
            return;
        }
        world.executor.spawn(async move {
            ending.sleep_ms(lasts_ms).await;
            run.end();
        });
    }

    fn close_sockets(&self) {
        for pipe in std::mem::take(&mut *self.sockets.borrow_mut()).into_values() {
            pipe.close();
        }
    }

    pub(super) fn close_socket(&self, socket: SocketId) {
        let pipe = self.sockets.borrow_mut().remove(&socket);
        if let Some(pipe) = pipe {
            pipe.close();
        }
    }

    /// A stream is accepted.
    pub(super) fn connect(self: &Rc<Self>, world: &Rc<World>) -> Result<(SocketId, Rc<Pipe>), OpenError> {
        let run = self.open(world)?;
        let socket = SocketId(world.next_socket());
        let pipe = Rc::new(Pipe::default());
        self.sockets.borrow_mut().insert(socket, Rc::clone(&pipe));
        if let Some(Program::Shard(shard)) = run.program() {
            shard.opened(socket);
        }
        Ok((socket, pipe))
    }

    /// The other end closed a stream.
    pub(super) fn disconnect(&self, socket: SocketId) {
        self.sockets.borrow_mut().remove(&socket);
        let run = self.run.borrow().clone();
        if let Some(Program::Shard(shard)) = run.and_then(|run| run.program()) {
            shard.closed(socket);
        }
    }

    /// One message of a stream, handled to its end before the next.
    pub(super) async fn receive(self: &Rc<Self>, world: &Rc<World>, socket: SocketId, message: Vec<u8>) {
        let Ok(run) = self.open(world) else { return };
        if let Some(Program::Shard(shard)) = run.program() {
            let work = async move { shard.message(socket, &message).await };
            self.guard(world, &run, work).await;
        }
    }

    /// Starts the clock of the durable alarm, if it is a new one.
    fn arm(self: &Rc<Self>, world: &Rc<World>) {
        let Some(at_ms) = self.disk.alarm_ms() else { return };
        if world.has(Breach::AlarmsForgotten) {
            return;
        }
        if self.armed_ms.replace(Some(at_ms)) == Some(at_ms) {
            return;
        }
        let (object, world) = (Rc::clone(self), Rc::clone(world));
        let wait_ms = at_ms.saturating_sub(self.clock_ns(&world) / MILLI_NS);
        let late_ms = match world.strikes(Fault::Alarm) {
            true => world.random.between(1, 30_000),
            false => 0,
        };
        let twice = world.strikes(Fault::Alarm);
        let executor = Rc::clone(&world);
        executor.executor.spawn(async move {
            world.sleep_ms(wait_ms + late_ms).await;
            if object.armed_ms.get() != Some(at_ms) {
                return;
            }
            object.armed_ms.set(None);
            object.disk.clear_alarm();
            object.fire(&world).await;
            if twice {
                object.fire(&world).await;
            }
        });
    }

    /// Runs the alarm until it succeeds; after some failures the platform forgets it.
    async fn fire(self: &Rc<Self>, world: &Rc<World>) {
        for attempt in 0..ALARM_ATTEMPTS {
            if attempt > 0 {
                world.sleep_ms(2_000 << attempt).await;
            }
            let Ok(run) = self.open(world) else { continue };
            run.view.alarm_fires();
            let program = run.program();
            let gate = Rc::clone(&run);
            let work = async move {
                match program {
                    Some(Program::Shard(shard)) => shard.alarm().await,
                    Some(Program::Sequencer(sequencer)) => sequencer.alarm().await,
                    _ => {}
                }
                gate.wait_until_durable().await.is_ok()
            };
            if self.guard(world, &run, work).await == Some(true) {
                return;
            }
        }
        world.note(format!("the alarm of {:?} is forgotten", self.name));
    }

    pub(super) fn clear(&self) {
        let run = self.run.borrow_mut().take();
        if let Some(run) = run {
            run.end();
        }
        self.close_sockets();
    }
}

//! One object: its disk, its streams, and its runs. At most one run is the object; a predecessor that was succeeded may
//! still be finishing what it had begun, and can no longer write.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
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
    run::{Program, Run, Work},
    storage::Disk,
    world::{MILLI_NS, World},
};

pub(super) struct Object {
    pub(super) name: ObjectName,
    pub(super) disk: Rc<Disk>,
    pub(super) run: RefCell<Option<Rc<Run>>>,
    pub(super) sockets: RefCell<BTreeMap<SocketId, Rc<Pipe>>>,
    /// How far this object's clock is from the true one.
    pub(super) clock_offset_ns: Cell<i64>,
    /// For when the alarm is set that will go off.
    pub(super) armed_ms: Cell<Option<u64>>,
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
                self.start(world, &run, Work::Request, async move {
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

    /// Runs what a run does beside its requests.
    pub(super) fn spawn(
        self: &Rc<Self>,
        world: &Rc<World>,
        run: &Rc<Run>,
        work: impl Future<Output = ()> + 'static,
    ) {
        self.start(world, run, Work::Task, work);
    }

    fn start(
        self: &Rc<Self>,
        world: &Rc<World>,
        run: &Rc<Run>,
        kind: Work,
        work: impl Future<Output = ()> + 'static,
    ) {
        let guarded = self.guard(world, run, kind, work);
        world.executor.spawn(async move {
            guarded.await;
        });
    }

    /// Work of a run; at each of its awaits the object may break.
    pub(super) fn guard<T: 'static>(
        self: &Rc<Self>,
        world: &Rc<World>,
        run: &Rc<Run>,
        kind: Work,
        work: impl Future<Output = T> + 'static,
    ) -> impl Future<Output = Option<T>> + 'static {
        let (object, world, run) = (Rc::clone(self), Rc::clone(world), Rc::clone(run));
        let busy = run.begin(kind);
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

    pub(super) fn is_current(&self, run: &Rc<Run>) -> bool {
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

    /// The run that is the object, started if there is none.
    pub(super) fn open(self: &Rc<Self>, world: &Rc<World>) -> Result<Rc<Run>, OpenError> {
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
            requests: Cell::new(0),
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

    /// The object breaks: its memory and what it had not made durable are gone. Its streams end, unless nobody waited
    /// for anything: then its memory may be lost unnoticed (docs/decisions/0001-worker-build.md).
    pub(super) fn break_down(self: &Rc<Self>, world: &Rc<World>) {
        let Some(run) = self.run.borrow_mut().take() else {
            return;
        };
        let torn = world.has(Breach::TornTransactions);
        if torn || world.random.chance(300) {
            run.view.flush_some(|bound| world.random.below(bound), torn);
            self.arm(world);
        }
        let keeps_streams = run.requests.get() == 0 && world.random.chance(500);
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

    pub(super) fn clear(&self) {
        let run = self.run.borrow_mut().take();
        if let Some(run) = run {
            run.end();
        }
        self.close_sockets();
    }
}

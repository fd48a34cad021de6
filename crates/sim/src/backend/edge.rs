//! A Worker: the platform beneath the stateless half of the backend. It may be lost at any moment with all it was doing.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    rc::Rc,
    task::{Context, Poll},
};

use conclave_topiclog::{
    Backend,
    platform::{CallError, ObjectName, Platform, SocketId, Upstream},
};

use super::{life::Life, object::Object, pipe::Pipe, world::World};

/// One place where the Worker runs; restarted there when it was lost.
pub(super) struct Edge {
    world: Rc<World>,
    clock_offset_ns: Rc<Cell<i64>>,
    now: RefCell<(Life, Rc<Backend<Worker>>)>,
}

impl Edge {
    pub(super) fn new(world: &Rc<World>) -> Self {
        let clock_offset_ns = Rc::new(Cell::new(0));
        let now = RefCell::new(start(world, &clock_offset_ns));
        Self {
            world: Rc::clone(world),
            clock_offset_ns,
            now,
        }
    }

    /// The Worker that runs here now, and its life.
    pub(super) fn current(&self) -> (Life, Rc<Backend<Worker>>) {
        self.now.borrow().clone()
    }

    /// Everything it was doing is lost.
    pub(super) fn restart(&self) {
        let fresh = start(&self.world, &self.clock_offset_ns);
        let (life, _) = self.now.replace(fresh);
        life.end();
    }

    pub(super) fn set_clock_offset_ns(&self, offset_ns: i64) {
        self.clock_offset_ns.set(offset_ns);
    }
}

fn start(world: &Rc<World>, clock_offset_ns: &Rc<Cell<i64>>) -> (Life, Rc<Backend<Worker>>) {
    let life = Life::default();
    let worker = Worker {
        world: Rc::clone(world),
        life: life.clone(),
        clock_offset_ns: Rc::clone(clock_offset_ns),
    };
    let backend = Backend::new(worker, Rc::clone(&world.configuration));
    (life, Rc::new(backend))
}

#[derive(Clone)]
pub(super) struct Worker {
    world: Rc<World>,
    life: Life,
    clock_offset_ns: Rc<Cell<i64>>,
}

/// The Worker's end of a stream.
pub(super) struct Connection {
    world: Rc<World>,
    object: Rc<Object>,
    socket: SocketId,
    pipe: Rc<Pipe>,
}

impl Platform for Worker {
    type Passed = bytes::Bytes;
    type Upstream = Connection;

    fn now_ns(&self) -> u64 {
        self.world
            .wall_ns()
            .saturating_add_signed(self.clock_offset_ns.get())
    }

    fn random(&self, bytes: &mut [u8]) {
        self.world.random.fill(bytes);
    }

    async fn call(
        &self,
        to: ObjectName,
        method: &str,
        request: Vec<u8>,
        deadline_ms: u32,
    ) -> Result<Vec<u8>, CallError> {
        self.world.call(to, method, request, deadline_ms).await
    }

    async fn connect(&self, shard: u32) -> Result<Connection, CallError> {
        self.world.travel().await;
        let object = self.world.object(ObjectName::Shard(shard));
        let (socket, pipe) = object
            .connect(&self.world)
            .map_err(|error| CallError::OutcomeUnknown {
                reason: error.to_string(),
            })?;
        Ok(Connection {
            world: Rc::clone(&self.world),
            object,
            socket,
            pipe,
        })
    }

    async fn delay(&self, milliseconds: u32) {
        self.world.sleep_ms(milliseconds.into()).await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let life = self.life.clone();
        self.world.executor.spawn(async move {
            life.limit(task).await;
        });
    }
}

impl Upstream for Connection {
    fn send(&self, message: Vec<u8>) {
        if !self.pipe.is_closed.get() {
            self.pipe
                .send_to_shard(&self.world, &self.object, self.socket, message);
        }
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        if let Some(message) = self.pipe.arrived.borrow_mut().pop_front() {
            return Poll::Ready(Some(message));
        }
        if self.pipe.is_closed.get() {
            return Poll::Ready(None);
        }
        *self.pipe.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.pipe.is_closed.set(true);
        self.object.disconnect(self.socket);
    }
}

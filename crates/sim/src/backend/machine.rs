//! The platform beneath a run of an object.

use std::{future::Future, rc::Rc};

use conclave_topiclog::platform::{CallError, ObjectName, ObjectPlatform, Platform, SocketId};

use super::{
    bugs::Breach,
    edge::Connection,
    object::Object,
    run::{Lost, Run},
    storage::View,
    world::World,
};

#[derive(Clone)]
pub(super) struct Machine {
    world: Rc<World>,
    object: Rc<Object>,
    run: Rc<Run>,
}

impl Machine {
    pub(super) fn new(world: Rc<World>, object: Rc<Object>, run: Rc<Run>) -> Self {
        Self { world, object, run }
    }

    fn broken(_: Lost) -> CallError {
        CallError::OutcomeUnknown {
            reason: "the object broke".to_owned(),
        }
    }
}

impl Platform for Machine {
    type Passed = bytes::Bytes;
    type Upstream = Connection;

    fn now_ns(&self) -> u64 {
        self.object.clock_ns(&self.world)
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
        self.run.pass_gate(&self.world).await.map_err(Self::broken)?;
        if method == "apply" {
            self.world.decision_leaves(&self.object, to);
        }
        self.world.call(to, method, request, deadline_ms).await
    }

    async fn connect(&self, _shard: u32) -> Result<Connection, CallError> {
        panic!("objects open no streams")
    }

    async fn delay(&self, _milliseconds: u32) {
        panic!("objects wait for no timer")
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.object.spawn(&self.world, &self.run, task);
    }
}

impl ObjectPlatform for Machine {
    type Sql = View;

    fn sql(&self) -> &View {
        assert!(!self.run.life.is_over(), "a run that is over touches its storage");
        &self.run.view
    }

    async fn sync(&self) -> Result<(), CallError> {
        if self.world.has(Breach::DurabilityRelaxed) {
            return Ok(());
        }
        self.run.wait_until_durable().await.map_err(Self::broken)
    }

    fn set_alarm(&self, at_ms: u64) {
        self.run.view.set_alarm(at_ms);
    }

    fn send(&self, socket: SocketId, message: Vec<u8>) {
        self.object.send(&self.world, &self.run, socket, message);
    }

    fn sockets(&self) -> Vec<SocketId> {
        self.object.sockets.borrow().keys().copied().collect()
    }

    fn close(&self, socket: SocketId, _reason: &str) {
        self.object.close_socket(socket);
    }
}

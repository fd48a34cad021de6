//! The platform beneath an object.

use std::{future::Future, rc::Rc};

use conclave_topiclog::platform::{CallError, ObjectName, ObjectPlatform, Platform, SocketId};

use super::{
    Shared,
    object::{Life, Object},
    storage::Storage,
    worker::Connection,
};

#[derive(Clone)]
pub(crate) struct Machine {
    shared: Rc<Shared>,
    object: Rc<Object>,
    storage: Rc<Storage>,
    life: Life,
}

impl Machine {
    pub(crate) fn new(shared: Rc<Shared>, object: Rc<Object>, storage: Rc<Storage>, life: Life) -> Self {
        Self {
            shared,
            object,
            storage,
            life,
        }
    }

    fn broken() -> CallError {
        CallError::OutcomeUnknown {
            reason: "the object broke".to_owned(),
        }
    }
}

impl Platform for Machine {
    type Passed = bytes::Bytes;
    type Upstream = Connection;

    fn now_ns(&self) -> u64 {
        self.shared.clock_ns.get()
    }

    fn random(&self, bytes: &mut [u8]) {
        self.shared.fill_random(bytes);
    }

    async fn call(
        &self,
        to: ObjectName,
        method: &str,
        request: Vec<u8>,
        deadline_ms: u32,
    ) -> Result<Vec<u8>, CallError> {
        self.object
            .wait_until_durable(&self.shared, &self.life)
            .await
            .map_err(|()| Self::broken())?;
        self.shared.call(to, method, request, deadline_ms).await
    }

    async fn connect(&self, _shard: u32) -> Result<Connection, CallError> {
        panic!("objects open no streams")
    }

    async fn delay(&self, _milliseconds: u32) {
        panic!("objects wait for no timer")
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let life = self.life.clone();
        self.shared.executor.spawn(async move {
            life.limit(task).await;
        });
    }
}

impl ObjectPlatform for Machine {
    type Sql = Storage;

    fn sql(&self) -> &Storage {
        assert!(!self.life.is_over(), "a run that is over touches its storage");
        &self.storage
    }

    async fn sync(&self) -> Result<(), CallError> {
        self.object
            .sync(&self.shared, &self.life)
            .await
            .map_err(|()| Self::broken())
    }

    fn set_alarm(&self, at_ms: u64) {
        assert!(!self.life.is_over(), "a run that is over sets an alarm");
        self.object.set_alarm(&self.shared, at_ms);
    }

    fn send(&self, socket: SocketId, message: Vec<u8>) {
        self.object.send(&self.shared, socket, message);
    }

    fn sockets(&self) -> Vec<SocketId> {
        self.object.sockets.borrow().keys().copied().collect()
    }

    fn close(&self, socket: SocketId, _reason: &str) {
        self.object.close_socket(socket);
    }
}

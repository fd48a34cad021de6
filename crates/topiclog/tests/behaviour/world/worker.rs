//! The platform beneath the Worker.

use std::{
    future::Future,
    rc::Rc,
    task::{Context, Poll},
};

use conclave_topiclog::platform::{CallError, ObjectName, Platform, SocketId, Upstream};

use super::{
    Shared,
    object::{Object, Pipe},
};

#[derive(Clone)]
pub(crate) struct Worker {
    shared: Rc<Shared>,
}

impl Worker {
    pub(crate) fn new(shared: Rc<Shared>) -> Self {
        Self { shared }
    }
}

/// The Worker's end of a stream.
pub(crate) struct Connection {
    shared: Rc<Shared>,
    object: Rc<Object>,
    socket: SocketId,
    pipe: Rc<Pipe>,
}

impl Platform for Worker {
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
        self.shared.call(to, method, request, deadline_ms).await
    }

    async fn connect(&self, shard: u32) -> Result<Connection, CallError> {
        self.shared.dawdle().await;
        let object = self.shared.object(ObjectName::Shard(shard));
        let (socket, pipe) = object
            .connect(&self.shared)
            .map_err(|error| CallError::OutcomeUnknown {
                reason: error.to_string(),
            })?;
        Ok(Connection {
            shared: Rc::clone(&self.shared),
            object,
            socket,
            pipe,
        })
    }

    async fn delay(&self, milliseconds: u32) {
        self.shared.sleep_ms(milliseconds.into()).await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.shared.executor.spawn(task);
    }
}

impl Upstream for Connection {
    fn send(&self, message: Vec<u8>) {
        if !self.pipe.is_closed.get() {
            self.object
                .receive(&self.shared, self.socket, &self.pipe, message);
        }
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        if let Some(message) = self.pipe.to_worker.borrow_mut().pop_front() {
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

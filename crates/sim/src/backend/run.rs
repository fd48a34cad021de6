//! One run of an object: what is in memory from one start to the next, and its output gate.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::poll_fn,
    rc::Rc,
    task::{Poll, Waker},
};

use conclave_topiclog::{Sequencer, Shard, platform::SocketId};

use super::{bugs::Breach, life::Life, machine::Machine, storage::View, world::World};

/// What is in memory from one start to the next.
pub(super) struct Run {
    pub(super) program: RefCell<Option<Program>>,
    pub(super) view: View,
    pub(super) life: Life,
    /// Requests and tasks that have not ended.
    pub(super) busy: Cell<usize>,
    /// Those of them that somebody outside waits for.
    pub(super) requests: Cell<usize>,
    pub(super) is_flushing: Cell<bool>,
    pub(super) waiting: RefCell<Vec<Waker>>,
    /// Messages on streams that wait for durability, each with the count of writes it follows.
    pub(super) gated: RefCell<VecDeque<(u64, SocketId, Vec<u8>)>>,
}

/// What runs.
#[derive(Clone)]
pub(super) enum Program {
    Shard(Rc<Shard<Machine>>),
    Sequencer(Rc<Sequencer<Machine>>),
    /// Answers every call with its request.
    Registry,
}

/// What a run is busy with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A call, a message or an alarm.
    Request,
    /// What it does beside them.
    Task,
}

/// Something a run is busy with, until it is dropped.
pub(super) struct Busy(Rc<Run>, Work);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.set(self.0.busy.get() - 1);
        if self.1 == Work::Request {
            self.0.requests.set(self.0.requests.get() - 1);
        }
    }
}

/// The writes were lost.
pub(super) struct Lost;

impl Run {
    pub(super) fn begin(self: &Rc<Self>, work: Work) -> Busy {
        self.busy.set(self.busy.get() + 1);
        if work == Work::Request {
            self.requests.set(self.requests.get() + 1);
        }
        Busy(Rc::clone(self), work)
    }

    pub(super) fn program(&self) -> Option<Program> {
        self.program.borrow().clone()
    }

    pub(super) fn end(&self) {
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

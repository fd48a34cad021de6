//! A message stream between a session in a Worker and a shard: ordered in both directions, until faults say otherwise.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
    task::Waker,
};

use conclave_topiclog::platform::SocketId;

use super::{faults::Fault, object::Object, planted, world::World};

/// Both directions of one stream.
#[derive(Default)]
pub(super) struct Pipe {
    /// On the way to the Worker.
    sent: RefCell<VecDeque<Vec<u8>>>,
    /// Arrived there.
    pub(super) arrived: RefCell<VecDeque<Vec<u8>>>,
    to_shard: RefCell<VecDeque<Vec<u8>>>,
    overtaken: RefCell<Option<Vec<u8>>>,
    is_carrying: Cell<bool>,
    is_delivering: Cell<bool>,
    pub(super) is_closed: Cell<bool>,
    pub(super) waker: RefCell<Option<Waker>>,
}

impl Pipe {
    pub(super) fn close(&self) {
        self.is_closed.set(true);
        self.wake();
    }

    fn wake(&self) {
        self.waker.borrow_mut().take().iter().for_each(Waker::wake_by_ref);
    }

    /// A message from the shard.
    pub(super) fn send_to_worker(self: &Rc<Self>, world: &Rc<World>, message: Vec<u8>) {
        let message = planted::alter_push(world, message);
        let overtaken = self.overtaken.borrow_mut().take();
        if world.strikes(Fault::Stream) {
            match world.random.below(8) {
                // A socket is reliable until it breaks. Pushes alone are treated worse: they are hints, and a session
                // takes none of them on trust (docs/decisions/0003-stream-registration.md).
                0 => {
                    self.close();
                    return;
                }
                1 | 2 if planted::is_push(&message) => {}
                3 | 4 if planted::is_push(&message) => {
                    self.sent.borrow_mut().extend([message.clone(), message]);
                }
                5 | 6 if planted::is_push(&message) => *self.overtaken.borrow_mut() = Some(message),
                _ => self.sent.borrow_mut().push_back(message),
            }
        } else {
            self.sent.borrow_mut().push_back(message);
        }
        self.sent.borrow_mut().extend(overtaken);
        if self.is_carrying.replace(true) {
            return;
        }
        let (pipe, carrier) = (Rc::clone(self), Rc::clone(world));
        world.executor.spawn(async move {
            loop {
                carrier.travel().await;
                let Some(message) = pipe.sent.borrow_mut().pop_front() else {
                    break;
                };
                pipe.arrived.borrow_mut().push_back(message);
                pipe.wake();
            }
            pipe.is_carrying.set(false);
        });
    }

    /// A message to the shard, handled in order.
    pub(super) fn send_to_shard(
        self: &Rc<Self>,
        world: &Rc<World>,
        object: &Rc<Object>,
        socket: SocketId,
        message: Vec<u8>,
    ) {
        self.to_shard.borrow_mut().push_back(message);
        if self.is_delivering.replace(true) {
            return;
        }
        let (pipe, carrier, object) = (Rc::clone(self), Rc::clone(world), Rc::clone(object));
        world.executor.spawn(async move {
            loop {
                carrier.travel().await;
                let Some(message) = pipe.to_shard.borrow_mut().pop_front() else {
                    break;
                };
                if pipe.is_closed.get() {
                    break;
                }
                object.receive(&carrier, socket, message).await;
            }
            pipe.is_delivering.set(false);
        });
    }
}

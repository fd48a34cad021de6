//! The streams of an object: accepted, carried through the output gate, closed.

use std::rc::Rc;

use conclave_topiclog::{platform::SocketId, storage::OpenError};

use super::{
    bugs::Breach,
    object::Object,
    pipe::Pipe,
    run::{Program, Run, Work},
    world::World,
};

impl Object {
    /// Lets out the messages whose writes are durable.
    pub(super) fn open_gate(self: &Rc<Self>, world: &Rc<World>, run: &Rc<Run>) {
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

    /// Every stream ends.
    pub(super) fn close_sockets(&self) {
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
            self.guard(world, &run, Work::Request, work).await;
        }
    }
}

//! The Worker's end of a message stream to a shard, over a WebSocket. Depends on [`runtime`](crate::runtime).

use std::{
    cell::RefCell,
    collections::VecDeque,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use conclave_topiclog::platform;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::Closure;

use crate::runtime::Socket;

/// An open message stream. Dropping it closes the WebSocket.
pub(crate) struct Upstream {
    socket: Socket,
    /// Messages already taken over from JavaScript, in order.
    received: VecDeque<Vec<u8>>,
    waker: Rc<RefCell<Option<Waker>>>,
    /// What JavaScript calls when there is more; lives as long as the socket may call it.
    _wake: Closure<dyn FnMut()>,
}

impl Upstream {
    pub(crate) fn new(socket: Socket) -> Self {
        let waker: Rc<RefCell<Option<Waker>>> = Rc::default();
        let woken = Rc::clone(&waker);
        let wake = Closure::new(move || {
            let waker = woken.borrow_mut().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        });
        socket.listen(&wake);
        Self {
            socket,
            received: VecDeque::new(),
            waker,
            _wake: wake,
        }
    }
}

impl platform::Upstream for Upstream {
    fn send(&self, message: Vec<u8>) {
        self.socket.send(Uint8Array::from(message.as_slice()));
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        if self.received.is_empty() {
            let Some(waiting) = self.socket.take() else {
                return Poll::Ready(None);
            };
            self.received
                .extend(waiting.iter().map(|message| Uint8Array::new(&message).to_vec()));
        }
        match self.received.pop_front() {
            Some(message) => Poll::Ready(Some(message)),
            None => {
                self.waker.replace(Some(context.waker().clone()));
                Poll::Pending
            }
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.socket.drop();
    }
}

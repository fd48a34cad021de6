//! A queue from several senders to one receiver, within one thread. Pure.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

struct State<T> {
    waiting: VecDeque<T>,
    senders: usize,
    is_closed: bool,
    waker: Option<Waker>,
}

/// The sending half. What is sent when the receiver has gone is dropped.
pub(crate) struct Sender<T>(Rc<RefCell<State<T>>>);

/// The receiving half.
pub(crate) struct Receiver<T>(Rc<RefCell<State<T>>>);

/// An empty queue.
pub(crate) fn queue<T>() -> (Sender<T>, Receiver<T>) {
    let state = State {
        waiting: VecDeque::new(),
        senders: 1,
        is_closed: false,
        waker: None,
    };
    let state = Rc::new(RefCell::new(state));
    (Sender(Rc::clone(&state)), Receiver(state))
}

impl<T> Sender<T> {
    /// Puts a value at the end of the queue.
    pub(crate) fn send(&self, value: T) {
        let mut state = self.0.borrow_mut();
        if state.is_closed {
            // The value may hold the last reference to something that sends when it is dropped.
            drop(state);
            drop(value);
            return;
        }
        state.waiting.push_back(value);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.borrow_mut().senders += 1;
        Sender(Rc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.borrow_mut();
        state.senders -= 1;
        let waker = if state.senders == 0 {
            state.waker.take()
        } else {
            None
        };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Receiver<T> {
    /// The first value, at once; none when there is none now.
    pub(crate) fn try_next(&mut self) -> Option<T> {
        self.0.borrow_mut().waiting.pop_front()
    }

    /// The first value, when there is one; none when every sender has gone. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Option<T> {
        poll_fn(|context| {
            let mut state = self.0.borrow_mut();
            match state.waiting.pop_front() {
                Some(value) => Poll::Ready(Some(value)),
                None if state.senders == 0 => Poll::Ready(None),
                None => {
                    state.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.0.borrow_mut();
            state.is_closed = true;
            std::mem::take(&mut state.waiting)
        };
        drop(waiting);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::Context;

    use super::*;

    fn next<T>(receiver: &mut Receiver<T>) -> Poll<Option<T>> {
        pin!(receiver.next()).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn values_come_in_order_and_the_end_after_them() {
        let (sender, mut receiver) = queue();
        assert_eq!(next::<u8>(&mut receiver), Poll::Pending);
        let other = sender.clone();
        sender.send(1);
        other.send(2);
        drop(sender);
        assert_eq!(next(&mut receiver), Poll::Ready(Some(1)));
        assert_eq!(receiver.try_next(), Some(2));
        assert_eq!(next(&mut receiver), Poll::Pending);
        drop(other);
        assert_eq!(next(&mut receiver), Poll::Ready(None));
    }

    #[test]
    fn what_nobody_will_receive_is_dropped() {
        let (sender, receiver) = queue();
        let value = Rc::new(());
        sender.send(Rc::clone(&value));
        drop(receiver);
        sender.send(Rc::clone(&value));
        assert_eq!(Rc::strong_count(&value), 1);
    }
}

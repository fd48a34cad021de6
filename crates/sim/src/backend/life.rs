//! The end of a run: everything a run of an object, or a Worker, still does stops where it is.

use std::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    pin::Pin,
    rc::Rc,
    task::{Poll, Waker},
};

/// Ends with the run it belongs to.
#[derive(Clone, Default)]
pub(super) struct Life(Rc<State>);

#[derive(Default)]
struct State {
    is_over: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Life {
    pub(super) fn is_over(&self) -> bool {
        self.0.is_over.get()
    }

    pub(super) fn end(&self) {
        self.0.is_over.set(true);
        self.0.waiting.take().iter().for_each(Waker::wake_by_ref);
    }

    /// Wakes this task when the run ends. Once is enough: a task keeps its waker.
    pub(super) fn register(&self, waker: &Waker) {
        self.0.waiting.borrow_mut().push(waker.clone());
    }

    /// A future that stops where it is when the run ends.
    pub(super) async fn limit<T>(self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = Box::pin(future);
        let mut is_registered = false;
        poll_fn(|context| {
            if self.is_over() {
                return Poll::Ready(None);
            }
            if !std::mem::replace(&mut is_registered, true) {
                self.register(context.waker());
            }
            Pin::new(&mut future).poll(context).map(Some)
        })
        .await
    }
}

//! Tasks: one by one, several at once, and such as end together.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};

/// A task as it is run: of one type, so that running one is compiled once.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Starts a task that ends by itself.
pub(crate) fn spawn(task: Task) {
    wasm_bindgen_futures::spawn_local(task);
}

/// A future among several of one output.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Waits for several futures at once; the outputs are in the futures' order.
pub(crate) async fn all<T: Unpin>(mut futures: Vec<Pending<'_, T>>) -> Vec<T> {
    let mut outputs: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *output = Some(value);
            }
        }
        if outputs.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// Runs tasks until it is dropped; whatever of them is still under way is then dropped too.
#[derive(Default)]
pub(crate) struct Scope {
    running: RefCell<Vec<TaskHandle>>,
}

/// Holds a task until it ends or is ended.
#[derive(Default)]
struct Slot {
    task: Option<Task>,
    /// Wakes whatever polls the task.
    waker: Option<Waker>,
}

/// Names a running task. One that has ended is gone from behind its name.
#[derive(Clone)]
pub(crate) struct TaskHandle(Weak<RefCell<Slot>>);

impl TaskHandle {
    /// Drops the task where it is. To be called from no part of the task itself.
    pub(crate) fn end(&self) {
        let Some(slot) = self.0.upgrade() else { return };
        let Slot { task, waker } = slot.take();
        drop(task);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Scope {
    /// Starts a task.
    pub(crate) fn spawn(&self, task: Task) -> TaskHandle {
        let slot = Rc::new(RefCell::new(Slot {
            task: Some(task),
            waker: None,
        }));
        let handle = TaskHandle(Rc::downgrade(&slot));
        let mut running = self.running.borrow_mut();
        running.retain(|handle| handle.0.strong_count() > 0);
        running.push(handle.clone());
        spawn(Box::pin(poll_fn(move |context| {
            let mut slot = slot.borrow_mut();
            slot.waker = Some(context.waker().clone());
            match slot.task.as_mut() {
                Some(task) => task.as_mut().poll(context),
                None => Poll::Ready(()),
            }
        })));
        handle
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        for handle in self.running.take() {
            handle.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Context;

    use super::*;

    #[test]
    fn outputs_come_in_the_order_of_their_futures() {
        let mut late = false;
        let slow = poll_fn(move |_| {
            if std::mem::replace(&mut late, true) {
                Poll::Ready(1)
            } else {
                Poll::Pending
            }
        });
        let futures: Vec<Pending<'_, i32>> = vec![Box::pin(slow), Box::pin(async { 2 })];
        let mut both = Box::pin(all(futures));
        let mut context = Context::from_waker(Waker::noop());
        assert!(both.as_mut().poll(&mut context).is_pending());
        assert_eq!(both.as_mut().poll(&mut context), Poll::Ready(vec![1, 2]));
    }
}

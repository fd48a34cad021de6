//! A single-threaded executor that runs tasks in a fixed order, and timers that fire when told.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    future::{Future, poll_fn},
    pin::Pin,
    rc::Rc,
    sync::{Arc, Mutex},
    task::{Context, Poll, Wake, Waker},
};

use futures_util::future::FutureExt as _;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// The ids of tasks that may go on, in the order they were woken.
type Ready = Arc<Mutex<VecDeque<u64>>>;

#[derive(Default)]
pub(crate) struct Executor {
    tasks: RefCell<BTreeMap<u64, (Task, Waker)>>,
    ready: Ready,
    next_task: Cell<u64>,
    timers: RefCell<BTreeMap<(u64, u64), Rc<Timer>>>,
    next_timer: Cell<u64>,
}

struct TaskWaker {
    task: u64,
    ready: Ready,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut ready = self.ready.lock().expect("one thread");
        if !ready.contains(&self.task) {
            ready.push_back(self.task);
        }
    }
}

#[derive(Default)]
struct Timer {
    has_fired: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Executor {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let task = self.next_task.replace(self.next_task.get() + 1);
        let waker = Waker::from(Arc::new(TaskWaker {
            task,
            ready: Arc::clone(&self.ready),
        }));
        self.tasks.borrow_mut().insert(task, (Box::pin(future), waker));
        self.ready.lock().expect("one thread").push_back(task);
    }

    pub(crate) fn run_until_stalled(&self) {
        while self.run_one() {}
    }

    pub(crate) fn step(&self, steps: usize) {
        for _ in 0..steps {
            if !self.run_one() {
                break;
            }
        }
    }

    fn run_one(&self) -> bool {
        let Some(task) = self.ready.lock().expect("one thread").pop_front() else {
            return false;
        };
        let Some((mut future, waker)) = self.tasks.borrow_mut().remove(&task) else {
            return true;
        };
        if future.poll_unpin(&mut Context::from_waker(&waker)).is_pending() {
            self.tasks.borrow_mut().insert(task, (future, waker));
        }
        true
    }

    /// Resolves when the clock reaches `due_ns`.
    pub(crate) fn sleep_until(&self, due_ns: u64) -> impl Future<Output = ()> + 'static {
        let id = self.next_timer.replace(self.next_timer.get() + 1);
        let timer = Rc::new(Timer::default());
        self.timers.borrow_mut().insert((due_ns, id), Rc::clone(&timer));
        poll_fn(move |context| {
            if timer.has_fired.get() {
                return Poll::Ready(());
            }
            *timer.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
    }

    pub(crate) fn next_timer(&self) -> Option<u64> {
        self.timers.borrow().keys().next().map(|(due, _)| *due)
    }

    pub(crate) fn fire_timers(&self, now_ns: u64) {
        let due = {
            let mut timers = self.timers.borrow_mut();
            let later = timers.split_off(&(now_ns + 1, 0));
            std::mem::replace(&mut *timers, later)
        };
        for timer in due.values() {
            timer.has_fired.set(true);
            timer
                .waker
                .borrow_mut()
                .take()
                .iter()
                .for_each(Waker::wake_by_ref);
        }
    }
}

/// Lets every other task that may go on have its turn.
pub(crate) async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

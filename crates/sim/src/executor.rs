//! A single-threaded executor whose time is virtual and whose choices are drawn from a seed: of the tasks that may go on,
//! a random one does, and the clock moves only when none may. Depends on [`crate::random`] alone.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    rc::Rc,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use crate::random::Random;

type Task = Pin<Box<dyn Future<Output = ()>>>;
type Ready = Arc<Mutex<Vec<u64>>>;
type Timers = Rc<RefCell<BTreeMap<(u64, u64), Rc<Timer>>>>;

/// The executor. Tasks that have not ended when it is dropped are dropped with it.
#[derive(Default)]
pub struct Executor {
    tasks: RefCell<BTreeMap<u64, (Task, Arc<TaskWaker>)>>,
    ready: Ready,
    next_task: Cell<u64>,
    timers: Timers,
    next_timer: Cell<u64>,
    now_ns: Cell<u64>,
    steps: Cell<u64>,
}

struct TaskWaker {
    task: u64,
    is_queued: AtomicBool,
    ready: Ready,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::Relaxed) {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            ready.push(self.task);
        }
    }
}

#[derive(Default)]
struct Timer {
    has_fired: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// Resolves at its time. Dropping it forgets it, so that the clock does not stop for nobody.
pub struct Sleep {
    key: (u64, u64),
    timer: Rc<Timer>,
    timers: Timers,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.timer.has_fired.get() {
            return Poll::Ready(());
        }
        *self.timer.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.timers.borrow_mut().remove(&self.key);
    }
}

impl Executor {
    /// Adds a task.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let task = self.next_task.replace(self.next_task.get() + 1);
        let waker = Arc::new(TaskWaker {
            task,
            is_queued: AtomicBool::new(false),
            ready: Arc::clone(&self.ready),
        });
        self.tasks
            .borrow_mut()
            .insert(task, (Box::pin(future), Arc::clone(&waker)));
        waker.wake();
    }

    /// Virtual nanoseconds since the simulation began.
    pub fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    /// How many times a task was polled so far. Two events in the same step happened in one turn of one task.
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// Resolves `nanoseconds` from now.
    pub fn sleep_ns(&self, nanoseconds: u64) -> Sleep {
        let id = self.next_timer.replace(self.next_timer.get() + 1);
        let key = (self.now_ns.get().saturating_add(nanoseconds), id);
        let timer = Rc::new(Timer::default());
        self.timers.borrow_mut().insert(key, Rc::clone(&timer));
        Sleep {
            key,
            timer,
            timers: Rc::clone(&self.timers),
        }
    }

    /// Runs until `is_done`, the virtual time `end_ns` or a number of steps is reached, or nothing can ever go on.
    /// Whether `is_done` holds.
    pub fn run(&self, random: &Random, end_ns: u64, steps_max: u64, is_done: impl Fn() -> bool) -> bool {
        let last_step = self.steps.get().saturating_add(steps_max);
        while !is_done() && self.steps.get() < last_step {
            if !self.run_one(random) && !self.advance(end_ns) {
                break;
            }
        }
        is_done()
    }

    fn run_one(&self, random: &Random) -> bool {
        let task = {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            if ready.is_empty() {
                return false;
            }
            let place = random.below(ready.len());
            ready.swap_remove(place)
        };
        let Some((mut future, waker)) = self.tasks.borrow_mut().remove(&task) else {
            return true;
        };
        self.steps.set(self.steps.get() + 1);
        waker.is_queued.store(false, Ordering::Relaxed);
        let standard = Waker::from(Arc::clone(&waker));
        if future
            .as_mut()
            .poll(&mut Context::from_waker(&standard))
            .is_pending()
        {
            self.tasks.borrow_mut().insert(task, (future, waker));
        }
        true
    }

    /// Moves the clock to the next timer, if that comes before `end_ns`.
    fn advance(&self, end_ns: u64) -> bool {
        let Some(due_ns) = self.timers.borrow().keys().next().map(|(due_ns, _)| *due_ns) else {
            return false;
        };
        if due_ns > end_ns {
            return false;
        }
        self.now_ns.set(self.now_ns.get().max(due_ns));
        let due = {
            let mut timers = self.timers.borrow_mut();
            let later = timers.split_off(&(due_ns + 1, 0));
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
        true
    }

    /// Drops every task. They may hold what holds this executor.
    pub fn clear(&self) {
        // A task that is dropped may spawn or wake others.
        loop {
            let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
            if tasks.is_empty() {
                break;
            }
        }
    }
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Executor")
            .field("now_ns", &self.now_ns.get())
            .field("steps", &self.steps.get())
            .finish_non_exhaustive()
    }
}

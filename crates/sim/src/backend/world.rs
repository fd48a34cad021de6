//! The machine beneath a deployment: its objects, the network between them, and the faults of both.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    pin::pin,
    rc::Rc,
};

use conclave_topiclog::{
    Configuration,
    platform::{CallError, ObjectName},
};
use futures_channel::oneshot;
use futures_util::future::{Either, select};

use super::{
    bugs::Breach,
    faults::{Fault, Rates},
    object::Object,
    planted::Plants,
};
use crate::{executor::Executor, random::Random};

/// 2027-01-01 in nanoseconds since the Unix epoch.
const START_NS: u64 = 1_798_761_600_000_000_000;
/// Nanoseconds in a millisecond.
pub(super) const MILLI_NS: u64 = 1_000_000;

/// What everything in a simulated deployment shares.
pub(super) struct World {
    pub(super) executor: Executor,
    pub(super) random: Random,
    pub(super) configuration: Rc<Configuration>,
    pub(super) breach: Option<Breach>,
    pub(super) plants: Plants,
    rates: Rates,
    are_faults_on: Cell<bool>,
    objects: RefCell<BTreeMap<ObjectName, Rc<Object>>>,
    next_socket: Cell<u64>,
    /// How far time was skipped, in nanoseconds.
    skipped_ns: Cell<u64>,
    /// Until when no decision reaches an object, in virtual nanoseconds.
    deaf_until_ns: RefCell<BTreeMap<ObjectName, u64>>,
    notes: RefCell<Vec<Note>>,
}

/// Something that happened to the deployment, for the report.
#[derive(Clone, Debug)]
pub(super) struct Note {
    pub(super) at_ns: u64,
    pub(super) text: String,
}

impl World {
    pub(super) fn new(
        configuration: Configuration,
        rates: Rates,
        random: Random,
        breach: Option<Breach>,
    ) -> Rc<Self> {
        Rc::new(Self {
            executor: Executor::default(),
            random,
            configuration: Rc::new(configuration),
            breach,
            plants: Plants::default(),
            rates,
            are_faults_on: Cell::new(true),
            objects: RefCell::default(),
            next_socket: Cell::new(1),
            skipped_ns: Cell::new(0),
            deaf_until_ns: RefCell::default(),
            notes: RefCell::default(),
        })
    }

    pub(super) fn has(&self, breach: Breach) -> bool {
        self.breach == Some(breach)
    }

    /// Whether a fault happens at this occasion.
    pub(super) fn strikes(&self, fault: Fault) -> bool {
        self.are_faults_on.get() && self.random.chance(self.rates.of(fault))
    }

    pub(super) fn are_faults_on(&self) -> bool {
        self.are_faults_on.get()
    }

    /// Whether a fault may happen in this simulation.
    pub(super) fn may_have(&self, fault: Fault) -> bool {
        self.rates.of(fault) > 0
    }

    /// Faults may happen again.
    pub(super) fn start_faults(&self) {
        self.are_faults_on.set(true);
        self.note("faults start");
    }

    /// From here on nothing goes wrong any more.
    pub(super) fn stop_faults(&self) {
        self.are_faults_on.set(false);
        self.deaf_until_ns.borrow_mut().clear();
        self.note("faults stop");
    }

    /// What the true clock shows, in nanoseconds since the Unix epoch.
    pub(super) fn wall_ns(&self) -> u64 {
        START_NS + self.executor.now_ns() + self.skipped_ns.get()
    }

    /// A long time passes, in which nothing happens.
    pub(super) fn skip_ns(self: &Rc<Self>, nanoseconds: u64) {
        self.note("time passes");
        self.skipped_ns.set(self.skipped_ns.get() + nanoseconds);
        for object in self.objects() {
            object.hear_of_skipped_time(self);
        }
    }

    pub(super) fn note(&self, text: impl Into<String>) {
        let at_ns = self.executor.now_ns();
        self.notes.borrow_mut().push(Note {
            at_ns,
            text: text.into(),
        });
    }

    pub(super) fn take_notes(&self) -> Vec<Note> {
        self.notes.take()
    }

    pub(super) fn object(&self, name: ObjectName) -> Rc<Object> {
        let mut objects = self.objects.borrow_mut();
        Rc::clone(objects.entry(name).or_insert_with(|| Rc::new(Object::new(name))))
    }

    pub(super) fn objects(&self) -> Vec<Rc<Object>> {
        self.objects.borrow().values().cloned().collect()
    }

    pub(super) fn next_socket(&self) -> u64 {
        self.next_socket.replace(self.next_socket.get() + 1)
    }

    pub(super) async fn sleep_ms(&self, milliseconds: u64) {
        self.executor.sleep_ns(milliseconds * MILLI_NS).await;
    }

    /// A message is on its way.
    pub(super) async fn travel(&self) {
        let latency_ns = if self.strikes(Fault::Delay) {
            match self.random.below(8) {
                0 => self.random.between(3_000, 40_000) * MILLI_NS,
                1 | 2 => self.random.between(300, 3_000) * MILLI_NS,
                _ => self.random.between(5, 300) * MILLI_NS,
            }
        } else {
            self.random.between(50_000, 3 * MILLI_NS)
        };
        self.executor.sleep_ns(latency_ns).await;
    }

    /// A call as the platform carries it: the callee runs it to its end whatever becomes of the caller.
    pub(super) async fn call(
        self: &Rc<Self>,
        to: ObjectName,
        method: &str,
        request: Vec<u8>,
        deadline_ms: u32,
    ) -> Result<Vec<u8>, CallError> {
        if self.strikes(Fault::Repeat) {
            drop(self.carry(to, method, request.clone()));
        }
        let answer = self.carry(to, method, request);
        let deadline = pin!(self.sleep_ms(deadline_ms.into()));
        match select(answer, deadline).await {
            Either::Left((answer, _)) => answer.map_err(|_| CallError::OutcomeUnknown {
                reason: "the call was lost".to_owned(),
            }),
            Either::Right(_) => Err(CallError::DeadlineExceeded { deadline_ms }),
        }
    }

    /// One copy of a call, there and back.
    fn carry(self: &Rc<Self>, to: ObjectName, method: &str, request: Vec<u8>) -> oneshot::Receiver<Vec<u8>> {
        let (sender, receiver) = oneshot::channel();
        let (world, method) = (Rc::clone(self), method.to_owned());
        self.executor.spawn(async move {
            let answer = world.try_carry(to, &method, request).await;
            match answer {
                Some(answer) => drop(sender.send(answer)),
                None => {
                    // The caller learns of it at once, or only by its own deadline.
                    if world.random.chance(300) {
                        world.sleep_ms(60_000).await;
                    }
                    drop(sender);
                }
            }
        });
        receiver
    }

    async fn try_carry(self: &Rc<Self>, to: ObjectName, method: &str, request: Vec<u8>) -> Option<Vec<u8>> {
        self.travel().await;
        if self.strikes(Fault::Lose) || self.is_deaf(to, method) {
            self.note(format!("{method} to {to:?} is lost"));
            return None;
        }
        let answer = self.run_call(to, method, request).await?;
        if method == "allocate" && self.strikes(Fault::Ambush) {
            self.object(to).break_down(self);
            self.sleep_ms(self.random.between(100, 4_500)).await;
        }
        self.travel().await;
        if self.strikes(Fault::Lose) {
            self.note(format!("the answer of {method} from {to:?} is lost"));
            return None;
        }
        Some(answer)
    }

    /// An object sends a decision. It may break right then, and the decision not arrive for a while whoever sends it.
    pub(super) fn decision_leaves(self: &Rc<Self>, from: &Rc<Object>, to: ObjectName) {
        if !self.strikes(Fault::Ambush) {
            return;
        }
        let until_ns = self.executor.now_ns() + self.random.between(100, 8_000) * MILLI_NS;
        self.deaf_until_ns.borrow_mut().insert(to, until_ns);
        let (world, from) = (Rc::clone(self), Rc::clone(from));
        self.executor.spawn(async move { from.break_down(&world) });
    }

    fn is_deaf(&self, to: ObjectName, method: &str) -> bool {
        let deaf = self.deaf_until_ns.borrow();
        method == "apply" && deaf.get(&to).is_some_and(|until| self.executor.now_ns() < *until)
    }

    /// Runs a call in its object, through whatever bug is planted in between.
    async fn run_call(self: &Rc<Self>, to: ObjectName, method: &str, request: Vec<u8>) -> Option<Vec<u8>> {
        if self.breach.is_some() {
            return super::planted::run_call(self, to, method, request).await;
        }
        self.object(to).call(self, method, request).await.ok()
    }

    /// Drops everything that holds this world.
    pub(super) fn clear(&self) {
        for object in self.objects() {
            object.clear();
        }
        self.executor.clear();
        for object in self.objects() {
            object.clear();
        }
        self.objects.borrow_mut().clear();
    }
}

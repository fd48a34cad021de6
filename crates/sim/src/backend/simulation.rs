//! One simulation from its seed to its verdict.

use std::{
    cell::{Cell, RefCell},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    str::FromStr,
};

use bytes::Bytes;
use conclave_proto::xmtp::backend::v1::EnvelopeMeta;
use conclave_topiclog::{Configuration, planted};
use futures_util::FutureExt as _;

use super::{
    bugs::Bug,
    chaos, checkers,
    checkers::{facts::Facts, subscriptions},
    client::{Client, Prepared},
    edge::Edge,
    faults::{Fault, FaultSet, LIKELY, Rates},
    history::{Came, History, id_of},
    reader,
    report::Report,
    subscriber,
    subscription::Manner,
    sweep,
    workload::{self, Plan},
    world::{MILLI_NS, World},
};
use crate::random::Random;

/// Virtual milliseconds for which faults are injected, at most.
const FAULTS_MS_MAX: u64 = 40_000;
/// Virtual milliseconds after which, without faults, every request must have ended.
const SETTLE_MS_MAX: u64 = 300_000;
/// Steps after which a simulation is taken to run in circles.
const STEPS_MAX: u64 = 2_000_000;
/// Looks at the end, a virtual second apart, within which everything must have come to rest.
const LOOKS_MAX: usize = 120;
/// Virtual milliseconds before the end is read: longer than any message travels.
pub(super) const QUIET_MS: u64 = 90_000;
/// The length of a response in bytes where some publishes are to exceed it, and how many envelopes do.
const SHORT_RESPONSE_BYTES: u64 = 2_000;
const TOO_MANY_ENVELOPES: usize = 30;

/// The silence that streams break where they are what is simulated, how long a Ping may go unanswered there, and how much
/// may wait for a client in some of those simulations.
const KEEPALIVE_INTERVAL_MS: u32 = 300;
const MAX_PONG_WAIT_MS: u32 = 5_000;
const SHORT_OUTPUT_BYTES: usize = 4_000;

/// What clients do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workload {
    /// Everything but Subscribe streams.
    #[default]
    Mixed,
    /// They publish, and follow what is published on Subscribe streams.
    Streams,
}

impl fmt::Display for Workload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Mixed => "mixed",
            Self::Streams => "streams",
        })
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Mixed, Self::Streams]
            .into_iter()
            .find(|workload| workload.to_string() == text)
            .ok_or_else(|| format!("{text:?} is neither mixed nor streams"))
    }
}

/// What to simulate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What clients do.
    pub workload: Workload,
    /// The shard count; drawn from the seed when absent.
    pub shards: Option<u32>,
    /// The faults that may happen.
    pub faults: FaultSet,
    /// A bug to plant.
    pub bug: Option<Bug>,
}

/// Runs the simulation of one seed.
#[must_use]
pub fn simulate(seed: u64, options: &Options) -> Report {
    let random = Random::new(seed);
    let shard_count = [1, 2, 4, 4, 16][random.below(5)];
    let has_streams = options.workload == Workload::Streams;
    let is_short = random.chance(if has_streams { 600 } else { 300 });
    let rates = Rates::draw(&options.faults, LIKELY, &random);
    let mut configuration = Configuration {
        shard_count: options.shards.unwrap_or(shard_count),
        ..Configuration::default()
    };
    if is_short {
        configuration.limits.max_envelope_bytes = 500;
        configuration.limits.max_response_bytes = SHORT_RESPONSE_BYTES;
    }
    let mut history = History::default();
    if has_streams {
        configuration.keepalive_interval_ms = KEEPALIVE_INTERVAL_MS;
        configuration.max_pong_wait_ms = MAX_PONG_WAIT_MS;
        configuration.limits.max_ping_frames_per_second = 1;
        configuration.limits.max_ping_burst = 5;
        history.is_output_short = random.chance(300);
        if history.is_output_short {
            configuration.stream_output_bytes_max = SHORT_OUTPUT_BYTES;
        }
    }
    let (breach, step) = match options.bug {
        Some(Bug::Breach(breach)) => (Some(breach), None),
        Some(Bug::Step(step)) => (None, Some(step)),
        None => (None, None),
    };
    planted::plant(step);
    let mut plan = Plan::draw(&random, is_short.then_some(TOO_MANY_ENVELOPES));
    // Streams from the start of a topic are compared with the whole of it.
    plan.is_swept &= !has_streams;
    let world = World::new(configuration, rates, random, breach);
    let history = Rc::new(RefCell::new(history));
    let simulation = Simulation {
        edges: Rc::new((0..3).map(|_| Edge::new(&world)).collect()),
        world: Rc::clone(&world),
        history: Rc::clone(&history),
        plan: Rc::new(plan),
        workload: options.workload,
    };
    // A panic ends an object in production; here it is a finding, with the seed that leads to it.
    let ran = catch_unwind(AssertUnwindSafe(|| simulation.run()));
    drop(simulation);
    world.clear();
    planted::plant(None);
    let (steps, virtual_ms) = (world.executor.steps(), world.executor.now_ns() / MILLI_NS);
    let mut history = std::mem::take(&mut *history.borrow_mut());
    history.notes = world.take_notes();
    let mut violations = checkers::check(&history);
    if let Err(panic) = ran {
        violations.insert(0, checkers::panicked(&*panic));
    }
    Report {
        seed,
        options: options.clone(),
        shard_count: world.configuration.shard_count,
        steps,
        virtual_ms,
        violations,
        history,
    }
}

struct Simulation {
    world: Rc<World>,
    edges: Rc<Vec<Edge>>,
    history: Rc<RefCell<History>>,
    plan: Rc<Plan>,
    workload: Workload,
}

impl Simulation {
    fn client(&self, index: usize) -> Client {
        Client {
            world: Rc::clone(&self.world),
            edges: Rc::clone(&self.edges),
            history: Rc::clone(&self.history),
            index,
        }
    }

    fn run(&self) {
        let world = &self.world;
        world
            .executor
            .spawn(chaos::run(Rc::clone(world), Rc::clone(&self.edges)));
        let running = Rc::new(Cell::new(0_usize));
        let clients = 2 + world.random.below(4);
        for index in 0..clients {
            let operations = 4 + world.random.below(10);
            let (client, plan) = (self.client(index), Rc::clone(&self.plan));
            let work = match self.workload {
                Workload::Mixed => workload::run(client, plan, operations).boxed_local(),
                Workload::Streams => workload::run_publisher(client, plan, 4 * operations).boxed_local(),
            };
            let running = Rc::clone(&running);
            running.set(running.get() + 1);
            world.executor.spawn(async move {
                work.await;
                running.set(running.get() - 1);
            });
        }
        for index in clients..clients + world.random.below(3) {
            let mut topics = self.plan.topics();
            topics.retain(|_| world.random.chance(700));
            topics.extend(topics.is_empty().then(|| self.plan.places[0].topic()));
            world.executor.spawn(reader::run(self.client(index), topics));
        }
        if self.workload == Workload::Streams {
            for index in clients..clients + 1 + world.random.below(3) {
                let manner = Manner {
                    answers_pings: !world.random.chance(150),
                };
                let work = subscriber::run(self.client(index), self.plan.topics(), manner);
                world.executor.spawn(work);
            }
        }
        let watcher = self.client(clients + 3);
        world
            .executor
            .spawn(workload::watch(watcher, Rc::clone(&self.plan)));
        let are_done = || running.get() == 0;
        self.run_for(FAULTS_MS_MAX, are_done);
        stop_faults(&self.world, &self.edges);
        if !self.run_for(SETTLE_MS_MAX, are_done) {
            self.complain(format!("{} clients still wait for an answer", running.get()));
        }
        self.conclude(clients + 4);
    }

    /// Whether `is_done` came to hold within this virtual time.
    fn run_for(&self, milliseconds: u64, is_done: impl Fn() -> bool) -> bool {
        let executor = &self.world.executor;
        let end_ns = executor.now_ns() + milliseconds * MILLI_NS;
        executor.run(&self.world.random, end_ns, STEPS_MAX, is_done)
    }

    fn complain(&self, text: String) {
        self.history.borrow_mut().unended.push(text);
    }

    /// Without faults: every topic takes a publish, the boundary reaches the last id, streams catch up.
    fn conclude(&self, index: usize) {
        let is_over = Rc::new(Cell::new(false));
        let (client, plan, over) = (self.client(index), Rc::clone(&self.plan), Rc::clone(&is_over));
        self.world.executor.spawn(async move {
            // What is still on its way arrives before the end is read.
            client.world.sleep_ms(QUIET_MS).await;
            // A lost push is made up for by the next publish. Nothing else may wait for one.
            if !client.world.may_have(Fault::Stream) {
                read_logs(&client, &plan).await;
                let late = late_streams(&client.history.borrow());
                let mut history = client.history.borrow_mut();
                history.unended.extend(late);
                history.logs.clear();
            }
            publish_to_each(&client, &plan).await;
            read_logs(&client, &plan).await;
            come_to_rest(&client).await;
            if plan.is_swept {
                sweep::run(&client, &plan).await;
                come_to_rest(&client).await;
            }
            over.set(true);
        });
        if !self.run_for(2 * SETTLE_MS_MAX, || is_over.get()) {
            self.complain("the last publishes and reads do not end".to_owned());
        }
    }
}

/// Nothing goes wrong from here on, and every clock is right.
pub(super) fn stop_faults(world: &World, edges: &[Edge]) {
    world.stop_faults();
    for object in world.objects() {
        object.clock_offset_ns.set(0);
    }
    edges.iter().for_each(|edge| edge.set_clock_offset_ns(0));
}

pub(super) async fn publish_to_each(client: &Client, plan: &Plan) {
    for place in &plan.places {
        let prepared: Prepared = plan.prepare(client, vec![plan.envelope(*place, false)], None);
        if let Err(status) = client.publish(&prepared).await {
            let text = format!("a topic takes no publish any more: {status}");
            client.history.borrow_mut().unended.push(text);
        }
    }
}

async fn read_logs(client: &Client, plan: &Plan) {
    let logs = read_each(client, plan).await;
    client.history.borrow_mut().logs = logs;
}

/// The whole of each topic.
pub(super) async fn read_each(client: &Client, plan: &Plan) -> Vec<(Bytes, Vec<EnvelopeMeta>)> {
    let mut logs = Vec::new();
    for topic in plan.all_topics() {
        let log = client.read_to_end(vec![(topic.clone(), 0)], 8).await;
        logs.push((topic, log));
    }
    logs
}

/// Waits until the boundary is the last id and no open stream is behind.
async fn come_to_rest(client: &Client) {
    let mut missing = Vec::new();
    for _ in 0..LOOKS_MAX {
        let status = client.status().await;
        missing = late_streams(&client.history.borrow());
        match status {
            Ok((Some(boundary), last)) if boundary >= last => {}
            other => missing.push(format!("the boundary does not reach the last id: {other:?}")),
        }
        if missing.is_empty() {
            return;
        }
        client.world.sleep_ms(1_000).await;
    }
    client.history.borrow_mut().unended.append(&mut missing);
}

fn late_streams(history: &History) -> Vec<String> {
    let open = history.streams.iter().filter(|stream| stream.is_open);
    let is_late = |(topic, after): &(Bytes, u64), stream: &super::history::Stream| {
        let log = history.logs.iter().find(|(known, _)| known == topic);
        let head = log.and_then(|(_, log)| log.last()).map_or(0, id_of);
        let frames = stream.frames.iter().flat_map(|(_, metas)| metas);
        let delivered = frames
            .filter(|meta| super::history::topic_of(meta) == *topic)
            .map(id_of)
            .max();
        delivered.unwrap_or(*after).max(*after) < head
    };
    let late = open.filter(|stream| stream.positions.iter().any(|position| is_late(position, stream)));
    let late = late.map(|stream| format!("it stays behind: {stream}"));
    late.chain(late_subscriptions(history)).collect()
}

fn late_subscriptions(history: &History) -> Vec<String> {
    if history.subscriptions.is_empty() {
        return Vec::new();
    }
    let facts = Facts::of(history);
    // One that answers no Pings ends and begins again for ever.
    let open = history
        .subscriptions
        .iter()
        .filter(|stream| stream.is_open && stream.manner.answers_pings);
    open.flat_map(|stream| {
        let missing = subscriptions::missing(stream, &facts).into_iter();
        missing.map(move |missing| format!("{missing}: {stream}"))
    })
    .collect()
}

/// Whether an answer was a success.
pub(super) fn is_success(came: &Came) -> bool {
    !matches!(came, Came::Failure(..))
}

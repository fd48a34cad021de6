//! The end of retention: everything that can expire has, shards delete it while faults go on again, and life goes on.

use std::{cell::RefCell, rc::Rc};

use bytes::Bytes;
use conclave_proto::xmtp::backend::v1::EnvelopeMeta;

use super::{
    chaos,
    client::Client,
    history::{History, Swept, id_of},
    simulation::{QUIET_MS, publish_to_each, read_each, stop_faults},
    workload::Plan,
    world::MILLI_NS,
};

/// Days beyond the retention that pass: more than a shard keeps what has expired.
const DAYS_BEYOND: u64 = 2;
const DAY_NS: u64 = 24 * 60 * 60 * 1_000 * MILLI_NS;
/// For how long faults go on, in virtual milliseconds.
const FAULTS_MS: u64 = 20_000;

/// Lets shards delete, perhaps with publishes to every topic meanwhile, reads what is left, and publishes to every topic.
pub(super) async fn run(client: &Client, plan: &Rc<Plan>) {
    let world = &client.world;
    let retention = world.configuration.retention;
    let longest_s = retention.group_message.max(retention.welcome);
    world.start_faults();
    world.skip_ns(longest_s * 1_000 * MILLI_NS + DAYS_BEYOND * DAY_NS);
    world
        .executor
        .spawn(chaos::run(Rc::clone(world), Rc::clone(&client.edges)));
    let (ending, edges) = (Rc::clone(world), Rc::clone(&client.edges));
    world.executor.spawn(async move {
        ending.sleep_ms(FAULTS_MS).await;
        stop_faults(&ending, &edges);
    });
    if world.random.chance(500) {
        publish_to_each(client, plan).await;
    }
    world.sleep_ms(FAULTS_MS + QUIET_MS).await;
    // The checkers compare what was answered before with the whole of each topic, and these pages show less.
    let unrecorded = Client {
        history: Rc::new(RefCell::new(History::default())),
        ..client.clone()
    };
    let logs = read_each(&unrecorded, plan).await;
    {
        let mut history = client.history.borrow_mut();
        append_news(&mut history, &logs);
        let newest = history.logs.iter();
        history.swept = Some(Swept {
            newest: newest.map(|(_, whole)| whole.last().map_or(0, id_of)).collect(),
            at_ns: world.wall_ns(),
            logs,
        });
    }
    publish_to_each(client, plan).await;
    let logs = read_each(&unrecorded, plan).await;
    append_news(&mut client.history.borrow_mut(), &logs);
}

/// Adds what is new in these topics to the whole of each.
fn append_news(history: &mut History, logs: &[(Bytes, Vec<EnvelopeMeta>)]) {
    for ((_, whole), (_, read)) in history.logs.iter_mut().zip(logs) {
        let last = whole.last().map_or(0, id_of);
        whole.extend(read.iter().filter(|meta| id_of(meta) > last).cloned());
    }
}

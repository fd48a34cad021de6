//! What clients do: mostly publishes to few hot topics, many of them with bytes that were published before or are being
//! published now, and reads of every kind between.

use std::{cell::RefCell, rc::Rc};

use bytes::Bytes;
use conclave_proto::xmtp::backend::v1::{ClientEnvelope, PublishRequest};
use futures_util::future::join;

use super::{
    client::{Client, Prepared, hash_of},
    contest,
    envelopes::Place,
    history::Publish,
};
use crate::random::Random;

/// Inboxes and handles that clients contend for: few, so that they meet.
const INBOXES: usize = 3;
const HANDLES: usize = 2;

/// What all clients of a simulation know.
pub(super) struct Plan {
    pub(super) places: Vec<Place>,
    /// What [`super::contest`] is about.
    pub(super) inboxes: Vec<Place>,
    pub(super) handles: Vec<Bytes>,
    prepared: RefCell<Vec<Prepared>>,
    next_number: std::cell::Cell<u64>,
    /// Envelopes of a publish whose response is longer than it may be, if there is such a length.
    pub(super) too_many: Option<usize>,
    /// Whether envelopes expire in the end.
    pub(super) is_swept: bool,
}

impl Plan {
    /// A few places, most of them groups.
    pub(super) fn draw(random: &Random, too_many: Option<usize>) -> Self {
        let count = random.between(2, 7);
        let place = |_| {
            let mut bytes = [0; 32];
            random.fill(&mut bytes);
            let mut group = [0; 16];
            group.copy_from_slice(&bytes[..16]);
            match random.below(6) {
                0 => Place::CommitLog(group),
                1 => Place::Installation(bytes),
                _ => Place::Group(group),
            }
        };
        let inbox = || {
            let mut bytes = [0; 32];
            random.fill(&mut bytes);
            Place::Inbox(bytes)
        };
        Self {
            places: (0..count).map(place).collect(),
            inboxes: (0..INBOXES).map(|_| inbox()).collect(),
            handles: (0..HANDLES)
                .map(|_| Bytes::copy_from_slice(&random.next().to_be_bytes()))
                .collect(),
            prepared: RefCell::default(),
            next_number: std::cell::Cell::new(1),
            too_many,
            is_swept: random.chance(250),
        }
    }

    /// The topics that everybody publishes to.
    pub(super) fn topics(&self) -> Vec<Bytes> {
        self.places.iter().map(|place| place.topic()).collect()
    }

    /// Every topic there is.
    pub(super) fn all_topics(&self) -> Vec<Bytes> {
        let places = self.places.iter().chain(&self.inboxes);
        places.map(|place| place.topic()).collect()
    }

    /// A new envelope for a place.
    pub(super) fn envelope(&self, place: Place, is_commit: bool) -> (Place, ClientEnvelope) {
        let number = self.next_number.replace(self.next_number.get() + 1);
        (place, place.envelope(number, is_commit))
    }

    /// Prepares a publish of these envelopes.
    pub(super) fn prepare(
        &self,
        client: &Client,
        envelopes: Vec<(Place, ClientEnvelope)>,
        expected_router_instance: Option<String>,
    ) -> Prepared {
        let keys = envelopes
            .iter()
            .map(|(place, envelope)| (place.topic(), hash_of(envelope)))
            .collect();
        let number = {
            let mut history = client.history.borrow_mut();
            history.publishes.push(Publish {
                keys,
                is_misdirected: expected_router_instance.is_some(),
                conditions: Vec::new(),
            });
            history.publishes.len() - 1
        };
        let prepared = Prepared {
            number,
            request: PublishRequest {
                envelopes: envelopes.into_iter().map(|(_, envelope)| envelope).collect(),
            },
            expected_router_instance,
        };
        self.prepared.borrow_mut().push(prepared.clone());
        prepared
    }
}

/// The life of one client.
pub(super) async fn run(client: Client, plan: Rc<Plan>, operations: usize) {
    for _ in 0..operations {
        let random = &client.world.random;
        if random.chance(700) {
            let pause_ms = random.between(0, 120);
            client.world.sleep_ms(pause_ms).await;
        }
        match random.below(24) {
            0..=3 => publish_one(&client, &plan).await,
            4 | 5 => publish_batch(&client, &plan).await,
            6..=8 => publish_spanning(&client, &plan).await,
            9 | 10 => publish_twice_at_once(&client, &plan).await,
            11 | 12 => publish_again(&client, &plan).await,
            13 => publish_mixed(&client, &plan).await,
            14 => publish_misdirected(&client, &plan).await,
            15 => publish_too_long(&client, &plan).await,
            16 => client.newest(plan.topics()).await,
            17 => drop(client.status().await),
            18..=21 => contest::run(&client, &plan).await,
            _ => read(&client, &plan).await,
        }
    }
}

/// The life of one client that only publishes: at first so much at once that streams have something to catch up with.
pub(super) async fn run_publisher(client: Client, plan: Rc<Plan>, operations: usize) {
    for operation in 0..operations {
        let random = &client.world.random;
        if operation > operations / 3 {
            let pause_ms = random.between(0, 700);
            client.world.sleep_ms(pause_ms).await;
        }
        match random.below(8) {
            0..=2 => publish_one(&client, &plan).await,
            3..=5 => publish_batch(&client, &plan).await,
            6 => publish_spanning(&client, &plan).await,
            _ => publish_again(&client, &plan).await,
        }
    }
}

/// Looks at the boundary again and again, and then at what it says is there.
pub(super) async fn watch(client: Client, plan: Rc<Plan>) {
    let mut last = 0;
    while client.world.are_faults_on() {
        let pause_ms = client.world.random.between(1, 300);
        client.world.sleep_ms(pause_ms).await;
        let Ok((Some(boundary), _)) = client.status().await else {
            continue;
        };
        let positions: Vec<_> = plan.all_topics().into_iter().map(|topic| (topic, last)).collect();
        let limit = if plan.too_many.is_none() { 500 } else { 7 };
        if client.query(&positions, limit).await.is_ok() {
            last = boundary;
        }
    }
}

/// The first place is the hottest.
fn hot(client: &Client, plan: &Plan) -> Place {
    let random = &client.world.random;
    if random.chance(500) {
        plan.places[0]
    } else {
        *random.pick(&plan.places)
    }
}

fn is_commit(client: &Client) -> bool {
    client.world.random.chance(200)
}

async fn publish_one(client: &Client, plan: &Plan) {
    let envelope = plan.envelope(hot(client, plan), is_commit(client));
    let prepared = plan.prepare(client, vec![envelope], None);
    let _ = client.publish(&prepared).await;
}

/// Several envelopes of one topic, one of them perhaps twice.
async fn publish_batch(client: &Client, plan: &Plan) {
    let place = hot(client, plan);
    let count = client.world.random.between(2, 6);
    let mut envelopes: Vec<_> = (0..count)
        .map(|_| plan.envelope(place, is_commit(client)))
        .collect();
    if client.world.random.chance(300) {
        let copy = envelopes[0].clone();
        envelopes.push(copy);
    }
    let prepared = plan.prepare(client, envelopes, None);
    let _ = client.publish(&prepared).await;
}

/// A commit and what travels with it, on several topics; perhaps with one of them published alone at the same time.
async fn publish_spanning(client: &Client, plan: &Plan) {
    let mut envelopes = vec![plan.envelope(plan.places[0], true)];
    for place in &plan.places[1..] {
        if client.world.random.chance(600) {
            envelopes.push(plan.envelope(*place, false));
        }
    }
    let part = client.world.random.pick(&envelopes).clone();
    let prepared = plan.prepare(client, envelopes, None);
    if client.world.random.chance(300) {
        let part = plan.prepare(client, vec![part], None);
        let _ = join(client.publish(&prepared), client.publish(&part)).await;
    } else {
        let _ = client.publish(&prepared).await;
    }
}

/// The same bytes at the same time by two ways.
async fn publish_twice_at_once(client: &Client, plan: &Plan) {
    let mut envelopes = vec![plan.envelope(hot(client, plan), false)];
    if client.world.random.chance(500) {
        envelopes.push(plan.envelope(hot(client, plan), false));
    }
    let prepared = plan.prepare(client, envelopes, None);
    let _ = join(client.publish(&prepared), client.publish(&prepared)).await;
}

/// What anybody published before, or publishes now.
async fn publish_again(client: &Client, plan: &Plan) {
    let earlier = {
        let all = plan.prepared.borrow();
        let allowed: Vec<&Prepared> = all
            .iter()
            .filter(|prepared| may_come_again(plan, prepared))
            .collect();
        match allowed.is_empty() {
            true => return,
            false => (*client.world.random.pick(&allowed)).clone(),
        }
    };
    let _ = client.publish(&earlier).await;
}

/// A publish that expects another Router instance stores nothing, and one after OUT_OF_RANGE is not sent again.
fn may_come_again(plan: &Plan, prepared: &Prepared) -> bool {
    prepared.expected_router_instance.is_none()
        && plan
            .too_many
            .is_none_or(|too_many| prepared.request.envelopes.len() < too_many)
}

/// A new envelope beside one of an earlier publish.
async fn publish_mixed(client: &Client, plan: &Plan) {
    let fresh = plan.envelope(hot(client, plan), false);
    let earlier = {
        let all = plan.prepared.borrow();
        let allowed: Vec<&Prepared> = all
            .iter()
            .filter(|prepared| may_come_again(plan, prepared))
            .collect();
        if allowed.is_empty() {
            return;
        }
        let chosen = client.world.random.pick(&allowed);
        let place = client.world.random.below(chosen.request.envelopes.len());
        let topic = client.history.borrow().publishes[chosen.number].keys[place]
            .0
            .clone();
        let at = plan.places.iter().find(|known| known.topic() == topic);
        at.map(|at| (*at, chosen.request.envelopes[place].clone()))
    };
    let prepared = plan.prepare(client, earlier.into_iter().chain([fresh]).collect(), None);
    let _ = client.publish(&prepared).await;
}

async fn publish_misdirected(client: &Client, plan: &Plan) {
    let envelope = plan.envelope(hot(client, plan), false);
    let prepared = plan.prepare(client, vec![envelope], Some("rti_of_another".to_owned()));
    let _ = client.publish(&prepared).await;
}

async fn publish_too_long(client: &Client, plan: &Plan) {
    let Some(too_many) = plan.too_many else {
        return publish_one(client, plan).await;
    };
    let place = hot(client, plan);
    let envelopes = (0..too_many).map(|_| plan.envelope(place, false)).collect();
    let prepared = plan.prepare(client, envelopes, None);
    let _ = client.publish(&prepared).await;
}

/// One page from anywhere, or everything of some topics.
async fn read(client: &Client, plan: &Plan) {
    let random = &client.world.random;
    let mut positions: Vec<(Bytes, u64)> = plan
        .topics()
        .into_iter()
        .filter(|_| random.chance(600))
        .map(|topic| (topic, 0))
        .collect();
    if positions.is_empty() {
        positions.push((plan.places[0].topic(), 0));
    }
    let limit = match plan.too_many {
        None => u32::try_from(random.between(1, 60)).unwrap_or(1),
        Some(_) => u32::try_from(random.between(1, 7)).unwrap_or(1),
    };
    if random.chance(500) {
        for (_, after) in &mut positions {
            *after = random.between(0, 80);
        }
        let _ = client.query(&positions, limit).await;
    } else {
        client.read_to_end(positions, limit).await;
    }
}

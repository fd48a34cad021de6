//! Preconditions and claims of a publish, on one shard and across shards. Asked of the shards directly: admission does
//! not make them yet.

use std::rc::Rc;

use bytes::Bytes;
use conclave_grpc_web::{Code, Status};
use conclave_proto::{
    conclave::internal::v1::{
        Claim, NewEnvelope, Precondition, StoreRequest, StoreResponse, store_response::Receipt,
    },
    xmtp::backend::v1::PublishError,
};
use conclave_topiclog::{answer, platform::ObjectName, routing::Routing};
use prost::Message as _;
use sha2::{Digest as _, Sha256};

use crate::{
    client::{group_on, group_topic, message},
    world::World,
};

/// Different `n` give different topics.
pub(crate) fn topic_on(world: &World, shard: u32, n: u32) -> Bytes {
    group_topic(&group_on(world, shard, n)).into()
}

pub(crate) fn key_on(world: &World, shard: u32) -> Bytes {
    let routing = Routing::at_birth(world.configuration().shard_count);
    (0u32..)
        .map(|n| Bytes::copy_from_slice(&[&b"handle"[..], &n.to_be_bytes()].concat()))
        .find(|key| routing.shard_of(key) == shard)
        .expect("some key lies there")
}

pub(crate) fn envelope(topic: &Bytes, text: &str) -> NewEnvelope {
    let body = message(&[0; 16], text).encode_to_vec();
    NewEnvelope {
        topic: topic.clone(),
        hash: Sha256::digest(&body).to_vec().into(),
        body: body.into(),
        ..Default::default()
    }
}

fn expecting(topic: &Bytes, expected_head: u64, index: u32) -> Precondition {
    Precondition {
        topic: topic.clone(),
        expected_head: Some(expected_head),
        max_entries: None,
        index,
    }
}

fn claim(key: &Bytes, owner: &'static str, index: u32) -> Claim {
    Claim {
        key: key.clone(),
        owner: Bytes::from_static(owner.as_bytes()),
        index,
    }
}

pub(crate) type Stored = Result<Vec<Receipt>, Status>;

fn start(world: &World, request: &StoreRequest) -> Rc<std::cell::Cell<Option<Stored>>> {
    let routing = Routing::at_birth(world.configuration().shard_count);
    let topics = request.envelopes.iter().map(|envelope| &envelope.topic);
    let keys = topics.chain(request.claims.iter().map(|claim| &claim.key));
    let keys = keys.chain(request.associations.iter().map(|association| &association.key));
    let home = keys.map(|key| routing.shard_of(key)).min().expect("something");
    let (shared, request) = (Rc::clone(&world.shared), request.encode_to_vec());
    world.start(async move {
        let answered = shared
            .call(ObjectName::Shard(home), "store", request, 60_000)
            .await
            .expect("an answer");
        answer::decode(answered)
            .result
            .map(|bytes| StoreResponse::decode(bytes).expect("decodes").receipts)
    })
}

pub(crate) fn store(world: &World, request: &StoreRequest) -> Stored {
    let slot = start(world, request);
    world.settle();
    slot.take().expect("answered")
}

fn detail(status: &Status) -> (Option<u32>, i32) {
    let detail = status
        .detail("type.googleapis.com/xmtp.backend.v1.PublishError")
        .expect("a detail");
    let detail = PublishError::decode(detail).expect("decodes");
    (detail.index, detail.reason)
}

const HANDLE_TAKEN: i32 = 6;
const INVALID_IDENTITY_UPDATE: i32 = 3;

// API-232
#[test]
fn a_topic_that_has_grown_aborts_the_whole_publish_and_a_duplicate_does_not_look() {
    let world = World::new(4);
    // On one shard, and with a second envelope elsewhere.
    for others in [vec![], vec![topic_on(&world, 3, 9), topic_on(&world, 0, 9)]] {
        let topic = topic_on(&world, 2, others.len() as u32);
        let request = |body, head| StoreRequest {
            envelopes: [envelope(&topic, body)]
                .into_iter()
                .chain(others.iter().map(|other| envelope(other, body)))
                .collect(),
            preconditions: vec![expecting(&topic, head, 0)],
            ..Default::default()
        };
        let first = store(&world, &request("one", 0)).expect("stored");
        let refused = store(&world, &request("two", 0)).expect_err("aborted");
        assert_eq!(refused.code, Code::Aborted);
        for other in others.iter().chain([&topic]) {
            assert_eq!(world.read_all(other).len(), 1);
        }
        assert_eq!(store(&world, &request("one", 0)).expect("a duplicate"), first);
        assert!(store(&world, &request("two", first[0].sequence_id)).is_ok());
    }
}

// API-232
#[test]
fn of_publishes_that_expect_the_same_head_one_is_stored_and_the_others_abort() {
    let world = World::new(4);
    let (topic, other) = (topic_on(&world, 2, 1), topic_on(&world, 0, 1));
    let bodies = ["a", "b", "c", "d"];
    let running: Vec<_> = bodies
        .into_iter()
        .enumerate()
        .map(|(n, body)| {
            let mut envelopes = vec![envelope(&topic, body)];
            envelopes.extend((n % 2 == 0).then(|| envelope(&other, body)));
            let request = StoreRequest {
                envelopes,
                preconditions: vec![expecting(&topic, 0, 0)],
                ..Default::default()
            };
            start(&world, &request)
        })
        .collect();
    world.settle();
    let codes: Vec<Option<Code>> = running
        .iter()
        .map(|slot| slot.take().expect("answered").err().map(|status| status.code))
        .collect();
    assert_eq!(codes.iter().filter(|code| code.is_none()).count(), 1, "{codes:?}");
    assert!(codes.iter().flatten().all(|code| *code == Code::Aborted));
    assert_eq!(world.read_all(&topic).len(), 1);
}

// API-234
#[test]
fn a_full_topic_refuses_new_envelopes_and_answers_duplicates() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let (topic, other) = (topic_on(&world, shards - 1, 1), topic_on(&world, 0, 2));
        let request = |body| StoreRequest {
            envelopes: vec![envelope(&other, body), envelope(&topic, body)],
            preconditions: vec![Precondition {
                topic: topic.clone(),
                max_entries: Some(2),
                index: 1,
                ..Default::default()
            }],
            ..Default::default()
        };
        assert!(store(&world, &request("a")).is_ok() && store(&world, &request("b")).is_ok());
        let refused = store(&world, &request("c")).expect_err("full");
        assert_eq!(
            (refused.code, detail(&refused)),
            (Code::InvalidArgument, (Some(1), INVALID_IDENTITY_UPDATE))
        );
        assert!(store(&world, &request("a")).is_ok());
        assert_eq!(world.read_all(&other).len(), 2);
    }
}

// API-296
#[test]
fn a_claim_has_one_owner_even_among_publishes_in_progress() {
    for shards in [1, 4] {
        for seed in 0..20 {
            let configuration = conclave_topiclog::Configuration {
                shard_count: shards,
                ..Default::default()
            };
            let world = World::seeded(configuration, seed);
            let key = key_on(&world, shards / 2);
            let owners = ["one", "two", "three"];
            let requests: Vec<StoreRequest> = owners
                .into_iter()
                .zip(0..)
                .map(|(owner, n)| StoreRequest {
                    envelopes: vec![envelope(&topic_on(&world, n % shards, n), owner)],
                    claims: vec![claim(&key, owner, 0)],
                    ..Default::default()
                })
                .collect();
            let running: Vec<_> = requests.iter().map(|request| start(&world, request)).collect();
            world.settle();
            let outcomes: Vec<Stored> = running
                .iter()
                .map(|slot| slot.take().expect("answered"))
                .collect();
            assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
            for (outcome, request) in outcomes.iter().zip(&requests) {
                match outcome {
                    Ok(receipts) => assert_eq!(&store(&world, request).expect("a duplicate"), receipts),
                    Err(status) => {
                        assert_eq!(status.code, Code::InvalidArgument, "{status:?}");
                        assert_eq!(detail(status), (Some(0), HANDLE_TAKEN));
                        assert!(world.read_all(&request.envelopes[0].topic).is_empty());
                    }
                }
            }
        }
    }
}

// API-296
#[test]
fn a_claim_made_twice_in_one_publish_fails_at_the_second_owner() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let key = key_on(&world, 0);
        let request = StoreRequest {
            envelopes: vec![
                envelope(&topic_on(&world, 0, 1), "one"),
                envelope(&topic_on(&world, shards - 1, 2), "two"),
            ],
            claims: vec![claim(&key, "one", 0), claim(&key, "two", 1)],
            ..Default::default()
        };
        let refused = store(&world, &request).expect_err("taken");
        assert_eq!(detail(&refused), (Some(1), HANDLE_TAKEN));
    }
}

// API-223
#[test]
fn the_lowest_failing_index_over_all_shards_is_reported() {
    let world = World::new(4);
    let topics: Vec<Bytes> = (0..4).map(|shard| topic_on(&world, shard, 1)).collect();
    let full = |shard: usize, index| Precondition {
        topic: topics[shard].clone(),
        max_entries: Some(0),
        index,
        ..Default::default()
    };
    for failing in [vec![3, 1], vec![0, 2], vec![2, 3, 1, 0], vec![1]] {
        // The first named has the highest index.
        let lowest = 3 - (failing.len() as u32 - 1);
        let request = StoreRequest {
            envelopes: topics.iter().map(|topic| envelope(topic, "x")).collect(),
            preconditions: failing
                .iter()
                .zip(0..)
                .map(|(shard, n)| full(*shard, 3 - n))
                .collect(),
            ..Default::default()
        };
        let refused = store(&world, &request).expect_err("full");
        assert_eq!(
            detail(&refused),
            (Some(lowest), INVALID_IDENTITY_UPDATE),
            "{failing:?}"
        );
    }
    assert!(topics.iter().all(|topic| world.read_all(topic).is_empty()));
    // Nothing is left held.
    let request = StoreRequest {
        envelopes: topics.iter().map(|topic| envelope(topic, "x")).collect(),
        ..Default::default()
    };
    assert!(store(&world, &request).is_ok());
}

// API-220, API-296
#[test]
fn a_claim_and_its_envelope_on_another_shard_survive_a_crash_at_any_step_together() {
    let mut steps = 0;
    loop {
        let world = World::new(4);
        let key = key_on(&world, 3);
        let topic = topic_on(&world, 1, 1);
        for shard in 0..4 {
            let warm = topic_on(&world, shard, 50);
            let envelopes = vec![envelope(&warm, "warm")];
            assert!(
                store(
                    &world,
                    &StoreRequest {
                        envelopes,
                        ..Default::default()
                    }
                )
                .is_ok()
            );
        }
        let request = StoreRequest {
            envelopes: vec![envelope(&topic, "x")],
            claims: vec![claim(&key, "one", 0)],
            ..Default::default()
        };
        // A lost answer is no failure of this test: the retry below settles it.
        let (shared, bytes) = (Rc::clone(&world.shared), request.encode_to_vec());
        let running = world.start(async move {
            shared
                .call(ObjectName::Shard(1), "store", bytes, 10_000)
                .await
                .is_ok()
        });
        world.step(steps);
        let has_ended = running.take().is_some();
        world.crash(ObjectName::Shard(3));
        world.crash(ObjectName::Shard(1));
        world.advance_ms(30_000);
        let is_stored = !world.read_all(&topic).is_empty();
        let rival = StoreRequest {
            envelopes: vec![envelope(&topic_on(&world, 2, 2), "rival")],
            claims: vec![claim(&key, "two", 0)],
            ..Default::default()
        };
        assert_eq!(store(&world, &rival).is_err(), is_stored, "after {steps} steps");
        if has_ended {
            assert!(is_stored);
            break;
        }
        steps += 1;
    }
}

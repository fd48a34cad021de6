//! The index of identifiers, written with the envelopes it follows from. Asked of the shards directly.

use std::rc::Rc;

use bytes::Bytes;
use conclave_proto::conclave::internal::v1::{Association, ResolveRequest, ResolveResponse, StoreRequest};
use conclave_topiclog::{answer, platform::ObjectName, routing::Routing};
use prost::Message as _;

use crate::{
    conditions::{envelope, key_on, store, topic_on},
    world::World,
};

fn change(key: &Bytes, inbox: &'static str, is_live: bool, envelope: u32) -> Association {
    Association {
        key: key.clone(),
        inbox: Bytes::from_static(inbox.as_bytes()),
        is_live,
        envelope,
    }
}

fn inbox_of(world: &World, key: &Bytes) -> String {
    let shard = Routing::at_birth(world.configuration().shard_count).shard_of(key);
    let request = ResolveRequest {
        associations: vec![key.clone()],
        ..Default::default()
    };
    let (shared, request) = (Rc::clone(&world.shared), request.encode_to_vec());
    let answered = world.run(async move {
        shared
            .call(ObjectName::Shard(shard), "resolve", request, 60_000)
            .await
    });
    let response = answer::decode(answered.expect("an answer"))
        .result
        .expect("found");
    let response = ResolveResponse::decode(response).expect("decodes");
    String::from_utf8(response.inboxes[0].to_vec()).expect("text")
}

/// An update of one inbox, alone or behind an envelope of another topic.
fn request(
    world: &World,
    topic: &Bytes,
    key: &Bytes,
    inbox: &'static str,
    body: &str,
    live: bool,
) -> StoreRequest {
    let other = topic_on(world, 0, 70);
    StoreRequest {
        envelopes: vec![envelope(&other, body), envelope(topic, body)],
        associations: vec![change(key, inbox, live, 1)],
        ..Default::default()
    }
}

// API-270
#[test]
fn the_latest_live_association_is_found_and_a_revocation_brings_an_older_one_back() {
    for shards in [1, 4] {
        let world = World::new(shards);
        for shard in 0..shards {
            let key = key_on(&world, shard);
            let (one, two) = (
                topic_on(&world, shards - 1, shard),
                topic_on(&world, 0, 10 + shard),
            );
            let store = |topic, inbox, body: &str, live| {
                store(
                    &world,
                    &request(&world, topic, &key, inbox, &format!("{shard} {body}"), live),
                )
                .expect("stored");
            };
            assert_eq!(inbox_of(&world, &key), "");
            store(&one, "one", "added", true);
            assert_eq!(inbox_of(&world, &key), "one");
            store(&two, "two", "added too", true);
            assert_eq!(inbox_of(&world, &key), "two");
            store(&two, "two", "revoked", false);
            assert_eq!(inbox_of(&world, &key), "one");
            store(&two, "two", "added again", true);
            store(&one, "one", "revoked too", false);
            assert_eq!(inbox_of(&world, &key), "two");
            // A late copy of an earlier update changes nothing.
            store(&two, "two", "revoked", false);
            assert_eq!(inbox_of(&world, &key), "two");
            store(&one, "one", "added", true);
            assert_eq!(inbox_of(&world, &key), "two");
            // Nor does one that comes with what is new.
            let mut late = request(&world, &two, &key, "two", &format!("{shard} revoked"), false);
            late.envelopes[0] = envelope(&topic_on(&world, 0, 71), &format!("{shard} new"));
            crate::conditions::store(&world, &late).expect("stored");
            assert_eq!(inbox_of(&world, &key), "two");
        }
    }
}

// API-270
#[test]
fn updates_of_two_inboxes_in_one_publish_have_the_order_of_their_ids() {
    for shards in [1, 4] {
        let world = World::new(shards);
        for (n, shard) in (0..shards).enumerate() {
            let key = key_on(&world, shard);
            let n = u32::try_from(n).expect("few");
            let topics = [topic_on(&world, shards - 1, 20 + n), topic_on(&world, 0, 30 + n)];
            let both = StoreRequest {
                envelopes: topics.iter().map(|topic| envelope(topic, "x")).collect(),
                associations: vec![change(&key, "first", true, 0), change(&key, "second", true, 1)],
                ..Default::default()
            };
            let receipts = store(&world, &both).expect("stored");
            let later = match receipts[0].sequence_id > receipts[1].sequence_id {
                true => "first",
                false => "second",
            };
            assert_eq!(inbox_of(&world, &key), later);
        }
    }
}

// API-220, API-270
#[test]
fn an_association_and_its_update_on_another_shard_survive_a_crash_at_any_step_together() {
    let mut steps = 0;
    loop {
        let world = World::new(4);
        for shard in 0..4 {
            let envelopes = vec![envelope(&topic_on(&world, shard, 50), "warm")];
            let warm = StoreRequest {
                envelopes,
                ..Default::default()
            };
            assert!(store(&world, &warm).is_ok());
        }
        let (key, topic) = (key_on(&world, 3), topic_on(&world, 1, 1));
        let update = StoreRequest {
            envelopes: vec![envelope(&topic, "x")],
            associations: vec![change(&key, "one", true, 0)],
            ..Default::default()
        };
        // A lost answer is no failure of this test.
        let (shared, bytes) = (Rc::clone(&world.shared), update.encode_to_vec());
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
        assert_eq!(inbox_of(&world, &key) == "one", is_stored, "after {steps} steps");
        if has_ended {
            assert!(is_stored);
            break;
        }
        steps += 1;
    }
}

//! SubscribeStatic (contract section 5).

use std::collections::BTreeMap;

use conclave_grpc_web::{Code, Status};
use conclave_proto::xmtp::backend::v1::{
    SubscribeStaticResponse, TopicQuery,
    subscribe_static_response::{Response, Started},
};
use conclave_topiclog::{
    Configuration, StreamSession, platform::ObjectName, session::output::OUTPUT_BYTES_MAX,
};

use crate::{
    client::*,
    world::{Worker, World},
};

const SHARD_COUNTS: [u32; 2] = [1, 4];

fn started(frame: &SubscribeStaticResponse) -> &Started {
    match frame.response.as_ref().expect("a response") {
        Response::Started(started) => started,
        other => panic!("{other:?} came before Started"),
    }
}

/// Ids by topic over frames, each topic's in the order they came.
pub(crate) fn delivered(frames: &[SubscribeStaticResponse]) -> BTreeMap<Vec<u8>, Vec<u64>> {
    let mut ids: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
    for frame in frames {
        if let Some(Response::Messages(messages)) = &frame.response {
            for stored in &messages.envelopes {
                let meta = stored.meta.as_ref().expect("metadata");
                let topic = meta.topic.clone().expect("a topic").topic.to_vec();
                ids.entry(topic).or_default().push(id_of(meta));
            }
        }
    }
    ids
}

fn open(world: &World, topics: Vec<TopicQuery>) -> (StreamSession<Worker>, Vec<SubscribeStaticResponse>) {
    let mut stream = world.subscribe(topics).expect("a stream");
    let (frames, ended) = world.frames(&mut stream);
    assert_eq!(ended, None);
    (stream, frames)
}

fn from_start(groups: &[GroupId]) -> Vec<TopicQuery> {
    groups
        .iter()
        .map(|group| query_of(&group_topic(group), 0))
        .collect()
}

fn spread(world: &World, count: u32) -> Vec<GroupId> {
    (0..count)
        .map(|n| group_on(world, n % world.configuration().shard_count, n))
        .collect()
}

// API-260
#[test]
fn a_stream_starts_with_a_target_for_every_topic_in_request_order() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let groups = spread(&world, 6);
        let heads: Vec<u64> = groups
            .iter()
            .map(|group| if group[3] == 4 { 0 } else { world.say(group, "x") })
            .collect();
        let (stream, frames) = open(&world, from_start(&groups));
        let started = started(&frames[0]);
        assert_eq!(started.keepalive_interval_ms, 30_000);
        let targets: Vec<(Vec<u8>, u64)> = started
            .targets
            .iter()
            .map(|target| {
                (
                    target.topic.clone().expect("a topic").topic.to_vec(),
                    target.through_sequence_id,
                )
            })
            .collect();
        let expected: Vec<_> = groups.iter().map(group_topic).zip(heads).collect();
        assert_eq!(targets, expected);
        assert_eq!(
            stream.router_instance(),
            Some(&world.status().router_instance_id[..])
        );
    }
}

// API-260, API-281
#[test]
fn a_stream_of_nothing_or_of_one_topic_twice_is_an_invalid_argument() {
    let mut configuration = Configuration::default();
    configuration.limits.max_static_topics = 3;
    let world = World::with(configuration);
    let topic = |n| query_of(&group_topic(&group(n)), 0);
    for topics in [
        vec![],
        vec![topic(1), topic(2), topic(1)],
        (0..4).map(topic).collect(),
        vec![query_of(&[0; 3], 0)],
        vec![query_of(&group_topic(&group(1)), u64::MAX)],
    ] {
        assert_eq!(
            world.subscribe(topics).expect_err("refused").code,
            Code::InvalidArgument
        );
    }
}

// API-254
#[test]
fn history_and_what_follows_arrive_once_and_in_order() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let groups = spread(&world, 5);
        let mut expected: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
        for n in 0..40 {
            let group = &groups[n % 4];
            expected
                .entry(group_topic(group))
                .or_default()
                .push(world.say(group, &n.to_string()));
        }
        let (mut stream, mut frames) = open(&world, from_start(&groups));
        assert_eq!(delivered(&frames), expected);
        for n in 40..80 {
            let group = &groups[n % 5];
            expected
                .entry(group_topic(group))
                .or_default()
                .push(world.say(group, &n.to_string()));
            if n % 3 == 0 {
                frames.extend(world.frames(&mut stream).0);
            }
        }
        frames.extend(world.frames(&mut stream).0);
        assert_eq!(delivered(&frames), expected);
    }
}

// API-254
#[test]
fn a_stream_begins_above_each_cursor() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let groups = spread(&world, 2);
        let ids: Vec<u64> = (0..6)
            .map(|n| world.say(&groups[n % 2], &n.to_string()))
            .collect();
        let topics = vec![
            query_of(&group_topic(&groups[0]), ids[2]),
            query_of(&group_topic(&groups[1]), ids[5] + 1_000),
        ];
        let (mut stream, mut frames) = open(&world, topics);
        let late = [world.say(&groups[0], "late"), world.say(&groups[1], "late")];
        frames.extend(world.frames(&mut stream).0);
        let delivered = delivered(&frames);
        assert_eq!(delivered[&group_topic(&groups[0])], [ids[4], late[0]]);
        assert_eq!(
            delivered.get(&group_topic(&groups[1])),
            None,
            "the cursor lies above it"
        );
    }
}

// API-254
#[test]
fn history_longer_than_many_frames_arrives_whole() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, 0, 1);
        let mut expected = Vec::new();
        for n in 0..30u8 {
            let envelopes = (0..20u8)
                .map(|m| message_of(&group, APPLICATION, &[n, m].repeat(15_000)))
                .collect();
            expected.extend(ids(&world.publish(envelopes).expect("published")));
        }
        let (_stream, frames) = open(&world, from_start(&[group]));
        assert!(frames.len() > 5);
        assert_eq!(delivered(&frames)[&group_topic(&group)], expected);
    }
}

// API-261
#[test]
fn topics_with_little_history_do_not_wait_for_those_with_much() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let groups = spread(&world, 6);
        for n in 0..1_500u32 {
            world.say(&groups[0], &n.to_string());
        }
        for group in &groups[1..] {
            for n in 0..300 {
                world.say(group, &n.to_string());
            }
        }
        let mut configuration = (*world.configuration()).clone();
        // Frames small enough that every turn fills one.
        configuration.limits.max_envelope_bytes = 4_000;
        configuration.limits.max_response_bytes = 16_000;
        world.redeploy(configuration);
        let (_stream, frames) = open(&world, from_start(&groups));
        // Count the frames each topic appears in: while others are unfinished, none is two ahead of another.
        let totals = delivered(&frames);
        assert_eq!(totals.values().map(Vec::len).sum::<usize>(), 3_000);
        let mut got: BTreeMap<Vec<u8>, (usize, usize)> = BTreeMap::new();
        for frame in &frames {
            for (topic, ids) in delivered(std::slice::from_ref(frame)) {
                let entry = got.entry(topic).or_default();
                *entry = (entry.0 + 1, entry.1 + ids.len());
            }
            let unfinished: Vec<usize> = totals
                .iter()
                .map(|(topic, all)| (got.get(topic).copied().unwrap_or_default(), all.len()))
                .filter(|((_, envelopes), all)| envelopes < all)
                .map(|((frames, _), _)| frames)
                .collect();
            let (least, most) = (unfinished.iter().min(), unfinished.iter().max());
            assert!(most.unwrap_or(&0) <= &(least.unwrap_or(&0) + 1), "{got:?}");
        }
    }
}

// API-255
#[test]
fn silence_is_broken_by_a_keepalive_every_interval_and_only_silence() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, 0, 1);
        let (mut stream, _) = open(&world, from_start(&[group]));
        let mut kinds = |milliseconds| -> Vec<&'static str> {
            world.advance_ms(milliseconds);
            let (frames, ended) = world.frames(&mut stream);
            assert_eq!(ended, None);
            let kind = |frame: &SubscribeStaticResponse| match frame.response {
                Some(Response::Keepalive(_)) => "keepalive",
                Some(Response::Messages(_)) => "messages",
                _ => "other",
            };
            frames.iter().map(kind).collect()
        };
        assert!(kinds(29_999).is_empty());
        assert_eq!(kinds(1), ["keepalive"]);
        assert!(kinds(20_000).is_empty());
        world.say(&group, "x");
        assert_eq!(kinds(0), ["messages"]);
        assert!(kinds(29_999).is_empty());
        assert_eq!(kinds(1), ["keepalive"]);
        assert_eq!(kinds(30_000), ["keepalive"]);
    }
}

// API-259
#[test]
fn a_healthy_stream_stays_open_and_costs_its_shards_nothing() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, 0, 1);
        let (mut stream, _) = open(&world, from_start(&[group]));
        world.hibernate(ObjectName::Shard(0));
        let calls = world.all_calls();
        for _ in 0..100 {
            world.advance_ms(60_000);
            assert_eq!(world.frames(&mut stream).1, None);
        }
        assert_eq!(world.all_calls(), calls);
        assert!(!world.is_awake(ObjectName::Shard(0)));
    }
}

#[test]
fn a_client_that_goes_closes_every_stream_to_a_shard_at_once() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let groups = spread(&world, 4);
        let (stream, _) = open(&world, from_start(&groups));
        assert_eq!(
            (0..shards).map(|shard| world.open_streams(shard)).sum::<usize>(),
            shards as usize
        );
        drop(stream);
        assert_eq!(
            (0..shards).map(|shard| world.open_streams(shard)).sum::<usize>(),
            0
        );
        world.say(&groups[0], "x");
    }
}

// API-281
#[test]
fn a_stream_whose_shard_is_lost_ends_unavailable_after_what_was_queued() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let groups = spread(&world, 4);
        let (mut stream, _) = open(&world, from_start(&groups));
        let id = world.say(&groups[0], "x");
        world.settle();
        world.crash(ObjectName::Shard(shards - 1));
        let (frames, ended) = world.frames(&mut stream);
        assert_eq!(delivered(&frames)[&group_topic(&groups[0])], [id]);
        assert_eq!(ended.map(|status| status.code), Some(Code::Unavailable));
        assert_eq!(poll_once(&mut stream), Some(None));
        assert_eq!(
            (0..shards).map(|shard| world.open_streams(shard)).sum::<usize>(),
            0
        );
    }
}

// API-281
#[test]
fn a_client_that_does_not_read_loses_its_stream_and_nobody_else_does() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, 0, 1);
        let (mut idle, _) = open(&world, from_start(&[group]));
        let (mut busy, _) = open(&world, from_start(&[group]));
        let mut seen = 0;
        for n in 0..12u8 {
            world
                .publish(vec![message_of(&group, APPLICATION, &vec![n; 1_000_000])])
                .expect("published");
            seen += delivered(&world.frames(&mut busy).0)
                .values()
                .map(Vec::len)
                .sum::<usize>();
        }
        assert_eq!(seen, 12);
        let (frames, ended) = world.frames(&mut idle);
        assert_eq!(ended.map(|status| status.code), Some(Code::ResourceExhausted));
        let bytes: usize = frames.iter().map(prost::Message::encoded_len).sum();
        assert!(bytes <= OUTPUT_BYTES_MAX + 1_000);
    }
}

// API-282
#[test]
fn no_frame_exceeds_its_budget_and_no_envelope_is_split() {
    let mut configuration = Configuration {
        shard_count: 4,
        ..Configuration::default()
    };
    configuration.limits.max_envelope_bytes = 2_000;
    configuration.limits.max_response_bytes = 2_500;
    let world = World::with(configuration);
    let groups = spread(&world, 3);
    for n in 0..60usize {
        let body = vec![7; 1 + n * 30];
        world
            .publish(vec![message_of(&groups[n % 3], APPLICATION, &body)])
            .expect("published");
    }
    let (mut stream, mut frames) = open(&world, from_start(&groups));
    for n in 0..60usize {
        let body = vec![8; 1 + n * 30];
        world
            .publish(vec![message_of(&groups[n % 3], APPLICATION, &body)])
            .expect("published");
    }
    frames.extend(world.frames(&mut stream).0);
    assert!(
        frames
            .iter()
            .all(|frame| prost::Message::encoded_len(frame) <= 2_500)
    );
    assert_eq!(delivered(&frames).values().map(Vec::len).sum::<usize>(), 120);
}

#[test]
fn a_stream_ends_at_the_time_its_client_allows() {
    let world = World::new(1);
    let backend = world.client();
    let topics = from_start(&[group(1)]);
    let request = conclave_proto::xmtp::backend::v1::SubscribeStaticRequest { topics };
    let message = bytes::Bytes::from(prost::Message::encode_to_vec(&request));
    let mut stream = world
        .run(async move {
            let context = conclave_topiclog::CallContext {
                deadline_ms: Some(5_000),
                ..Default::default()
            };
            let path = "/xmtp.backend.v1.SubscriptionService/SubscribeStatic";
            backend
                .stream(path, message.clone(), message.len(), &context)
                .await
        })
        .expect("a stream");
    assert_eq!(world.frames(&mut stream).0.len(), 1);
    world.advance_ms(5_000);
    let ended = world.frames(&mut stream).1;
    assert_eq!(
        ended.map(|status: Status| status.code),
        Some(Code::DeadlineExceeded)
    );
}

//! Streams while messages are lost, repeated and overtaken, and shards sleep and break (API-254).

use std::collections::BTreeMap;

use conclave_grpc_web::Code;
use conclave_proto::conclave::internal::v1::{FromShard, from_shard::Message};
use conclave_topiclog::{Configuration, StreamSession, platform::ObjectName};
use proptest::prelude::*;

use crate::{
    client::*,
    streams::delivered,
    world::{CallFate, Fate, Worker, World},
};

/// Long enough for an alarm that takes up what was left unfinished.
const ALARMS_MS: u64 = 30_000;

fn is_push(message: &FromShard) -> bool {
    matches!(message.message, Some(Message::Push(_)))
}

fn subscribe(world: &World, groups: &[GroupId]) -> StreamSession<Worker> {
    let topics = groups
        .iter()
        .map(|group| query_of(&group_topic(group), 0))
        .collect();
    world.subscribe(topics).expect("a stream")
}

// API-254
#[test]
fn a_push_that_is_lost_is_made_up_for_by_the_next_one() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let group = group_on(&world, 0, 1);
        let mut stream = subscribe(&world, &[group]);
        let mut count = 0;
        world.on_message(move |message| {
            count += u32::from(is_push(message));
            if is_push(message) && count % 3 != 0 {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
        let expected: Vec<u64> = (0..9).map(|n| world.say(&group, &n.to_string())).collect();
        let (frames, ended) = world.frames(&mut stream);
        assert_eq!(ended, None);
        assert_eq!(delivered(&frames)[&group_topic(&group)], expected);
    }
}

// API-254
#[test]
fn pushes_that_are_repeated_or_overtake_each_other_are_delivered_once_in_order() {
    for fate in [Fate::Duplicate, Fate::Overtake] {
        let world = World::new(1);
        let mut stream = subscribe(&world, &[group(1)]);
        let mut count = 0;
        world.on_message(move |message| {
            count += u32::from(is_push(message));
            if is_push(message) && count % 2 == 1 {
                fate
            } else {
                Fate::Deliver
            }
        });
        let expected: Vec<u64> = (0..10).map(|n| world.say(&group(1), &n.to_string())).collect();
        assert_eq!(
            delivered(&world.frames(&mut stream).0)[&group_topic(&group(1))],
            expected
        );
    }
}

// API-254
#[test]
fn a_shard_that_slept_finds_its_streams_again_with_the_next_publish() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let groups: Vec<GroupId> = (0..4).map(|n| group_on(&world, n % shards, n)).collect();
        let mut streams: Vec<_> = (0..3).map(|_| subscribe(&world, &groups)).collect();
        let mut expected: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
        let mut seen: Vec<Vec<_>> = vec![Vec::new(); 3];
        for n in 0..24 {
            let group = &groups[n % 4];
            expected
                .entry(group_topic(group))
                .or_default()
                .push(world.say(group, &n.to_string()));
            for (stream, seen) in streams.iter_mut().zip(&mut seen) {
                let (frames, ended) = world.frames(stream);
                assert_eq!(ended, None);
                seen.extend(frames);
            }
            if n % 3 == 2 {
                (0..shards).for_each(|shard| world.hibernate(ObjectName::Shard(shard)));
            }
        }
        for seen in seen {
            assert_eq!(delivered(&seen), expected);
        }
    }
}

// API-254
#[test]
fn an_envelope_whose_push_died_with_its_shard_arrives_with_the_retry_of_its_publish() {
    let world = World::new(1);
    let mut stream = subscribe(&world, &[group(1)]);
    world.frames(&mut stream);
    world.on_message(|message| {
        if is_push(message) {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    let id = world.say(&group(1), "x");
    world.crash_keeping_streams(ObjectName::Shard(0));
    world.without_faults();
    assert!(world.frames(&mut stream).0.is_empty());
    assert_eq!(world.say(&group(1), "x"), id, "the retry stores nothing");
    assert_eq!(
        delivered(&world.frames(&mut stream).0)[&group_topic(&group(1))],
        [id]
    );
}

// API-254
#[test]
fn what_a_run_applied_and_did_not_push_arrives_without_another_publish() {
    let world = World::new(4);
    let groups = [group_on(&world, 0, 1), group_on(&world, 1, 1)];
    let both = || groups.iter().map(|group| message(group, "x")).collect();
    let mut stream = subscribe(&world, &groups[1..]);
    world.frames(&mut stream);
    world.on_message(|message| {
        if is_push(message) {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    // Decided; shard 1 learns of it only by asking.
    world.on_call(|_, method| match method {
        "apply" => CallFate::LoseRequest,
        _ => CallFate::Answer,
    });
    assert!(world.publish(both()).is_err());
    let stored = || stored_ids(&world.read_all(&group_topic(&groups[1])));
    for _ in 0..ALARMS_MS / 500 {
        if stored().is_empty() {
            world.advance_ms(500);
        }
    }
    let stored = stored();
    assert_eq!(stored.len(), 1);
    assert!(world.frames(&mut stream).0.is_empty());
    // Nobody waited for that, so nobody notices when its memory is lost, and its streams stay.
    world.crash_keeping_streams(ObjectName::Shard(1));
    world.without_faults();
    world.advance_ms(ALARMS_MS);
    assert_eq!(
        delivered(&world.frames(&mut stream).0)[&group_topic(&groups[1])],
        stored
    );
}

// API-281
#[test]
fn a_shard_that_does_not_answer_a_read_fails_the_stream() {
    let world = World::new(1);
    world.say(&group(1), "x");
    world.on_message(|message| match message.message {
        Some(Message::Page(_)) => Fate::Drop,
        _ => Fate::Deliver,
    });
    let mut stream = subscribe(&world, &[group(1)]);
    assert_eq!(world.frames(&mut stream).0.len(), 1);
    world.advance_ms(14_999);
    assert_eq!(world.frames(&mut stream).1, None);
    world.advance_ms(15_001);
    let ended = world.frames(&mut stream).1;
    assert_eq!(ended.map(|status| status.code), Some(Code::Unavailable));
}

// API-281
#[test]
fn a_stream_that_cannot_start_is_unavailable() {
    let world = World::new(4);
    world.on_message(|_| Fate::Drop);
    let backend = world.client();
    let request = conclave_proto::xmtp::backend::v1::SubscribeStaticRequest {
        topics: vec![query_of(&group_topic(&group(1)), 0)],
    };
    let message = bytes::Bytes::from(prost::Message::encode_to_vec(&request));
    let opened = world.start(async move {
        let path = "/xmtp.backend.v1.SubscriptionService/SubscribeStatic";
        backend
            .stream(path, message.clone(), message.len(), &Default::default())
            .await
            .err()
    });
    world.settle();
    assert!(opened.take().is_none());
    world.advance_ms(10_000);
    let status = opened.take().expect("answered").expect("refused");
    assert_eq!(status.code, Code::Unavailable);
    assert_eq!((0..4).map(|shard| world.open_streams(shard)).sum::<usize>(), 0);
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Publish(usize, u8),
    Read(usize),
    Open,
    Sleep(u32),
    Crash(u32),
    CrashKeepingStreams(u32),
    Step(usize),
    Faults(u8),
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        10 => (0usize..5, 1u8..40).prop_map(|(group, count)| Event::Publish(group, count)),
        5 => (0usize..4).prop_map(Event::Read),
        2 => Just(Event::Open),
        1 => (0u32..4).prop_map(Event::Sleep),
        1 => (0u32..4).prop_map(Event::Crash),
        1 => (0u32..4).prop_map(Event::CrashKeepingStreams),
        6 => (1usize..60).prop_map(Event::Step),
        1 => any::<u8>().prop_map(Event::Faults),
    ]
}

/// A stream and what it has shown so far.
struct Watcher {
    stream: StreamSession<Worker>,
    frames: Vec<conclave_proto::xmtp::backend::v1::SubscribeStaticResponse>,
    is_over: bool,
}

impl Watcher {
    fn look(&mut self) {
        while let Some(next) = poll_once(&mut self.stream) {
            match next {
                Some(Ok(frame)) => self
                    .frames
                    .push(prost::Message::decode(&frame[..]).expect("a frame")),
                Some(Err(status)) => {
                    // Only a lost shard may end it.
                    assert_eq!(status.code, Code::Unavailable, "{status}");
                    self.is_over = true;
                }
                None => break,
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // API-254, API-201
    #[test]
    fn whatever_happens_a_stream_shows_a_gapless_prefix_of_every_topic_and_in_the_end_all_of_it(
        seed in any::<u64>(),
        shards in prop_oneof![Just(1u32), Just(4u32)],
        small_frames in any::<bool>(),
        script in proptest::collection::vec(events(), 1..60),
    ) {
        let mut configuration = Configuration { shard_count: shards, ..Configuration::default() };
        if small_frames {
            configuration.limits.max_envelope_bytes = 500;
            configuration.limits.max_response_bytes = 1_000;
            // Publishes of many envelopes answer more than that; their outcome does not matter here.
        }
        let world = World::seeded(configuration, seed);
        let groups: Vec<GroupId> = (0..5).map(|n| group_on(&world, n % shards, n)).collect();
        let topics = || groups.iter().map(|group| query_of(&group_topic(group), 0)).collect();
        let mut watchers: Vec<Watcher> = Vec::new();
        for (n, event) in script.into_iter().enumerate() {
            match event {
                Event::Publish(g, count) => {
                    let envelopes =
                        (0..count).map(|m| message(&groups[g], &format!("{n} {m}"))).collect();
                    drop(world.start(publish(&world.client(), envelopes)));
                }
                Event::Read(w) => {
                    if let Some(watcher) = watchers.get_mut(w) {
                        watcher.look();
                    }
                }
                Event::Open if watchers.len() < 4 => {
                    if let Some(Ok(stream)) = world.try_subscribe(topics()) {
                        watchers.push(Watcher { stream, frames: Vec::new(), is_over: false });
                    }
                }
                Event::Open => {}
                Event::Sleep(shard) => world.hibernate(ObjectName::Shard(shard % shards)),
                Event::Crash(shard) => world.crash(ObjectName::Shard(shard % shards)),
                Event::CrashKeepingStreams(shard) => {
                    world.crash_keeping_streams(ObjectName::Shard(shard % shards));
                }
                Event::Step(steps) => world.step(steps),
                Event::Faults(0) => world.without_faults(),
                Event::Faults(kind) => {
                    let mut count = u32::from(kind);
                    world.on_message(move |message| {
                        count = count.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        match (is_push(message), (count >> 16) % 6) {
                            (true, 0) => Fate::Drop,
                            (true, 1) => Fate::Duplicate,
                            (true, 2) => Fate::Overtake,
                            _ => Fate::Deliver,
                        }
                    });
                }
            }
        }
        // Once faults end, a publish on every topic brings every stream that lives up to date.
        world.without_faults();
        world.settle();
        for shard in (0..shards).filter(|_| seed % 2 == 0) {
            world.hibernate(ObjectName::Shard(shard));
        }
        for group in &groups {
            world.say(group, "last");
        }
        let mut expected: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
        for group in &groups {
            let topic = group_topic(group);
            let mut cursor = 0;
            loop {
                let page = world.query(vec![query_of(&topic, cursor)], 3).expect("a page");
                let ids = stored_ids(&page.envelopes);
                let Some(last) = ids.last() else { break };
                cursor = *last;
                expected.entry(topic.clone()).or_default().extend(ids);
            }
        }
        for watcher in &mut watchers {
            for _ in 0..2_000 {
                let before = watcher.frames.len();
                world.settle();
                watcher.look();
                if watcher.frames.len() == before {
                    break;
                }
            }
            let shown = delivered(&watcher.frames);
            for (topic, ids) in &shown {
                prop_assert_eq!(&expected[topic][..ids.len()], &ids[..]);
            }
            prop_assert!(watcher.is_over || shown == expected, "a stream that lives shows everything");
        }
    }
}

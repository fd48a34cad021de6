//! Subscribe (contract section 5), with shards.

use std::collections::BTreeMap;

use conclave_grpc_web::Code;
use conclave_proto::{
    conclave::internal::v1::from_shard::Message,
    xmtp::backend::v1::{
        Ping, Pong, SubscribeResponse, TopicQuery, subscribe_request::Request, subscribe_response::Response,
    },
};
use conclave_topiclog::{Configuration, platform::ObjectName};

use crate::{
    client::*,
    world::{Fate, World},
};

const SHARD_COUNTS: [u32; 2] = [1, 4];

/// Ids by topic over frames, each topic's in the order they came.
pub(crate) fn delivered(frames: &[SubscribeResponse]) -> BTreeMap<Vec<u8>, Vec<u64>> {
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

/// The id of an acknowledgement, and its topics with their targets.
type Acknowledged = (u64, Vec<(Vec<u8>, u64)>);

/// The acknowledgements among frames.
fn applied(frames: &[SubscribeResponse]) -> Vec<Acknowledged> {
    let applied = frames.iter().filter_map(|frame| match &frame.response {
        Some(Response::Applied(applied)) => Some(applied),
        _ => None,
    });
    applied
        .map(|applied| {
            let targets = applied.added_targets.iter().map(|target| {
                let topic = target.topic.clone().expect("a topic").topic.to_vec();
                (topic, target.through_sequence_id)
            });
            (applied.id, targets.collect())
        })
        .collect()
}

fn pings(frames: &[SubscribeResponse]) -> Vec<u64> {
    let pings = frames.iter().filter_map(|frame| match &frame.response {
        Some(Response::Ping(ping)) => Some(ping.nonce),
        _ => None,
    });
    pings.collect()
}

fn from_start(groups: &[GroupId]) -> Vec<TopicQuery> {
    let queries = groups.iter().map(|group| query_of(&group_topic(group), 0));
    queries.collect()
}

fn spread(world: &World, count: u32) -> Vec<GroupId> {
    (0..count)
        .map(|n| group_on(world, n % world.configuration().shard_count, n))
        .collect()
}

/// A stream of these groups from their start, acknowledged.
fn subscribed(world: &World, groups: &[GroupId]) -> Duplex {
    let mut stream = world.duplex();
    stream.update(1, from_start(groups), &[]);
    let (frames, ended) = stream.frames(world);
    assert_eq!((applied(&frames).len(), ended), (1, None));
    stream
}

// API-250
#[test]
fn a_stream_starts_before_its_client_sends_anything_and_names_its_router_instance() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let mut stream = world.duplex();
        let instance = stream.stream.router_instance().map(str::to_owned);
        assert_eq!(instance, Some(world.status().router_instance_id));
        let (frames, ended) = stream.frames(&world);
        assert!(
            matches!(&frames[..], [SubscribeResponse { response: Some(Response::Started(started)) }]
                if started.keepalive_interval_ms == 30_000)
        );
        assert_eq!(ended, None);
        let open = (0..shards).map(|shard| world.open_streams(shard)).sum::<usize>();
        assert_eq!(open, 0, "no topic, no shard");
    }
}

// API-252, API-253, API-254
#[test]
fn topics_come_and_go_while_a_stream_runs() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let groups = spread(&world, 6);
        let first: Vec<u64> = groups.iter().map(|group| world.say(group, "first")).collect();
        let mut stream = world.duplex();
        stream.update(1, from_start(&groups[..3]), &[]);
        stream.update(2, from_start(&groups[2..5]), &[group_topic(&groups[0])]);
        let (frames, ended) = stream.frames(&world);
        assert_eq!(ended, None);
        let targets = |range: std::ops::Range<usize>| -> Vec<(Vec<u8>, u64)> {
            range.map(|n| (group_topic(&groups[n]), first[n])).collect()
        };
        assert_eq!(applied(&frames), [(1, targets(0..3)), (2, targets(3..5))]);
        let late: Vec<u64> = groups.iter().map(|group| world.say(group, "late")).collect();
        let (more, _) = stream.frames(&world);
        let shown = delivered(&more);
        assert_eq!(shown.get(&group_topic(&groups[0])), None, "removed");
        assert_eq!(shown.get(&group_topic(&groups[5])), None, "never added");
        for n in 1..5 {
            assert_eq!(shown[&group_topic(&groups[n])], [late[n]]);
        }
        // Added again, from the cursor of that add.
        stream.update(7, vec![query_of(&group_topic(&groups[0]), first[0])], &[]);
        let (again, _) = stream.frames(&world);
        assert_eq!(applied(&again), [(7, vec![(group_topic(&groups[0]), late[0])])]);
        assert_eq!(delivered(&again)[&group_topic(&groups[0])], [late[0]]);
    }
}

// API-254
#[test]
fn lost_pushes_and_shards_that_sleep_skip_and_repeat_nothing() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let groups = spread(&world, 4);
        let mut stream = subscribed(&world, &groups);
        let mut count = 0;
        world.on_message(move |message| {
            let is_push = matches!(message.message, Some(Message::Push(_)));
            count += u32::from(is_push);
            if is_push && count % 3 == 0 {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
        let (mut expected, mut frames) = (BTreeMap::<Vec<u8>, Vec<u64>>::new(), Vec::new());
        for n in 0..60usize {
            let group = &groups[n % 4];
            let id = world.say(group, &n.to_string());
            expected.entry(group_topic(group)).or_default().push(id);
            if n % 7 == 6 {
                (0..shards).for_each(|shard| world.hibernate(ObjectName::Shard(shard)));
            }
            if n % 5 == 4 {
                frames.extend(stream.frames(&world).0);
            }
        }
        world.without_faults();
        for group in &groups {
            let id = world.say(group, "last");
            expected.entry(group_topic(group)).or_default().push(id);
        }
        frames.extend(stream.frames(&world).0);
        assert_eq!(delivered(&frames), expected);
    }
}

// API-252, API-254
#[test]
fn a_topic_added_after_its_shard_slept_does_not_make_it_forget_the_others() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let groups = [group_on(&world, 0, 1), group_on(&world, 0, 2)];
        let mut stream = subscribed(&world, &groups[..1]);
        world.hibernate(ObjectName::Shard(0));
        stream.update(2, from_start(&groups[1..]), &[]);
        let (frames, _) = stream.frames(&world);
        assert_eq!(applied(&frames), [(2, vec![(group_topic(&groups[1]), 0)])]);
        let id = world.say(&groups[0], "x");
        assert_eq!(
            delivered(&stream.frames(&world).0)[&group_topic(&groups[0])],
            [id]
        );
    }
}

// API-255, API-256, API-257
#[test]
fn a_silent_stream_is_pinged_and_ends_when_nobody_answers() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let mut stream = subscribed(&world, &spread(&world, 2));
        for _ in 0..50 {
            world.advance_ms(30_000);
            let (frames, ended) = stream.frames(&world);
            assert_eq!((pings(&frames).len(), frames.len(), ended), (1, 1, None));
            stream.send(Request::Pong(Pong {
                nonce: pings(&frames)[0],
            }));
        }
        world.advance_ms(30_000);
        assert_eq!(pings(&stream.frames(&world).0).len(), 1);
        stream.send(Request::Ping(Ping { nonce: 5 }));
        let (frames, _) = stream.frames(&world);
        assert!(matches!(&frames[0].response, Some(Response::Pong(pong)) if pong.nonce == 5));
        world.advance_ms(89_999);
        let (frames, ended) = stream.frames(&world);
        assert_eq!((frames.len(), ended), (0, None), "no second Ping");
        world.advance_ms(1);
        let (_, ended) = stream.frames(&world);
        let code = ended.and_then(Result::err).map(|status| status.code);
        assert_eq!(code, Some(Code::DeadlineExceeded));
        let open = (0..shards).map(|shard| world.open_streams(shard)).sum::<usize>();
        assert_eq!(open, 0);
    }
}

// API-259
#[test]
fn an_idle_stream_costs_its_shards_nothing_for_as_long_as_its_client_likes() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let mut stream = subscribed(&world, &spread(&world, 4));
        (0..shards).for_each(|shard| world.hibernate(ObjectName::Shard(shard)));
        let calls = world.all_calls();
        for _ in 0..100 {
            world.advance_ms(30_000);
            let (frames, ended) = stream.frames(&world);
            assert_eq!(ended, None);
            for nonce in pings(&frames) {
                stream.send(Request::Pong(Pong { nonce }));
            }
        }
        assert_eq!(world.all_calls(), calls);
        assert!((0..shards).all(|shard| !world.is_awake(ObjectName::Shard(shard))));
    }
}

// API-259
#[test]
fn a_client_that_ends_its_half_is_answered_and_then_the_stream_ends_without_an_error() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let mut stream = world.duplex();
        stream.update(1, from_start(&spread(&world, 3)), &[]);
        stream.requests.end();
        let (frames, ended) = stream.frames(&world);
        assert_eq!((applied(&frames).len(), ended), (1, Some(Ok(()))));
        let open = (0..shards).map(|shard| world.open_streams(shard)).sum::<usize>();
        assert_eq!(open, 0);
    }
}

// API-251, API-281
#[test]
fn what_a_client_may_not_send_ends_its_stream_and_no_other() {
    let world = World::new(4);
    let groups = spread(&world, 2);
    let mut other = subscribed(&world, &groups);
    let mut stream = subscribed(&world, &groups);
    stream.update(1, Vec::new(), &[]);
    let (_, ended) = stream.frames(&world);
    let code = ended.and_then(Result::err).map(|status| status.code);
    assert_eq!(code, Some(Code::InvalidArgument));
    stream.update(9, Vec::new(), &[]);
    assert_eq!(
        stream.frames(&world).1,
        Some(Ok(())),
        "nothing comes after the status"
    );
    let id = world.say(&groups[0], "x");
    assert_eq!(delivered(&other.frames(&world).0)[&group_topic(&groups[0])], [id]);
}

// API-281
#[test]
fn a_shard_that_is_lost_or_cannot_be_reached_ends_the_stream_unavailable() {
    let world = World::new(4);
    let groups = spread(&world, 4);
    let mut stream = subscribed(&world, &groups);
    world.crash(ObjectName::Shard(2));
    let (_, ended) = stream.frames(&world);
    let code = ended.and_then(Result::err).map(|status| status.code);
    assert_eq!(code, Some(Code::Unavailable));

    let mut stream = world.duplex();
    world.on_message(|_| Fate::Drop);
    stream.update(1, from_start(&groups), &[]);
    world.advance_ms(30_000);
    let (frames, ended) = stream.frames(&world);
    assert!(applied(&frames).is_empty());
    let code = ended.and_then(Result::err).map(|status| status.code);
    assert_eq!(code, Some(Code::Unavailable));
}

// API-281
#[test]
fn a_client_that_stops_reading_loses_its_stream_while_others_go_on() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, 0, 1);
        let mut idle = subscribed(&world, &[group]);
        let mut busy = subscribed(&world, &[group]);
        let (mut seen, mut expected) = (Vec::new(), Vec::new());
        for n in 0..12u8 {
            let body = vec![n; 1_000_000];
            let published = world.publish(vec![message_of(&group, APPLICATION, &body)]);
            expected.extend(ids(&published.expect("published")));
            let shown = delivered(&busy.frames(&world).0);
            seen.extend(shown.into_values().flatten());
        }
        assert_eq!(seen, expected);
        let (_, ended) = idle.frames(&world);
        let code = ended.and_then(Result::err).map(|status| status.code);
        assert_eq!(code, Some(Code::ResourceExhausted));
    }
}

// API-261
#[test]
fn a_topic_added_beside_one_with_a_long_history_does_not_wait_for_it() {
    for shards in SHARD_COUNTS {
        let mut configuration = Configuration {
            shard_count: shards,
            // So little that the history waits for its client.
            stream_output_bytes_max: 100_000,
            ..Configuration::default()
        };
        // Frames small enough that every turn fills one.
        configuration.limits.max_envelope_bytes = 4_000;
        configuration.limits.max_response_bytes = 16_000;
        let world = World::with(configuration);
        let groups = spread(&world, 2);
        for n in 0..1_500u32 {
            world.say(&groups[0], &n.to_string());
        }
        let id = world.say(&groups[1], "x");
        let mut stream = world.duplex();
        stream.update(1, from_start(&groups[..1]), &[]);
        world.settle();
        stream.update(2, from_start(&groups[1..]), &[]);
        let (frames, _) = stream.frames(&world);
        let place =
            |wanted: &dyn Fn(&SubscribeResponse) -> bool| frames.iter().position(wanted).expect("it comes");
        let acknowledged = place(&|frame| {
            applied(std::slice::from_ref(frame))
                .iter()
                .any(|(id, _)| *id == 2)
        });
        let shown = place(&|frame| {
            let ids = delivered(std::slice::from_ref(frame));
            ids.get(&group_topic(&groups[1])).is_some_and(|ids| ids == &[id])
        });
        let between = frames[acknowledged..shown]
            .iter()
            .filter(|frame| !delivered(std::slice::from_ref(*frame)).is_empty())
            .count();
        assert!(between <= 1, "{between} frames of the other came first");
        assert!(frames.len() - shown > 5, "and most of it comes later");
    }
}

// API-281
#[test]
fn what_a_failed_stream_left_for_a_client_that_never_reads_is_not_kept() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let mut stream = world.duplex();
        stream.frames(&world);
        stream.update(1, vec![query_of(&group_topic(&group(1)), 0)], &[]);
        world.settle();
        stream.update(1, vec![], &[]);
        world.settle();
        assert!(!stream.stream.is_spent(), "an acknowledgement waits");
        // As long as a Ping may go unanswered, and a few looks.
        world.advance_ms(90_000 + 4 * 15_000);
        assert!(stream.stream.is_spent());
        let (frames, ended) = stream.frames(&world);
        let code = ended.and_then(Result::err).map(|status| status.code);
        assert_eq!((frames.len(), code), (0, Some(Code::InvalidArgument)));
    }
}

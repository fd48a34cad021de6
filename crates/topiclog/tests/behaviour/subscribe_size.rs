//! Streams of as many topics as the limits allow (contract section 5).

use conclave_proto::xmtp::backend::v1::{
    SubscribeResponse, SubscribeStaticResponse, TopicQuery, subscribe_response::Response,
    subscribe_static_response::Response as StaticResponse,
};

use crate::{client::*, world::World};

fn queries(count: u32) -> Vec<TopicQuery> {
    (0..count).map(|n| query_of(&group_topic(&group(n)), 0)).collect()
}

// API-252, API-254
#[test]
fn a_stream_takes_a_hundred_thousand_topics_and_delivers_what_is_new_on_any() {
    let world = World::new(16);
    let count = world.configuration().limits.max_stream_topics;
    assert_eq!(count, 100_000);
    let old = world.say(&group(99_999), "old");
    let mut stream = world.duplex();
    stream.update(1, queries(count), &[]);
    let (frames, ended) = stream.frames(&world);
    assert_eq!(ended, None);
    let Some(SubscribeResponse {
        response: Some(Response::Applied(applied)),
    }) = frames.get(1)
    else {
        panic!("no acknowledgement")
    };
    assert_eq!(applied.added_targets.len(), 100_000);
    assert_eq!(applied.added_targets[99_999].through_sequence_id, old);
    let shown = crate::subscribe::delivered(&frames);
    assert_eq!(shown[&group_topic(&group(99_999))], [old]);
    for n in [0, 54_321, 99_999] {
        let id = world.say(&group(n), "new");
        let shown = crate::subscribe::delivered(&stream.frames(&world).0);
        assert_eq!(shown[&group_topic(&group(n))], [id]);
    }
}

// API-260
#[test]
fn a_static_stream_takes_ten_thousand_topics() {
    let world = World::new(16);
    let count = world.configuration().limits.max_static_topics;
    let mut stream = world.subscribe(queries(count)).expect("a stream");
    let (frames, _) = world.frames(&mut stream);
    let Some(SubscribeStaticResponse {
        response: Some(StaticResponse::Started(started)),
    }) = frames.first()
    else {
        panic!("it did not start")
    };
    assert_eq!(started.targets.len(), 10_000);
}

use conclave_proto::xmtp::backend::v1::{ClientEnvelope, EnvelopeMeta, GroupMessage};

use super::*;

const TOPIC: &[u8] = &[1, 2, 3];

fn instance(byte: u8) -> RouterInstanceId {
    RouterInstanceId::from_bytes([byte; 16])
}

fn watch(after: u64) -> FeedCommand {
    FeedCommand::Watch {
        feed: Feed::Invitations,
        topic: TOPIC.to_vec(),
        after,
    }
}

fn envelope(topic: &[u8], sequence_id: u64) -> ServerEnvelope {
    ServerEnvelope {
        meta: Some(EnvelopeMeta {
            cursor: Some(Cursor { sequence_id }),
            topic: Some(Topic {
                topic: topic.to_vec().into(),
            }),
            ..EnvelopeMeta::default()
        }),
        envelope: Some(ClientEnvelope {
            payload: Some(client_envelope::Payload::GroupMessage(GroupMessage::default())),
        }),
    }
}

fn requested(plan: &Plan) -> Vec<u64> {
    plan.request()
        .topics
        .iter()
        .map(|query| query.cursor.map_or(0, |cursor| cursor.sequence_id))
        .collect()
}

#[test]
fn a_stream_that_is_opened_again_goes_on_from_what_it_brought() {
    let mut plan = Plan::default();
    plan.attach(instance(1));
    assert!(plan.take(watch(5)), "a new feed needs a new stream");
    let accepted = plan.accept(
        vec![envelope(TOPIC, 5), envelope(TOPIC, 6), envelope(TOPIC, 9)],
        instance(1),
    );
    assert_eq!(
        accepted
            .iter()
            .map(|envelope| envelope.position)
            .collect::<Vec<_>>(),
        [6, 9]
    );
    assert!(
        !plan.take(watch(5)),
        "a feed that is read goes on from where it is"
    );
    assert_eq!(requested(&plan), [9]);
}

#[test]
fn another_router_instance_starts_every_feed_over() {
    let mut plan = Plan::default();
    assert!(!plan.attach(instance(1)));
    plan.take(watch(7));
    assert!(!plan.take(FeedCommand::Instance(instance(1))));
    assert!(
        plan.take(FeedCommand::Instance(instance(2))),
        "the open stream is of another instance"
    );
    assert!(plan.attach(instance(2)));
    assert_eq!(requested(&plan), [0]);
}

#[test]
fn an_envelope_of_no_feed_or_without_a_place_is_dropped() {
    let mut plan = Plan::default();
    plan.take(watch(0));
    assert!(
        plan.accept(vec![envelope(&[9], 1), ServerEnvelope::default()], instance(1))
            .is_empty()
    );
    plan.take(FeedCommand::Unwatch {
        feed: Feed::Invitations,
    });
    assert!(plan.accept(vec![envelope(TOPIC, 1)], instance(1)).is_empty());
}

#[test]
fn an_envelope_of_another_kind_moves_its_feed_and_carries_nothing() {
    let mut plan = Plan::default();
    plan.take(watch(0));
    let accepted = plan.accept(vec![envelope(TOPIC, 3)], instance(1));
    assert_eq!(accepted.len(), 1);
    assert_eq!((accepted[0].position, accepted[0].payload.is_none()), (3, true));
    assert_eq!(requested(&plan), [3]);
}

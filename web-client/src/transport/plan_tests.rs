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

fn cursors(queries: &[TopicQuery]) -> Vec<u64> {
    let cursor = |query: &TopicQuery| query.cursor.map_or(0, |cursor| cursor.sequence_id);
    queries.iter().map(cursor).collect()
}

fn requested(plan: &mut Plan) -> Vec<u64> {
    cursors(&plan.whole().topics)
}

/// A plan of one feed, read after `after`.
fn reading(after: u64) -> Plan {
    let mut plan = Plan::default();
    plan.attach(instance(1));
    plan.take(watch(after));
    plan.whole();
    plan
}

fn positions(plan: &mut Plan, sequence_ids: &[u64]) -> Vec<u64> {
    let envelopes = sequence_ids.iter().map(|id| envelope(TOPIC, *id)).collect();
    let accepted = plan.accept(envelopes, instance(1));
    accepted.iter().map(|envelope| envelope.position).collect()
}

#[test]
fn a_stream_that_is_opened_again_goes_on_from_what_it_brought() {
    let mut plan = reading(5);
    assert_eq!(positions(&mut plan, &[5, 6, 9]), [6, 9]);
    plan.take(watch(5));
    assert!(!plan.has_unread(), "a feed that is read goes on from where it is");
    assert_eq!(requested(&mut plan), [9]);
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
    assert_eq!(requested(&mut plan), [0]);
}

#[test]
fn an_envelope_of_no_feed_or_without_a_place_is_dropped() {
    let mut plan = reading(0);
    assert!(
        plan.accept(vec![envelope(&[9], 1), ServerEnvelope::default()], instance(1))
            .is_empty()
    );
    plan.take(FeedCommand::Unwatch {
        feed: Feed::Invitations,
    });
    assert_eq!(positions(&mut plan, &[1]), [0u64; 0]);
}

#[test]
fn an_envelope_of_another_kind_moves_its_feed_and_carries_nothing() {
    let mut plan = reading(0);
    let accepted = plan.accept(vec![envelope(TOPIC, 3)], instance(1));
    assert_eq!(accepted.len(), 1);
    assert_eq!((accepted[0].position, accepted[0].payload.is_none()), (3, true));
    assert_eq!(requested(&mut plan), [3]);
}

#[test]
fn a_stream_that_is_told_once_has_to_be_opened_again_for_a_new_feed() {
    let mut plan = Plan::default();
    plan.take(watch(5));
    assert!(plan.has_unread());
    assert_eq!(requested(&mut plan), [5]);
    assert!(!plan.has_unread());
}

#[test]
fn updates_are_numbered_from_one_and_the_next_waits_for_its_acknowledgement() {
    let mut plan = Plan::default();
    plan.begin_updates();
    assert_eq!(plan.next_update(), None, "there is nothing to tell");
    plan.take(watch(5));
    let update = plan.next_update().expect("a feed was added");
    assert_eq!((update.id, cursors(&update.adds)), (1, vec![5]));
    plan.take(FeedCommand::Unwatch {
        feed: Feed::Invitations,
    });
    assert_eq!(plan.next_update(), None, "the first is not acknowledged");
    plan.applied(1);
    let update = plan.next_update().expect("a feed was removed");
    assert_eq!((update.id, update.adds.len(), update.removes.len()), (2, 0, 1));
}

#[test]
fn a_feed_that_is_read_again_from_elsewhere_takes_nothing_of_its_earlier_reading() {
    let mut plan = Plan::default();
    plan.begin_updates();
    plan.take(watch(0));
    plan.next_update();
    plan.applied(1);
    assert_eq!(positions(&mut plan, &[1, 2, 3]), [1, 2, 3]);
    plan.take(FeedCommand::Unwatch {
        feed: Feed::Invitations,
    });
    plan.take(watch(1));
    let update = plan.next_update().expect("it is removed first");
    assert_eq!((update.adds.len(), update.removes.len()), (0, 1));
    assert_eq!(
        positions(&mut plan, &[4]),
        [0u64; 0],
        "it is of the earlier reading"
    );
    plan.applied(2);
    assert_eq!(positions(&mut plan, &[5]), [0u64; 0], "it is not added again yet");
    let update = plan.next_update().expect("it is added again");
    assert_eq!((update.id, cursors(&update.adds)), (3, vec![1]));
    plan.applied(3);
    assert_eq!(positions(&mut plan, &[2, 3, 4, 5]), [2, 3, 4, 5]);
}

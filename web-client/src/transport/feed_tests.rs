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

fn failed(code: Code, is_stated: bool) -> CallError {
    CallError {
        status: Status::new(code, "as the test wants it"),
        is_stated,
        router_instance: None,
    }
}

// CONV-H15
#[test]
fn a_dropped_connection_and_a_server_that_is_busy_are_tried_again_before_anyone_is_told() {
    let mut back_off = BackOff::default();
    for _ in 0..BLIPS_MAX {
        // A dropped connection, 503 and 429, as the transport names them.
        for (code, is_stated) in [
            (Code::Unavailable, false),
            (Code::Unavailable, true),
            (Code::ResourceExhausted, true),
        ] {
            assert_eq!(judge(&failed(code, is_stated), &back_off), Verdict::Blip);
        }
        back_off.next_delay(0.5);
    }
    assert_eq!(
        judge(&failed(Code::Unavailable, false), &back_off),
        Verdict::Outage
    );
    back_off.reset();
    assert_eq!(judge(&failed(Code::Unavailable, false), &back_off), Verdict::Blip);
}

// CONV-H13
#[test]
fn reading_goes_on_through_every_passing_failure_and_ends_where_it_is_refused() {
    let back_off = BackOff { failures: 100 };
    for code in [
        Code::Unavailable,
        Code::DeadlineExceeded,
        Code::Internal,
        Code::Unknown,
        Code::FailedPrecondition,
    ] {
        assert_eq!(judge(&failed(code, true), &back_off), Verdict::Outage, "{code:?}");
    }
    for code in [Code::Unauthenticated, Code::PermissionDenied, Code::Unimplemented] {
        assert_eq!(
            judge(&failed(code, true), &back_off),
            Verdict::Refusal,
            "{code:?}"
        );
        // What something on the way says, and not the deployment, is no refusal.
        assert_eq!(
            judge(&failed(code, false), &back_off),
            Verdict::Outage,
            "{code:?}"
        );
    }
}

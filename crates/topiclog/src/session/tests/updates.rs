//! The updates of a Subscribe stream.

use super::*;

/// A stream with topics registered and acknowledged by its first update.
fn registered(adds: &[(u8, u64)], heads: &[u64]) -> Stream {
    let mut stream = Stream::open();
    stream.update(1, adds, &[]).expect("accepted");
    stream.heads(heads).expect("taken");
    stream.sent();
    stream
}

// API-250
#[test]
fn started_is_there_before_anything_is_read() {
    let mut stream = Stream {
        session: Session::new_bidirectional(&configuration(), &Routing::at_birth(1), 0).expect("opens"),
        now_ns: 0,
    };
    assert!(stream.session.is_started());
    stream.ping(7).expect("answered");
    assert_eq!(stream.frames(), [Shown::Started(1_000), Shown::Pong(7)]);
}

// API-252
#[test]
fn an_update_is_acknowledged_with_the_heads_read_after_its_topics_were_registered() {
    let mut stream = Stream::open();
    stream.update(3, &[(2, 0), (1, 4)], &[]).expect("accepted");
    assert_eq!(stream.sent(), [Sent::Whole(vec![2, 1])]);
    // Whatever is stored before the shard answers waits for the acknowledgement.
    stream.tell(push(1, 4, 6)).expect("taken");
    assert_eq!(stream.frames(), []);
    stream.heads(&[0, 6]).expect("taken");
    assert_eq!(stream.sent(), [Sent::Read(1, vec![(1, 4)])]);
    stream.tell(page(1, &[(1, &[6], false)])).expect("taken");
    assert_eq!(
        stream.frames(),
        [
            Shown::Applied(3, vec![(2, 0), (1, 6)]),
            Shown::Messages(vec![(1, 6)])
        ]
    );
}

// API-252
#[test]
fn updates_are_acknowledged_one_by_one_in_the_order_they_came() {
    let mut stream = Stream::open();
    stream.update(1, &[(1, 0)], &[]).expect("accepted");
    stream.update(2, &[(2, 0)], &[]).expect("accepted");
    stream.update(5, &[], &[9]).expect("accepted");
    assert_eq!(stream.sent(), [Sent::Whole(vec![1])]);
    assert_eq!(stream.frames(), []);
    stream.heads(&[7]).expect("taken");
    assert_eq!(stream.frames(), [Shown::Applied(1, vec![(1, 7)])]);
    assert_eq!(
        stream.sent(),
        [Sent::Change(vec![2], vec![]), Sent::Read(1, vec![(1, 0)])]
    );
    stream.heads(&[0]).expect("taken");
    assert_eq!(
        stream.frames(),
        [Shown::Applied(2, vec![(2, 0)]), Shown::Applied(5, vec![])]
    );
}

// API-252
#[test]
fn an_update_over_several_shards_waits_for_every_one_of_them() {
    let mut stream = Stream::open_with(&Configuration {
        shard_count: 4,
        ..configuration()
    });
    let adds: Vec<(u8, u64)> = (1..40).map(|n| (n, 0)).collect();
    stream.update(1, &adds, &[]).expect("accepted");
    assert_eq!(stream.session.take_connects().len(), 4);
    for place in 0..4 {
        assert_eq!(stream.frames(), []);
        let heads = vec![0; stream.session.registrations.places()[place].members.len()];
        let registered = Registered {
            id: 1,
            heads,
            router_instance: String::new(),
        };
        let message = FromShard {
            message: Some(Incoming::Registered(registered)),
        };
        stream
            .session
            .receive(place, message.encode_to_vec())
            .expect("taken");
    }
    assert_eq!(stream.frames(), [Shown::Applied(1, adds)]);
}

// API-253
#[test]
fn adding_what_is_registered_changes_nothing_and_removing_what_is_not_neither() {
    let mut stream = registered(&[(1, 5)], &[5]);
    stream.frames();
    stream.update(2, &[(1, 0), (2, 0)], &[3]).expect("accepted");
    assert_eq!(stream.sent(), [Sent::Change(vec![2], vec![])]);
    stream.heads(&[0]).expect("taken");
    stream.update(3, &[(1, 0)], &[]).expect("accepted");
    assert_eq!(
        stream.frames(),
        [Shown::Applied(2, vec![(2, 0)]), Shown::Applied(3, vec![])]
    );
    assert_eq!(stream.sent(), [], "nothing is read again");
    stream.tell(push(1, 5, 8)).expect("taken");
    assert_eq!(stream.delivered(), [(1, 8)]);
}

// API-253
#[test]
fn nothing_of_a_removed_topic_comes_behind_the_acknowledgement() {
    let mut stream = registered(&[(1, 0), (2, 0)], &[9, 0]);
    stream.frames();
    stream.tell(push(2, 0, 4)).expect("taken");
    stream.update(2, &[], &[1, 2]).expect("accepted");
    assert_eq!(stream.sent(), [Sent::Change(vec![], vec![1, 2])]);
    // A page that was asked for before, and a push that was on its way.
    stream.tell(page(1, &[(1, &[3, 9], false)])).expect("taken");
    stream.tell(push(2, 4, 6)).expect("taken");
    assert_eq!(
        stream.frames(),
        [Shown::Messages(vec![(2, 4)]), Shown::Applied(2, vec![])]
    );
    assert_eq!(stream.sent(), []);
}

// API-253
#[test]
fn a_topic_added_again_starts_from_the_cursor_of_that_add() {
    let mut stream = registered(&[(1, 0)], &[9]);
    stream.tell(page(1, &[(1, &[3, 9], false)])).expect("taken");
    assert_eq!(stream.delivered(), [(1, 3), (1, 9)]);
    stream.update(2, &[], &[1]).expect("accepted");
    stream.update(3, &[(1, 3)], &[]).expect("accepted");
    assert_eq!(
        stream.sent(),
        [Sent::Change(vec![], vec![1]), Sent::Change(vec![1], vec![])]
    );
    stream.heads(&[9]).expect("taken");
    assert_eq!(stream.sent(), [Sent::Read(2, vec![(1, 3)])]);
    stream.tell(page(2, &[(1, &[9], false)])).expect("taken");
    assert_eq!(
        stream.frames(),
        [
            Shown::Applied(2, vec![]),
            Shown::Applied(3, vec![(1, 9)]),
            Shown::Messages(vec![(1, 9)])
        ]
    );
}

// API-253, API-254
#[test]
fn what_was_read_for_a_former_registration_is_not_taken_for_the_next() {
    let mut stream = registered(&[(1, 0)], &[9]);
    stream.frames();
    stream.update(2, &[], &[1]).expect("accepted");
    stream.update(3, &[(1, 5)], &[]).expect("accepted");
    stream.heads(&[9]).expect("taken");
    // The shard still reads for the first registration; the second waits for that read to end, and has its own.
    stream.sent();
    stream.tell(page(1, &[(1, &[3, 9], false)])).expect("taken");
    assert_eq!(stream.delivered(), []);
    assert_eq!(stream.sent(), [Sent::Read(2, vec![(1, 5)])]);
    stream.tell(page(2, &[(1, &[9], false)])).expect("taken");
    assert_eq!(stream.delivered(), [(1, 9)]);
}

// API-252, API-254
#[test]
fn a_shard_that_restarts_while_an_update_is_applied_tells_every_head_again() {
    let mut stream = registered(&[(1, 0)], &[0]);
    stream.frames();
    stream.update(2, &[(2, 0)], &[]).expect("accepted");
    assert_eq!(stream.sent(), [Sent::Change(vec![2], vec![])]);
    stream.reintroduce().expect("taken");
    assert_eq!(stream.sent(), [Sent::Whole(vec![1, 2])]);
    stream
        .answer_register(2, &[0])
        .expect("of the former run: nobody waits for it");
    assert_eq!(stream.frames(), []);
    stream.heads(&[4, 6]).expect("taken");
    assert_eq!(stream.frames(), [Shown::Applied(2, vec![(2, 6)])]);
    assert_eq!(stream.sent(), [Sent::Read(1, vec![(1, 0), (2, 0)])]);
}

// API-254
#[test]
fn a_change_does_not_overtake_the_heads_that_heal_a_restart() {
    let mut stream = registered(&[(1, 0)], &[0]);
    stream.frames();
    stream.reintroduce().expect("taken");
    assert_eq!(stream.sent(), [Sent::Whole(vec![1])]);
    stream.update(2, &[(2, 0)], &[]).expect("accepted");
    assert_eq!(stream.sent(), [Sent::Whole(vec![1, 2])]);
    stream.heads(&[4, 0]).expect("taken");
    assert_eq!(stream.sent(), [Sent::Read(1, vec![(1, 0)])]);
}

// API-254, API-261
#[test]
fn turns_of_removed_topics_delay_nobody() {
    let mut stream = registered(&[(1, 0), (2, 0)], &[5, 5]);
    stream.frames();
    stream
        .tell(page(1, &[(1, &[1], true)]))
        .expect("the shard reached one of two");
    assert_eq!(stream.sent(), [Sent::Read(2, vec![(2, 0), (1, 1)])]);
    stream.update(2, &[], &[2]).expect("accepted");
    stream.reintroduce().expect("the read is given up");
    assert_eq!(
        stream.sent(),
        [
            Sent::Change(vec![], vec![2]),
            Sent::Whole(vec![1]),
            Sent::Read(3, vec![(1, 1)])
        ]
    );
}

// API-261
#[test]
fn a_topic_that_is_registered_while_another_is_read_gets_its_turn_before_the_next_of_that_one() {
    let mut stream = registered(&[(1, 0)], &[9]);
    stream.frames();
    stream.update(2, &[(2, 0)], &[]).expect("accepted");
    stream.heads(&[5]).expect("taken");
    stream.sent();
    stream.tell(page(1, &[(1, &[3], true)])).expect("taken");
    assert_eq!(stream.sent(), [Sent::Read(2, vec![(2, 0), (1, 3)])]);
    stream
        .tell(page(2, &[(2, &[5], false), (1, &[9], false)]))
        .expect("taken");
    assert_eq!(
        stream.frames(),
        [
            Shown::Applied(2, vec![(2, 5)]),
            Shown::Messages(vec![(1, 3), (2, 5), (1, 9)])
        ]
    );
}

// API-261
#[test]
fn a_topic_that_is_registered_while_another_waits_for_its_client_gets_its_first_turn_before_that_ones_second()
{
    let mut stream = Stream::open_with(&Configuration {
        // So little that nothing is read beside a frame that waits.
        stream_output_bytes_max: 100,
        ..configuration()
    });
    stream.update(1, &[(1, 0)], &[]).expect("accepted");
    stream.heads(&[9]).expect("taken");
    stream.frames();
    stream.sent();
    stream.tell(page(1, &[(1, &[3], true)])).expect("taken");
    stream.update(2, &[(2, 0)], &[]).expect("accepted");
    stream.heads(&[5]).expect("taken");
    stream.sent();
    assert_eq!(
        stream.frames(),
        [Shown::Messages(vec![(1, 3)]), Shown::Applied(2, vec![(2, 5)])]
    );
    assert_eq!(stream.sent(), [Sent::Read(2, vec![(2, 0), (1, 3)])]);
}

// API-261
#[test]
fn topics_of_several_shards_take_turns_in_one_order() {
    let mut stream = Stream::open_with(&Configuration {
        shard_count: 4,
        ..configuration()
    });
    let adds: Vec<(u8, u64)> = (1..9).map(|n| (n, 0)).collect();
    stream.update(1, &adds, &[]).expect("accepted");
    let shards = stream.session.take_connects().len();
    for place in 0..shards {
        let heads = vec![9; stream.session.registrations.places()[place].members.len()];
        stream.tell_at(
            place,
            Incoming::Registered(Registered {
                id: 1,
                heads,
                router_instance: String::new(),
            }),
        );
    }
    let mut turns = Vec::new();
    for id in 1u8..=32 {
        let asked =
            stream
                .session
                .take_outbox()
                .into_iter()
                .find_map(
                    |(place, bytes)| match ToShard::decode(&bytes[..]).expect("decodes").message {
                        Some(Outgoing::Read(read)) => Some((place, read)),
                        _ => None,
                    },
                );
        let Some((place, read)) = asked else { break };
        let numbers: Vec<u8> = read
            .positions
            .iter()
            .map(|position| number_of(&position.topic))
            .collect();
        let next = u64::from(id);
        let runs: Vec<(u8, &[u64], bool)> = numbers
            .iter()
            .map(|n| (*n, std::slice::from_ref(&next), true))
            .collect();
        turns.extend(numbers.iter().copied());
        stream.tell_at(place, page(read.id, &runs));
    }
    assert!(turns.len() >= 24);
    for (at, turn) in turns.iter().enumerate().skip(8) {
        assert_eq!(turns[at - 8], *turn, "the same order, again and again: {turns:?}");
    }
}

// API-251
#[test]
fn an_invalid_update_fails_the_stream() {
    type Send = fn(&mut Stream) -> Result<(), Status>;
    let cases: [(&str, Send); 9] = [
        ("an id of 0", |stream| stream.update(0, &[], &[])),
        ("an id that does not rise", |stream| stream.update(1, &[], &[])),
        ("a topic added twice", |stream| {
            stream.update(2, &[(5, 0), (5, 0)], &[])
        }),
        ("a topic added and removed", |stream| {
            stream.update(2, &[(5, 0)], &[5])
        }),
        ("a topic removed twice", |stream| stream.update(2, &[], &[5, 5])),
        ("a cursor that is too high", |stream| {
            stream.update(2, &[(5, 1 << 63)], &[])
        }),
        ("no topic", |stream| {
            let update = wire::subscribe_request::Update {
                id: 2,
                adds: Vec::new(),
                removes: vec![wire::Topic {
                    topic: Bytes::from_static(&[0, 1]),
                }],
            };
            stream.request(wire::subscribe_request::Request::Update(update))
        }),
        ("no request", |stream| {
            stream.session.receive_client(Bytes::new(), stream.now_ns)
        }),
        ("no frame", |stream| {
            stream
                .session
                .receive_client(Bytes::from_static(&[0x0a, 9]), stream.now_ns)
        }),
    ];
    for (what, send) in cases {
        let mut stream = registered(&[(1, 0)], &[0]);
        assert_eq!(code(send(&mut stream)), Some(Code::InvalidArgument), "{what}");
    }
    let mut stream = registered(&[(1, 0)], &[0]);
    assert_eq!(code(stream.update(2, &[(5, (1 << 63) - 1)], &[])), None);
}

// API-251, API-252
#[test]
fn an_invalid_update_behind_one_that_is_being_applied_fails_the_stream_after_its_acknowledgement() {
    let mut stream = Stream::open();
    stream.update(1, &[(1, 0)], &[]).expect("accepted");
    stream.update(1, &[], &[]).expect("not looked at yet");
    let failed = stream.heads(&[0]);
    assert_eq!(code(failed), Some(Code::InvalidArgument));
    assert_eq!(stream.frames(), [Shown::Applied(1, vec![(1, 0)])]);
}

// API-281
#[test]
fn no_update_makes_more_topics_than_a_stream_may_have() {
    let mut configuration = configuration();
    configuration.limits.max_stream_topics = 3;
    configuration.limits.max_update_adds = 3;
    let mut stream = Stream::open_with(&configuration);
    stream
        .update(1, &[(1, 0), (2, 0), (3, 0)], &[])
        .expect("accepted");
    stream.heads(&[0, 0, 0]).expect("taken");
    stream
        .update(2, &[(1, 0), (2, 0), (4, 0)], &[3])
        .expect("three again");
    stream.heads(&[0]).expect("taken");
    let refused = stream.update(3, &[(5, 0)], &[]);
    assert_eq!(code(refused), Some(Code::InvalidArgument));
}

// API-281
#[test]
fn an_acknowledgement_longer_than_a_response_may_be_fails_the_stream() {
    let mut configuration = configuration();
    configuration.limits.max_response_bytes = 100;
    let mut stream = Stream::open_with(&configuration);
    let adds: Vec<(u8, u64)> = (1..40).map(|n| (n, 0)).collect();
    stream.update(1, &adds, &[]).expect("accepted");
    assert_eq!(code(stream.heads(&[0; 39])), Some(Code::ResourceExhausted));
}

// API-258
#[test]
fn updates_and_pings_beyond_their_buckets_fail_the_stream_and_pongs_never_do() {
    let mut configuration = configuration();
    configuration.limits.max_update_frames_per_second = 2;
    configuration.limits.max_update_burst = 5;
    configuration.limits.max_ping_frames_per_second = 1;
    configuration.limits.max_ping_burst = 3;
    let mut stream = Stream::open_with(&configuration);
    for nonce in 0..1_000 {
        stream.pong(nonce).expect("a Pong counts nowhere");
    }
    for id in 1..=5 {
        stream.update(id, &[], &[]).expect("within the burst");
    }
    for nonce in 0..3 {
        stream.ping(nonce).expect("within the burst");
    }
    stream.pass_ms(1_000);
    for id in 6..=7 {
        stream.update(id, &[], &[]).expect("two a second");
    }
    stream.ping(9).expect("one a second");
    assert_eq!(code(stream.ping(10)), Some(Code::ResourceExhausted));
    assert_eq!(code(stream.update(8, &[], &[])), Some(Code::ResourceExhausted));
}

// API-259
#[test]
fn a_client_that_ends_its_half_gets_what_it_asked_for_and_then_the_end() {
    let mut stream = Stream::open();
    stream.update(1, &[(1, 0)], &[]).expect("accepted");
    stream.update(2, &[], &[1]).expect("accepted");
    stream.session.end_requests().expect("taken");
    stream.update(3, &[(2, 0)], &[]).expect("not looked at");
    assert!(!stream.session.is_finished());
    stream.heads(&[0]).expect("taken");
    assert!(!stream.session.is_finished(), "frames wait");
    assert_eq!(
        stream.frames(),
        [Shown::Applied(1, vec![(1, 0)]), Shown::Applied(2, vec![])]
    );
    assert!(stream.session.is_finished());
}

// API-257, API-259
#[test]
fn a_client_that_ends_its_half_is_not_asked_to_answer_any_more() {
    let mut stream = Stream::open();
    stream.update(1, &[(1, 0)], &[]).expect("accepted");
    stream.pass_ms(1_000);
    stream.session.check_silence(stream.now_ns).expect("silent");
    assert_eq!(stream.frames(), [Shown::Ping(1)]);
    stream.session.end_requests().expect("taken");
    assert_eq!(stream.session.check_pong(1), Ok(true));
    stream.pong(1).expect("on a WebSocket it may still come");
    stream.pass_ms(5_000);
    stream.session.check_silence(stream.now_ns).expect("silent");
    assert_eq!(stream.frames(), []);
    stream.heads(&[0]).expect("taken");
    assert_eq!(stream.frames(), [Shown::Applied(1, vec![(1, 0)])]);
    assert!(stream.session.is_finished());
}

// API-259
#[test]
fn a_client_that_ends_its_half_gets_no_more_deliveries() {
    let mut stream = registered(&[(1, 0)], &[0]);
    stream.frames();
    stream.session.end_requests().expect("taken");
    stream.tell(push(1, 0, 5)).expect("taken");
    assert!(stream.session.is_finished());
}

// API-259
#[test]
fn a_stream_without_topics_does_not_end() {
    let mut stream = Stream::open();
    for _ in 0..1_000 {
        stream.pass_ms(15_000);
        stream.session.check_waiting().expect("nothing waits");
        assert!(!stream.session.is_finished());
    }
}

#[test]
fn what_waits_for_earlier_updates_is_bounded() {
    let mut stream = Stream::open();
    stream.update(1, &[(1, 0)], &[]).expect("accepted");
    assert!(stream.session.has_room_for_requests());
    // Bytes of fields nobody knows travel with a frame too.
    let long = |id: u8| -> Bytes {
        let body = [&[0x08, id, 0xfa, 0x01, 0x80, 0x80, 0x80, 0x01][..], &[0; 2 << 20]].concat();
        let length = u32::try_from(body.len()).expect("short");
        let mut frame = vec![0x0a];
        prost::encoding::encode_varint(length.into(), &mut frame);
        [frame, body].concat().into()
    };
    let mut refused = None;
    for id in 2..10 {
        refused = refused.or(code(stream.session.receive_client(long(id), 0)));
        assert!(!stream.session.has_room_for_requests());
    }
    assert_eq!(refused, Some(Code::ResourceExhausted));
}

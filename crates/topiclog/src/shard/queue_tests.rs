use proptest::prelude::*;

use super::*;

fn content(topics: &[&str], bytes: usize) -> Content {
    let envelopes = topics
        .iter()
        .map(|topic| NewEnvelope {
            topic: Bytes::copy_from_slice(topic.as_bytes()),
            body: vec![0; bytes].into(),
            ..Default::default()
        })
        .collect();
    Content {
        envelopes,
        ..Default::default()
    }
}

fn publish(content: Content) -> Item {
    Item::Publish(Waiting {
        content,
        expected_router_instance: None,
        reply: oneshot::channel().0,
    })
}

fn transaction(number: u64) -> Transaction {
    Transaction {
        shard: 0,
        incarnation: 1,
        number,
    }
}

fn prepare(number: u64, topics: &[&str], wait: bool) -> Item {
    Item::Prepare(Preparing {
        transaction: transaction(number),
        content: content(topics, 1),
        wait,
        is_home: false,
        reply: oneshot::channel().0,
    })
}

/// The first topics of a batch, or what else comes next.
fn next(queue: &mut Queue, holds: &Holds) -> String {
    match queue.next(holds) {
        Next::Nothing => "nothing".to_owned(),
        Next::Prepare(one) => format!("prepare {}", one.transaction.number),
        Next::Busy(one) => format!("busy {}", one.transaction.number),
        Next::Batch(items) => items
            .iter()
            .filter_map(|item| item.content()?.envelopes.first())
            .map(|envelope| String::from_utf8_lossy(&envelope.topic).into_owned())
            .collect::<Vec<_>>()
            .join(" "),
    }
}

fn holding(names: &[&str]) -> Holds {
    let mut holds = Holds::default();
    let keys = names
        .iter()
        .map(|name| Key::Topic(Bytes::copy_from_slice(name.as_bytes())));
    holds.take(transaction(99), keys.collect::<Vec<_>>());
    holds
}

#[test]
fn a_batch_is_bounded_in_count_and_bytes_and_holds_at_least_one() {
    let mut queue = Queue::default();
    for (envelopes, bytes) in [
        (1, 9 << 20),
        (600, 1),
        (400, 1),
        (1, 1),
        (1, 7 << 20),
        (1, 2 << 20),
    ] {
        assert!(queue.push(publish(content(&vec!["t"; envelopes], bytes))).is_ok());
    }
    let holds = Holds::default();
    let sizes: Vec<usize> = std::iter::from_fn(|| match queue.next(&holds) {
        Next::Batch(items) => Some(items.len()),
        _ => None,
    })
    .collect();
    assert_eq!(sizes, [1, 2, 2, 1]);
    assert_eq!(queue.bytes, 0);
}

#[test]
fn a_full_queue_refuses_a_publish_and_counts_what_is_set_aside() {
    let mut queue = Queue::default();
    assert!(
        queue.push(publish(content(&["t"], 40 << 20))).is_ok(),
        "an empty queue takes anything"
    );
    assert!(queue.push(publish(content(&["t"], 1))).is_err());
    queue.next(&Holds::default());
    for _ in 0..QUEUE_PUBLISHES_MAX {
        assert!(queue.push(publish(content(&["t"], 1))).is_ok());
    }
    assert_eq!(next(&mut queue, &holding(&["t"])), "nothing");
    assert!(queue.push(publish(content(&["u"], 1))).is_err());
}

#[test]
fn what_meets_a_held_topic_waits_and_blocks_nothing_else() {
    let mut queue = Queue::default();
    for item in [
        publish(content(&["a"], 1)),
        publish(content(&["b", "a"], 1)),
        publish(content(&["c"], 1)),
        publish(content(&["b"], 1)),
    ] {
        assert!(queue.push(item).is_ok());
    }
    let holds = holding(&["a"]);
    // The last waits too: something before it wants its topic.
    assert_eq!(next(&mut queue, &holds), "c");
    assert_eq!(next(&mut queue, &holds), "nothing");
    assert!(queue.push(publish(content(&["b"], 1))).is_ok());
    queue.unpark();
    assert_eq!(next(&mut queue, &Holds::default()), "a b b b");
}

#[test]
fn a_prepare_comes_after_what_arrived_before_it_and_is_busy_only_where_it_does_not_wait() {
    let mut queue = Queue::default();
    for item in [
        publish(content(&["x"], 1)),
        prepare(1, &["x"], true),
        prepare(2, &["a", "y"], false),
        prepare(3, &["a"], true),
        prepare(4, &["z"], false),
    ] {
        assert!(queue.push(item).is_ok());
    }
    let holds = holding(&["a"]);
    for expected in ["x", "prepare 1", "busy 2", "prepare 4", "nothing"] {
        assert_eq!(next(&mut queue, &holds), expected);
    }
    queue.forget(transaction(3));
    queue.unpark();
    assert_eq!(next(&mut queue, &Holds::default()), "nothing");
    assert_eq!(queue.bytes, 0);
}

proptest! {
    // API-201
    #[test]
    fn every_topic_keeps_the_order_of_arrival_whatever_is_held_and_freed(
        script in proptest::collection::vec((0usize..4, 0usize..4, 0usize..6), 1..60),
    ) {
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        let mut queue = Queue::default();
        let mut out: Vec<(usize, usize)> = Vec::new();
        let mut taken = |next: Next| {
            if let Next::Batch(items) = next {
                for envelope in items.iter().filter_map(Item::content).flat_map(|content| &content.envelopes) {
                    let topic = usize::from(envelope.topic[0] - b'a');
                    out.push((topic, usize::from(envelope.hash[0])));
                }
            }
        };
        for (number, (one, two, event)) in script.into_iter().enumerate() {
            let mut both = content(&[NAMES[one], NAMES[two]], 1);
            for envelope in &mut both.envelopes {
                envelope.hash = vec![u8::try_from(number).expect("few")].into();
            }
            prop_assert!(queue.push(publish(both)).is_ok());
            match event {
                0 | 1 => taken(queue.next(&holding(&[NAMES[event]]))),
                2 => queue.unpark(),
                3 => taken(queue.next(&holding(&[NAMES[one], NAMES[(one + 1) % 4]]))),
                _ => {}
            }
        }
        queue.unpark();
        loop {
            let next = queue.next(&Holds::default());
            if matches!(next, Next::Nothing) {
                break;
            }
            taken(next);
        }
        for topic in 0..4 {
            let order: Vec<usize> = out.iter().filter(|(of, _)| *of == topic).map(|(_, n)| *n).collect();
            prop_assert!(order.is_sorted());
        }
        prop_assert_eq!(queue.bytes, 0);
    }
}

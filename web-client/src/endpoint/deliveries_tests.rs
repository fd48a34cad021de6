use conclave_conversation::values::{ConversationId, RecordHash};

use super::*;

fn delivery(sequence: u64) -> Delivery {
    Delivery {
        delivery_token: token(sequence),
        delivery_sequence: sequence,
        conversation_id: ConversationId::from_bytes([1; 32]),
        record_hash: RecordHash::from_bytes([2; 32]),
        canonical_message: String::new(),
    }
}

fn token(sequence: u64) -> DeliveryToken {
    DeliveryToken::from_bytes([sequence as u8; 32])
}

/// Reads what is ready.
fn read(deliveries: &mut Deliveries, id: SubscriptionId) -> Vec<u64> {
    let mut sequences = Vec::new();
    while let Poll::Ready(Some(delivery)) = deliveries.poll_next(id, Waker::noop()) {
        sequences.push(delivery.delivery_sequence);
    }
    sequences
}

// CONV-M10
#[test]
fn a_late_subscriber_gets_the_backlog_first_then_what_is_new_and_nothing_twice() {
    let mut deliveries = Deliveries::default();
    deliveries.add(delivery(0));
    deliveries.add(delivery(1));
    let id = deliveries.subscribe().expect("the first");
    assert_eq!(read(&mut deliveries, id), [0, 1]);
    deliveries.add(delivery(2));
    assert_eq!(read(&mut deliveries, id), [2]);
    assert!(read(&mut deliveries, id).is_empty());
}

// CONV-M08
#[test]
fn a_second_subscriber_is_refused_until_the_first_has_ended() {
    let mut deliveries = Deliveries::default();
    let first = deliveries.subscribe().expect("the first");
    assert_eq!(deliveries.subscribe(), Err(AlreadyListening));
    deliveries.cancel(first);
    assert!(deliveries.subscribe().is_ok());
    assert_eq!(deliveries.poll_next(first, Waker::noop()), Poll::Ready(None));
}

// CONV-M05
#[test]
fn a_new_subscriber_gets_again_what_was_not_acknowledged() {
    let mut deliveries = Deliveries::default();
    for sequence in 0..3 {
        deliveries.add(delivery(sequence));
    }
    let first = deliveries.subscribe().expect("the first");
    assert_eq!(read(&mut deliveries, first), [0, 1, 2]);
    deliveries.acknowledged(&token(1));
    deliveries.cancel(first);
    let second = deliveries.subscribe().expect("the second");
    assert_eq!(read(&mut deliveries, second), [0, 2]);
}

#[test]
fn a_closed_endpoint_ends_its_subscription_after_what_is_there() {
    let mut deliveries = Deliveries::default();
    let id = deliveries.subscribe().expect("the first");
    deliveries.add(delivery(0));
    deliveries.close();
    assert_eq!(read(&mut deliveries, id), [0]);
    assert_eq!(deliveries.poll_next(id, Waker::noop()), Poll::Ready(None));
}

#[test]
fn cancelling_another_subscription_than_the_current_one_does_nothing() {
    let mut deliveries = Deliveries::default();
    let first = deliveries.subscribe().expect("the first");
    deliveries.cancel(first);
    let second = deliveries.subscribe().expect("the second");
    deliveries.cancel(first);
    deliveries.add(delivery(0));
    assert_eq!(read(&mut deliveries, second), [0]);
}

//! What the host is given, and when it is given again.

use conclave_conversation::engine::{AcknowledgeError, Effect, Input};
use conclave_conversation::store::rows::PendingDeliveryRow;
use conclave_conversation::values::DeliveryToken;

use crate::world::World;

fn rows(world: &World, member: usize) -> Vec<PendingDeliveryRow> {
    world.members[member].store.snapshot().rows().unwrap()
}

// CONV-M01
#[test]
fn a_remote_post_is_one_delivery_with_its_records_hash_and_the_author_has_none() {
    let mut world = World::new(3);
    let everyone = world.everyone();
    world.send(0, &everyone, "hello");
    world.settle();
    let record = world.chain(0, &everyone)[0];
    assert!(rows(&world, 0).is_empty());
    for member in 1..3 {
        let [row] = &rows(&world, member)[..] else {
            panic!("one row")
        };
        assert_eq!(row.record_hash, record.to_string());
        assert_eq!(row.recipient_agent_id, world.members[member].id().to_string());
        assert_eq!(world.members[member].delivered.len(), 1);
    }
}

// CONV-M02, CONV-M04, CONV-M05
#[test]
fn an_unacknowledged_delivery_comes_again_with_the_same_token_and_bytes() {
    let mut world = World::new(2);
    let pair = world.everyone();
    world.send(0, &pair, "one");
    world.settle();
    world.send(0, &pair, "two");
    world.settle();
    let before = world.members[1].delivered.clone();
    assert_eq!(before.len(), 2);
    for delivery in &before {
        let token = delivery.delivery_token.to_string();
        assert!(token.starts_with("dlv_") && token.len() == 4 + 43);
        assert_eq!(token.parse(), Ok(delivery.delivery_token));
    }
    // The host's callback failed: it acknowledges nothing. Every restart shows the same again, in order.
    for _ in 0..2 {
        world.members[1].delivered.clear();
        world.restart(1);
        assert_eq!(world.members[1].delivered, before);
    }
    world.acknowledge(1, &before[0]);
    world.members[1].delivered.clear();
    world.restart(1);
    assert_eq!(world.members[1].delivered, before[1..]);
}

// CONV-M03
#[test]
fn acknowledging_twice_is_nothing_and_an_unknown_token_is_named() {
    let mut world = World::new(2);
    let pair = world.everyone();
    world.send(0, &pair, "one");
    world.settle();
    let delivery = world.members[1].delivered[0].clone();
    world.acknowledge(1, &delivery);
    assert!(rows(&world, 1)[0].acknowledged, "the row stays as a tombstone");
    let delivery_token = delivery.delivery_token;
    let again = world.step(1, Input::Acknowledge { delivery_token });
    assert!(again.transitions.is_empty());
    assert_eq!(
        again.effects,
        [Effect::Acknowledged {
            delivery_token,
            result: Ok(())
        }]
    );
    world.restart(1);
    let again = world.step(1, Input::Acknowledge { delivery_token });
    assert_eq!(
        again.effects,
        [Effect::Acknowledged {
            delivery_token,
            result: Ok(())
        }]
    );
    let delivery_token = DeliveryToken::from_bytes([9; 32]);
    let unknown = world.step(1, Input::Acknowledge { delivery_token });
    let result = Err(AcknowledgeError::UnknownDelivery);
    assert_eq!(
        unknown.effects,
        [Effect::Acknowledged {
            delivery_token,
            result
        }]
    );
}

// CONV-M06
#[test]
fn deliveries_keep_the_order_of_commits_and_a_stalled_conversation_holds_no_other() {
    let mut world = World::new(4);
    let everyone = world.everyone();
    let pair = world.membership(&[0, 1]);
    world.send(0, &everyone, "group 1");
    world.settle();
    world.crash(2);
    world.crash(3);
    world.send(0, &everyone, "stalled");
    world.settle();
    for text in ["pair 1", "pair 2", "pair 3"] {
        world.send(0, &pair, text);
    }
    world.settle();
    assert_eq!(
        world.members[1].texts(),
        ["group 1", "pair 1", "pair 2", "pair 3"]
    );
    let numbers: Vec<_> = world.members[1]
        .delivered
        .iter()
        .map(|delivery| delivery.delivery_sequence)
        .collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    world.check(&pair);
}

// CONV-M07
#[test]
fn a_delivery_shows_the_direct_or_the_complete_group_address() {
    let mut world = World::new(3);
    let everyone = world.everyone();
    let pair = world.membership(&[0, 1]);
    world.send(0, &pair, "direct");
    world.send(0, &everyone, "group");
    world.settle();
    let of = |text: &str| -> serde_json::Value {
        let delivery = world.members[1]
            .delivered
            .iter()
            .find(|delivery| crate::world::text_of(&delivery.canonical_message) == text)
            .unwrap();
        serde_json::from_str(&delivery.canonical_message).unwrap()
    };
    let direct = of("direct");
    assert_eq!(direct["kind"], "direct");
    assert_eq!(direct["address"], "agent:agent-0");
    assert_eq!(direct["sender"], "agent:agent-0");
    assert!(direct.get("members").is_none());
    let group = of("group");
    assert_eq!(group["kind"], "group");
    assert_eq!(group["address"], "group:agent-0,agent-1,agent-2");
    assert_eq!(group["sender"], "agent:agent-0");
    assert_eq!(
        group["members"],
        serde_json::json!(["agent:agent-0", "agent:agent-1", "agent:agent-2"])
    );
}

// CONV-M10
#[test]
fn a_late_host_gets_the_backlog_first_and_each_delivery_once() {
    let mut world = World::new(2);
    let pair = world.everyone();
    world.send(0, &pair, "backlog");
    world.settle();
    world.restart(1);
    world.members[1].delivered.drain(..1);
    world.send(0, &pair, "live");
    world.settle();
    assert_eq!(world.members[1].texts(), ["backlog", "live"]);
}

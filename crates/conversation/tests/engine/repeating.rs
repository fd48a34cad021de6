//! A send whose post id the host minted: asked for again, by whoever, it is the one post there is.

use conclave_conversation::engine::SendError;
use conclave_conversation::values::PostId;

use crate::world::World;

const POST: PostId = PostId::from_bytes([7; 32]);

#[test]
fn the_same_post_asked_for_again_while_it_is_open_is_one_post_and_the_last_to_ask_is_answered() {
    let mut world = World::new(2);
    let pair = world.everyone();
    let first = world.send_as(Some(POST), 0, &pair, "once");
    let again = world.send_as(Some(POST), 0, &pair, "once");
    let pending = SendError::DeliveryPending { post_id: POST };
    assert_eq!(world.members[0].sent[&first], Err(pending));
    world.settle();
    assert_eq!(world.members[0].sent[&again].as_ref().unwrap().post_id, POST);
    assert_eq!(world.history(0, &pair).len(), 1);
    assert_eq!(world.members[1].texts(), ["once"]);
}

// CONV-D11
#[test]
fn a_post_that_outlived_its_host_is_waited_for_by_the_next_one_and_made_once() {
    let mut world = World::new(2);
    let pair = world.everyone();
    world.send_as(Some(POST), 0, &pair, "once");
    world.restart(0);
    let again = world.send_as(Some(POST), 0, &pair, "once");
    world.settle();
    assert_eq!(world.members[0].sent[&again].as_ref().unwrap().post_id, POST);
    assert_eq!(world.history(1, &pair).len(), 1);
}

#[test]
fn a_certified_post_asked_for_again_is_answered_at_once_with_its_record_after_a_restart_too() {
    let mut world = World::new(2);
    let pair = world.everyone();
    let first = world.send_as(Some(POST), 0, &pair, "once");
    world.settle();
    let made = world.members[0].sent[&first].clone();
    let rows = world.members[0].store.snapshot();
    for _ in 0..2 {
        let again = world.send_as(Some(POST), 0, &pair, "once");
        assert!(made.is_ok());
        assert_eq!(world.members[0].sent[&again], made);
        assert!(world.members[0].transmits.is_empty());
        assert_eq!(world.members[0].store.snapshot(), rows);
        world.restart(0);
    }
}

// CONV-D08
#[test]
fn a_post_of_this_id_with_another_content_or_address_is_refused_and_nothing_is_written() {
    let mut world = World::new(3);
    let (pair, everyone) = (world.membership(&[0, 1]), world.everyone());
    world.send_as(Some(POST), 0, &pair, "once");
    let differs = Err(SendError::PostDiffers { post_id: POST });
    for _ in 0..2 {
        let rows = world.members[0].store.snapshot();
        let content = world.send_as(Some(POST), 0, &pair, "twice");
        let address = world.send_as(Some(POST), 0, &everyone, "once");
        assert_eq!(world.members[0].sent[&content], differs);
        assert_eq!(world.members[0].sent[&address], differs);
        assert_eq!(world.members[0].store.snapshot(), rows);
        world.settle();
    }
}

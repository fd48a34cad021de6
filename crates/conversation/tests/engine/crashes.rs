//! Crashes between any two steps, lost requests and lost answers: everything still converges, nothing is signed twice and
//! nothing is delivered twice under two tokens.

use std::collections::BTreeSet;

use conclave_conversation::membership::Membership;
use conclave_conversation::store::rows::{PendingDeliveryRow, PostIntentRow};
use conclave_harness::Randomness;
use conclave_harness::randomness::SeededRandomness;

use crate::world::{CrashPoint, World};

/// A seeded choice of what happens next.
struct Dice(SeededRandomness);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        let mut bytes = [0; 4];
        self.0.fill(&mut bytes);
        u32::from_be_bytes(bytes) as usize % bound
    }
}

/// One step of an unlucky world.
fn stumble(world: &mut World, dice: &mut Dice, conversations: &[Membership], posts_left: &mut usize) {
    let member = dice.below(world.members.len());
    if world.members[member].engine.is_none() {
        world.open(member);
        world.attach(member);
        return;
    }
    if dice.below(12) == 0 {
        let point = if dice.below(2) == 0 {
            CrashPoint::BeforeCommit
        } else {
            CrashPoint::AfterCommit
        };
        world.crash_at.insert(member, point);
    }
    match dice.below(12) {
        0 if *posts_left > 0 => {
            let membership = &conversations[dice.below(conversations.len())];
            if membership.contains(&world.members[member].id()) {
                *posts_left -= 1;
                let text = format!("post {posts_left} of {member}");
                world.send(member, membership, &text);
            }
        }
        1 => {
            world.members[member].online = false;
            world.transmit_one(member);
            world.members[member].online = true;
        }
        2 if !world.members[member].transmits.is_empty() => world.transmit_and_lose_the_answer(member),
        3 => {
            world.next_timer();
        }
        4 if world.members[member].delivered.len() > world.members[member].acknowledged.len() => {
            let delivery =
                world.members[member].delivered[dice.below(world.members[member].delivered.len())].clone();
            world.acknowledge(member, &delivery);
        }
        5..=7 => {
            world.transmit_one(member);
        }
        _ => {
            world.deliver_one(member);
        }
    }
}

/// Lets everybody come back and everything end.
fn heal(world: &mut World) {
    world.crash_at.clear();
    for member in 0..world.members.len() {
        world.restart(member);
    }
    world.run_out();
}

fn run(seed: u64, members: usize) {
    let mut world = World::new(members);
    let mut dice = Dice(SeededRandomness::new(seed));
    let mut conversations = vec![world.everyone()];
    if members > 2 {
        conversations.push(world.membership(&[0, 1]));
    }
    let mut posts_left = 5;
    for _ in 0..250 {
        stumble(&mut world, &mut dice, &conversations, &mut posts_left);
    }
    heal(&mut world);

    let mut certified = BTreeSet::new();
    for membership in &conversations {
        world.check(membership);
        let everyone: Vec<usize> = (0..members)
            .filter(|member| membership.contains(&world.members[*member].id()))
            .collect();
        let chain = world.chain(everyone[0], membership);
        for member in &everyone {
            assert_eq!(
                world.chain(*member, membership),
                chain,
                "seed {seed}: member {member} lags"
            );
        }
        for entry in world.history(everyone[0], membership) {
            let intent = entry.record_core.post_intent();
            assert!(
                certified.insert((intent.author_agent_id, intent.post_id)),
                "seed {seed}: a post twice"
            );
        }
    }
    for (number, member) in world.members.iter().enumerate() {
        let snapshot = member.store.snapshot();
        for row in snapshot.rows::<PostIntentRow>().unwrap() {
            assert!(
                row.completed_record_hash.is_some(),
                "seed {seed}: a post of {number} is unfinished"
            );
        }
        // The host saw every remote post, and after an acknowledgment became durable nothing of it again.
        let seen: BTreeSet<_> = member
            .delivered
            .iter()
            .map(|delivery| delivery.record_hash.to_string())
            .collect();
        for row in snapshot.rows::<PendingDeliveryRow>().unwrap() {
            assert!(
                seen.contains(&row.record_hash),
                "seed {seed}: a delivery of {number} was never shown"
            );
        }
    }
    for member in 0..members {
        world.members[member].delivered.clear();
        world.restart(member);
        let pending: Vec<PendingDeliveryRow> = world.members[member].store.snapshot().rows().unwrap();
        let mut pending: Vec<_> = pending.into_iter().filter(|row| !row.acknowledged).collect();
        pending.sort_by_key(|row| row.delivery_sequence);
        let shown: Vec<_> = world.members[member]
            .delivered
            .iter()
            .map(|delivery| delivery.delivery_token.to_string())
            .collect();
        assert_eq!(
            shown,
            pending
                .iter()
                .map(|row| row.delivery_token.clone())
                .collect::<Vec<_>>()
        );
    }
}

// CONV-G17, CONV-E05, CONV-E10
#[test]
fn two_members_converge_whatever_crashes_between_any_two_steps() {
    for seed in 0..12 {
        run(seed, 2);
    }
}

// CONV-G17
#[test]
fn three_members_converge_whatever_crashes_between_any_two_steps() {
    for seed in 100..108 {
        run(seed, 3);
    }
}

// CONV-G17
#[test]
fn four_members_converge_whatever_crashes_between_any_two_steps() {
    for seed in 200..206 {
        run(seed, 4);
    }
}

// CONV-G19
#[test]
fn what_members_sign_and_check_is_signed_and_checked_outside_their_transactions() {
    use conclave_harness::key::{signatures, verifications};
    // Every commit of a store in memory fails this test where it makes or checks a signature.
    let begun = (signatures(), verifications());
    let mut world = World::new(3);
    let everyone = world.everyone();
    for member in 0..3 {
        world.send(member, &everyone, "a post");
    }
    world.run_out();
    for member in 0..3 {
        assert_eq!(world.history(member, &everyone).len(), 3);
        world.restart(member);
    }
    assert!(signatures() > begun.0 && verifications() > begun.1);
}

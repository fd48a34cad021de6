//! Claims of handles: one inbox each, what a deployment allows, seven days apart, and found for ever.

use conclave_grpc_web::{Code, Status};
use conclave_identity::{
    HandlePolicy,
    building::{Account, Installation, Step},
};
use conclave_proto::xmtp::backend::v1::{ClientEnvelope, EnvelopeMeta, publish_error::Reason};
use conclave_topiclog::Configuration;

use crate::{
    client::{group, message, publish},
    identities::{HANDLE, Inbox, refused},
    world::World,
};

const WEEK_NS: u64 = 604_800_000_000_000;

fn claim(inbox: &Inbox, seconds: u64, handle: &'static str, signer: &Account) -> ClientEnvelope {
    inbox.update(seconds, &[Step::Claim(handle, signer)])
}

/// The claim of an inbox that its account opens in the same publish.
fn opening_claim(owner: &Account, handle: &'static str) -> (Inbox, ClientEnvelope) {
    let inbox = Inbox::of(owner, 0);
    let steps = [Step::Create(owner, 0), Step::Claim(handle, owner)];
    let update = inbox.update(1, &steps);
    (inbox, update)
}

// API-296, API-299
#[test]
fn a_handle_is_found_in_any_ascii_case_and_has_one_inbox() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let (owner, other) = (Account::new(1), Account::new(2));
        let (inbox, rival) = (world.open(&owner, 0), world.open(&other, 0));
        assert_eq!(world.look_up("alice.42", HANDLE), None);
        world
            .publish(vec![claim(&inbox, 2, "alice.42", &owner)])
            .expect("claimed");
        for text in ["alice.42", "ALICE.42", "Alice.42"] {
            assert_eq!(world.look_up(text, HANDLE), Some(inbox.id.clone()));
        }
        let taken = vec![message(&group(1), "beside"), claim(&rival, 2, "alice.42", &other)];
        assert_eq!(refused(world.publish(taken)), (Some(1), Reason::HandleTaken));
        assert_eq!(world.read_all(&rival.topic()).len(), 1);
        // Another handle with the same name part is another handle.
        world
            .publish(vec![claim(&rival, 3, "alice.43", &other)])
            .expect("claimed");
        assert_eq!(world.look_up("alice.43", HANDLE), Some(rival.id));
    }
}

// API-296, API-223
#[test]
fn a_handle_claimed_at_a_lower_index_is_taken() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let (one, first) = opening_claim(&Account::new(1), "alice");
        let (two, second) = opening_claim(&Account::new(2), "alice");
        let both = vec![first.clone(), message(&group(1), "beside"), second.clone()];
        assert_eq!(refused(world.publish(both)), (Some(2), Reason::HandleTaken));
        for inbox in [&one, &two] {
            assert!(world.read_all(&inbox.topic()).is_empty());
        }
        // A copy of the lower one is no other inbox.
        world.publish(vec![first.clone(), first]).expect("claimed");
        assert_eq!(world.look_up("alice", HANDLE), Some(one.id));
        assert_eq!(
            refused(world.publish(vec![second])),
            (Some(0), Reason::HandleTaken)
        );
    }
}

// API-296
#[test]
fn of_many_inboxes_that_claim_a_handle_at_once_one_has_it() {
    for shards in [1, 4] {
        for seed in 0..12 {
            let configuration = Configuration {
                shard_count: shards,
                ..Configuration::default()
            };
            let world = World::seeded(configuration, seed);
            let contenders: Vec<_> = (1..=5)
                .map(|n| opening_claim(&Account::new(n), "alice"))
                .collect();
            let running: Vec<_> = contenders
                .iter()
                .map(|(_, update)| world.start(publish(&world.client(), vec![update.clone()])))
                .collect();
            world.settle();
            let outcomes: Vec<Result<Vec<EnvelopeMeta>, Status>> = running
                .iter()
                .map(|slot| slot.take().expect("answered"))
                .collect();
            let winners: Vec<&Inbox> = contenders
                .iter()
                .zip(&outcomes)
                .filter(|(_, outcome)| outcome.is_ok())
                .map(|((inbox, _), _)| inbox)
                .collect();
            assert_eq!(winners.len(), 1, "seed {seed}");
            assert_eq!(world.look_up("alice", HANDLE), Some(winners[0].id.clone()));
            for ((inbox, _), outcome) in contenders.iter().zip(outcomes) {
                let log = world.read_all(&inbox.topic());
                if inbox.id == winners[0].id {
                    assert_eq!(log.len(), 1);
                } else {
                    assert_eq!(refused(outcome), (Some(0), Reason::HandleTaken));
                    assert!(log.is_empty());
                }
            }
        }
    }
}

// API-297, API-299
#[test]
fn a_reserved_or_short_name_is_refused_even_to_its_inbox_and_is_still_found() {
    let world = World::new(4);
    let owner = Account::new(1);
    let inbox = world.open(&owner, 0);
    for (handle, seconds) in [("admin", 2), ("support.77", 3), ("al", 4), ("al.4242", 5)] {
        let refusal = refused(world.publish(vec![claim(&inbox, seconds, handle, &owner)]));
        assert_eq!(refusal, (Some(0), Reason::HandleNotAllowed), "{handle}");
    }
    world
        .publish(vec![claim(&inbox, 6, "bob.42", &owner)])
        .expect("claimed");
    world.set_clock_ns(world.now_ns() + WEEK_NS);
    for handles in [
        HandlePolicy::new(4, ["admin"]),
        HandlePolicy::new(3, ["admin", "bob"]),
    ] {
        world.redeploy(Configuration {
            handles,
            ..(*world.configuration()).clone()
        });
        let again = vec![claim(&inbox, 7, "bob.42", &owner)];
        assert_eq!(refused(world.publish(again)), (Some(0), Reason::HandleNotAllowed));
        assert_eq!(world.look_up("bob.42", HANDLE), Some(inbox.id.clone()));
    }
    // The same bytes again are the stored claim, whatever is allowed now.
    assert!(world.publish(vec![claim(&inbox, 6, "bob.42", &owner)]).is_ok());
    let handles = HandlePolicy::new(2, ["bobby"]);
    world.redeploy(Configuration {
        handles,
        ..(*world.configuration()).clone()
    });
    world
        .publish(vec![claim(&inbox, 8, "al", &owner)])
        .expect("allowed now");
}

// API-298, API-299
#[test]
fn claims_are_seven_days_apart_by_the_time_they_were_stored() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let owner = Account::new(1);
        let inbox = world.open(&owner, 0);
        let first = world
            .publish(vec![claim(&inbox, 2, "alice", &owner)])
            .expect("claimed");
        let stored_ns = first[0].server_ns;
        let next = claim(&inbox, 3, "alice.42", &owner);
        for now_ns in [stored_ns, stored_ns + WEEK_NS - 1] {
            world.set_clock_ns(now_ns);
            let refusal = refused(world.publish(vec![next.clone()]));
            assert_eq!(refusal, (Some(0), Reason::HandleTooSoon));
            // What claims nothing may be stored at any time, and moves no time; a copy of the claim is no claim.
            let added = Installation::new(u8::try_from(now_ns % 251).expect("small"));
            let update = inbox.update(now_ns / 1_000_000_000, &[Step::Add(&added, &owner)]);
            world.publish(vec![update]).expect("stored");
            assert_eq!(
                world
                    .publish(vec![claim(&inbox, 2, "alice", &owner)])
                    .expect("a duplicate"),
                first
            );
        }
        world.set_clock_ns(stored_ns + WEEK_NS);
        let second = world.publish(vec![next]).expect("seven days later");
        for handle in ["alice", "alice.42"] {
            assert_eq!(world.look_up(handle, HANDLE), Some(inbox.id.clone()), "for ever");
        }
        // Back to one that it holds is a claim like any other.
        let back = claim(&inbox, 4, "alice", &owner);
        assert_eq!(
            refused(world.publish(vec![back.clone()])),
            (Some(0), Reason::HandleTooSoon)
        );
        world.set_clock_ns(second[0].server_ns + WEEK_NS);
        world.publish(vec![back]).expect("its own handle");
    }
}

// API-230, API-296
#[test]
fn of_several_reasons_the_first_of_the_table_is_named() {
    let world = World::new(4);
    let (owner, other) = (Account::new(1), Account::new(2));
    let (inbox, rival) = (world.open(&owner, 0), world.open(&other, 0));
    world
        .publish(vec![claim(&inbox, 2, "alice", &owner)])
        .expect("claimed");
    world
        .publish(vec![claim(&rival, 2, "robert", &other)])
        .expect("claimed");
    let handles = HandlePolicy::new(3, ["alice"]);
    world.redeploy(Configuration {
        handles,
        ..(*world.configuration()).clone()
    });
    // Taken, reserved and too soon.
    let claim_it = |name, signer: &Account| refused(world.publish(vec![claim(&rival, 3, name, signer)])).1;
    assert_eq!(claim_it("alice", &other), Reason::HandleTaken);
    // Too short and too soon, by one who is no member.
    assert_eq!(claim_it("al", &Account::new(9)), Reason::HandleNotAllowed);
    assert_eq!(claim_it("carol", &Account::new(9)), Reason::HandleTooSoon);
    world.set_clock_ns(world.now_ns() + WEEK_NS);
    assert_eq!(claim_it("carol", &Account::new(9)), Reason::InvalidIdentityUpdate);
}

// API-299
#[test]
fn what_is_no_handle_fails_the_whole_lookup() {
    let world = World::new(4);
    for text in ["", "a b", "alice.", "alice.0", "@alice", "álice"] {
        let failed = world.try_look_up(&[("alice", HANDLE), (text, HANDLE), ("nobody", 1)]);
        assert_eq!(
            failed.map_err(|status| status.code),
            Err(Code::InvalidArgument),
            "{text}"
        );
    }
}

//! Identity updates that meet each other, and faults: one history, or start over.

use std::cell::RefCell;

use conclave_grpc_web::{Code, Status};
use conclave_identity::building::{Account, Signer, Step};
use conclave_proto::xmtp::backend::v1::{ClientEnvelope, EnvelopeMeta, publish_error::Reason};
use conclave_topiclog::{Configuration, platform::ObjectName};

use crate::{
    client::{group, group_topic, message, publish},
    identities::{ETHEREUM, HANDLE, Inbox, additions, code, log_of, refused},
    world::{CallFate, World},
};

// API-232
#[test]
fn a_log_that_grew_while_an_update_was_judged_aborts_it_and_stores_nothing() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let owner = Account::new(1);
        let inbox = world.open(&owner, 0);
        let additions = additions(&inbox, &owner, 10..13);
        // What it was judged against stays on its way while another update is stored.
        let is_held = RefCell::new(false);
        world.on_call(
            move |_, method| match method == "page" && !is_held.replace(true) {
                true => CallFate::HoldAnswer,
                false => CallFate::Answer,
            },
        );
        let slow = vec![message(&group(1), "beside"), additions[0].clone()];
        let running = world.start(publish(&world.client(), slow.clone()));
        world.settle();
        world.publish(vec![additions[1].clone()]).expect("stored");
        world.let_answers_go();
        world.settle();
        assert_eq!(code(running.take().expect("answered")), Code::Aborted);
        assert!(world.read_all(&group_topic(&group(1))).is_empty());
        assert_eq!(log_of(&world, &inbox).len(), 2);
        // Judged anew it fits.
        world.publish(slow).expect("stored");
    }
}

// API-232
#[test]
fn of_updates_of_one_inbox_at_once_one_is_stored_and_the_others_start_over() {
    for shards in [1, 4] {
        for seed in 0..10 {
            let configuration = Configuration {
                shard_count: shards,
                ..Configuration::default()
            };
            let world = World::seeded(configuration, seed);
            let owner = Account::new(1);
            let inbox = world.open(&owner, 0);
            let mut left = additions(&inbox, &owner, 10..14);
            let mut stored = 1;
            while !left.is_empty() {
                let running: Vec<_> = left
                    .iter()
                    .map(|update| world.start(publish(&world.client(), vec![update.clone()])))
                    .collect();
                world.settle();
                let outcomes: Vec<Result<Vec<EnvelopeMeta>, Status>> = running
                    .iter()
                    .map(|slot| slot.take().expect("answered"))
                    .collect();
                let succeeded = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
                assert!(succeeded >= 1);
                let mut again = Vec::new();
                for (update, outcome) in left.into_iter().zip(outcomes) {
                    if outcome.is_err() {
                        assert_eq!(code(outcome), Code::Aborted);
                        again.push(update);
                    }
                }
                stored += succeeded;
                assert_eq!(log_of(&world, &inbox).len(), stored);
                left = again;
            }
        }
    }
}

// API-232
#[test]
fn of_updates_that_exclude_each_other_one_is_ever_stored() {
    for shards in [1, 4] {
        for seed in 0..10 {
            let configuration = Configuration {
                shard_count: shards,
                ..Configuration::default()
            };
            let world = World::seeded(configuration, seed);
            let owner = Account::new(1);
            let inbox = world.open(&owner, 0);
            let added = Account::new(2);
            let updates: Vec<_> = (10..14)
                .map(|seconds| inbox.update(seconds, &[Step::Add(&added, &owner)]))
                .collect();
            let running: Vec<_> = updates
                .iter()
                .map(|update| world.start(publish(&world.client(), vec![update.clone()])))
                .collect();
            world.settle();
            let outcomes: Vec<_> = running
                .iter()
                .map(|slot| slot.take().expect("answered"))
                .collect();
            assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
            assert_eq!(log_of(&world, &inbox).len(), 2);
            // Whoever starts over is told that it is a member already.
            for (update, outcome) in updates.iter().zip(outcomes) {
                if outcome.is_err_and(|status| status.code == Code::Aborted) {
                    let again = refused(world.publish(vec![update.clone()]));
                    assert_eq!(again, (Some(0), Reason::InvalidIdentityUpdate));
                }
            }
        }
    }
}

// API-222
#[test]
fn the_same_update_published_many_times_at_once_is_stored_once() {
    for shards in [1, 4] {
        for seed in 0..10 {
            let configuration = Configuration {
                shard_count: shards,
                ..Configuration::default()
            };
            let world = World::seeded(configuration, seed);
            let owner = Account::new(1);
            let inbox = Inbox::of(&owner, 0);
            let created = inbox.update(1, &[Step::Create(&owner, 0), Step::Claim("alice", &owner)]);
            let running: Vec<_> = (0..4)
                .map(|_| world.start(publish(&world.client(), vec![created.clone()])))
                .collect();
            world.settle();
            let metas: Vec<_> = running
                .iter()
                .map(|slot| slot.take().expect("answered").expect("stored"))
                .collect();
            assert!(metas.iter().all(|meta| *meta == metas[0]));
            assert_eq!(log_of(&world, &inbox).len(), 1);
            assert_eq!(
                world.look_up(&owner.identifier().to_string(), ETHEREUM),
                Some(inbox.id)
            );
        }
    }
}

// API-224, API-222
#[test]
fn an_update_whose_answer_was_lost_is_found_by_a_retry() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let owner = Account::new(1);
        let inbox = Inbox::of(&owner, 0);
        let created = inbox.update(1, &[Step::Create(&owner, 0)]);
        world.on_call(|_, method| match method {
            "store" => CallFate::LoseAnswer,
            _ => CallFate::Answer,
        });
        assert_eq!(code(world.publish(vec![created.clone()])), Code::Unavailable);
        world.without_faults();
        let metas = world.publish(vec![created]).expect("a duplicate");
        let log = world.read_all(&inbox.topic());
        assert_eq!((log.len(), log[0].meta.as_ref()), (1, Some(&metas[0])));
    }
}

// API-232, API-281
#[test]
fn a_log_that_cannot_be_read_decides_nothing() {
    let world = World::new(4);
    let owner = Account::new(1);
    let inbox = world.open(&owner, 0);
    world.on_call(|_, method| match method {
        "page" => CallFate::LoseRequest,
        _ => CallFate::Answer,
    });
    let added = additions(&inbox, &owner, 10..11);
    assert_eq!(code(world.publish(added.clone())), Code::Unavailable);
    // What fails without it fails.
    let malformed = vec![added[0].clone(), ClientEnvelope { payload: None }];
    assert_eq!(
        refused(world.publish(malformed)),
        (Some(1), Reason::MalformedPayload)
    );
    world.without_faults();
    assert_eq!(log_of(&world, &inbox).len(), 1);
    world.publish(added).expect("stored");
}

// API-220, API-270, API-299
#[test]
fn a_crash_at_any_step_leaves_an_update_with_its_lookups_or_none_of_it() {
    let mut steps = 0;
    loop {
        let world = World::new(4);
        for n in 0..16 {
            world.publish(vec![message(&group(n), "warm")]).expect("stored");
        }
        let owner = Account::new(1);
        let inbox = Inbox::of(&owner, 0);
        let opened = inbox.update(1, &[Step::Create(&owner, 0), Step::Claim("alice", &owner)]);
        let running = world.start(publish(&world.client(), vec![opened.clone()]));
        world.step(steps);
        let outcome = running.take();
        (0..4).for_each(|shard| world.crash(ObjectName::Shard(shard)));
        world.advance_ms(30_000);
        let is_stored = !log_of(&world, &inbox).is_empty();
        let expected = is_stored.then(|| inbox.id.clone());
        assert_eq!(
            world.look_up(&owner.identifier().to_string(), ETHEREUM),
            expected,
            "{steps}"
        );
        assert_eq!(world.look_up("alice", HANDLE), expected, "{steps}");
        world.publish(vec![opened]).expect("the same bytes again");
        assert_eq!(world.look_up("alice", HANDLE), Some(inbox.id));
        if let Some(outcome) = outcome {
            assert!(is_stored && outcome.is_ok());
            break;
        }
        steps += 1;
    }
}

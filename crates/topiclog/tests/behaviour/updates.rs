//! Identity updates: what they are judged against, and what is stored of them.

use std::{cell::RefCell, rc::Rc};

use conclave_envelope::Limits;
use conclave_grpc_web::{Code, Status};
use conclave_identity::{
    WalletQuestion, WalletVerdict,
    building::{Account, Installation, Signer, Step, Wallet, update},
};
use conclave_proto::xmtp::{
    backend::v1::{ClientEnvelope, EnvelopeMeta, client_envelope::Payload, publish_error::Reason},
    identity::associations::identity_action::Kind,
};
use conclave_topiclog::{
    Configuration,
    chains::{ChainQuestion, ChainVerdict, Chains, Unavailable},
    platform::ObjectName,
};
use futures_util::future::{LocalBoxFuture, ready};

use crate::{
    client::{group, group_topic, message, publish},
    identities::{ETHEREUM, HANDLE, Inbox, code, enveloped, key_package, package, refused},
    world::{CallFate, World},
};

/// Adds installations, one an update.
fn additions(inbox: &Inbox, owner: &Account, seeds: std::ops::Range<u8>) -> Vec<ClientEnvelope> {
    seeds
        .map(|seed| inbox.update(seed.into(), &[Step::Add(&Installation::new(seed), owner)]))
        .collect()
}

fn log_of(world: &World, inbox: &Inbox) -> Vec<ClientEnvelope> {
    let stored = world.read_all(&inbox.topic());
    stored.into_iter().filter_map(|stored| stored.envelope).collect()
}

// API-230, API-232
#[test]
fn an_update_is_judged_against_those_just_confirmed() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let (owner, second) = (Account::new(1), Account::new(2));
        let inbox = Inbox::of(&owner, 0);
        let created = inbox.update(1, &[Step::Create(&owner, 0)]);
        let added = inbox.update(2, &[Step::Add(&second, &owner)]);
        let by_second = inbox.update(3, &[Step::Add(&Installation::new(3), &second)]);
        let early = world.publish(vec![by_second.clone()]);
        assert_eq!(refused(early), (Some(0), Reason::InvalidIdentityUpdate));
        for update in [&created, &added, &by_second] {
            let metas = world.publish(vec![update.clone()]).expect("stored");
            assert_eq!((metas[0].expiry_ns, metas[0].is_commit_or_proposal), (0, false));
        }
        let log = log_of(&world, &inbox);
        assert_eq!(log, [created, added, by_second]);
    }
}

// API-230, API-223
#[test]
fn each_failure_has_its_reason_and_stores_nothing() {
    let world = World::new(4);
    let (owner, stranger) = (Account::new(1), Account::new(2));
    let inbox = world.open(&owner, 0);
    let sound = inbox.update(2, &[Step::Add(&Installation::new(3), &owner)]);
    let changed = |change: &dyn Fn(&mut conclave_proto::xmtp::identity::associations::IdentityUpdate)| {
        let mut envelope = sound.clone();
        if let Some(Payload::IdentityUpdate(update)) = &mut envelope.payload {
            change(update);
        }
        envelope
    };
    for (envelope, reason) in [
        (
            changed(&|update| update.inbox_id = "short".to_owned()),
            Reason::MalformedPayload,
        ),
        (
            changed(&|update| update.actions.clear()),
            Reason::InvalidIdentityUpdate,
        ),
        (
            changed(&|update| update.actions[0].kind = None),
            Reason::InvalidIdentityUpdate,
        ),
        // The text of the installation's signature is another.
        (
            changed(&|update| update.client_timestamp_ns += 1_000_000_000),
            Reason::InvalidSignature,
        ),
        (
            changed(&|update| {
                if let Some(Kind::Add(add)) = &mut update.actions[0].kind {
                    add.existing_member_signature = add.new_member_signature.clone();
                }
            }),
            Reason::InvalidIdentityUpdate,
        ),
        (
            inbox.update(3, &[Step::Create(&owner, 0)]),
            Reason::InvalidIdentityUpdate,
        ),
        (
            inbox.update(3, &[Step::Add(&Installation::new(3), &stranger)]),
            Reason::InvalidIdentityUpdate,
        ),
        (
            enveloped(update(
                &inbox.id.to_uppercase(),
                3,
                &[Step::Add(&stranger, &owner)],
            )),
            Reason::InvalidIdentityUpdate,
        ),
    ] {
        let publish = vec![message(&group(7), "beside"), envelope];
        assert_eq!(refused(world.publish(publish)), (Some(1), reason));
    }
    assert_eq!(log_of(&world, &inbox).len(), 1);
    assert!(world.read_all(&group_topic(&group(7))).is_empty());
    world
        .publish(vec![message(&group(7), "beside"), sound])
        .expect("sound");
}

// API-220
#[test]
fn an_update_is_stored_with_everything_beside_it() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let (owner, key) = (Account::new(1), Installation::new(2));
        let inbox = Inbox::of(&owner, 0);
        let opened = inbox.update(1, &[Step::Create(&owner, 0), Step::Add(&key, &owner)]);
        let all = vec![
            key_package(&package(&world, 2)),
            opened,
            message(&group(1), "hello"),
        ];
        let metas = world.publish(all.clone()).expect("stored");
        assert!(metas.iter().all(|meta| meta.server_ns == metas[0].server_ns));
        assert_eq!(world.publish(all).expect("duplicates"), metas);
        assert_eq!(
            world.look_up(&owner.identifier().to_string(), ETHEREUM),
            Some(inbox.id.clone())
        );
        assert_eq!(log_of(&world, &inbox).len(), 1);
    }
}

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

// API-222, API-224
#[test]
fn an_update_published_again_is_the_stored_one_whatever_came_after_it() {
    for shards in [1, 4] {
        let limits = Limits {
            max_identity_entries: 3,
            ..Limits::default()
        };
        let world = World::with(Configuration {
            shard_count: shards,
            limits,
            ..Configuration::default()
        });
        let owner = Account::new(1);
        let inbox = Inbox::of(&owner, 0);
        let created = inbox.update(1, &[Step::Create(&owner, 0)]);
        let added = inbox.update(2, &[Step::Add(&Installation::new(2), &owner)]);
        let first = world
            .publish(vec![created.clone(), message(&group(1), "beside")])
            .expect("stored");
        world.publish(vec![added]).expect("stored");
        let revoked = inbox.update(3, &[Step::Revoke(owner.identifier(), &owner)]);
        world.publish(vec![revoked]).expect("stored");
        // The log is full and the inbox exists; none of that matters to a duplicate.
        let again = world
            .publish(vec![created.clone(), created, message(&group(1), "more")])
            .expect("stored");
        assert_eq!((&again[0], &again[1]), (&first[0], &first[0]));
        assert_eq!(log_of(&world, &inbox).len(), 3);
        assert_eq!(world.look_up(&owner.identifier().to_string(), ETHEREUM), None);
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

// API-233, API-223
#[test]
fn a_request_has_one_update_of_an_inbox_and_its_copies() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let owner = Account::new(1);
        let inbox = Inbox::of(&owner, 0);
        let created = inbox.update(1, &[Step::Create(&owner, 0)]);
        let added = inbox.update(2, &[Step::Add(&Installation::new(2), &owner)]);
        let two = vec![created.clone(), message(&group(1), "x"), added.clone()];
        assert_eq!(
            refused(world.publish(two)),
            (Some(2), Reason::InvalidIdentityUpdate)
        );
        let upper_case = |envelope: &ClientEnvelope| {
            let mut envelope = envelope.clone();
            if let Some(Payload::IdentityUpdate(update)) = &mut envelope.payload {
                update.inbox_id = update.inbox_id.to_uppercase();
            }
            envelope
        };
        let refusal = refused(world.publish(vec![created.clone(), upper_case(&added)]));
        assert_eq!(refusal, (Some(1), Reason::InvalidIdentityUpdate));
        assert!(log_of(&world, &inbox).is_empty());
        // A failure before the second one is named instead.
        let invalid = Inbox::of(&Account::new(2), 0).update(1, &[Step::Add(&owner, &owner)]);
        let three = vec![created.clone(), invalid, added.clone()];
        assert_eq!(
            refused(world.publish(three)),
            (Some(1), Reason::InvalidIdentityUpdate)
        );
        let other = Inbox::of(&owner, 1).update(1, &[Step::Create(&owner, 1)]);
        world
            .publish(vec![created.clone(), other, created])
            .expect("copies and another inbox");
    }
}

// API-234
#[test]
fn a_full_log_takes_no_more() {
    for shards in [1, 4] {
        let limits = Limits {
            max_identity_entries: 3,
            ..Limits::default()
        };
        let world = World::with(Configuration {
            shard_count: shards,
            limits,
            ..Configuration::default()
        });
        let owner = Account::new(1);
        let inbox = world.open(&owner, 0);
        let updates = additions(&inbox, &owner, 10..13);
        for update in &updates[..2] {
            world.publish(vec![update.clone()]).expect("stored");
        }
        let refusal = refused(world.publish(vec![updates[2].clone()]));
        assert_eq!(refusal, (Some(0), Reason::InvalidIdentityUpdate));
        let raised = Limits {
            max_identity_entries: 4,
            ..Limits::default()
        };
        world.redeploy(Configuration {
            limits: raised,
            ..(*world.configuration()).clone()
        });
        world.publish(vec![updates[2].clone()]).expect("room again");
    }
}

// API-232
#[test]
fn a_log_longer_than_a_page_is_read_whole() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let owner = Account::new(1);
        let inboxes = [world.open(&owner, 0), world.open(&owner, 1)];
        // What the signed text leaves out may be as long as an envelope.
        let long = |inbox: &Inbox, seconds: u64, seed| {
            let mut envelope = inbox.update(seconds, &[Step::Add(&Installation::new(seed), &owner)]);
            if let Some(Payload::IdentityUpdate(update)) = &mut envelope.payload
                && let Some(Kind::Add(add)) = &mut update.actions[0].kind
            {
                add.relying_party = Some("x".repeat(900_000));
            }
            envelope
        };
        for n in 2..7 {
            let both = inboxes
                .each_ref()
                .map(|inbox| long(inbox, n, u8::try_from(n).expect("small")));
            world.publish(both.to_vec()).expect("stored");
        }
        let before = world.all_calls();
        // The last of them is a member, and the first of them is no more after this.
        let last = [
            Step::Add(&Account::new(9), &Installation::new(6)),
            Step::Revoke(Installation::new(2).identifier(), &owner),
        ];
        let both = inboxes.each_ref().map(|inbox| inbox.update(9, &last));
        world
            .publish(both.to_vec())
            .expect("judged against the whole log");
        assert!(world.all_calls() > before + 2);
        let again = both.to_vec();
        assert!(world.publish(again).is_ok(), "found at the end of the log");
        let lost = inboxes
            .each_ref()
            .map(|inbox| inbox.update(10, &[Step::Add(&Account::new(8), &Installation::new(2))]));
        assert_eq!(
            refused(world.publish(lost.to_vec())),
            (Some(0), Reason::InvalidIdentityUpdate)
        );
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

/// Chains that answer what they are told, and write down what they are asked.
#[derive(Debug)]
struct Oracle {
    verdict: WalletVerdict,
    asked: RefCell<Vec<WalletQuestion>>,
}

impl Chains for Oracle {
    fn verify<'a>(
        &'a self,
        _questions: &'a [ChainQuestion],
        _deadline_ms: u32,
    ) -> LocalBoxFuture<'a, Result<Vec<ChainVerdict>, Unavailable>> {
        Box::pin(ready(Err(Unavailable::no_route(0))))
    }

    fn admit<'a>(
        &'a self,
        questions: &'a [&'a WalletQuestion],
        _deadline_ms: u32,
    ) -> LocalBoxFuture<'a, Vec<WalletVerdict>> {
        let questions = questions.iter().map(|question| (*question).clone());
        let before = self.asked.borrow().len();
        self.asked.borrow_mut().extend(questions);
        let count = self.asked.borrow().len() - before;
        Box::pin(ready(vec![self.verdict; count]))
    }
}

// API-231, API-230
#[test]
fn a_wallet_is_judged_by_its_chain_and_an_outage_is_no_verdict() {
    let world = World::new(4);
    let wallet = Wallet::new(1, 0x11);
    let inbox = Inbox::of(&wallet, 0);
    let opened = inbox.update(
        1,
        &[
            Step::Create(&wallet, 0),
            Step::Add(&Installation::new(2), &wallet),
        ],
    );
    let published = |verdict, envelopes: Vec<ClientEnvelope>| {
        let oracle = Rc::new(Oracle {
            verdict,
            asked: RefCell::default(),
        });
        let client = world.client_with(Rc::clone(&oracle) as Rc<dyn Chains>);
        let outcome = world.run(publish(&client, envelopes));
        let asked = oracle.asked.take().len();
        (outcome, asked)
    };
    // No chains at all, and one that is out of reach.
    assert_eq!(code(world.publish(vec![opened.clone()])), Code::Unavailable);
    let (outcome, asked) = published(WalletVerdict::Unavailable, vec![opened.clone()]);
    assert_eq!(
        (code(outcome), asked),
        (Code::Unavailable, 1),
        "one signature, used twice, is asked once"
    );
    // What fails for certain is named; the wallet's signature is not called invalid.
    let malformed = vec![opened.clone(), ClientEnvelope { payload: None }];
    let (outcome, _) = published(WalletVerdict::Unavailable, malformed);
    assert_eq!(refused(outcome), (Some(1), Reason::MalformedPayload));
    let (outcome, _) = published(WalletVerdict::Invalid, vec![opened.clone()]);
    assert_eq!(refused(outcome), (Some(0), Reason::InvalidSignature));
    let (outcome, _) = published(WalletVerdict::BlockNotFresh, vec![opened.clone()]);
    assert_eq!(refused(outcome), (Some(0), Reason::InvalidIdentityUpdate));
    assert!(log_of(&world, &inbox).is_empty());
    let (outcome, _) = published(WalletVerdict::Valid, vec![opened.clone()]);
    let first = outcome.expect("stored");
    assert_eq!(log_of(&world, &inbox)[0], opened);
    // Once it is stored no chain is asked again: neither for a copy nor for what follows.
    let (outcome, asked) = published(WalletVerdict::Invalid, vec![opened.clone()]);
    assert_eq!((outcome, asked), (Ok(first), 0));
    let by_installation = inbox.update(3, &[Step::Add(&Account::new(3), &Installation::new(2))]);
    assert!(world.publish(vec![by_installation]).is_ok());
}

// API-223
#[test]
fn more_wallet_signatures_than_allowed_are_too_large_and_no_chain_is_asked() {
    let limits = Limits {
        max_scw_signatures: 2,
        ..Limits::default()
    };
    let world = World::with(Configuration {
        shard_count: 4,
        limits,
        ..Configuration::default()
    });
    let wallet = Wallet::new(1, 0x11);
    let inbox = Inbox::of(&wallet, 0);
    let many = [
        Step::Create(&wallet, 0),
        Step::Add(&Installation::new(2), &wallet),
        Step::Add(&Installation::new(3), &wallet),
    ];
    let oracle = Rc::new(Oracle {
        verdict: WalletVerdict::Valid,
        asked: RefCell::default(),
    });
    let client = world.client_with(Rc::clone(&oracle) as Rc<dyn Chains>);
    let outcome = world.run(publish(
        &client,
        vec![message(&group(1), "x"), inbox.update(1, &many)],
    ));
    assert_eq!(refused(outcome), (Some(1), Reason::TooLarge));
    assert!(oracle.asked.borrow().is_empty());
    assert!(
        world
            .run(publish(&client, vec![inbox.update(1, &many[..2])]))
            .is_ok()
    );
}

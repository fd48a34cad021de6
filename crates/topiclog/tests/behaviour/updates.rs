//! Identity updates: what they are judged against, and what is stored of them.

use conclave_envelope::Limits;
use conclave_identity::building::{Account, Installation, Signer, Step, update};
use conclave_proto::xmtp::{
    backend::v1::{ClientEnvelope, client_envelope::Payload, publish_error::Reason},
    identity::associations::{IdentityUpdate, identity_action::Kind},
};
use conclave_topiclog::Configuration;

use crate::{
    client::{group, group_topic, message},
    identities::{ETHEREUM, Inbox, additions, enveloped, key_package, log_of, package, refused},
    world::World,
};

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
    let changed = |change: &dyn Fn(&mut IdentityUpdate)| {
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

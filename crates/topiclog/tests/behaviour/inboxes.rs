//! GetInboxIds by identifier.

use conclave_envelope::Limits;
use conclave_grpc_web::Code;
use conclave_identity::building::{Account, Installation, Passkey, Signer, Step};
use conclave_topiclog::Configuration;

use crate::{
    identities::{ETHEREUM, HANDLE, Inbox, PASSKEY},
    world::World,
};

// API-270
#[test]
fn an_answer_has_the_order_of_the_request_and_echoes_it() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let (owner, passkey, key) = (Account::new(1), Passkey::new(3), Installation::new(4));
        let inbox = world.open(&owner, 0);
        let other = world.open(&Account::new(2), 0);
        let steps = [
            Step::Add(&passkey, &owner),
            Step::Add(&key, &owner),
            Step::Claim("alice", &owner),
        ];
        world.publish(vec![inbox.update(2, &steps)]).expect("added");
        let address = owner.identifier().to_string();
        let mixed = address.to_uppercase();
        let passkey = passkey.identifier().to_string();
        let other_address = Account::new(2).identifier().to_string();
        let found = world
            .try_look_up(&[
                (&mixed, ETHEREUM),
                ("0x0000000000000000000000000000000000000000", ETHEREUM),
                (&passkey, PASSKEY),
                (&passkey.to_uppercase(), PASSKEY),
                ("AlicE", HANDLE),
                (&other_address, 0),
                (&address, ETHEREUM),
                // An installation resolves to no inbox, nor does what is no identifier of its kind.
                (&key.identifier().to_string(), PASSKEY),
                (&passkey, ETHEREUM),
                ("not hexadecimal", PASSKEY),
                (&address, 99),
                (&mixed, ETHEREUM),
            ])
            .expect("found");
        let (inbox, other) = (Some(inbox.id), Some(other.id));
        let expected = [
            &inbox, &None, &inbox, &inbox, &inbox, &other, &inbox, &None, &None, &None, &None, &inbox,
        ];
        assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        assert_eq!(world.try_look_up(&[]), Ok(vec![]));
    }
}

// API-270
#[test]
fn the_latest_live_association_wins_and_revoking_it_brings_back_the_one_before() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let (owner, recovery) = (Account::new(1), Account::new(2));
        let address = owner.identifier().to_string();
        let inboxes: Vec<Inbox> = (0..3).map(|nonce| world.open(&owner, nonce)).collect();
        let found = || world.look_up(&address, ETHEREUM);
        assert_eq!(found(), Some(inboxes[2].id.clone()));
        let revoke = |inbox: &Inbox, seconds| {
            let update = inbox.update(seconds, &[Step::Revoke(owner.identifier(), &owner)]);
            world.publish(vec![update.clone()]).expect("revoked");
            update
        };
        let first_revocation = revoke(&inboxes[2], 2);
        assert_eq!(found(), Some(inboxes[1].id.clone()));
        revoke(&inboxes[0], 3);
        assert_eq!(
            found(),
            Some(inboxes[1].id.clone()),
            "an older one changes nothing"
        );
        // The owner is still the recovery identifier, and adds itself again by way of another account.
        let again = [Step::Add(&recovery, &owner), Step::Add(&owner, &recovery)];
        world
            .publish(vec![inboxes[2].update(4, &again)])
            .expect("added again");
        assert_eq!(found(), Some(inboxes[2].id.clone()));
        // A late copy of an earlier update changes nothing.
        world.publish(vec![first_revocation]).expect("a duplicate");
        assert_eq!(found(), Some(inboxes[2].id.clone()));
        revoke(&inboxes[2], 5);
        revoke(&inboxes[1], 6);
        assert_eq!(found(), None);
        assert_eq!(
            world.look_up(&recovery.identifier().to_string(), 0),
            Some(inboxes[2].id.clone())
        );
    }
}

// API-270
#[test]
fn the_recovery_identifier_alone_resolves_to_nothing() {
    let world = World::new(4);
    let (owner, recovery) = (Account::new(1), Account::new(2));
    let inbox = world.open(&owner, 0);
    let named = inbox.update(2, &[Step::Recovery(recovery.identifier(), &owner)]);
    world.publish(vec![named]).expect("named");
    assert_eq!(world.look_up(&recovery.identifier().to_string(), ETHEREUM), None);
}

// API-220, API-270
#[test]
fn a_refused_update_leaves_no_trace_in_lookups() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let (owner, added) = (Account::new(1), Account::new(2));
        let inbox = world.open(&owner, 0);
        let stranger = Account::new(9);
        let update = inbox.update(2, &[Step::Add(&added, &owner), Step::Claim("alice", &stranger)]);
        assert!(world.publish(vec![update]).is_err());
        assert_eq!(world.look_up(&added.identifier().to_string(), ETHEREUM), None);
        assert_eq!(world.look_up("alice", HANDLE), None);
    }
}

// API-281
#[test]
fn more_entries_than_the_limit_are_an_invalid_argument() {
    let limits = Limits {
        max_lookup_identifiers: 3,
        ..Limits::default()
    };
    let world = World::with(Configuration {
        shard_count: 4,
        limits,
        ..Configuration::default()
    });
    assert!(world.try_look_up(&[("a", ETHEREUM); 3]).is_ok());
    let refused = world.try_look_up(&[("a", ETHEREUM); 4]).expect_err("too many");
    assert_eq!(refused.code, Code::InvalidArgument);
}

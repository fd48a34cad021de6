//! The association rules, each broken alone.

use conclave_identity::{
    Change, MemberIdentifier, Refusal, inbox_id, state::StateError, update::StructureError,
};
use conclave_proto::xmtp::identity::associations::{self as wire, identity_action::Kind, member_identifier};

use crate::support::{Account, Installation, Log, Passkey, Signer, Step, refusal, update};

fn inbox_of(signer: &dyn Signer) -> String {
    inbox_id::derive(&signer.identifier(), 0)
}

/// A log opened by an account, and the inbox's id.
fn opened_by(account: &Account) -> (Log, String) {
    let inbox = inbox_of(account);
    let mut log = Log::default();
    log.publish(&update(&inbox, 1, &[Step::Create(account, 0)]))
        .expect("it opens");
    (log, inbox)
}

fn state_error(log: &mut Log, inbox: &str, time: u64, steps: &[Step<'_>]) -> StateError {
    match refusal(log.publish(&update(inbox, time, steps))) {
        Refusal::State(error) => error,
        other => panic!("{other}"),
    }
}

// API-230
#[test]
fn an_account_or_a_passkey_adds_every_kind_and_an_installation_all_but_installations() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    let (passkey, installation) = (Passkey::new(2), Installation::new(3));
    for (time, step) in [
        (2, Step::Add(&passkey, &owner)),
        (3, Step::Add(&installation, &passkey)),
        (4, Step::Add(&Account::new(4), &passkey)),
        (5, Step::Add(&Passkey::new(5), &passkey)),
        (6, Step::Add(&Account::new(6), &installation)),
        (7, Step::Add(&Passkey::new(7), &installation)),
        (8, Step::Add(&Installation::new(8), &owner)),
    ] {
        log.publish(&update(&inbox, time, &[step])).expect("it adds");
    }
    assert_eq!(log.members().len(), 8);
    assert_eq!(
        state_error(
            &mut log,
            &inbox,
            9,
            &[Step::Add(&Installation::new(9), &installation)]
        ),
        StateError::InstallationAddsInstallation
    );
}

// API-230
#[test]
fn an_addition_names_one_who_signs_and_is_no_member() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    let stranger = Account::new(2);
    let mut error = |time, step: Step<'_>| state_error(&mut log, &inbox, time, &[step]);
    assert_eq!(error(2, Step::Add(&owner, &owner)), StateError::AddsItself);
    assert_eq!(error(3, Step::Add(&stranger, &stranger)), StateError::AddsItself);
    assert_eq!(
        error(4, Step::Add(&Account::new(3), &stranger)),
        StateError::UnknownSigner
    );
    log.publish(&update(&inbox, 5, &[Step::Add(&stranger, &owner)]))
        .expect("it adds");
    assert_eq!(
        state_error(&mut log, &inbox, 6, &[Step::Add(&stranger, &owner)]),
        StateError::IsMember
    );
    // The signature of another account in place of the new member's.
    let mut forged = update(&inbox, 7, &[Step::Add(&Account::new(3), &owner)]);
    if let Some(Kind::Add(add)) = &mut forged.actions[0].kind {
        add.new_member_signature = add.existing_member_signature.clone();
    }
    assert_eq!(
        refusal(log.publish(&forged)),
        Refusal::State(StateError::NotSignedByNew)
    );
}

// API-230
#[test]
fn an_inbox_opens_once_by_its_own_identifier_and_under_its_own_id() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    assert_eq!(
        state_error(&mut log, &inbox, 2, &[Step::Create(&owner, 0)]),
        StateError::Exists
    );
    let other = inbox_id::derive(&owner.identifier(), 1);
    let mut empty = Log::default();
    assert_eq!(
        state_error(&mut empty, &other, 1, &[Step::Create(&owner, 0)]),
        StateError::WrongInbox
    );
    assert_eq!(
        state_error(
            &mut empty,
            &inbox,
            1,
            &[Step::Create(&owner, 0), Step::Create(&owner, 0)]
        ),
        StateError::Exists
    );
    let revoke_first = [Step::Revoke(owner.identifier(), &owner), Step::Create(&owner, 0)];
    assert_eq!(
        state_error(&mut empty, &inbox, 1, &revoke_first),
        StateError::NoInbox
    );
    assert!(
        empty
            .publish(&update(&other, 1, &[Step::Create(&owner, 1)]))
            .is_ok()
    );
}

// API-230
#[test]
fn only_the_recovery_identifier_revokes_and_names_its_successor() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    let (member, next) = (Account::new(2), Passkey::new(3));
    log.publish(&update(&inbox, 2, &[Step::Add(&member, &owner)]))
        .expect("it adds");
    let revoke = |by| [Step::Revoke(owner.identifier(), by)];
    assert_eq!(
        state_error(&mut log, &inbox, 3, &revoke(&member)),
        StateError::NotRecovery
    );
    let change = [Step::Recovery(member.identifier(), &member)];
    assert_eq!(state_error(&mut log, &inbox, 4, &change), StateError::NotRecovery);
    log.publish(&update(&inbox, 5, &[Step::Recovery(next.identifier(), &owner)]))
        .expect("it changes");
    assert_eq!(
        state_error(&mut log, &inbox, 6, &revoke(&owner)),
        StateError::NotRecovery
    );
    // The recovery identifier is no member, and revokes all the same.
    log.publish(&update(&inbox, 7, &revoke(&next)))
        .expect("it revokes");
    log.publish(&update(&inbox, 8, &[Step::Revoke(member.identifier(), &next)]))
        .expect("it revokes");
    assert!(log.members().is_empty());
    // And adds a member to the empty inbox.
    log.publish(&update(&inbox, 9, &[Step::Add(&owner, &next)]))
        .expect("it adds");
    assert_eq!(log.members(), [owner.identifier().to_string()]);
}

// API-230
#[test]
fn revoking_a_member_takes_the_installations_it_added_and_no_one_else() {
    let (owner, member) = (Account::new(1), Account::new(2));
    let (mut log, inbox) = opened_by(&owner);
    let (own, others) = (Installation::new(3), Installation::new(4));
    let (added_passkey, below) = (Passkey::new(5), Passkey::new(6));
    log.publish(&update(
        &inbox,
        2,
        &[
            Step::Add(&member, &owner),
            Step::Add(&own, &member),
            Step::Add(&others, &owner),
            Step::Add(&added_passkey, &member),
            Step::Add(&below, &own),
        ],
    ))
    .expect("it adds");
    let validated = log
        .publish(&update(&inbox, 3, &[Step::Revoke(member.identifier(), &owner)]))
        .expect("it revokes");
    let left = [&owner as &dyn Signer, &others, &added_passkey, &below].map(Signer::identifier);
    assert!(
        log.state()
            .members()
            .keys()
            .eq(&std::collections::BTreeSet::from(left.clone()))
    );
    assert_eq!(validated.changes.len(), 1);
    // Revoking an installation leaves what it added.
    log.publish(&update(&inbox, 4, &[Step::Revoke(own.identifier(), &owner)]))
        .expect("it revokes");
    assert_eq!(log.state().members().len(), left.len());
}

// API-270
#[test]
fn who_is_revoked_and_added_again_in_one_update_is_newly_associated() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    let member = Passkey::new(2);
    let mut changes = |time, steps: &[Step<'_>]| -> Vec<Change> {
        let validated = log.publish(&update(&inbox, time, steps)).expect("sound");
        validated.changes.iter().map(|change| change.change).collect()
    };
    let revoke = || Step::Revoke(member.identifier(), &owner);
    let add = || Step::Add(&member, &owner);
    assert_eq!(changes(2, &[add()]), [Change::Added]);
    assert_eq!(changes(3, &[revoke(), add()]), [Change::Added]);
    assert_eq!(changes(4, &[revoke()]), [Change::Revoked]);
    assert_eq!(changes(5, &[add(), revoke()]), []);
    assert_eq!(changes(6, &[add(), revoke(), add()]), [Change::Added]);
    assert_eq!(changes(7, &[revoke(), add(), revoke()]), [Change::Revoked]);
}

// API-230
#[test]
fn a_signature_serves_one_update() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    let member = Account::new(2);
    let add = update(
        &inbox,
        2,
        &[Step::Add(&member, &owner), Step::Add(&Passkey::new(3), &owner)],
    );
    log.publish(&add).expect("one signature for two actions");
    log.publish(&update(&inbox, 3, &[Step::Revoke(member.identifier(), &owner)]))
        .expect("it revokes");
    assert_eq!(refusal(log.publish(&add)), Refusal::State(StateError::Replayed));
    log.publish(&update(&inbox, 4, &[Step::Add(&member, &owner)]))
        .expect("a fresh signature");
}

// API-230
#[test]
fn an_update_that_fails_at_its_last_action_changes_nothing() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    let before = log.state();
    let steps = [
        Step::Add(&Account::new(2), &owner),
        Step::Add(&Account::new(2), &owner),
    ];
    assert_eq!(state_error(&mut log, &inbox, 2, &steps), StateError::IsMember);
    assert_eq!(log.state(), before);
    log.publish(&update(&inbox, 2, &steps[..1]))
        .expect("its signatures are not used up");
}

// API-230
#[test]
fn an_update_has_the_structure_of_one() {
    let owner = Account::new(1);
    let inbox = inbox_of(&owner);
    let sound = update(
        &inbox,
        1,
        &[Step::Create(&owner, 0), Step::Add(&Account::new(2), &owner)],
    );
    let with = |change: &dyn Fn(&mut wire::IdentityUpdate)| {
        let mut changed = sound.clone();
        change(&mut changed);
        match refusal(Log::default().publish(&changed)) {
            Refusal::Structure(error) => error,
            other => panic!("{other}"),
        }
    };
    fn add(update: &mut wire::IdentityUpdate) -> &mut wire::AddAssociation {
        match &mut update.actions[1].kind {
            Some(Kind::Add(add)) => add,
            _ => panic!("the second action adds"),
        }
    }
    fn create(update: &mut wire::IdentityUpdate) -> &mut wire::CreateInbox {
        match &mut update.actions[0].kind {
            Some(Kind::CreateInbox(create)) => create,
            _ => panic!("the first action opens"),
        }
    }
    assert_eq!(with(&|update| update.actions.clear()), StructureError::NoActions);
    assert_eq!(
        with(&|update| update.actions[1].kind = None),
        StructureError::NoKind { action: 1 }
    );
    let identifier = StructureError::Identifier { action: 1 };
    assert_eq!(
        with(&|update| add(update).new_member_identifier = None),
        identifier
    );
    let no_kind = wire::MemberIdentifier { kind: None };
    assert_eq!(
        with(&|update| add(update).new_member_identifier = Some(no_kind.clone())),
        identifier
    );
    let upper = member_identifier::Kind::EthereumAddress(owner.identifier().to_string().to_uppercase());
    let upper = wire::MemberIdentifier { kind: Some(upper) };
    assert_eq!(
        with(&|update| add(update).new_member_identifier = Some(upper.clone())),
        identifier
    );
    let unsigned = StructureError::NoSignature { action: 1 };
    assert_eq!(with(&|update| add(update).new_member_signature = None), unsigned);
    let unset = wire::Signature { signature: None };
    assert_eq!(
        with(&|update| add(update).existing_member_signature = Some(unset.clone())),
        unsigned
    );
    for (kind, text) in [(3, "alice"), (2, "0x12"), (1, "03ab"), (99, "03ab")] {
        let identifier = StructureError::Identifier { action: 0 };
        assert_eq!(
            with(&|update| {
                create(update).initial_identifier_kind = kind;
                create(update).initial_identifier = text.to_owned();
            }),
            identifier
        );
    }
}

// API-230
#[test]
fn the_retired_delegated_signature_is_none() {
    use prost::Message as _;
    // Field 4 alone, of a message with anything in it.
    let delegated = wire::Signature::decode(&[0x22, 2, 0x0a, 0][..]).expect("an unknown field");
    assert_eq!(delegated.signature, None);
}

// API-230
#[test]
fn keys_of_any_length_may_be_named_for_revocation() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    for (time, named) in [
        (2, MemberIdentifier::Installation(vec![1, 2, 3].into())),
        (3, MemberIdentifier::Passkey(vec![].into())),
    ] {
        log.publish(&update(&inbox, time, &[Step::Revoke(named, &owner)]))
            .expect("it revokes no one");
    }
    assert_eq!(log.members().len(), 1);
}

// API-230
#[test]
fn a_relying_party_is_no_part_of_a_passkey() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    let passkey = Passkey::new(2);
    let with_relying_party = |seconds| {
        let mut add = update(&inbox, seconds, &[Step::Add(&passkey, &owner)]);
        if let Some(Kind::Add(add)) = &mut add.actions[0].kind
            && let Some(member_identifier::Kind::Passkey(passkey)) = add
                .new_member_identifier
                .as_mut()
                .and_then(|member| member.kind.as_mut())
        {
            passkey.relying_party = Some(format!("{seconds}.example"));
            add.relying_party = Some("any".to_owned());
        }
        add
    };
    log.publish(&with_relying_party(2)).expect("it adds");
    let refused = refusal(log.publish(&with_relying_party(3)));
    assert_eq!(refused, Refusal::State(StateError::IsMember));
}

// API-230
#[test]
fn a_retired_signature_beside_a_listed_one_is_not_seen() {
    use prost::Message as _;
    let owner = Account::new(1);
    let inbox = inbox_of(&owner);
    let sound = update(&inbox, 1, &[Step::Create(&owner, 0)]);
    let Some(Kind::CreateInbox(create)) = &sound.actions[0].kind else {
        panic!("it opens")
    };
    let listed = create.initial_identifier_signature.clone().expect("it is signed");
    for bytes in [
        [listed.encode_to_vec(), vec![0x22, 2, 0x0a, 0]].concat(),
        [vec![0x22, 2, 0x0a, 0], listed.encode_to_vec()].concat(),
    ] {
        assert_eq!(wire::Signature::decode(&bytes[..]), Ok(listed.clone()));
    }
}

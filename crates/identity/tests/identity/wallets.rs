//! Smart contract wallets: chains, verdicts, and what an outage is not.

use conclave_identity::{
    Candidate, IdentityFailure, MemberIdentifier, Refusal, WalletVerdict, inbox_id, state::StateError,
};
use conclave_proto::xmtp::{
    backend::v1::publish_error::Reason,
    identity::associations::{self as wire, identity_action::Kind, signature::Signature},
};

use crate::support::{Account, Installation, Log, Signer, Step, Wallet, reason, refusal, update};

fn inbox_of(signer: &dyn Signer) -> String {
    inbox_id::derive(&signer.identifier(), 0)
}

fn create(wallet: &Wallet) -> wire::IdentityUpdate {
    update(
        &inbox_of(wallet),
        1,
        &[Step::Create(wallet, 0), Step::Add(&Installation::new(1), wallet)],
    )
}

// API-231
#[test]
fn each_verdict_has_its_outcome() {
    let wallet = Wallet::new(10, 0x11);
    let judge = |verdict| {
        Log {
            verdict,
            ..Log::default()
        }
        .publish(&create(&wallet))
    };
    let state = judge(WalletVerdict::Valid).expect("sound").state;
    assert_eq!(state.members()[&wallet.identifier()].chain_id, Some(10));
    assert_eq!(state.recovery_chain_id(), Some(10));
    assert_eq!(reason(judge(WalletVerdict::Invalid)), Reason::InvalidSignature);
    assert_eq!(
        reason(judge(WalletVerdict::BlockNotFresh)),
        Reason::InvalidIdentityUpdate
    );
    let outage = judge(WalletVerdict::Unavailable);
    assert!(matches!(
        outage,
        Err(IdentityFailure::NoVerdict { block_number: 7, .. })
    ));
}

// API-231
#[test]
fn a_wallet_is_asked_once_about_one_signature_and_never_for_a_hopeless_update() {
    let wallet = Wallet::new(10, 0x11);
    let candidate = Candidate::begin(&create(&wallet), [0; 32], 0, 256).expect("sound so far");
    let questions = candidate.wallet_questions();
    assert_eq!(questions.len(), 1, "two actions carry the same signature");
    assert_eq!(
        (questions[0].account.chain_id, questions[0].account.address),
        (10, wallet.address)
    );
    let mut hopeless = create(&wallet);
    if let Some(Kind::Add(add)) = &mut hopeless.actions[1].kind {
        add.new_member_signature = Some(wire::Signature {
            signature: Some(Signature::InstallationKey(
                wire::RecoverableEd25519Signature::default(),
            )),
        });
    }
    let refused = Candidate::begin(&hopeless, [0; 32], 0, 256).expect_err("a local signature fails first");
    assert_eq!(refused.reason(), Reason::InvalidSignature);
}

// API-230
#[test]
fn a_malformed_account_id_is_an_invalid_signature_without_a_question() {
    let wallet = Wallet::new(10, 0x11);
    for account_id in [
        "",
        "eip155:010:0x1111111111111111111111111111111111111111",
        "cosmos:x",
    ] {
        let mut malformed = update(&inbox_of(&wallet), 1, &[Step::Create(&wallet, 0)]);
        if let Some(Kind::CreateInbox(create)) = &mut malformed.actions[0].kind
            && let Some(Signature::Erc6492(signature)) = create
                .initial_identifier_signature
                .as_mut()
                .and_then(|of| of.signature.as_mut())
        {
            signature.account_id = account_id.to_owned();
        }
        assert_eq!(
            reason(Log::default().publish(&malformed)),
            Reason::InvalidSignature
        );
    }
}

// API-231
#[test]
fn an_outage_does_not_stop_an_inbox_whose_stored_updates_a_wallet_signed() {
    let wallet = Wallet::new(10, 0x11);
    let inbox = inbox_of(&wallet);
    let account = Account::new(2);
    let mut log = Log::default();
    log.publish(&create(&wallet)).expect("sound");
    log.publish(&update(&inbox, 2, &[Step::Add(&account, &wallet)]))
        .expect("sound");
    log.verdict = WalletVerdict::Unavailable;
    log.memo = conclave_identity::StateMemo::new(0);
    log.publish(&update(&inbox, 3, &[Step::Add(&Installation::new(3), &account)]))
        .expect("no chain is asked");
}

// API-230
#[test]
fn a_wallet_signs_on_the_chain_it_was_added_on() {
    let (here, there) = (Wallet::new(10, 0x11), Wallet::new(11, 0x11));
    let inbox = inbox_of(&here);
    let mut log = Log::default();
    log.publish(&create(&here)).expect("sound");
    let error = |log: &mut Log, time, step: Step<'_>| refusal(log.publish(&update(&inbox, time, &[step])));
    let other_chain = Refusal::State(StateError::OtherChain);
    assert_eq!(
        error(&mut log, 2, Step::Add(&Account::new(2), &there)),
        other_chain
    );
    assert_eq!(
        error(&mut log, 3, Step::Revoke(here.identifier(), &there)),
        other_chain
    );
    assert_eq!(error(&mut log, 4, Step::Claim("alice", &there)), other_chain);
    log.publish(&update(&inbox, 5, &[Step::Add(&Account::new(2), &here)]))
        .expect("sound");
    // It stays the recovery identifier, with its chain, after it is revoked as a member.
    log.publish(&update(&inbox, 6, &[Step::Revoke(here.identifier(), &here)]))
        .expect("sound");
    assert_eq!(
        error(&mut log, 7, Step::Add(&Account::new(3), &there)),
        other_chain
    );
    log.publish(&update(&inbox, 8, &[Step::Add(&Account::new(3), &here)]))
        .expect("sound");
}

// API-230
#[test]
fn the_chain_of_a_recovery_identifier_is_that_of_the_member_it_is() {
    let owner = Account::new(1);
    let inbox = inbox_of(&owner);
    let wallet = Wallet::new(10, 0x11);
    let mut log = Log::default();
    log.publish(&update(&inbox, 1, &[Step::Create(&owner, 0)]))
        .expect("sound");
    let steps = [
        Step::Add(&wallet, &owner),
        Step::Recovery(wallet.identifier(), &owner),
    ];
    log.publish(&update(&inbox, 2, &steps)).expect("sound");
    assert_eq!(log.state().recovery_chain_id(), Some(10));
    log.publish(&update(&inbox, 3, &[Step::Revoke(owner.identifier(), &wallet)]))
        .expect("sound");
    // A wallet that is no member yet has no chain recorded, so its signatures fit none.
    let later = Wallet::new(10, 0x22);
    log.publish(&update(&inbox, 4, &[Step::Recovery(later.identifier(), &wallet)]))
        .expect("sound");
    assert_eq!(log.state().recovery_chain_id(), None);
    let revoke = |by| [Step::Revoke(MemberIdentifier::Ethereum(wallet.address), by)];
    let refused = refusal(log.publish(&update(&inbox, 5, &revoke(&later))));
    assert_eq!(refused, Refusal::State(StateError::OtherChain));
    // As a member it adds, and still cannot recover.
    log.publish(&update(&inbox, 6, &[Step::Add(&later, &wallet)]))
        .expect("sound");
    log.publish(&update(&inbox, 7, &[Step::Add(&Account::new(9), &later)]))
        .expect("it acts as a member");
    let refused = refusal(log.publish(&update(&inbox, 8, &revoke(&later))));
    assert_eq!(refused, Refusal::State(StateError::OtherChain));
}

//! Claims of handles within updates: who may sign, how many, and the checks that only a backend makes.

use conclave_identity::{
    HandleOwner, HandlePolicy, Refusal, WalletVerdict, inbox_id, state::StateError, update::StructureError,
};
use conclave_proto::xmtp::backend::v1::publish_error::Reason;

use crate::support::{
    Account, Installation, Log, Passkey, Signer, Step, WEEK_NS, Wallet, reason, refusal, update,
};

fn opened_by(signer: &dyn Signer) -> (Log, String) {
    let inbox = inbox_id::derive(&signer.identifier(), 0);
    let mut log = Log::default();
    log.publish(&update(&inbox, 1, &[Step::Create(signer, 0)]))
        .expect("it opens");
    (log, inbox)
}

fn handles(log: &mut Log) -> Vec<String> {
    log.state()
        .claims()
        .iter()
        .map(|claim| claim.handle.to_string())
        .collect()
}

// API-296, API-298
#[test]
fn any_member_claims_and_the_inbox_keeps_every_handle() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    let (installation, passkey) = (Installation::new(2), Passkey::new(3));
    let steps = [Step::Add(&installation, &owner), Step::Add(&passkey, &owner)];
    log.publish(&update(&inbox, 2, &steps)).expect("it adds");
    for (time, handle, by) in [
        (3, "alice", &owner as &dyn Signer),
        (4, "alice.42", &installation),
        (5, "bob", &passkey),
    ] {
        let validated = log
            .publish(&update(&inbox, time, &[Step::Claim(handle, by)]))
            .expect("it claims");
        assert_eq!(
            validated
                .claimed_handle
                .map(|handle| handle.to_string())
                .as_deref(),
            Some(handle)
        );
        log.now_ns += WEEK_NS;
    }
    assert_eq!(handles(&mut log), ["alice", "alice.42", "bob"]);
    // The inbox's own handle once more is a claim like any other.
    log.handle_owner = HandleOwner::SameInbox;
    log.publish(&update(&inbox, 6, &[Step::Claim("alice", &owner)]))
        .expect("it claims");
    assert_eq!(handles(&mut log), ["alice", "alice.42", "bob", "alice"]);
}

// API-230
#[test]
fn only_members_claim() {
    let (owner, recovery) = (Account::new(1), Account::new(2));
    let (mut log, inbox) = opened_by(&owner);
    log.publish(&update(
        &inbox,
        2,
        &[Step::Recovery(recovery.identifier(), &owner)],
    ))
    .expect("it changes");
    for (time, signer) in [(3, &recovery), (4, &Account::new(3))] {
        let refused = refusal(log.publish(&update(&inbox, time, &[Step::Claim("alice", signer)])));
        assert_eq!(refused, Refusal::State(StateError::ClaimNotByMember));
    }
    let refused = refusal(Log::default().publish(&update(&inbox, 1, &[Step::Claim("alice", &owner)])));
    assert_eq!(refused, Refusal::State(StateError::NoInbox));
}

// API-230
#[test]
fn an_update_claims_one_well_formed_handle() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    let mut upper = update(&inbox, 2, &[Step::Claim("alice", &owner)]);
    if let Some(conclave_proto::xmtp::identity::associations::identity_action::Kind::ClaimHandle(claim)) =
        &mut upper.actions[0].kind
    {
        claim.handle = "Alice".to_owned();
    }
    assert_eq!(
        refusal(log.publish(&upper)),
        Refusal::Structure(StructureError::Handle { action: 0 })
    );
    let mut two = update(&inbox, 3, &[Step::Claim("alice", &owner)]);
    two.actions.push(two.actions[0].clone());
    assert_eq!(
        refusal(log.publish(&two)),
        Refusal::Structure(StructureError::TooManyClaims)
    );
    assert_eq!(reason(log.publish(&two)), Reason::InvalidIdentityUpdate);
}

// API-296, API-297, API-298
#[test]
fn each_check_of_a_claim_has_its_reason() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    let claim = |time, handle| update(&inbox, time, &[Step::Claim(handle, &owner)]);
    log.handle_owner = HandleOwner::OtherInbox;
    assert_eq!(reason(log.publish(&claim(2, "alice"))), Reason::HandleTaken);
    log.handle_owner = HandleOwner::Nobody;
    assert_eq!(
        reason(log.publish(&claim(3, "support"))),
        Reason::HandleNotAllowed
    );
    assert_eq!(reason(log.publish(&claim(4, "al"))), Reason::HandleNotAllowed);
    log.publish(&claim(5, "alice")).expect("it claims");
    let claimed_ns = log.now_ns;
    // Updates without a claim do not start the wait anew.
    log.now_ns = claimed_ns + WEEK_NS - 1;
    log.publish(&update(&inbox, 6, &[Step::Add(&Account::new(2), &owner)]))
        .expect("it adds");
    assert_eq!(reason(log.publish(&claim(7, "bob"))), Reason::HandleTooSoon);
    log.now_ns = claimed_ns + WEEK_NS;
    log.publish(&claim(8, "bob")).expect("it claims");
}

// API-297, API-299
#[test]
fn a_policy_that_became_stricter_leaves_stored_claims_alone() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    log.publish(&update(&inbox, 2, &[Step::Claim("alice", &owner)]))
        .expect("it claims");
    log.handles = HandlePolicy::new(20, ["alice"]);
    log.now_ns += WEEK_NS;
    log.publish(&update(&inbox, 3, &[Step::Add(&Account::new(2), &owner)]))
        .expect("the log still applies");
    assert_eq!(handles(&mut log), ["alice"]);
    log.handle_owner = HandleOwner::SameInbox;
    assert_eq!(
        reason(log.publish(&update(&inbox, 4, &[Step::Claim("alice", &owner)]))),
        Reason::HandleNotAllowed
    );
}

// API-296
#[test]
fn a_claim_that_also_breaks_a_rule_of_the_state_is_refused_for_the_handle() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    let claim = update(&inbox, 2, &[Step::Claim("alice", &Account::new(2))]);
    log.handle_owner = HandleOwner::OtherInbox;
    assert_eq!(reason(log.publish(&claim)), Reason::HandleTaken);
    log.handle_owner = HandleOwner::Nobody;
    assert_eq!(reason(log.publish(&claim)), Reason::InvalidIdentityUpdate);
}

// API-296
#[test]
fn an_invalid_signature_outweighs_a_taken_handle_and_that_a_stale_block() {
    let wallet = Wallet::new(1, 0x11);
    let (mut log, inbox) = opened_by(&wallet);
    let claim = update(&inbox, 2, &[Step::Claim("alice", &wallet)]);
    log.handle_owner = HandleOwner::OtherInbox;
    log.verdict = WalletVerdict::Invalid;
    assert_eq!(reason(log.publish(&claim)), Reason::InvalidSignature);
    log.verdict = WalletVerdict::BlockNotFresh;
    assert_eq!(reason(log.publish(&claim)), Reason::HandleTaken);
    log.handle_owner = HandleOwner::Nobody;
    assert_eq!(reason(log.publish(&claim)), Reason::InvalidIdentityUpdate);
}

// API-230
#[test]
fn an_inbox_has_64_claims() {
    let owner = Account::new(1);
    let (mut log, inbox) = opened_by(&owner);
    for time in 0..64 {
        log.now_ns += WEEK_NS;
        log.publish(&update(&inbox, 2 + time, &[Step::Claim("alice", &owner)]))
            .expect("it claims");
    }
    log.now_ns += WEEK_NS;
    let refused = refusal(log.publish(&update(&inbox, 100, &[Step::Claim("alice", &owner)])));
    assert_eq!(refused, Refusal::State(StateError::TooManyClaims));
    log.publish(&update(&inbox, 101, &[Step::Add(&Account::new(2), &owner)]))
        .expect("other updates go on");
}

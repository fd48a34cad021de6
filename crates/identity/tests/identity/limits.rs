//! The bounds of an update and of a log.

use conclave_identity::{Refusal, check_bounds, inbox_id};
use conclave_proto::xmtp::backend::v1::publish_error::Reason;

use crate::support::{Account, Log, Signer, Step, Wallet, reason, update};

// API-234
#[test]
fn a_full_log_takes_no_update_whatever_it_is() {
    let owner = Account::new(1);
    let inbox = inbox_id::derive(&owner.identifier(), 0);
    let mut log = Log {
        max_identity_entries: 3,
        ..Log::default()
    };
    log.publish(&update(&inbox, 1, &[Step::Create(&owner, 0)]))
        .expect("it opens");
    for seed in [2, 3] {
        log.publish(&update(
            &inbox,
            seed.into(),
            &[Step::Add(&Account::new(seed), &owner)],
        ))
        .expect("it adds");
    }
    let fourth = update(&inbox, 4, &[Step::Add(&Account::new(4), &owner)]);
    assert_eq!(reason(log.publish(&fourth)), Reason::InvalidIdentityUpdate);
    log.max_identity_entries = 4;
    log.publish(&fourth).expect("there is room now");
}

// API-230
#[test]
fn wallet_signatures_are_counted_in_every_position() {
    let wallet = Wallet::new(1, 0x11);
    let member = Wallet::new(1, 0x22);
    let inbox = inbox_id::derive(&wallet.identifier(), 0);
    let all = update(
        &inbox,
        1,
        &[
            Step::Create(&wallet, 0),
            Step::Add(&member, &wallet),
            Step::Add(&Account::new(3), &wallet),
            Step::Revoke(member.identifier(), &wallet),
            Step::Recovery(member.identifier(), &wallet),
            Step::Claim("alice", &wallet),
        ],
    );
    assert_eq!(check_bounds(&all, 7), Ok(()));
    let refused = check_bounds(&all, 6).expect_err("seven");
    assert_eq!(refused, Refusal::TooManyWalletSignatures { actual: 7, max: 6 });
    assert_eq!(refused.reason(), Reason::TooLarge);
    let accounts = update(&inbox, 1, &[Step::Create(&Account::new(1), 0)]);
    assert_eq!(check_bounds(&accounts, 0), Ok(()));
}

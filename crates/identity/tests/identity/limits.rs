//! The bound of a log.

use conclave_identity::inbox_id;
use conclave_proto::xmtp::backend::v1::publish_error::Reason;

use crate::support::{Account, Log, Signer, Step, reason, update};

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

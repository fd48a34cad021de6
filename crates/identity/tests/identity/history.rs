//! Histories: what is replayed, what is remembered, and what a damaged one is.

use bytes::Bytes;
use conclave_identity::{
    AssociationState, History, HistoryEntry, IdentityFailure, MemberIdentifier, StateMemo, inbox_id,
    memo::PrefixHash,
};
use conclave_proto::xmtp::identity::associations::IdentityUpdate;
use proptest::prelude::*;
use prost::Message as _;

use crate::support::{Account, Installation, Log, Passkey, Signer, Step, replay, update};

/// A log of this many updates.
fn log_of(entries: u8) -> (Log, Account, String) {
    let owner = Account::new(1);
    let inbox = inbox_id::derive(&owner.identifier(), 0);
    let mut log = Log::default();
    log.publish(&update(&inbox, 1, &[Step::Create(&owner, 0)]))
        .expect("it opens");
    for seed in 2..=entries {
        let step = Step::Add(&Installation::new(seed), &owner);
        log.publish(&update(&inbox, seed.into(), &[step]))
            .expect("it adds");
    }
    (log, owner, inbox)
}

fn replayed(history: &[HistoryEntry], memo: &mut StateMemo) -> AssociationState {
    let history = replay(history, memo).expect("sound");
    history.state().expect("open").clone()
}

// API-232
#[test]
fn a_history_is_judged_from_what_was_verified_before() {
    let (log, _, _) = log_of(6);
    let mut memo = StateMemo::new(1 << 20);
    let expected = replayed(&log.history, &mut StateMemo::new(0));
    assert_eq!(expected.entries(), 6);
    replayed(&log.history[..4], &mut memo);
    // The verified entries are not read again: nothing is left of them but their hashes.
    let mut hollow = log.history.clone();
    for entry in &mut hollow[..4] {
        entry.stored = bytes::Bytes::new();
    }
    assert_eq!(replayed(&hollow, &mut memo), expected);
    for entry in &mut hollow {
        entry.stored = bytes::Bytes::new();
    }
    assert_eq!(replayed(&hollow, &mut memo), expected);
}

// API-232
#[test]
fn a_history_read_in_pages_is_the_same_history_wherever_they_end() {
    let (log, _, _) = log_of(5);
    let whole = replay(&log.history, &mut StateMemo::new(0)).expect("sound");
    for budget in [0, 1 << 20] {
        let mut memo = StateMemo::new(budget);
        for first in 0..=5 {
            for second in first..=5 {
                let mut history = History::default();
                for page in [
                    &log.history[..first],
                    &log.history[first..second],
                    &log.history[second..],
                ] {
                    history.extend(page, &mut memo).expect("sound");
                }
                assert_eq!(history.state(), whole.state());
                assert_eq!((history.prefix(), history.entries()), (whole.prefix(), 5));
            }
        }
    }
    let mut damaged = log.history.clone();
    damaged[4].stored = bytes::Bytes::new();
    let mut history = History::default();
    history
        .extend(&damaged[..3], &mut StateMemo::new(0))
        .expect("sound");
    assert!(matches!(
        history.extend(&damaged[3..], &mut StateMemo::new(0)),
        Err(IdentityFailure::DamagedHistory { entry: 4, .. })
    ));
}

// API-232
#[test]
fn another_history_has_another_memory() {
    let (log, _, _) = log_of(3);
    let mut memo = StateMemo::new(1 << 20);
    replayed(&log.history, &mut memo);
    let mut other = log.history.clone();
    other[1].message_hash[0] ^= 1;
    other[2].stored = bytes::Bytes::new();
    assert!(replay(&other, &mut memo).is_err(), "it shares one entry only");
    let swapped = PrefixHash::EMPTY.then(&[1; 32]).then(&[2; 32]);
    assert_ne!(swapped, PrefixHash::EMPTY.then(&[2; 32]).then(&[1; 32]));
}

/// A state is remembered as long as it fits, so what it holds must be its own, and counted.
#[test]
fn what_is_remembered_of_updates_is_a_copy_and_is_counted() {
    let (mut log, owner, inbox) = log_of(1);
    let steps = [
        Step::Add(&Installation::new(2), &owner),
        Step::Add(&Passkey::new(3), &owner),
        Step::Add(&Account::new(4), &Installation::new(2)),
    ];
    let received = Bytes::from(update(&inbox, 2, &steps).encode_to_vec());
    let decoded = IdentityUpdate::decode(received.clone()).expect("an update");
    assert!(!received.is_unique(), "decoding copies no keys");
    log.publish(&decoded).expect("it adds");
    drop(decoded);
    assert_eq!(log.state().members().len(), 4);
    assert!(received.is_unique(), "something remembers a part of the request");

    let before = log.state().approximate_bytes();
    let anything = MemberIdentifier::passkey(&[7; 100_000]);
    log.publish(&update(&inbox, 3, &[Step::Recovery(anything, &owner)]))
        .expect("whoever recovers need not sign");
    assert!(log.state().approximate_bytes() > before + 100_000);
}

// API-232
#[test]
fn an_admitted_update_is_not_verified_again_once_it_is_stored() {
    let (mut log, owner, inbox) = log_of(2);
    let next = update(&inbox, 9, &[Step::Add(&Account::new(9), &owner)]);
    log.publish(&next).expect("it adds");
    for entry in &mut log.history {
        entry.stored = bytes::Bytes::new();
    }
    assert_eq!(log.state().entries(), 3);
}

#[test]
fn a_damaged_history_is_neither_a_refusal_nor_passed_over() {
    let (log, owner, inbox) = log_of(3);
    for (damage, name) in [
        (bytes::Bytes::from_static(&[0xff]), "it does not decode"),
        (bytes::Bytes::new(), "no identity update"),
        (log.history[0].stored.clone(), "exists already"),
    ] {
        let mut damaged = Log {
            history: log.history.clone(),
            ..Log::default()
        };
        damaged.history[1].stored = damage;
        let failure = damaged.publish(&update(&inbox, 9, &[Step::Add(&Account::new(9), &owner)]));
        let Err(IdentityFailure::DamagedHistory { entry: 1, problem }) = failure else {
            panic!("{failure:?}");
        };
        assert!(problem.contains(name), "{problem}");
    }
}

#[test]
fn a_memo_keeps_within_its_budget_and_forgets_the_least_used() {
    let (log, _, _) = log_of(4);
    let prefix_hashes: Vec<PrefixHash> = log
        .history
        .iter()
        .scan(PrefixHash::EMPTY, |hash, entry| {
            *hash = hash.then(&entry.message_hash);
            Some(*hash)
        })
        .collect();
    let one = replayed(&log.history[..1], &mut StateMemo::new(0));
    let state = std::sync::Arc::new(one);
    // Room for two.
    let mut memo = StateMemo::new(2 * (state.approximate_bytes() + 256));
    memo.put(prefix_hashes[0], state.clone());
    memo.put(prefix_hashes[1], state.clone());
    assert!(memo.get(&prefix_hashes[0]).is_some());
    memo.put(prefix_hashes[2], state.clone());
    let kept = [0, 1, 2].map(|index: usize| memo.get(&prefix_hashes[index]).is_some());
    assert_eq!(kept, [true, false, true]);
    let mut none = StateMemo::new(0);
    none.put(prefix_hashes[0], state);
    assert!(none.get(&prefix_hashes[0]).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // API-230
    #[test]
    fn no_damage_to_a_sound_update_is_admitted_or_panics(at in 0usize..400, flip in 1u8..) {
        use prost::Message as _;
        let sound = crate::sequences::named("U2");
        let mut bytes = sound.encode_to_vec();
        let at = at % bytes.len();
        bytes[at] ^= flip;
        let Ok(damaged) = conclave_proto::xmtp::identity::associations::IdentityUpdate::decode(&bytes[..]) else {
            return Ok(());
        };
        // v may be written in two ways, and what no text or rule reads may be anything.
        let admitted = Log::default().publish(&damaged).is_ok();
        let same_text = conclave_identity::update::Update::parse(&damaged).ok().map(|update| update.signature_text())
            == conclave_identity::update::Update::parse(&sound).ok().map(|update| update.signature_text());
        prop_assert!(!admitted || same_text);
    }
}

//! The published sequences of updates: what each accepts, what each leaves, and why the others are refused.

use std::collections::BTreeMap;

use conclave_identity::{
    Change, IdentityFailure, LookupKey, Refusal, WalletVerdict,
    request::{RequestUpdate, second_of_an_inbox},
};
use conclave_proto::xmtp::{backend::v1::publish_error::Reason, identity::associations::IdentityUpdate};
use prost::Message as _;

use crate::support::{Log, reason, stored};

const A1: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const A2: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const I1: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
const I2: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
const PASSKEY: &str = "0360fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6";

pub(crate) fn named(name: &str) -> IdentityUpdate {
    let all: BTreeMap<String, String> =
        serde_json::from_str(include_str!("vectors/updates.json")).expect("a list of updates");
    let bytes = hex::decode(&all[name]).expect("hexadecimal");
    let update = IdentityUpdate::decode(&bytes[..]).expect("an update");
    assert_eq!(update.encode_to_vec(), bytes, "{name} is in our encoding");
    update
}

/// A log with these updates, each of which must be accepted.
fn log_of(names: &[&str]) -> Log {
    let mut log = Log::default();
    for name in names {
        log.publish(&named(name))
            .unwrap_or_else(|failure| panic!("{names:?}, {name}: {failure}"));
    }
    log
}

fn sorted(members: &[&str]) -> Vec<String> {
    let mut members: Vec<String> = members.iter().map(ToString::to_string).collect();
    members.sort();
    members
}

// API-230
#[test]
fn sound_sequences_leave_the_members_they_should() {
    for (names, members, recovery) in [
        (&["U1"][..], &[A1][..], A1),
        (&["U2"], &[A1, I1], A1),
        (&["U2", "U3"], &[A1, I1, A2], A1),
        (&["U2", "U3", "U4"], &[A1, I1, A2], A2),
        (&["U2", "U3", "U4", "U5"], &[A2], A2),
        (&["U2", "U6"], &[A1, I1, PASSKEY], A1),
        (&["U2", "U7"], &[A1, I1], A1),
        (&["U2", "U3", "U7"], &[A1, I1], A1),
        (&["U2", "U4", "U8"], &[A1, I1, I2], A2),
        (&["U2", "U4", "U8", "U9"], &[A1, I1], A2),
        (&["P1"], &[PASSKEY], PASSKEY),
    ] {
        let mut log = log_of(names);
        let mut left = log.members();
        left.sort();
        assert_eq!(left, sorted(members), "{names:?}");
        assert_eq!(log.state().recovery().to_string(), recovery, "{names:?}");
    }
    let state = log_of(&["U2", "U3"]).state();
    let adder = |text: &str| {
        let found = state
            .members()
            .iter()
            .find(|(member, _)| member.to_string() == text);
        found
            .and_then(|(_, member)| member.adder.as_ref())
            .map(ToString::to_string)
    };
    assert_eq!(
        (adder(A1), adder(I1), adder(A2)),
        (None, Some(A1.into()), Some(I1.into()))
    );
}

// API-230
#[test]
fn unsound_sequences_are_refused_for_their_reason() {
    for (names, refused, expected) in [
        (&["U1"][..], "U2", Reason::InvalidIdentityUpdate),
        (&[], "U3", Reason::InvalidIdentityUpdate),
        (&["U2", "U3", "U4"], "U5_old", Reason::InvalidIdentityUpdate),
        (&["U2"], "U3x", Reason::InvalidIdentityUpdate),
        (&["U2", "U3", "U7"], "U3_alias", Reason::InvalidIdentityUpdate),
        (&["U2"], "U8", Reason::InvalidIdentityUpdate),
        (&["U2"], "N_readd", Reason::InvalidIdentityUpdate),
        (&["U2"], "N_newmismatch", Reason::InvalidIdentityUpdate),
        (&["U2"], "N_bad_ed", Reason::InvalidSignature),
        (&["U2"], "N_pure_ed", Reason::InvalidSignature),
        (&["U2"], "N_rev_inst", Reason::InvalidIdentityUpdate),
        (&[], "N_pk_challenge", Reason::InvalidSignature),
        (&[], "N_pk_as_eth", Reason::InvalidIdentityUpdate),
        (&[], "N_upper", Reason::InvalidIdentityUpdate),
        (&[], "N_wronginbox", Reason::InvalidIdentityUpdate),
        (&[], "N_wrongsigner", Reason::InvalidIdentityUpdate),
        (&[], "N_checksum", Reason::InvalidIdentityUpdate),
        (&[], "N_empty", Reason::InvalidIdentityUpdate),
        (&[], "N_nokind", Reason::InvalidIdentityUpdate),
        (&[], "N_short", Reason::InvalidSignature),
        (&[], "N_v2", Reason::InvalidSignature),
    ] {
        let mut log = log_of(names);
        let members = if names.is_empty() { vec![] } else { log.members() };
        assert_eq!(
            reason(log.publish(&named(refused))),
            expected,
            "{names:?}, {refused}"
        );
        assert_eq!(
            if names.is_empty() { vec![] } else { log.members() },
            members,
            "nothing changes"
        );
    }
}

// API-233
#[test]
fn two_published_updates_of_one_inbox_do_not_fit_one_request() {
    let entry = |index, name| RequestUpdate {
        index,
        inbox: [0x41; 32],
        message_hash: stored(&named(name), 0).message_hash,
        handle: None,
    };
    assert_eq!(second_of_an_inbox(&[entry(0, "U1"), entry(1, "U2")]), Some(1));
    assert_eq!(second_of_an_inbox(&[entry(0, "U1"), entry(1, "U1")]), None);
    assert_eq!(Refusal::SecondOfInbox.reason(), Reason::InvalidIdentityUpdate);
}

// API-231
#[test]
fn a_wallet_without_a_route_to_its_chain_is_no_rejection() {
    let mut log = Log {
        verdict: WalletVerdict::Unavailable,
        ..Log::default()
    };
    let failure = log.publish(&named("SCW")).expect_err("no verdict");
    assert!(
        matches!(failure, IdentityFailure::NoVerdict { block_number: 1, .. }),
        "{failure}"
    );
    assert!(log.history.is_empty());
}

// API-270
#[test]
fn changes_say_who_can_be_looked_up() {
    let mut log = Log::default();
    let mut seen = Vec::new();
    for name in ["U2", "U3", "U4", "U5"] {
        let validated = log.publish(&named(name)).expect("sound");
        seen.push(
            validated
                .changes
                .into_iter()
                .map(|change| (change.key, change.change))
                .collect::<Vec<_>>(),
        );
    }
    let key = |text: &str| match LookupKey::parse(text, 1) {
        Ok(LookupKey::Identifier(key)) => key,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        seen,
        [
            vec![(key(A1), Change::Added)],
            vec![(key(A2), Change::Added)],
            vec![],
            vec![(key(&A1.to_uppercase()), Change::Revoked)],
        ],
        "installations are not among them"
    );
    let passkey = Log::default().publish(&named("P1")).expect("sound").changes;
    assert_eq!(
        LookupKey::parse(PASSKEY, 2),
        Ok(LookupKey::Identifier(passkey[0].key.clone()))
    );
}

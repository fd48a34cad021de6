//! What holds after any updates, sound or not: random ones over a few identifiers, signed by anyone.

use std::collections::BTreeSet;

use conclave_identity::{
    AssociationState, Change, EthereumAddress, Handle, LookupKey, MemberIdentifier, inbox_id,
    lookup::IdentifierKey,
    signature::{ReplayKey, VerifiedSignature},
    update::{Action, Update},
};
use proptest::prelude::*;

/// Two accounts, two passkeys, two installations, and a wallet's account.
fn identifier(number: u8) -> MemberIdentifier {
    let key = vec![number; 33].into();
    match number {
        0 | 1 | 6 => MemberIdentifier::Ethereum(EthereumAddress::from_bytes([number; 20])),
        2 | 3 => MemberIdentifier::Passkey(key),
        _ => MemberIdentifier::Installation(key),
    }
}

fn signed_by(number: u8, time: u64) -> VerifiedSignature {
    VerifiedSignature {
        signer: identifier(number),
        replay_key: ReplayKey::of(format!("{number} {time}").as_bytes()),
        chain_id: (number == 6).then_some(1),
    }
}

#[derive(Clone, Debug)]
struct Draft {
    kind: u8,
    named: u8,
    signer: u8,
}

fn action(draft: &Draft, time: u64) -> Action<VerifiedSignature> {
    let signature = signed_by(draft.signer, time);
    match draft.kind {
        0..4 => Action::AddAssociation {
            new_member: identifier(draft.named),
            existing_signature: signature,
            new_signature: signed_by(draft.named, time),
        },
        4..7 => Action::RevokeAssociation {
            member: identifier(draft.named),
            recovery_signature: signature,
        },
        7 => Action::ChangeRecoveryAddress {
            // No installation can be named.
            new_recovery: identifier(draft.named % 4),
            recovery_signature: signature,
        },
        _ => Action::ClaimHandle {
            handle: Handle::parse("alice").expect("a handle"),
            member_signature: signature,
        },
    }
}

fn drafts() -> impl Strategy<Value = Vec<Vec<Draft>>> {
    let draft = (0u8..9, 0u8..7, 0u8..7).prop_map(|(kind, named, signer)| Draft { kind, named, signer });
    proptest::collection::vec(proptest::collection::vec(draft, 1..4), 1..40)
}

fn opened() -> AssociationState {
    let update = Update {
        inbox_id: inbox_id::derive(&identifier(0), 0),
        client_timestamp_ns: 0,
        actions: vec![Action::CreateInbox {
            initial: identifier(0),
            nonce: 0,
            signature: signed_by(0, 0),
        }],
    };
    AssociationState::apply(None, &update).expect("it opens").state
}

fn key_of(member: &MemberIdentifier) -> Option<IdentifierKey> {
    let kind = match member {
        MemberIdentifier::Ethereum(_) => 1,
        MemberIdentifier::Passkey(_) => 2,
        MemberIdentifier::Installation(_) => return None,
    };
    match LookupKey::parse(&member.to_string(), kind) {
        Ok(LookupKey::Identifier(key)) => Some(key),
        other => panic!("{other:?}"),
    }
}

fn resolvable(state: &AssociationState) -> BTreeSet<IdentifierKey> {
    state.members().keys().filter_map(key_of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // API-270
    #[test]
    fn following_the_changes_finds_exactly_the_members(updates in drafts()) {
        let mut state = opened();
        let mut found = resolvable(&state);
        for (time, drafts) in (1..).zip(&updates) {
            let update = Update {
                inbox_id: state.inbox_id().to_owned(),
                client_timestamp_ns: time,
                actions: drafts.iter().map(|draft| action(draft, time)).collect(),
            };
            let Ok(applied) = AssociationState::apply(Some(state.clone()), &update) else { continue };
            for change in applied.changes {
                match change.change {
                    Change::Added => { found.insert(change.key); }
                    Change::Revoked => prop_assert!(found.remove(&change.key), "it was found before"),
                }
            }
            prop_assert_eq!(&found, &resolvable(&applied.state));
            prop_assert_eq!(applied.state.entries(), state.entries() + 1);
            prop_assert!(applied.state.claims().starts_with(state.claims()), "claims are never revoked");
            state = applied.state;
            // The same update again is a replay.
            prop_assert!(AssociationState::apply(Some(state.clone()), &update).is_err());
        }
    }

    // API-230
    #[test]
    fn who_is_neither_member_nor_recovery_changes_nothing(updates in drafts()) {
        let mut state = opened();
        for (time, drafts) in (1..).zip(&updates) {
            for draft in drafts {
                let update = Update {
                    inbox_id: state.inbox_id().to_owned(),
                    client_timestamp_ns: time,
                    actions: vec![action(draft, time)],
                };
                let signer = identifier(draft.signer);
                let known = state.members().contains_key(&signer) || *state.recovery() == signer;
                match AssociationState::apply(Some(state.clone()), &update) {
                    Ok(applied) => {
                        prop_assert!(known, "{:?} by a stranger", draft);
                        let recovers = *state.recovery() == signer;
                        let keeps = state.members().keys().all(|member| applied.state.members().contains_key(member));
                        prop_assert!(recovers || keeps, "only the recovery identifier removes members");
                        prop_assert!(recovers || applied.state.recovery() == state.recovery());
                        state = applied.state;
                        break;
                    }
                    Err(_) => continue,
                }
            }
        }
    }
}

//! What an update changed for those who look identifiers up (API-270). Depends on identifiers.
//!
//! Installations resolve to no inbox, so they do not appear here.

use std::collections::BTreeMap;

use crate::{
    choices::READDED_IS_NEW,
    identifier::MemberIdentifier,
    lookup::{IdentifierKey, LookupKind},
};

/// What became of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// The identifier became a member by this update, whose sequence id is that of the association.
    Added,
    /// It was a member before the update and is none after it.
    Revoked,
}

/// The change of one identifier's association with the inbox of an update.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssociationChange {
    /// The identifier as lookups find it.
    pub key: IdentifierKey,
    /// What became of it.
    pub change: Change,
}

/// What happened to each identifier within an update.
#[derive(Debug, Default)]
pub(super) struct Touched(BTreeMap<MemberIdentifier, History>);

#[derive(Debug)]
struct History {
    member_before: bool,
    added: bool,
}

impl Touched {
    pub(super) fn added(&mut self, identifier: &MemberIdentifier) {
        // One that was touched before was removed since: a member is not added twice.
        self.0
            .entry(identifier.clone())
            .or_insert(History {
                member_before: false,
                added: true,
            })
            .added = true;
    }

    pub(super) fn removed(&mut self, identifier: &MemberIdentifier) {
        self.0.entry(identifier.clone()).or_insert(History {
            member_before: true,
            added: false,
        });
    }

    /// The changes from before the update to after it, in the order of identifiers.
    pub(super) fn into_changes(
        self,
        is_member_now: impl Fn(&MemberIdentifier) -> bool,
    ) -> Vec<AssociationChange> {
        self.0
            .into_iter()
            .filter_map(|(identifier, history)| {
                let change = match (history.member_before, is_member_now(&identifier)) {
                    (false, true) => Change::Added,
                    (true, true) if history.added && READDED_IS_NEW => Change::Added,
                    (true, false) => Change::Revoked,
                    (true, true) | (false, false) => return None,
                };
                let key = match identifier {
                    MemberIdentifier::Ethereum(address) => IdentifierKey {
                        kind: LookupKind::Ethereum,
                        key: address.to_string().into_bytes(),
                    },
                    MemberIdentifier::Passkey(key) => IdentifierKey {
                        kind: LookupKind::Passkey,
                        key: key.to_vec(),
                    },
                    MemberIdentifier::Installation(_) => return None,
                };
                Some(AssociationChange { key, change })
            })
            .collect()
    }
}

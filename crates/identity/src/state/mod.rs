//! The association state of an inbox: who its members are, who can recover it, what it claimed (IDENT-040 to 050).
//! Depends on verified updates.
//!
//! - `apply`: the rules by which an update changes a state, or is refused;
//! - [`changes`]: what an update changed for those who look identifiers up.

mod apply;
pub mod changes;

use std::collections::{BTreeMap, BTreeSet};

pub use apply::{Applied, StateError};
pub use changes::{AssociationChange, Change};

use crate::{handle::Handle, identifier::MemberIdentifier, signature::ReplayKey};

/// What is recorded of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who added it; nobody for the one that opened the inbox.
    pub adder: Option<MemberIdentifier>,
    /// The time its update carries, in nanoseconds since the Unix epoch.
    pub client_timestamp_ns: u64,
    /// The chain of the wallet signature that proved it, if one did. Its later signatures must name the same (IDENT-046).
    pub chain_id: Option<u64>,
}

/// A handle the inbox claimed. Never revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The handle.
    pub handle: Handle,
    /// The index of its update in the inbox's log.
    pub entry: usize,
}

/// The state after some updates, of which there is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationState {
    inbox_id: String,
    /// How many updates led here.
    entries: usize,
    members: BTreeMap<MemberIdentifier, Member>,
    recovery: MemberIdentifier,
    recovery_chain_id: Option<u64>,
    /// The signatures of all updates so far.
    seen: BTreeSet<ReplayKey>,
    claims: Vec<Claim>,
}

impl AssociationState {
    /// The id of the inbox, derived from what opened it.
    #[must_use]
    pub fn inbox_id(&self) -> &str {
        &self.inbox_id
    }

    /// How many updates led to this state.
    #[must_use]
    pub const fn entries(&self) -> usize {
        self.entries
    }

    /// The members. There may be none left.
    #[must_use]
    pub const fn members(&self) -> &BTreeMap<MemberIdentifier, Member> {
        &self.members
    }

    /// Who may revoke members and name another in its place. Need not be a member.
    #[must_use]
    pub const fn recovery(&self) -> &MemberIdentifier {
        &self.recovery
    }

    /// The chain recorded for the recovery identifier.
    #[must_use]
    pub const fn recovery_chain_id(&self) -> Option<u64> {
        self.recovery_chain_id
    }

    /// The claims, in the order of the log. The last is the handle in use.
    #[must_use]
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// About how much memory it takes, in bytes.
    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        let of = |identifier: &MemberIdentifier| match identifier {
            MemberIdentifier::Ethereum(_) => 0,
            MemberIdentifier::Installation(key) | MemberIdentifier::Passkey(key) => key.len(),
        };
        let members: usize = self
            .members
            .iter()
            .map(|(identifier, member)| MEMBER_BYTES + of(identifier) + member.adder.as_ref().map_or(0, of))
            .sum();
        // Whoever may recover need not sign to be named, so that key can have any length.
        members + of(&self.recovery) + REPLAY_KEY_BYTES * self.seen.len() + CLAIM_BYTES * self.claims.len()
    }
}

/// About what a map entry of a member takes besides its keys, in bytes.
const MEMBER_BYTES: usize = 160;
/// About what a set entry of a replay key takes, in bytes.
const REPLAY_KEY_BYTES: usize = 48;
/// About what a claim takes, in bytes.
const CLAIM_BYTES: usize = 80;

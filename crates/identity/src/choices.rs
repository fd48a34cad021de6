//! What no published source decides and we did. Depends on the wire type of reasons.
//!
//! Each choice stands here, or in [`crate::handle`] when it is about handles, and nowhere else; a published value
//! replaces it in that one place. Where code acts on a choice it names the item below.

use conclave_proto::xmtp::backend::v1::publish_error::Reason;

/// Ours: the reason for a signature that cannot be read (a key that is no point of its curve, a malformed account id, a
/// wrong length). "A signature does not verify" is the closest row of the admission table.
pub const UNREADABLE_SIGNATURE: Reason = Reason::InvalidSignature;

/// Ours: the reason for a wallet signature whose block is in the future or too old (IDENT-062). The signature itself may
/// be valid, so this is "otherwise" in the admission table, and is reported after the checks of a handle.
pub const BLOCK_NOT_FRESH: Reason = Reason::InvalidIdentityUpdate;

/// Ours: whether the verdicts of wallets on stored updates are taken as given. They were reached when the update was
/// stored, at a block that cannot change; asking again would let a chain's outage, or a node that forgot an old block,
/// stop an inbox for ever. The local signatures of stored updates are verified again, once per memo.
pub const STORED_WALLET_VERDICTS_STAND: bool = true;

/// The part a signature plays in an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An existing member that adds another or claims a handle; the recovery identifier may add as well.
    Existing,
    /// The recovery identifier, for a revocation or its own replacement.
    Recovery,
}

/// Ours: whether IDENT-046 compares a signature's chain with the chain recorded for recovery. In the recovery role it
/// always does, besides the comparison with the member's chain if the signer is a member too. A member that adds another
/// acts as a member, so that a wallet that became the recovery identifier before it became a member can still add.
#[must_use]
pub const fn compares_recovery_chain(role: Role, signer_is_member: bool) -> bool {
    match role {
        Role::Existing => !signer_is_member,
        Role::Recovery => true,
    }
}

/// Ours: whether an identifier that one update revokes and adds again counts as newly associated, with the sequence id
/// of that update. IDENT section 9 says so when read to the letter; a difference of states would not show it.
pub const READDED_IS_NEW: bool = true;

/// Ours: whether API-233 looks at duplicates of stored updates too. Read to the letter, a request must not carry two
/// updates of one inbox unless they are duplicates of each other, whatever is stored.
pub const STORED_DUPLICATES_COUNT: bool = true;

//! An identity update as typed actions, and the structure it must have (IDENT-001, IDENT-013). Depends on identifiers
//! and handles.

use conclave_proto::xmtp::identity::associations::{
    self as wire, identity_action::Kind, signature::Signature as WireSignature,
};

use crate::{
    handle::{self, Handle},
    identifier::MemberIdentifier,
};

/// An update whose signatures are `S`: as received, verified, or waiting for a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update<S> {
    /// The inbox it is for, as carried.
    pub inbox_id: String,
    /// When its author says it was made, in nanoseconds since the Unix epoch. Nothing compares it with a clock.
    pub client_timestamp_ns: u64,
    /// What it does, in order. Never empty.
    pub actions: Vec<Action<S>>,
}

/// One change to an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<S> {
    /// Opens the inbox.
    CreateInbox {
        /// Its first member and recovery identifier.
        initial: MemberIdentifier,
        /// Tells the inboxes of one identifier apart.
        nonce: u64,
        /// By that identifier.
        signature: S,
    },
    /// Adds a member.
    AddAssociation {
        /// Who is added.
        new_member: MemberIdentifier,
        /// By a member or the recovery identifier.
        existing_signature: S,
        /// By the new member.
        new_signature: S,
    },
    /// Removes a member and the installations it added.
    RevokeAssociation {
        /// Who is removed. May be no member.
        member: MemberIdentifier,
        /// By the recovery identifier.
        recovery_signature: S,
    },
    /// Replaces the recovery identifier.
    ChangeRecoveryAddress {
        /// The new one; it need not sign or be a member.
        new_recovery: MemberIdentifier,
        /// By the old one.
        recovery_signature: S,
    },
    /// Claims a handle for the inbox.
    ClaimHandle {
        /// The handle.
        handle: Handle,
        /// By a member.
        member_signature: S,
    },
}

/// An update without the structure of one: REASON_INVALID_IDENTITY_UPDATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StructureError {
    /// Nothing to do.
    #[error("the identity update has no actions")]
    NoActions,
    /// An action without a kind, or of one this schema does not know.
    #[error("action {action} has no kind")]
    NoKind {
        /// Its index in the update.
        action: usize,
    },
    /// A missing or malformed identifier.
    #[error("action {action} names no well-formed identifier")]
    Identifier {
        /// The index of the action.
        action: usize,
    },
    /// A missing signature, or one of a kind this schema does not know, as the retired delegated one.
    #[error("action {action} lacks a signature")]
    NoSignature {
        /// The index of the action.
        action: usize,
    },
    /// A malformed handle.
    #[error("action {action} claims what is no handle")]
    Handle {
        /// The index of the action.
        action: usize,
    },
    /// More claims than one update may have.
    #[error(
        "the identity update claims more than {} handle",
        handle::MAX_CLAIMS_PER_UPDATE
    )]
    TooManyClaims,
}

impl Update<WireSignature> {
    /// Reads the wire message.
    ///
    /// # Errors
    /// [`StructureError`], the first in the order of the actions.
    pub fn parse(update: &wire::IdentityUpdate) -> Result<Update<WireSignature>, StructureError> {
        if update.actions.is_empty() {
            return Err(StructureError::NoActions);
        }
        let actions = update
            .actions
            .iter()
            .enumerate()
            .map(|(index, action)| parse_action(index, action))
            .collect::<Result<Vec<_>, _>>()?;
        let parsed = Update {
            inbox_id: update.inbox_id.clone(),
            client_timestamp_ns: update.client_timestamp_ns,
            actions,
        };
        if parsed.claims().count() > handle::MAX_CLAIMS_PER_UPDATE {
            return Err(StructureError::TooManyClaims);
        }
        Ok(parsed)
    }
}

impl<S> Update<S> {
    /// The handles it claims.
    pub fn claims(&self) -> impl Iterator<Item = &Handle> {
        self.actions.iter().filter_map(|action| match action {
            Action::ClaimHandle { handle, .. } => Some(handle),
            _ => None,
        })
    }

    /// The same update with every signature replaced, in order.
    ///
    /// # Errors
    /// The first error of the replacement.
    pub fn try_map<T, E>(&self, mut replace: impl FnMut(&S) -> Result<T, E>) -> Result<Update<T>, E> {
        let actions = self
            .actions
            .iter()
            .map(|action| action.try_map(&mut replace))
            .collect::<Result<Vec<_>, E>>()?;
        Ok(Update {
            inbox_id: self.inbox_id.clone(),
            client_timestamp_ns: self.client_timestamp_ns,
            actions,
        })
    }
}

impl<S> Action<S> {
    /// Its signatures, in the order of its fields.
    pub fn signatures(&self) -> impl Iterator<Item = &S> {
        let (first, second) = match self {
            Action::AddAssociation {
                existing_signature,
                new_signature,
                ..
            } => (existing_signature, Some(new_signature)),
            Action::CreateInbox { signature: only, .. }
            | Action::RevokeAssociation {
                recovery_signature: only,
                ..
            }
            | Action::ChangeRecoveryAddress {
                recovery_signature: only,
                ..
            }
            | Action::ClaimHandle {
                member_signature: only,
                ..
            } => (only, None),
        };
        std::iter::once(first).chain(second)
    }

    fn try_map<T, E>(&self, mut replace: impl FnMut(&S) -> Result<T, E>) -> Result<Action<T>, E> {
        Ok(match self {
            Action::CreateInbox {
                initial,
                nonce,
                signature,
            } => Action::CreateInbox {
                initial: initial.clone(),
                nonce: *nonce,
                signature: replace(signature)?,
            },
            Action::AddAssociation {
                new_member,
                existing_signature,
                new_signature,
            } => Action::AddAssociation {
                new_member: new_member.clone(),
                existing_signature: replace(existing_signature)?,
                new_signature: replace(new_signature)?,
            },
            Action::RevokeAssociation {
                member,
                recovery_signature,
            } => Action::RevokeAssociation {
                member: member.clone(),
                recovery_signature: replace(recovery_signature)?,
            },
            Action::ChangeRecoveryAddress {
                new_recovery,
                recovery_signature,
            } => Action::ChangeRecoveryAddress {
                new_recovery: new_recovery.clone(),
                recovery_signature: replace(recovery_signature)?,
            },
            Action::ClaimHandle {
                handle,
                member_signature,
            } => Action::ClaimHandle {
                handle: handle.clone(),
                member_signature: replace(member_signature)?,
            },
        })
    }
}

fn parse_action(
    index: usize,
    action: &wire::IdentityAction,
) -> Result<Action<WireSignature>, StructureError> {
    let kind = action
        .kind
        .as_ref()
        .ok_or(StructureError::NoKind { action: index })?;
    let identifier = StructureError::Identifier { action: index };
    let signature = |signature: &Option<wire::Signature>| {
        signature
            .as_ref()
            .and_then(|signature| signature.signature.clone())
            .ok_or(StructureError::NoSignature { action: index })
    };
    Ok(match kind {
        Kind::CreateInbox(create) => Action::CreateInbox {
            initial: MemberIdentifier::from_text(create.initial_identifier_kind, &create.initial_identifier)
                .ok_or(identifier)?,
            nonce: create.nonce,
            signature: signature(&create.initial_identifier_signature)?,
        },
        Kind::Add(add) => Action::AddAssociation {
            new_member: MemberIdentifier::from_wire(add.new_member_identifier.as_ref()).ok_or(identifier)?,
            existing_signature: signature(&add.existing_member_signature)?,
            new_signature: signature(&add.new_member_signature)?,
        },
        Kind::Revoke(revoke) => Action::RevokeAssociation {
            member: MemberIdentifier::from_wire(revoke.member_to_revoke.as_ref()).ok_or(identifier)?,
            recovery_signature: signature(&revoke.recovery_identifier_signature)?,
        },
        Kind::ChangeRecoveryAddress(change) => Action::ChangeRecoveryAddress {
            new_recovery: MemberIdentifier::from_text(
                change.new_recovery_identifier_kind,
                &change.new_recovery_identifier,
            )
            .ok_or(identifier)?,
            recovery_signature: signature(&change.existing_recovery_identifier_signature)?,
        },
        Kind::ClaimHandle(claim) => Action::ClaimHandle {
            handle: Handle::parse(&claim.handle).ok_or(StructureError::Handle { action: index })?,
            member_signature: signature(&claim.existing_member_signature)?,
        },
    })
}

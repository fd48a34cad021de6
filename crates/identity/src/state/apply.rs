//! The rules by which an update changes a state (IDENT-002 to 005, 011 to 013, 040 to 050). Depends on verified updates.
//!
//! An update is applied whole or not at all. A signature may serve several actions of one update; across updates it is
//! used once (IDENT-050), so replay keys are compared with those of earlier updates and recorded at the end.

use std::collections::{BTreeMap, BTreeSet};

use super::{AssociationChange, AssociationState, Claim, Member, changes::Touched};
use crate::{
    choices::{Role, compares_recovery_chain},
    handle::{Handle, MAX_CLAIMS_PER_INBOX},
    identifier::MemberIdentifier,
    inbox_id,
    signature::VerifiedSignature,
    update::{Action, Update},
};

/// A rule of the association state that an update breaks: REASON_INVALID_IDENTITY_UPDATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The inbox is open already (IDENT-011).
    #[error("the inbox exists already")]
    Exists,
    /// The first action does not open the inbox (IDENT-011).
    #[error("the inbox does not exist")]
    NoInbox,
    /// The update carries another inbox id than its log derives (IDENT-003).
    #[error("the inbox id of the update is not the one its log derives")]
    WrongInbox,
    /// A signature of an earlier update (IDENT-050).
    #[error("a signature was used in an earlier update")]
    Replayed,
    /// Signed by someone else than the new or first member (IDENT-012, IDENT-031).
    #[error("the identifier to be associated did not sign")]
    NotSignedByNew,
    /// Signed by neither a member nor the recovery identifier (IDENT-040).
    #[error("the signer is neither a member nor the recovery identifier")]
    UnknownSigner,
    /// A member would add itself (IDENT-040).
    #[error("a member cannot add itself")]
    AddsItself,
    /// Already a member (IDENT-040).
    #[error("the identifier is a member already")]
    IsMember,
    /// An installation would add an installation (IDENT-041).
    #[error("an installation cannot add an installation")]
    InstallationAddsInstallation,
    /// Not signed by the recovery identifier (IDENT-043, IDENT-045).
    #[error("the signer is not the recovery identifier")]
    NotRecovery,
    /// A wallet signed on another chain than recorded (IDENT-046).
    #[error("the signature names another chain than the one recorded")]
    OtherChain,
    /// A claim that no member signed (ours, see [`crate::handle`]).
    #[error("the signer of the claim is not a member")]
    ClaimNotByMember,
    /// No more claims (IDENT-080).
    #[error("the inbox has made {MAX_CLAIMS_PER_INBOX} claims")]
    TooManyClaims,
}

/// What an update made of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The state after it.
    pub state: AssociationState,
    /// What it changed for lookups.
    pub changes: Vec<AssociationChange>,
}

impl AssociationState {
    /// Applies a verified update to a state, or to none when it is the first of its log.
    ///
    /// # Errors
    /// [`StateError`], the first rule that an action breaks.
    pub fn apply(
        before: Option<AssociationState>,
        update: &Update<VerifiedSignature>,
    ) -> Result<Applied, StateError> {
        let mut touched = Touched::default();
        let mut state = before;
        for action in &update.actions {
            state = Some(match (state, action) {
                (
                    None,
                    Action::CreateInbox {
                        initial,
                        nonce,
                        signature,
                    },
                ) => {
                    touched.added(initial);
                    open(initial, *nonce, signature, update.client_timestamp_ns)?
                }
                (Some(_), Action::CreateInbox { .. }) => return Err(StateError::Exists),
                (None, _) => return Err(StateError::NoInbox),
                (Some(mut state), action) => {
                    state.act(action, update.client_timestamp_ns, &mut touched)?;
                    state
                }
            });
        }
        let mut state = state.ok_or(StateError::NoInbox)?;
        if state.inbox_id != update.inbox_id {
            return Err(StateError::WrongInbox);
        }
        let signatures = update.actions.iter().flat_map(Action::signatures);
        state
            .seen
            .extend(signatures.map(|signature| signature.replay_key));
        state.entries += 1;
        let changes = touched.into_changes(|identifier| state.members.contains_key(identifier));
        Ok(Applied { state, changes })
    }

    fn act(
        &mut self,
        action: &Action<VerifiedSignature>,
        client_timestamp_ns: u64,
        touched: &mut Touched,
    ) -> Result<(), StateError> {
        if action
            .signatures()
            .any(|signature| self.seen.contains(&signature.replay_key))
        {
            return Err(StateError::Replayed);
        }
        match action {
            Action::CreateInbox { .. } => Err(StateError::Exists),
            Action::AddAssociation {
                new_member,
                existing_signature,
                new_signature,
            } => {
                self.check_addition(new_member, existing_signature, new_signature)?;
                touched.added(new_member);
                let member = Member {
                    adder: Some(existing_signature.signer.clone()),
                    client_timestamp_ns,
                    chain_id: new_signature.chain_id,
                };
                self.members.insert(new_member.clone(), member);
                Ok(())
            }
            Action::RevokeAssociation {
                member,
                recovery_signature,
            } => {
                self.check_recovery(recovery_signature)?;
                self.revoke(member, touched);
                Ok(())
            }
            Action::ChangeRecoveryAddress {
                new_recovery,
                recovery_signature,
            } => {
                self.check_recovery(recovery_signature)?;
                self.recovery_chain_id = self.members.get(new_recovery).and_then(|member| member.chain_id);
                self.recovery = new_recovery.clone();
                Ok(())
            }
            Action::ClaimHandle {
                handle,
                member_signature,
            } => self.claim(handle, member_signature),
        }
    }

    fn check_addition(
        &self,
        new_member: &MemberIdentifier,
        existing: &VerifiedSignature,
        new: &VerifiedSignature,
    ) -> Result<(), StateError> {
        if new.signer != *new_member {
            return Err(StateError::NotSignedByNew);
        }
        if existing.signer == new.signer {
            return Err(StateError::AddsItself);
        }
        if !self.members.contains_key(&existing.signer) && existing.signer != self.recovery {
            return Err(StateError::UnknownSigner);
        }
        self.check_chain(existing, Role::Existing)?;
        if self.members.contains_key(new_member) {
            return Err(StateError::IsMember);
        }
        if existing.signer.is_installation() && new_member.is_installation() {
            return Err(StateError::InstallationAddsInstallation);
        }
        Ok(())
    }

    fn check_recovery(&self, signature: &VerifiedSignature) -> Result<(), StateError> {
        if signature.signer != self.recovery {
            return Err(StateError::NotRecovery);
        }
        self.check_chain(signature, Role::Recovery)
    }

    /// The chain of a signature, or that it has none, is the recorded one (IDENT-046).
    fn check_chain(&self, signature: &VerifiedSignature, role: Role) -> Result<(), StateError> {
        let member = self.members.get(&signature.signer);
        let as_member = member.is_none_or(|member| member.chain_id == signature.chain_id);
        let as_recovery =
            !compares_recovery_chain(role, member.is_some()) || self.recovery_chain_id == signature.chain_id;
        if as_member && as_recovery {
            Ok(())
        } else {
            Err(StateError::OtherChain)
        }
    }

    /// Removes a member and the installations it added; an identifier that is no member may have added some too.
    fn revoke(&mut self, revoked: &MemberIdentifier, touched: &mut Touched) {
        self.members.retain(|identifier, member| {
            let added_by_it = identifier.is_installation() && member.adder.as_ref() == Some(revoked);
            let goes = identifier == revoked || added_by_it;
            if goes {
                touched.removed(identifier);
            }
            !goes
        });
    }

    fn claim(&mut self, handle: &Handle, signature: &VerifiedSignature) -> Result<(), StateError> {
        if !self.members.contains_key(&signature.signer) {
            return Err(StateError::ClaimNotByMember);
        }
        self.check_chain(signature, Role::Existing)?;
        if self.claims.len() >= MAX_CLAIMS_PER_INBOX {
            return Err(StateError::TooManyClaims);
        }
        self.claims.push(Claim {
            handle: handle.clone(),
            entry: self.entries,
        });
        Ok(())
    }
}

/// The state of an inbox with its first member alone.
fn open(
    initial: &MemberIdentifier,
    nonce: u64,
    signature: &VerifiedSignature,
    client_timestamp_ns: u64,
) -> Result<AssociationState, StateError> {
    if signature.signer != *initial {
        return Err(StateError::NotSignedByNew);
    }
    let member = Member {
        adder: None,
        client_timestamp_ns,
        chain_id: signature.chain_id,
    };
    Ok(AssociationState {
        inbox_id: inbox_id::derive(initial, nonce),
        entries: 0,
        members: BTreeMap::from([(initial.clone(), member)]),
        recovery: initial.clone(),
        recovery_chain_id: signature.chain_id,
        seen: BTreeSet::new(),
        claims: Vec::new(),
    })
}

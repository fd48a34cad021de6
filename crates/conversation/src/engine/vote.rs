//! Which action is locked and signed: the member's vote path ("Proposal ordering and recovery identity").
//!
//! Every function either changes nothing and says why, or puts all its transitions into the one step: lock, signature and
//! envelope become durable together, before anything is sent.

use conclave_harness::{AgentId, EncodedSignedMessage, RouterInstanceId};

use super::conversation::{Conversation, foundation, sealable};
use super::draft::Draft;
use super::effect::{Effect, Stage};
use super::error::Fatal;
use super::fold::{Fold, evidence_row};
use super::ignored::Ignored;
use super::shared::Shared;
use super::text::message_text;
use crate::certificates::{Merge, SignerMap, Subject, VerifiedEvidence, verify_evidence};
use crate::membership::Membership;
use crate::ordered::OrderedSet;
use crate::planted::{Bug, has};
use crate::store::Transition;
use crate::store::transition::{
    LockGenesis, LockProposal, MergeEvidence, SupersedeLock, UnwatchConversation,
};
use crate::values::{
    ActionCertifiedRecord, ActionCore, ActionHash, ActionProposal, ActionSignatureKind,
    ActionSignatureStatement, EvidenceStatement, RouterAnchor,
};
use crate::verification::{
    VerifiedAction, VerifiedActionCertifiedRecord, VerifiedRecordCore, VerifiedRouterAnchor,
};

impl Conversation {
    /// A candidate, as the Router delivered it.
    pub(super) fn on_proposal(
        &mut self,
        sender: AgentId,
        proposal: ActionProposal,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        let intent = proposal.action.post_intent();
        if intent.author_agent_id != sender {
            return Err(Ignored::ForeignProposal);
        }
        if has(Bug::SignEveryProposal) {
            self.locked = None;
        }
        self.require_new_post(intent, &shared.local_id)?;
        // The position is compared before the action is verified: it is cheap, and most repetitions fail it.
        if proposal.action.previous_record_hash() != self.head_record() {
            return Err(Ignored::NotGapFree);
        }
        let action = VerifiedAction::verify(proposal.action, &self.membership)?;
        if action.position() != self.position() {
            return Err(Ignored::NotGapFree);
        }
        match self.locked {
            Some(locked) if locked == *action.hash() => return Err(Ignored::Duplicate),
            Some(_) => return Err(Ignored::Locked),
            None => {}
        }
        let fold = Fold::new(VerifiedRecordCore::of_action(action));
        draft.commit(Transition::LockProposal(LockProposal {
            lock: fold.lock_row(),
        }));
        self.take_candidate(fold, shared, draft);
        Ok(())
    }

    /// The first GENESIS seen of a watched conversation. It brings the foundation.
    pub(super) fn from_genesis(
        sender: AgentId,
        proposal: ActionProposal,
        membership: &Membership,
        delivering: RouterInstanceId,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<Self, Ignored> {
        let ActionCore::Genesis(genesis) = &proposal.action else {
            return Err(Ignored::UnknownConversation);
        };
        if genesis.post_intent.author_agent_id != sender {
            return Err(Ignored::ForeignProposal);
        }
        if genesis.anchor.router_instance_id != delivering {
            return Err(Ignored::NotGapFree);
        }
        if !sealable(membership) {
            return Err(Ignored::NotSealable);
        }
        let anchor = RouterAnchor::from(genesis.anchor.clone());
        let anchor = VerifiedRouterAnchor::verify(anchor, membership, &mut shared.memory)?;
        let action = VerifiedAction::verify(proposal.action, membership)?;
        let fold = Fold::new(VerifiedRecordCore::of_action(action));
        draft.commit(Transition::LockGenesis(LockGenesis {
            foundation: foundation(membership, &anchor),
            lock: fold.lock_row(),
        }));
        draft.commit(Transition::UnwatchConversation(UnwatchConversation {
            conversation_id: membership.conversation_id().to_string(),
            forget_cursor: false,
        }));
        let mut conversation = Conversation::founded(membership.clone(), anchor);
        conversation.begun_by = Some(sender);
        draft.effect(Effect::ConversationState {
            conversation_id: *membership.conversation_id(),
            status: conversation.status(),
        });
        conversation.take_candidate(fold, shared, draft);
        Ok(conversation)
    }

    /// Signs a candidate whose lock is part of the draft.
    fn take_candidate(&mut self, mut fold: Fold, shared: &mut Shared, draft: &mut Draft<'_>) {
        let action_hash = *fold.record.action_hash();
        draft.progress(&fold, Stage::Proposed);
        let statement = ActionSignatureStatement {
            sharness_version: fold.record.sharness_version(),
            kind: ActionSignatureKind,
            signer_agent_id: shared.local_id,
            action_hash,
        };
        if let Some(signature) = self.sign(statement.into(), &fold.record, shared, draft) {
            draft.progress(&fold, Stage::ActionSigned { by: shared.local_id });
            // The map is about this very action.
            let _ = fold.signatures.merge(signature);
        }
        self.locked = Some(action_hash);
        self.folds.insert(action_hash, fold);
        self.evaluate(action_hash, shared, draft);
    }

    /// Signs a statement, keeps it and puts it on its way.
    pub(super) fn sign(
        &self,
        statement: EvidenceStatement,
        record: &VerifiedRecordCore,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Option<VerifiedEvidence> {
        let signed = VerifiedEvidence::sign(statement, &shared.local.card, &shared.local.key);
        let Some(signed) = signed else {
            shared.fail(Fatal::OwnValue("a statement could not be signed".to_owned()));
            return None;
        };
        keep(record, &signed, draft);
        shared.enqueue(
            &self.membership,
            message_text(signed.encoded()).as_bytes(),
            Vec::new(),
            None,
            draft,
        );
        Some(signed)
    }

    /// Puts the own statements about the locked, uncertified action on their way again, unless they are.
    pub(super) fn resend_evidence(
        &self,
        pending: &OrderedSet<Vec<u8>>,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) {
        let Some(fold) = self.locked_fold() else { return };
        let own = [
            fold.signatures.get(&shared.local_id),
            fold.votes.get(&shared.local_id),
        ];
        for evidence in own.into_iter().flatten() {
            let plaintext = evidence.encoded().to_canonical_bytes();
            if !pending.contains(&plaintext) {
                shared.enqueue(&self.membership, &plaintext, Vec::new(), None, draft);
            }
        }
    }

    /// A member's statement, from whoever relays it.
    pub(super) fn on_evidence(
        &mut self,
        message: &EncodedSignedMessage,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        let evidence = verify_evidence(message, &self.membership, &mut shared.memory)?;
        let action_hash = match evidence.subject() {
            Subject::Action(action_hash) if self.folds.contains_key(&action_hash) => action_hash,
            Subject::Action(_) => return Err(Ignored::NoSubject),
            Subject::Record { record_hash, .. } => self.action_of(&record_hash).ok_or(Ignored::NoSubject)?,
            Subject::Reanchor(_) => return self.on_vote_after_recovery(&evidence, shared, draft),
            Subject::CatchUp => return Err(Ignored::NoSubject),
        };
        self.take_evidence(action_hash, evidence, shared, draft)
    }

    /// Merges a statement about a held action or its record.
    pub(super) fn take_evidence(
        &mut self,
        action_hash: ActionHash,
        evidence: VerifiedEvidence,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        let fold = self.folds.get_mut(&action_hash).ok_or(Ignored::NoSubject)?;
        let signer = *evidence.signer();
        let (map, stage) = match evidence.subject() {
            Subject::Record { .. } if !fold.staged => return Err(Ignored::NotStaged),
            Subject::Record { .. } => (&mut fold.votes, Stage::Stored { by: signer }),
            _ => (&mut fold.signatures, Stage::ActionSigned { by: signer }),
        };
        // A vote that names another conversation or membership is about something else than the map.
        match map.merge(evidence.clone())? {
            Merge::Added => {}
            Merge::Existing => return Err(Ignored::Duplicate),
            Merge::Different => return Err(Ignored::DifferentCopy),
        }
        keep(&fold.record, &evidence, draft);
        draft.progress(fold, stage);
        self.evaluate(action_hash, shared, draft);
        Ok(())
    }

    /// A record with its action certificate, from whoever staged it.
    pub(super) fn on_action_certified(
        &mut self,
        value: ActionCertifiedRecord,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        self.require_open(&value, &shared.local_id)?;
        // Every member sends its copy of a record. One of a staged record that names no new signer is not verified again.
        let brings_nothing = |fold: &Fold| {
            let mut signatures = value.action_certificate.signatures.iter();
            fold.staged
                && *fold.record.hash() == value.record_hash
                && signatures.all(|signature| fold.signatures.contains(&signature.sender()))
        };
        if self.locked_fold().is_some_and(brings_nothing) {
            return Err(Ignored::Duplicate);
        }
        let verified = VerifiedActionCertifiedRecord::verify(value, &self.membership, &mut shared.memory)?;
        if self.head.is_none() {
            return self.take_genesis(&verified, shared, draft);
        }
        let action_hash = self.lock_certified(verified.record(), verified.signatures(), draft)?;
        self.evaluate(action_hash, shared, draft);
        Ok(())
    }

    /// What can be said of a record before its certificate is verified: it is new here and extends the head.
    pub(super) fn require_open(&self, value: &ActionCertifiedRecord, local: &AgentId) -> Result<(), Ignored> {
        if self.chain.holds(&value.record_hash) {
            return Err(Ignored::Duplicate);
        }
        let core = &value.record_core;
        // An empty conversation takes a GENESIS that every member signed whatever its own anchor is.
        let of_anchor = core.anchor_hash() == self.anchor.hash() || self.head.is_none();
        if core.previous_record_hash() != self.head_record() || !of_anchor {
            return Err(Ignored::NotGapFree);
        }
        self.require_new_post(core.post_intent(), local)
    }

    /// Makes a verified record's action the locked one, superseding another lock where the chapter says so, and merges the
    /// signatures of its certificate.
    ///
    /// The action of a record received so is never signed: its certificate is complete.
    pub(super) fn lock_certified(
        &mut self,
        record: &VerifiedRecordCore,
        signatures: &SignerMap,
        draft: &mut Draft<'_>,
    ) -> Result<ActionHash, Ignored> {
        if record.position() != self.position() {
            return Err(Ignored::NotGapFree);
        }
        let action_hash = *record.action_hash();
        match self.locked {
            Some(locked) if locked == action_hash => {}
            Some(locked) => self.supersede(locked, record, signatures, draft)?,
            None => {
                let fold = Fold::new(record.clone());
                draft.commit(Transition::LockProposal(LockProposal {
                    lock: fold.lock_row(),
                }));
                draft.progress(&fold, Stage::Proposed);
                self.folds.insert(action_hash, fold);
                self.locked = Some(action_hash);
            }
        }
        let Some(fold) = self.folds.get_mut(&action_hash) else {
            return Err(Ignored::NoSubject);
        };
        let mut known = true;
        for signature in signatures.iter() {
            if fold.signatures.merge(signature.clone()) == Ok(Merge::Added) {
                known = false;
                keep(&fold.record, signature, draft);
                draft.progress(
                    fold,
                    Stage::ActionSigned {
                        by: *signature.signer(),
                    },
                );
            }
        }
        if known && fold.staged {
            Err(Ignored::Duplicate)
        } else {
            Ok(action_hash)
        }
    }

    /// Moves the lock from `locked` to a record that a quorum signed, in one transition with the whole certificate.
    fn supersede(
        &mut self,
        locked: ActionHash,
        record: &VerifiedRecordCore,
        signatures: &SignerMap,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        let Some(loser) = self.folds.get(&locked) else {
            return Err(Ignored::Locked);
        };
        if self.head.is_none() || has(Bug::CompetitorRefused) {
            return Err(Ignored::Locked);
        }
        if loser.staged && !has(Bug::StagedSuperseded) {
            return Err(Ignored::LockedAndStaged);
        }
        let mut fold = Fold::new(record.clone());
        fold.signatures = signatures.clone();
        draft.commit(Transition::SupersedeLock(SupersedeLock {
            superseded_action_hash: locked.to_string(),
            superseded_record_hash: loser.record.hash().to_string(),
            lock: fold.lock_row(),
            certificate: fold
                .evidence_rows()
                .into_iter()
                .take(if has(Bug::SupersedeWithoutCertificate) {
                    1
                } else {
                    usize::MAX
                })
                .collect(),
        }));
        draft.progress(&fold, Stage::Proposed);
        for signature in signatures.iter() {
            draft.progress(
                &fold,
                Stage::ActionSigned {
                    by: *signature.signer(),
                },
            );
        }
        if !has(Bug::SupersededFoldKept) {
            self.folds.remove(&locked);
        }
        self.locked = Some(*record.action_hash());
        self.folds.insert(*record.action_hash(), fold);
        Ok(())
    }
}

/// Keeps a statement about a record or its action.
pub(super) fn keep(record: &VerifiedRecordCore, evidence: &VerifiedEvidence, draft: &mut Draft<'_>) {
    if let Some(row) = evidence_row(record, evidence) {
        draft.commit(Transition::MergeEvidence(MergeEvidence {
            evidence: row,
            previous_record_hash: record.core().previous_record_hash().map(ToString::to_string),
        }));
    }
}

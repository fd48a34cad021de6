//! Staging a record, voting for it, certifying it ("Action validity and storage durability").

use super::conversation::Conversation;
use super::draft::Draft;
use super::effect::{Delivery, Effect, RecoveryReason, SentPost, Stage};
use super::error::Fatal;
use super::fold::Fold;
use super::host::answer;
use super::ignored::Ignored;
use super::shared::{DeliveryEntry, Shared, take};
use super::text::canonical;
use crate::certificates::VerifiedEvidence;
use crate::planted::{Bug, has};
use crate::projection::Message;
use crate::store::Transition;
use crate::store::rows::{ObligationRow, PendingDeliveryRow};
use crate::store::transition::{ApplyRecord, Completion, PromoteRecord, StageRecord};
use crate::values::{
    ActionHash, CertifiedRecord, ClosedValue, DeliveryToken, DirectPacket, DurabilityVoteKind,
    DurabilityVoteStatement,
};
use crate::verification::VerifiedCertifiedRecord;

impl Conversation {
    /// Goes as far with an action as what is held of it allows.
    pub(super) fn evaluate(&mut self, action_hash: ActionHash, shared: &mut Shared, draft: &mut Draft<'_>) {
        let Some(fold) = self.folds.get(&action_hash) else {
            return;
        };
        if fold.ordinal.is_some() {
            return;
        }
        // After a vote to leave the anchor nothing more is staged or voted for under it.
        if !fold.staged
            && (!self.has_candidate() || has(Bug::StagesWhileLeaving))
            && fold.action_complete(&self.membership)
        {
            self.stage(action_hash, shared, draft);
        }
        let Some(fold) = self.folds.get(&action_hash) else {
            return;
        };
        if fold.staged && fold.durable(&self.membership) {
            let Some(certified) = fold.certified(&self.anchor, &self.membership) else {
                return shared.fail(Fatal::OwnValue("a complete record does not assemble".to_owned()));
            };
            self.certify(certified, false, shared, draft);
        }
    }

    /// Stages a record for the first time: the copy goes out before the vote.
    fn stage(&mut self, action_hash: ActionHash, shared: &mut Shared, draft: &mut Draft<'_>) {
        let Some(fold) = self.folds.get(&action_hash) else {
            return;
        };
        draft.progress(fold, Stage::ActionComplete);
        let record = fold.record.clone();
        draft.commit(Transition::StageRecord(StageRecord {
            record: fold.staged_row(),
            obligation: ObligationRow {
                conversation_id: record.core().conversation_id().to_string(),
                record_hash: record.hash().to_string(),
                obligation_sequence: take(&mut shared.numbers.obligation),
                outbound_id: None,
            },
        }));
        if !has(Bug::OnlyAuthorShares) || *record.author() == shared.local_id {
            self.send_copy(action_hash, shared, draft);
        }
        let statement = DurabilityVoteStatement {
            sharness_version: record.sharness_version(),
            kind: DurabilityVoteKind,
            signer_agent_id: shared.local_id,
            conversation_id: *record.core().conversation_id(),
            membership_hash: *record.membership_hash(),
            record_hash: *record.hash(),
        };
        let vote = self.sign(statement.into(), &record, shared, draft);
        if let (Some(vote), Some(fold)) = (vote, self.folds.get_mut(&action_hash)) {
            fold.staged = true;
            // The map is about this very record.
            let _ = fold.votes.merge(vote);
            draft.progress(fold, Stage::Stored { by: shared.local_id });
        }
        if self
            .proposal
            .as_ref()
            .is_some_and(|open| open.action_hash == action_hash)
        {
            self.close_proposal(draft);
        }
    }

    /// Puts the copy that is owed for a staged record on its way.
    pub(super) fn send_copy(&self, action_hash: ActionHash, shared: &mut Shared, draft: &mut Draft<'_>) {
        let copy = self.folds.get(&action_hash).and_then(|fold| {
            let anchor = self.chain.anchor(fold.record.anchor_hash())?;
            fold.action_certified(anchor, &self.membership)
        });
        let Some(copy) = copy else {
            return shared.fail(Fatal::OwnValue("a staged record does not assemble".to_owned()));
        };
        let packet: DirectPacket = copy.to_value().into();
        shared.enqueue(
            &self.membership,
            &packet.encode(),
            Vec::new(),
            Some(*copy.record().hash()),
            draft,
        );
    }

    /// A record with both certificates: applied in one transition, without an own vote.
    pub(super) fn on_certified(
        &mut self,
        value: CertifiedRecord,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        if let Err(reason) = self.require_open(&value.action_certified_record, &shared.local_id) {
            if reason == Ignored::NotGapFree && self.is_recovered() {
                let verified = VerifiedCertifiedRecord::verify(value, &self.membership, &mut shared.memory)?;
                self.on_missed(*verified.record().hash(), shared, draft);
            }
            return Err(reason);
        }
        let verified = VerifiedCertifiedRecord::verify(value, &self.membership, &mut shared.memory)?;
        self.apply_certified(verified, shared, draft)
    }

    /// Applies a verified record that was received whole, on its own or in a catch-up page.
    pub(super) fn apply_certified(
        &mut self,
        verified: VerifiedCertifiedRecord,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        // After a vote to leave the anchor no own vote under it is kept, not even one inside a certificate.
        let forbidden = |vote: &&VerifiedEvidence| self.has_candidate() && *vote.signer() == shared.local_id;
        let votes: Vec<VerifiedEvidence> = verified
            .votes()
            .iter()
            .filter(|vote| !forbidden(vote))
            .cloned()
            .collect();
        if votes.len() < self.membership.quorum() {
            return Err(Ignored::CandidateStaged);
        }
        self.take_foundation(&verified, draft);
        let action_hash = match self.lock_certified(verified.record(), verified.signatures(), draft) {
            // A staged record whose signatures are all known still gains its votes.
            Err(Ignored::Duplicate) => *verified.record().action_hash(),
            other => other?,
        };
        let Some(fold) = self.folds.get_mut(&action_hash) else {
            return Err(Ignored::NoSubject);
        };
        for vote in votes {
            // What is kept of a signer stays; the evidence of the certificate completes it.
            let _ = fold.votes.merge(vote);
        }
        if has(Bug::WholeRecordStagedFirst) {
            // As if it had come as signatures and votes.
            self.evaluate(action_hash, shared, draft);
            return Ok(());
        }
        let Some(certified) = fold.certified(&self.anchor, &self.membership) else {
            shared.fail(Fatal::OwnValue("a verified record does not assemble".to_owned()));
            return Ok(());
        };
        for vote in certified.votes().iter() {
            draft.progress(fold, Stage::Stored { by: *vote.signer() });
        }
        self.certify(certified, true, shared, draft);
        let anchored = self.anchored_instance();
        match shared.instance {
            // A foundation of another instance was taken.
            Some(current)
                if current != anchored
                    && self
                        .run()
                        .is_none_or(|run| run.reason == RecoveryReason::HistoryMissing) =>
            {
                let reason = RecoveryReason::RouterInstanceChanged { anchored, current };
                self.begin_run(reason, None, shared, draft);
                self.show_status(draft);
            }
            _ => {}
        }
        Ok(())
    }

    /// Certifies a record: head, completion or delivery, and all evidence, in one transition.
    fn certify(
        &mut self,
        certified: VerifiedCertifiedRecord,
        received_whole: bool,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) {
        let action_hash = *certified.record().action_hash();
        let Some(fold) = self.folds.get(&action_hash) else {
            return;
        };
        let (record, ordinal, evidence) = (fold.staged_row(), self.next_ordinal, fold.evidence_rows());
        let Some((completion, delivery)) = self.completion(&certified, fold, shared, draft) else {
            return shared.fail(Fatal::OwnValue("a certified record has no projection".to_owned()));
        };
        draft.commit(if received_whole {
            Transition::ApplyRecord(ApplyRecord {
                record,
                ordinal,
                evidence,
                completion,
            })
        } else {
            Transition::PromoteRecord(PromoteRecord {
                record,
                ordinal,
                evidence,
                completion,
            })
        });
        draft.progress(fold, Stage::Certified { ordinal });
        draft.step.effects.extend(delivery);
        self.close_proposal(draft);
        self.advance_head(action_hash);
        self.finish_intent(&certified, draft);
        if has(Bug::AssembledBroadcast) && !received_whole {
            let packet: DirectPacket = certified.to_value().into();
            shared.enqueue(&self.membership, &packet.encode(), Vec::new(), None, draft);
        }
        if self.is_recovered() || has(Bug::RebaseWhileFenced) {
            self.propose(shared, draft);
        } else {
            self.move_on(shared, draft);
        }
    }

    /// What certifying a record finishes, and the delivery to emit for it.
    fn completion(
        &self,
        certified: &VerifiedCertifiedRecord,
        fold: &Fold,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Option<(Completion, Option<Effect>)> {
        if *fold.record.author() == shared.local_id {
            return Some((Completion::LocalPost, None));
        }
        let message = Message::for_recipient(certified, &self.membership, &shared.local_id)?;
        let delivery_token = DeliveryToken::mint(draft.randomness);
        let delivery = Delivery {
            delivery_token,
            delivery_sequence: take(&mut shared.numbers.delivery),
            conversation_id: *self.membership.conversation_id(),
            record_hash: *fold.record.hash(),
            canonical_message: canonical(&message),
        };
        shared.deliveries.insert(
            delivery_token,
            DeliveryEntry {
                conversation_id: delivery.conversation_id,
                record_hash: delivery.record_hash,
                acknowledged: false,
            },
        );
        let row = PendingDeliveryRow {
            conversation_id: delivery.conversation_id.to_string(),
            record_hash: delivery.record_hash.to_string(),
            delivery_sequence: delivery.delivery_sequence,
            delivery_token: delivery_token.to_string(),
            recipient_agent_id: shared.local_id.to_string(),
            canonical_message: delivery.canonical_message.clone(),
            acknowledged: false,
        };
        Some((Completion::Delivery(row), Some(Effect::Deliver(delivery))))
    }

    /// Takes a certified post of the local agent from the unfinished ones.
    fn finish_intent(&mut self, certified: &VerifiedCertifiedRecord, draft: &mut Draft<'_>) {
        let finished = certified.record_core().post_intent();
        let place = self.intents.iter().position(|held| {
            held.intent.post_id == finished.post_id && held.intent.author_agent_id == finished.author_agent_id
        });
        let Some(intent) = place.and_then(|place| self.intents.remove(place)) else {
            return;
        };
        if let Some(request_id) = intent.request_id {
            let post = SentPost {
                conversation_id: finished.conversation_id,
                post_id: finished.post_id,
                record_hash: *certified.record().hash(),
            };
            answer(request_id, Ok(post), draft);
        }
    }
}

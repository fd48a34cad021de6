//! Staged successors: records that a member staged and that were not certified when the order ended.
//!
//! A holder shows its successor instead of saying "incomplete", and never votes to re-anchor behind it. A member that
//! re-anchors stages another's successor only once it holds the record and the votes of more than `n - q(n)` others for it;
//! before that it holds, for its position, one record and the latest vote of each other member, so nothing a member sends
//! grows what is held.

use conclave_harness::AgentId;

use crate::certificates::{Merge, Subject, VerifiedEvidence, conversion_votes};
use crate::engine::conversation::Conversation;
use crate::engine::draft::Draft;
use crate::engine::effect::Stage;
use crate::engine::fold::Fold;
use crate::engine::ignored::Ignored;
use crate::engine::shared::Shared;
use crate::engine::vote::keep;
use crate::ordered::OrderedMap;
use crate::planted::{Bug, has};
use crate::values::{ActionCertifiedRecord, ClosedValue, DirectPacket, RecordHash};
use crate::verification::VerifiedActionCertifiedRecord;

/// What is held for one position.
#[derive(Clone, Debug, Default)]
pub(super) struct Hold {
    record: Option<VerifiedActionCertifiedRecord>,
    votes: OrderedMap<AgentId, VerifiedEvidence>,
    /// The record could not be locked here: it is not tried again at this position.
    refused: bool,
}

impl Hold {
    /// How many messages of members are held.
    pub(super) fn len(&self) -> usize {
        usize::from(self.record.is_some()) + self.votes.len()
    }

    /// Keeps a member's latest vote. One for the held record stays: whoever relays an older one cannot take it away.
    fn keep(&mut self, vote: VerifiedEvidence) -> Result<(), Ignored> {
        let wanted = self
            .record
            .as_ref()
            .map(|held| held.record().durability_subject());
        let is_kept = self
            .votes
            .get(vote.signer())
            .is_some_and(|held| Some(held.subject()) == wanted);
        if is_kept {
            return Err(Ignored::Duplicate);
        }
        self.votes.insert(*vote.signer(), vote);
        Ok(())
    }
}

impl Conversation {
    /// The own staged, uncertified successor of the head.
    pub(in crate::engine) fn staged_successor(&self) -> Option<&Fold> {
        self.locked_fold().filter(|fold| fold.staged)
    }

    /// Sends the own successor and then the own vote for it.
    pub(super) fn show_successor(
        &self,
        requester: Option<AgentId>,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) {
        let Some(fold) = self.staged_successor() else {
            return;
        };
        let copy = fold.action_certified(&self.anchor, &self.membership);
        let vote = fold.votes.get(&shared.local_id);
        let (Some(copy), Some(vote)) = (copy, vote) else {
            return;
        };
        let packet: DirectPacket = copy.to_value().into();
        for plaintext in [packet.encode(), vote.encoded().to_canonical_bytes()] {
            match requester {
                Some(requester) => shared.enqueue_answer(&self.membership, &plaintext, requester, draft),
                None => shared.enqueue(&self.membership, &plaintext, Vec::new(), None, draft),
            }
        }
    }

    /// A member's record that extends the head, while the conversation is fenced.
    pub(super) fn on_successor(
        &mut self,
        value: ActionCertifiedRecord,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        self.require_open(&value, &shared.local_id)?;
        if self.has_candidate() && !has(Bug::StagesWhileLeaving) {
            return Err(Ignored::CandidateStaged);
        }
        let verified = VerifiedActionCertifiedRecord::verify(value, &self.membership, &mut shared.memory)?;
        if self.head.is_none() {
            // No re-anchor leaves an empty conversation, so no votes are waited for.
            return self.take_genesis(&verified, shared, draft);
        }
        let is_staged = self
            .staged_successor()
            .is_some_and(|fold| fold.record.hash() == verified.record().hash());
        let Some(run) = self.run_mut() else {
            return Err(Ignored::NotRecovering);
        };
        if is_staged || !run.is_reanchoring() {
            let action_hash = self.lock_certified(verified.record(), verified.signatures(), draft)?;
            self.evaluate(action_hash, shared, draft);
            return Ok(());
        }
        if run.hold.record.is_some() {
            return Err(Ignored::Duplicate);
        }
        run.hold.record = Some(verified);
        self.convert(shared, draft);
        Ok(())
    }

    /// A member's vote for a record, while the conversation is fenced.
    pub(super) fn on_successor_vote(
        &mut self,
        record_hash: RecordHash,
        vote: VerifiedEvidence,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        if let Some(action_hash) = self.action_of(&record_hash)
            && self.folds.get(&action_hash).is_some_and(|fold| fold.staged)
        {
            return self.take_evidence(action_hash, vote, shared, draft);
        }
        if self.chain.holds(&record_hash) || *vote.signer() == shared.local_id {
            return Err(Ignored::Duplicate);
        }
        if !self.is_about_this_conversation(&vote) {
            return Err(Ignored::NoSubject);
        }
        if self.has_candidate() && !has(Bug::StagesWhileLeaving) {
            return Err(Ignored::CandidateStaged);
        }
        match self.run_mut() {
            Some(run) if run.is_reanchoring() => run.hold.keep(vote)?,
            _ => return Err(Ignored::NotStaged),
        }
        self.convert(shared, draft);
        Ok(())
    }

    fn is_about_this_conversation(&self, vote: &VerifiedEvidence) -> bool {
        matches!(vote.subject(), Subject::Record { conversation_id, membership_hash, .. }
            if conversation_id == *self.membership.conversation_id() && membership_hash == *self.membership.hash())
    }

    /// Stages the held record once enough others voted for it. One attempt for each position.
    fn convert(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        let needed = conversion_votes(self.membership.len());
        let Some(run) = self.run_mut() else { return };
        let Some(record) = run.hold.record.clone().filter(|_| !run.hold.refused) else {
            return;
        };
        let subject = record.record().durability_subject();
        let votes: Vec<_> = run
            .hold
            .votes
            .values()
            .filter(|vote| vote.subject() == subject)
            .cloned()
            .collect();
        if votes.len() < needed {
            return;
        }
        // Whatever comes of it, it was the one attempt.
        run.hold.refused = true;
        let Ok(action_hash) = self.lock_certified(record.record(), record.signatures(), draft) else {
            return;
        };
        self.evaluate(action_hash, shared, draft);
        let Some(fold) = self.folds.get_mut(&action_hash).filter(|fold| fold.staged) else {
            return;
        };
        for vote in votes {
            if fold.votes.merge(vote.clone()) == Ok(Merge::Added) {
                keep(&fold.record, &vote, draft);
                draft.progress(fold, Stage::Stored { by: *vote.signer() });
            }
        }
        self.evaluate(action_hash, shared, draft);
    }
}

//! Re-anchoring: which candidate is voted for, which votes count for it, and when it is complete.

use conclave_harness::{AgentId, RouterInstanceId};

use super::Run;
use crate::certificates::{CertificateRule, Merge, SignerMap, Subject, VerifiedEvidence};
use crate::engine::conversation::Conversation;
use crate::engine::draft::Draft;
use crate::engine::error::Fatal;
use crate::engine::ignored::Ignored;
use crate::engine::shared::Shared;
use crate::engine::text::{canonical, message_text};
use crate::planted::{Bug, has};
use crate::store::Transition;
use crate::store::rows::{EvidenceKind, EvidenceRow, ReanchorRow};
use crate::store::transition::{HeadLock, MergeEvidence, StageReanchor};
use crate::values::{
    CompletedReanchor, EvidenceStatement, ReanchorBody, ReanchorBodyKind, ReanchorVoteKind,
    ReanchorVoteStatement,
};
use crate::verification::VerifiedCompletedReanchor;

/// A candidate the local agent staged away from the current anchor, with the votes kept for it.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Candidate {
    pub(in crate::engine) body: ReanchorBody,
    pub(in crate::engine) votes: SignerMap,
}

impl Candidate {
    pub(in crate::engine) fn new(body: ReanchorBody) -> Self {
        let votes = SignerMap::new(Subject::Reanchor(body.hash()));
        Candidate { body, votes }
    }
}

/// The row of a re-anchor.
pub(in crate::engine) fn reanchor_row(
    body: &ReanchorBody,
    completed: Option<&CompletedReanchor>,
) -> ReanchorRow {
    ReanchorRow {
        conversation_id: body.conversation_id.to_string(),
        anchor_hash: body.hash().to_string(),
        previous_anchor_hash: body.previous_anchor_hash.to_string(),
        router_instance_id: body.router_instance_id.to_string(),
        selected_record_hash: body.selected_record_hash.to_string(),
        canonical_body: canonical(body),
        canonical_completed_reanchor: completed.map(canonical),
    }
}

impl Conversation {
    /// Whether a re-anchor leaves the current anchor at the head.
    pub(super) fn is_here(&self, body: &ReanchorBody) -> bool {
        body.previous_anchor_hash == *self.anchor.hash()
            && self.head_record() == Some(&body.selected_record_hash)
    }

    /// Whether the local agent voted to leave the current anchor. It then stages and votes for nothing under it.
    pub(in crate::engine) fn has_candidate(&self) -> bool {
        !self.candidates.is_empty()
    }

    fn candidate_of(&self, instance: &RouterInstanceId) -> Option<usize> {
        self.candidates
            .iter()
            .position(|candidate| candidate.body.router_instance_id == *instance)
    }

    /// The position is ready: nobody can supply what follows it.
    pub(super) fn settle(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        let Some(instance) = shared.instance else { return };
        if self.anchored_instance() == instance {
            if self.run().is_some_and(|run| run.left_anchor) {
                self.relay(shared, draft);
            }
            return self.recovered(shared, draft);
        }
        // A GENESIS that was staged here may be certified somewhere: its holder begins nothing else, and shows it.
        let holds_genesis = self.staged_successor().is_some() && !has(Bug::HolderBeginsAgain);
        if self.head.is_none() && !holds_genesis {
            return self.restart_empty(instance, shared, draft);
        }
        self.schedule_settled(draft);
        let is_holder = self.staged_successor().is_some() && !has(Bug::VoteBehindSuccessor);
        if is_holder || self.head.is_none() {
            return self.show_successor(None, shared, draft);
        }
        match self.candidate_of(&instance) {
            None => self.stage_candidate(instance, shared, draft),
            Some(place) if self.is_here(&self.candidates[place].body) => {
                self.send_own_vote(place, shared, draft);
            }
            // The head moved past it. A second one in its scope would be a second vote: another's is waited for.
            Some(_) => return,
        }
        let held: Vec<VerifiedEvidence> = self
            .run_mut()
            .map(|run| std::mem::take(&mut run.votes))
            .into_iter()
            .flat_map(crate::ordered::OrderedMap::into_values)
            .collect();
        for vote in held {
            if self.run().is_none_or(|run| !run.is_ready()) {
                return;
            }
            if let Err(reason) = self.on_reanchor_vote(vote, shared, draft) {
                draft.ignore(reason);
            }
        }
        self.complete_candidate(shared, draft);
    }

    fn stage_candidate(&mut self, instance: RouterInstanceId, shared: &mut Shared, draft: &mut Draft<'_>) {
        let Some(head) = self.head_fold() else { return };
        let body = ReanchorBody {
            // A shared value never takes its version from the binary that builds it.
            sharness_version: head.record.sharness_version(),
            kind: ReanchorBodyKind,
            conversation_id: *self.membership.conversation_id(),
            membership_hash: *self.membership.hash(),
            previous_anchor_hash: *self.anchor.hash(),
            selected_record_hash: *head.record.hash(),
            router_instance_id: instance,
        };
        draft.commit(Transition::StageReanchor(StageReanchor {
            candidate: reanchor_row(&body, None),
            locked: self.head_lock(),
        }));
        let statement = ReanchorVoteStatement {
            sharness_version: body.sharness_version,
            kind: ReanchorVoteKind,
            signer_agent_id: shared.local_id,
            anchor_hash: body.hash(),
            reanchor: body.clone(),
        };
        let mut candidate = Candidate::new(body);
        let signed = VerifiedEvidence::sign(statement.into(), &shared.local.card, &shared.local.key);
        let Some(vote) = signed else {
            return shared.fail(Fatal::OwnValue("a statement could not be signed".to_owned()));
        };
        self.keep_vote(&vote, draft);
        // The map is about this very body.
        let _ = candidate.votes.merge(vote);
        self.candidates.push(candidate);
        self.send_own_vote(self.candidates.len() - 1, shared, draft);
    }

    /// Sends what a settled position waits with: the staged successor, or the own vote for the candidate at the head.
    pub(super) fn show_settled(&self, shared: &mut Shared, draft: &mut Draft<'_>) {
        if self.staged_successor().is_some() {
            return self.show_successor(None, shared, draft);
        }
        let place = shared.instance.and_then(|instance| self.candidate_of(&instance));
        if let Some(place) = place.filter(|place| self.is_here(&self.candidates[*place].body)) {
            self.send_own_vote(place, shared, draft);
        }
    }

    fn send_own_vote(&self, place: usize, shared: &mut Shared, draft: &mut Draft<'_>) {
        if let Some(vote) = self.candidates[place].votes.get(&shared.local_id) {
            let plaintext = message_text(vote.encoded());
            shared.enqueue(&self.membership, plaintext.as_bytes(), Vec::new(), None, draft);
        }
    }

    fn keep_vote(&self, vote: &VerifiedEvidence, draft: &mut Draft<'_>) {
        let Subject::Reanchor(anchor_hash) = vote.subject() else {
            return;
        };
        draft.commit(Transition::MergeEvidence(MergeEvidence {
            evidence: EvidenceRow {
                conversation_id: self.membership.conversation_id().to_string(),
                evidence_kind: EvidenceKind::Reanchor,
                subject_id: anchor_hash.to_string(),
                evidence_key: vote.signer().to_string(),
                canonical_evidence: message_text(vote.encoded()),
            },
            previous_record_hash: None,
        }));
    }

    pub(super) fn head_lock(&self) -> Option<HeadLock> {
        self.locked_fold().map(|fold| HeadLock {
            action_hash: fold.record.action_hash().to_string(),
            record_hash: fold.record.hash().to_string(),
        })
    }

    /// A member's vote to re-anchor, judged by what is known of its position (`harness-client.md` 4.8).
    pub(super) fn on_reanchor_vote(
        &mut self,
        vote: VerifiedEvidence,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        let EvidenceStatement::ReanchorVote(statement) = vote.statement() else {
            return Err(Ignored::NoSubject);
        };
        let body = &statement.reanchor;
        if body.conversation_id != *self.membership.conversation_id()
            || body.membership_hash != *self.membership.hash()
        {
            return Err(Ignored::NoSubject);
        }
        if *vote.signer() == shared.local_id {
            return Err(Ignored::Duplicate);
        }
        let run = self.run().ok_or(Ignored::NotRecovering)?;
        let (here, ready) = (self.is_here(body), run.is_ready());
        let Some(instance) = shared.instance else {
            return Err(Ignored::NotRecovering);
        };
        if body.router_instance_id != instance {
            return if here {
                self.wait_for_everyone()
            } else {
                Err(Ignored::NotGapFree)
            };
        }
        if !run.is_reanchoring() || self.anchored_instance() == instance {
            return Err(Ignored::NotReanchoring);
        }
        let selects_head = self.head_record() == Some(&body.selected_record_hash);
        if selects_head && self.chain.anchor(&body.previous_anchor_hash).is_none() {
            return Err(Ignored::NotGapFree);
        }
        if !selects_head && !self.chain.holds(&body.selected_record_hash) {
            return self.on_unknown_head(vote, instance, shared, draft);
        }
        let counts = here && ready && self.staged_successor().is_none();
        let place = self.candidate_of(&instance);
        if let (true, Some(place)) = (counts, place)
            && self.is_here(&self.candidates[place].body)
        {
            return self.count_vote(place, vote, shared, draft);
        }
        self.hold_vote(vote);
        Ok(())
    }

    /// A vote for a head this endpoint lacks: the head is asked for, once for each member and position.
    fn on_unknown_head(
        &mut self,
        vote: VerifiedEvidence,
        instance: RouterInstanceId,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        if self.candidate_of(&instance).is_some() {
            return Err(Ignored::CandidateStaged);
        }
        let signer = *vote.signer();
        self.hold_vote(vote);
        self.ask_for(signer, shared, draft);
        Ok(())
    }

    pub(super) fn ask_for(&mut self, member: AgentId, shared: &mut Shared, draft: &mut Draft<'_>) {
        // While a question is open its answer is on its way, or the next retry's is.
        let prompts = |run: &mut Run| (run.is_ready() || run.paused) && run.prompted.insert(member);
        if self.run_mut().is_some_and(prompts) {
            self.ask(shared, draft);
        }
    }

    fn hold_vote(&mut self, vote: VerifiedEvidence) {
        if let Some(run) = self.run_mut() {
            run.votes.insert(*vote.signer(), vote);
        }
    }

    fn count_vote(
        &mut self,
        place: usize,
        vote: VerifiedEvidence,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        match self.candidates[place].votes.merge(vote.clone())? {
            Merge::Added => {}
            Merge::Existing => return Err(Ignored::Duplicate),
            Merge::Different => return Err(Ignored::DifferentCopy),
        }
        self.keep_vote(&vote, draft);
        self.complete_candidate(shared, draft);
        Ok(())
    }

    /// Leaves the anchor once a quorum voted for the candidate at the head.
    fn complete_candidate(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        let place = shared.instance.and_then(|instance| self.candidate_of(&instance));
        let Some(candidate) = place.map(|place| &self.candidates[place]) else {
            return;
        };
        let complete = candidate
            .votes
            .satisfies(&CertificateRule::Reanchor, self.membership.len());
        if !complete || !self.is_here(&candidate.body) || self.is_recovered() {
            return;
        }
        let (body, votes) = (candidate.body.clone(), candidate.votes.clone());
        let Some(completed) = VerifiedCompletedReanchor::assemble(body, votes, &self.membership) else {
            return shared.fail(Fatal::OwnValue(
                "a complete re-anchor does not assemble".to_owned(),
            ));
        };
        self.leave_anchor(completed, false, draft);
        self.relay(shared, draft);
        self.recovered(shared, draft);
    }
}

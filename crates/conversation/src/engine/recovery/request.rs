//! Asking: the position, the retries, and when enough members have answered.

use conclave_harness::AgentId;

use super::{Readiness, Run};
use crate::certificates::readiness_answers;
use crate::engine::conversation::Conversation;
use crate::engine::draft::Draft;
use crate::engine::effect::Effect;
use crate::engine::ignored::Ignored;
use crate::engine::input::TimerId;
use crate::engine::shared::Shared;
use crate::engine::timing::{CATCH_UP_BASE_MS, CATCH_UP_RETRIES_MAX, jittered};
use crate::planted::{Bug, has};
use crate::values::{
    CatchUpIncomplete, CatchUpItem, CatchUpPage, CatchUpRequest, CatchUpRequestKind, ClosedValue,
    DirectPacket,
};
use crate::verification::{VerifiedCatchUpIncomplete, VerifiedCatchUpItem, VerifiedCatchUpPage};

impl Conversation {
    /// What the local agent asks at its position. Both hashes are null before GENESIS.
    pub(super) fn catch_up_request(&self, shared: &Shared) -> CatchUpRequest {
        let known_record_hash = self.head_record().copied();
        CatchUpRequest {
            sharness_version: shared.local.wire_version,
            kind: CatchUpRequestKind,
            conversation_id: *self.membership.conversation_id(),
            membership_hash: *self.membership.hash(),
            requester_agent_id: shared.local_id,
            known_record_hash,
            known_anchor_hash: known_record_hash.map(|_| *self.anchor.hash()),
        }
    }

    /// Asks about the position afresh: answers to an earlier question no longer count.
    pub(super) fn ask(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        let request = self.catch_up_request(shared);
        let waits_for_all = self.candidates.iter().any(|candidate| {
            self.is_here(&candidate.body) && Some(candidate.body.router_instance_id) != shared.instance
        });
        let Some(run) = self.run_mut() else { return };
        run.request = request;
        run.answered.clear();
        run.readiness = if waits_for_all {
            Readiness::EveryMember
        } else {
            Readiness::Quorum
        };
        run.retries = 0;
        run.paused = false;
        self.send_request(shared, draft);
    }

    /// A member, the host or the transport stirred: what ran out of retries gets a fresh schedule.
    pub(in crate::engine) fn rearm(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        let Some(run) = self.run_mut() else { return };
        if !run.paused {
            return;
        }
        if run.readiness == Readiness::Ready {
            self.schedule_settled(draft);
            return self.show_settled(shared, draft);
        }
        run.paused = false;
        run.retries = 0;
        self.send_request(shared, draft);
    }

    fn send_request(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        let Some(run) = self.run() else { return };
        let packet: DirectPacket = run.request.clone().into();
        let at_ms = draft.now_ms + retry_delay(run, draft);
        shared.enqueue(&self.membership, &packet.encode(), Vec::new(), None, draft);
        draft.effect(Effect::SetTimer {
            id: TimerId::CatchUp(*self.membership.conversation_id()),
            at_ms,
        });
    }

    /// The time for an answer is over.
    pub(in crate::engine) fn retry_catch_up(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        let Some(run) = self.run_mut() else { return };
        if run.paused {
            return;
        }
        if run.readiness == Readiness::Ready {
            return self.retry_settled(shared, draft);
        }
        if run.retries < CATCH_UP_RETRIES_MAX {
            run.retries += 1;
            return self.send_request(shared, draft);
        }
        run.paused = true;
        run.readiness = Readiness::RetriesSpent;
        if self.head.is_none() {
            return self.settle_empty(shared, draft);
        }
        self.check_ready(shared, draft);
    }

    /// The position is settled and the run goes on: what it waits with is repeated on a schedule of its own.
    pub(super) fn schedule_settled(&mut self, draft: &mut Draft<'_>) {
        let conversation_id = *self.membership.conversation_id();
        let Some(run) = self.run_mut() else { return };
        run.retries = 0;
        run.paused = false;
        let at_ms = draft.now_ms + retry_delay(run, draft);
        draft.effect(Effect::SetTimer {
            id: TimerId::CatchUp(conversation_id),
            at_ms,
        });
    }

    /// Repeats the own vote to re-anchor, or the own staged successor: whoever missed it can get it from nobody else.
    fn retry_settled(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        let conversation_id = *self.membership.conversation_id();
        let Some(run) = self.run_mut() else { return };
        if run.retries >= CATCH_UP_RETRIES_MAX {
            run.paused = true;
            return;
        }
        run.retries += 1;
        let at_ms = draft.now_ms + retry_delay(run, draft);
        draft.effect(Effect::SetTimer {
            id: TimerId::CatchUp(conversation_id),
            at_ms,
        });
        self.show_settled(shared, draft);
    }

    /// The next item, from a member.
    pub(super) fn on_page(
        &mut self,
        sender: AgentId,
        page: CatchUpPage,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        self.require_asked(sender, &page.request, shared)?;
        if let CatchUpItem::CertifiedRecord(record) = &page.item {
            self.require_open(&record.action_certified_record, &shared.local_id)?;
        }
        let page = VerifiedCatchUpPage::verify(page, &sender, &self.membership, &mut shared.memory)?;
        match page.into_item() {
            VerifiedCatchUpItem::CertifiedRecord(record) => self.apply_certified(*record, shared, draft),
            VerifiedCatchUpItem::CompletedReanchor(completed) => self.adopt(*completed, shared, draft),
        }
    }

    /// A member cannot supply a next item.
    pub(super) fn on_incomplete(
        &mut self,
        sender: AgentId,
        incomplete: CatchUpIncomplete,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        self.require_asked(sender, &incomplete.request, shared)?;
        VerifiedCatchUpIncomplete::verify(incomplete, &sender, &self.membership, &mut shared.memory)?;
        let Some(run) = self.run_mut() else {
            return Err(Ignored::NotRecovering);
        };
        if !run.answered.insert(sender) {
            return Err(Ignored::Duplicate);
        }
        self.check_ready(shared, draft);
        Ok(())
    }

    fn require_asked(
        &self,
        sender: AgentId,
        request: &CatchUpRequest,
        shared: &Shared,
    ) -> Result<(), Ignored> {
        let run = self.run().ok_or(Ignored::NotRecovering)?;
        if sender == shared.local_id || *request != run.request {
            return Err(Ignored::NotAsked);
        }
        Ok(())
    }

    /// Settles the position once enough members have answered.
    fn check_ready(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        let members = self.membership.len();
        let conversation_id = *self.membership.conversation_id();
        let Some(run) = self.run_mut() else { return };
        let needed = match run.readiness {
            Readiness::Quorum | Readiness::RetriesSpent if has(Bug::ReadinessNeedsAll) => members - 1,
            Readiness::Quorum | Readiness::RetriesSpent => readiness_answers(members),
            Readiness::EveryMember => members - 1,
            Readiness::Ready => return,
        };
        if run.answered.len() >= needed {
            run.readiness = Readiness::Ready;
            draft.effect(Effect::CancelTimer {
                id: TimerId::CatchUp(conversation_id),
            });
            self.settle(shared, draft);
        }
    }

    /// Nobody need hold an empty conversation, so nobody need answer: a member that never saw its GENESIS cannot, and is
    /// told of it only by a new proposal. Going on is safe because a GENESIS needs every member's signature: should one be
    /// certified somewhere, its holder signs no other, and it is taken when it arrives.
    fn settle_empty(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        if let Some(run) = self.run_mut() {
            run.readiness = Readiness::Ready;
            self.settle(shared, draft);
        }
    }

    /// A vote for another instance's re-anchor at this very position: every member is waited for while retries last.
    pub(super) fn wait_for_everyone(&mut self) -> Result<(), Ignored> {
        match self.run_mut() {
            Some(run) if run.readiness == Readiness::Quorum => {
                run.readiness = Readiness::EveryMember;
                Ok(())
            }
            _ => Err(Ignored::Duplicate),
        }
    }
}

impl Run {
    /// Whether enough members answered.
    pub(in crate::engine) fn is_ready(&self) -> bool {
        self.readiness == Readiness::Ready
    }

    /// Whether a member answered the pending question.
    pub(in crate::engine) fn has_answer_of(&self, member: &AgentId) -> bool {
        self.answered.contains(member)
    }
}

/// Until the next retry; after the last one, until the retries are spent.
fn retry_delay(run: &Run, draft: &mut Draft<'_>) -> u64 {
    let doublings = run.retries.min(CATCH_UP_RETRIES_MAX - 1);
    jittered(CATCH_UP_BASE_MS, doublings, draft.randomness)
}

//! Leaving an anchor: by a re-anchor completed here or elsewhere, or, without a record, by beginning again.

use conclave_harness::{AgentId, RouterInstanceId};

use super::reanchor::reanchor_row;
use crate::engine::chain::Chain;
use crate::engine::conversation::{Conversation, foundation};
use crate::engine::draft::Draft;
use crate::engine::effect::RecoveryReason;
use crate::engine::error::Fatal;
use crate::engine::ignored::Ignored;
use crate::engine::shared::Shared;
use crate::engine::text::utf8;
use crate::planted::{Bug, has};
use crate::store::Transition;
use crate::store::rows::AnchorRow;
use crate::store::transition::{AdoptReanchor, CompleteReanchor, LeaveAnchor, RestartEmpty};
use crate::values::{ClosedValue, CompletedReanchor, DirectPacket, RouterAnchor};
use crate::verification::{
    VerifiedActionCertifiedRecord, VerifiedCertifiedRecord, VerifiedCompletedReanchor, VerifiedRouterAnchor,
};

impl Conversation {
    /// A member's completed re-anchor, by relay.
    pub(super) fn on_completed_reanchor(
        &mut self,
        sender: AgentId,
        value: CompletedReanchor,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        if self.chain.anchor(&value.anchor_hash).is_some() {
            return Err(Ignored::Duplicate);
        }
        let completed = VerifiedCompletedReanchor::verify(value, &self.membership, &mut shared.memory)?;
        if self.is_here(completed.body()) {
            return self.adopt(completed, shared, draft);
        }
        // It may fit once what it follows is there.
        self.ask_for(sender, shared, draft);
        Ok(())
    }

    /// Adopts a completed re-anchor at the position, and catches up from the new anchor before anything else.
    pub(super) fn adopt(
        &mut self,
        completed: VerifiedCompletedReanchor,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        if !self.is_here(completed.body()) {
            return Err(Ignored::NotGapFree);
        }
        self.leave_anchor(completed, true, draft);
        self.move_on(shared, draft);
        Ok(())
    }

    /// Makes a completed re-anchor the current anchor. Whatever was locked, staged or voted away from the old one goes.
    pub(super) fn leave_anchor(
        &mut self,
        completed: VerifiedCompletedReanchor,
        adopted: bool,
        draft: &mut Draft<'_>,
    ) {
        let body = completed.body();
        let row = reanchor_row(body, Some(completed.value()));
        let anchor_row = AnchorRow {
            conversation_id: row.conversation_id.clone(),
            anchor_hash: row.anchor_hash.clone(),
            position: self.chain.anchors().len() as u64,
            previous_anchor_hash: Some(row.previous_anchor_hash.clone()),
            selected_record_hash: Some(row.selected_record_hash.clone()),
            canonical_anchor: utf8(RouterAnchor::from(completed.value().clone()).encode()),
        };
        let leave = LeaveAnchor {
            reanchor: row,
            anchor: anchor_row,
            released: self.head_lock().filter(|_| !has(Bug::LockSurvivesReanchor)),
        };
        draft.commit(if adopted {
            Transition::AdoptReanchor(AdoptReanchor(leave))
        } else {
            Transition::CompleteReanchor(CompleteReanchor(leave))
        });
        if !has(Bug::LockSurvivesReanchor)
            && let Some(locked) = self.locked.take()
        {
            self.folds.remove(&locked);
        }
        self.close_proposal(draft);
        self.candidates.clear();
        self.anchor = VerifiedRouterAnchor::from(completed);
        self.chain.push_anchor(self.anchor.clone());
        if let Some(run) = self.run_mut() {
            run.left_anchor = true;
        }
    }

    /// Sends the current anchor's completed re-anchor.
    pub(super) fn relay(&self, shared: &mut Shared, draft: &mut Draft<'_>) {
        if let RouterAnchor::Completed(completed) = self.anchor.value() {
            let packet: DirectPacket = (**completed).clone().into();
            shared.enqueue(&self.membership, &packet.encode(), Vec::new(), None, draft);
        }
    }

    /// A conversation without a record begins again under the new instance. Its posts are proposed again.
    pub(super) fn restart_empty(
        &mut self,
        instance: RouterInstanceId,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) {
        let body = self.membership.genesis_anchor(instance);
        let verified = VerifiedRouterAnchor::verify(body.into(), &self.membership, &mut shared.memory);
        let Ok(anchor) = verified else {
            return shared.fail(Fatal::OwnValue(
                "an own genesis anchor does not verify".to_owned(),
            ));
        };
        self.found_again(anchor, draft);
        self.recovered(shared, draft);
    }

    /// A GENESIS that every member signed, shown to an empty conversation whatever its own anchor is: it is staged and voted
    /// for, unless another one is.
    ///
    /// Nobody who signed it need know what became of it in the order of its Router instance. So that at most one GENESIS is
    /// ever certified, an endpoint votes for one in all, of whatever instance, and whoever staged one signs no other: the
    /// certificates of two would share an honest voter. Members that began again meanwhile come back to it.
    pub(in crate::engine) fn take_genesis(
        &mut self,
        genesis: &VerifiedActionCertifiedRecord,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        let staged = self.staged_successor().map(|own| *own.record.hash());
        if staged.is_some_and(|staged| staged != *genesis.record().hash()) {
            return Err(Ignored::LockedAndStaged);
        }
        let comes_back = genesis.record().anchor_hash() != self.anchor.hash();
        if comes_back {
            self.found_again(genesis.verified_anchor(), draft);
        }
        let action_hash = self.lock_certified(genesis.record(), genesis.signatures(), draft)?;
        let anchored = self.anchored_instance();
        match shared.instance {
            Some(current) if comes_back && current != anchored => {
                let reason = RecoveryReason::RouterInstanceChanged { anchored, current };
                self.begin_run(reason, None, shared, draft);
                self.show_status(draft);
            }
            _ => {}
        }
        self.evaluate(action_hash, shared, draft);
        Ok(())
    }

    /// A certified GENESIS of another anchor than the one this empty conversation has: the anchor becomes the GENESIS's.
    ///
    /// No other can be certified, not even one that is staged here ([`take_genesis`](Self::take_genesis) says why).
    pub(in crate::engine) fn take_foundation(
        &mut self,
        genesis: &VerifiedCertifiedRecord,
        draft: &mut Draft<'_>,
    ) {
        let RouterAnchor::Genesis(_) = genesis.action_certified().anchor() else {
            return;
        };
        if self.head.is_some() || genesis.record().anchor_hash() == self.anchor.hash() {
            return;
        }
        let anchor = genesis.action_certified().verified_anchor();
        self.found_again(anchor, draft);
    }

    /// Replaces the genesis anchor of an empty conversation, and everything that was kept under it.
    fn found_again(&mut self, anchor: VerifiedRouterAnchor, draft: &mut Draft<'_>) {
        let (before, after) = (
            foundation(&self.membership, &self.anchor),
            foundation(&self.membership, &anchor),
        );
        draft.commit(Transition::RestartEmpty(RestartEmpty {
            membership: before.membership,
            expected: before.anchor,
            anchor: after.anchor,
        }));
        self.close_proposal(draft);
        self.folds.clear();
        self.locked = None;
        self.candidates.clear();
        self.chain = Chain::new(anchor.clone());
        self.anchor = anchor;
    }
}

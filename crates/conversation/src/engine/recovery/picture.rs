//! What a run waits for, for whoever watches. It decides nothing.

use super::{Readiness, Run};
use crate::certificates::{quorum, readiness_answers};
use crate::engine::conversation::Conversation;
use crate::engine::effect::{RecoveryPhase, RecoveryState};
use crate::engine::shared::Shared;
use crate::engine::timing::CATCH_UP_RETRIES_MAX;

impl Conversation {
    /// What the conversation's run waits for; none while it does not recover.
    pub(in crate::engine) fn recovery_state(&self, shared: &Shared) -> Option<RecoveryState> {
        let run = self.run()?;
        let members = self.membership.len();
        let (phase, heard, needed, missing) = match run.readiness {
            Readiness::Ready => {
                let successor = self.staged_successor();
                let (phase, votes) = match successor {
                    Some(fold) => (RecoveryPhase::StagedSuccessor, Some(&fold.votes)),
                    None => (RecoveryPhase::Reanchor, self.reanchor_votes(shared)),
                };
                let heard = votes.map_or(0, |votes| votes.iter().count());
                (phase, heard, quorum(members), self.missing(votes))
            }
            Readiness::EveryMember => {
                let (heard, missing) = self.answers(run, shared);
                (RecoveryPhase::EveryMember, heard, members - 1, missing)
            }
            Readiness::Quorum | Readiness::RetriesSpent => {
                let (heard, missing) = self.answers(run, shared);
                (RecoveryPhase::CatchUp, heard, readiness_answers(members), missing)
            }
        };
        Some(RecoveryState {
            reason: run.reason,
            phase,
            heard,
            needed,
            missing,
            retries_left: CATCH_UP_RETRIES_MAX.saturating_sub(run.retries),
            paused: run.paused,
        })
    }

    fn answers(&self, run: &Run, shared: &Shared) -> (usize, Vec<conclave_harness::AgentId>) {
        let missing = self.members(|member| *member != shared.local_id && !run.answered.contains(member));
        (run.answered.len(), missing)
    }
}

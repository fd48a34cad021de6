//! From the decision to the end of a publish across shards: applied everywhere, then its record and its ids are done
//! with. Decisions are sent for ever, by the alarm where the coordinator's own attempts fail.

use std::rc::Rc;

use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{ApplyRequest, Decision};
use conclave_sql::{Sql as _, SqlError};
use futures_util::future::join_all;
use prost::Message as _;

use super::{
    Shard,
    commit::{Running, outcome_unknown},
    holds::Transaction,
};
use crate::{
    planted::{Bug, has},
    platform::ObjectPlatform,
    status,
};

/// How often a decision is sent to a participant before the alarm takes over.
const APPLY_ATTEMPTS: u32 = 2;

impl<P: ObjectPlatform> Shard<P> {
    /// Sends a decision to every participant. Once all have applied it, its record and its ids are done with.
    pub(super) async fn apply_everywhere(
        self: &Rc<Self>,
        transaction: Transaction,
        decision: &Decision,
    ) -> Result<(), Status> {
        let calls = decision.parts.iter().filter_map(|part| {
            let apply = part.apply.as_ref()?;
            Some(self.apply_at(part.shard, apply))
        });
        let failure = join_all(calls).await.into_iter().find_map(Result::err);
        if let Some(failure) = failure
            && !has(Bug::DecisionDroppedEarly)
        {
            self.arm();
            return Err(outcome_unknown(&format!(
                "it is stored, and not visible everywhere yet: {failure}"
            )));
        }
        if self
            .coordinator
            .decisions
            .borrow_mut()
            .remove(&transaction)
            .is_some()
        {
            self.coordinator.finished.borrow_mut().push(transaction);
        }
        Ok(())
    }

    /// Sends every decision that is not applied everywhere to those who may miss it. One round at a time.
    pub(super) async fn apply_decisions(self: &Rc<Self>) {
        if self.coordinator.is_applying.replace(true) {
            return;
        }
        let applying = Running(&self.coordinator.is_applying);
        let decisions = self.coordinator.decisions.borrow().clone();
        for (transaction, decision) in decisions {
            let _ = self.apply_everywhere(transaction, &decision).await;
        }
        drop(applying);
    }

    /// The ids of forgotten records are done with.
    pub(super) fn close_finished(&self) {
        for transaction in self.coordinator.finished.take() {
            self.ids.close(transaction);
        }
    }

    /// Forgets what is applied everywhere now, not with the next commit.
    pub(super) fn flush_finished(&self) -> Result<(), Status> {
        if self.coordinator.finished.borrow().is_empty() {
            return Ok(());
        }
        let sql = self.platform.sql();
        sql.transaction(|| self.coordinator.forget_finished(sql))
            .map_err(|error: SqlError| status::from_sql_error(&error))?;
        self.close_finished();
        Ok(())
    }

    async fn apply_at(&self, shard: u32, apply: &ApplyRequest) -> Result<(), Status> {
        let mut failure = Status::unavailable("not sent");
        for _ in 0..APPLY_ATTEMPTS {
            match self.call_shard(shard, "apply", apply.encode_to_vec()).await {
                Ok(_) => return Ok(()),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

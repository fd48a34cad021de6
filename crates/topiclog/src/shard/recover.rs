//! What a restart finds unfinished, and the alarm that takes it up again.
//!
//! The alarm is set in the turn that makes it necessary, so it is as durable as what it is for; and when it goes off it
//! is set again before anything is tried, so a failure cannot lose it. It ends when nothing is left unfinished.

use std::{cell::Cell, collections::BTreeMap, rc::Rc};

use conclave_proto::conclave::internal::v1::{Decision, IdRange};
use conclave_sql::{Sql, SqlError};

use super::{
    Shard, decide,
    holds::{Holds, Transaction},
    prepared::{self, Held},
    retention::Retention,
};
use crate::{
    planted::{Bug, has},
    platform::ObjectPlatform,
};

/// How long after a failure the alarm tries again, in milliseconds.
pub(super) const RECOVERY_DELAY_MS: u64 = 5_000;

const NS_PER_MS: u64 = 1_000_000;

/// What is known of the alarm.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    /// When the alarm goes off, if this run has set it, in milliseconds since the Unix epoch.
    due_ms: Cell<Option<u64>>,
    is_touched: Cell<bool>,
}

/// What the tables say that memory must know.
#[derive(Debug)]
pub(super) struct Restored {
    pub(super) prepared: BTreeMap<Transaction, Held>,
    pub(super) decisions: BTreeMap<Transaction, Decision>,
    pub(super) holds: Holds,
    pub(super) open: BTreeMap<Transaction, IdRange>,
    pub(super) retention: Retention,
}

/// Reads what an earlier run left unfinished.
pub(super) fn restore(sql: &impl Sql) -> Result<Restored, SqlError> {
    let prepared = prepared::load(sql)?;
    let decisions = decide::load(sql)?;
    let mut holds = Holds::default();
    if !has(Bug::HoldsForgottenOnRestart) {
        for (transaction, held) in &prepared {
            holds.take(*transaction, held.keys.iter().cloned());
        }
    }
    let open = decisions
        .iter()
        .filter_map(|(transaction, decision)| Some((*transaction, decision.ids?)))
        .filter(|_| !has(Bug::BoundaryIgnoresDecisions))
        .collect();
    Ok(Restored {
        prepared,
        decisions,
        holds,
        open,
        retention: Retention::load(sql)?,
    })
}

impl<P: ObjectPlatform> Shard<P> {
    /// Takes up what an earlier run left, with the first call of this one.
    pub(super) fn recover_at_first_touch(self: &Rc<Self>) {
        if self.alarm.is_touched.replace(true) {
            return;
        }
        self.arm_retention();
        if self.is_finished() {
            return;
        }
        self.arm();
        let shard = Rc::clone(self);
        self.platform.spawn(async move { shard.recover().await });
    }

    /// Sets the alarm right where something is unfinished: a clock that was set back since has put it off. One that is
    /// overdue is not waited for: a clock that was set forward may have put it off as well.
    pub(super) fn keep_armed(self: &Rc<Self>) {
        if self.is_finished() {
            return;
        }
        let now_ms = self.platform.now_ns() / NS_PER_MS;
        let due_ms = self.alarm.due_ms.get();
        if due_ms.is_some_and(|due| due + RECOVERY_DELAY_MS < now_ms) {
            self.alarm.due_ms.set(None);
            self.arm();
            let shard = Rc::clone(self);
            self.platform.spawn(async move { shard.recover().await });
        } else {
            self.arm();
        }
    }

    /// One round over everything unfinished.
    pub(super) async fn recover(self: &Rc<Self>) {
        self.alarm.is_touched.set(true);
        self.alarm.due_ms.set(None);
        if self.commit.check().is_err() {
            return;
        }
        if self.flush_finished().is_err() || !self.is_finished() {
            self.arm();
        }
        self.subscribers.reintroduce(&self.platform);
        self.sweep_expired();
        self.apply_decisions().await;
        self.ask_outcomes().await;
        // A failure leaves it to the next round, or to the next commit.
        let _ = self.flush_finished();
    }

    /// Sets the alarm, unless it goes off soon enough.
    pub(super) fn arm(&self) {
        self.arm_at(self.platform.now_ns() / NS_PER_MS + RECOVERY_DELAY_MS);
    }

    pub(super) fn arm_at(&self, at_ms: u64) {
        if self.alarm.due_ms.get().is_none_or(|due| due > at_ms) {
            self.alarm.due_ms.set(Some(at_ms));
            self.platform.set_alarm(at_ms);
        }
    }

    fn is_finished(&self) -> bool {
        self.participant.is_idle() && self.coordinator.is_idle()
    }
}

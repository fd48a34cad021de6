//! Deleting what has expired: lazily, by alarm, a bounded number of rows at a time (OPS-001, OPS-002).
//!
//! Nothing is hidden before it is deleted, exempt envelopes are never deleted, and the newest envelope of a topic
//! never is: so heads, expected heads and the ends that streams were told of stay what they were, and a topic's next
//! envelope still names one before it that is not above what a stream has delivered. Only a duplicate of a deleted
//! envelope is new again.
//!
//! Finding expired rows takes no index, which would cost a row written per envelope. A pass walks the table in id order
//! and learns when the next one is worth while; it runs about once a day where envelopes expire every day, and never
//! where nothing can expire.

use std::{cell::Cell, rc::Rc};

use conclave_sql::{Sql, SqlError, Value};

use super::{Shard, batch::Fresh, rows};
use crate::{
    planted::{Bug, has},
    platform::ObjectPlatform,
};

pub(super) const TABLE: &str =
    "CREATE TABLE retention (id INTEGER PRIMARY KEY CHECK (id = 1), due_ms INTEGER NOT NULL)";

/// Rows looked at in one turn.
pub const SWEEP_ROWS: u32 = 500;
/// How long between two turns of a pass, in milliseconds.
pub const SWEEP_PAUSE_MS: u64 = 1_000;
/// How long an envelope is kept beyond its expiry, in milliseconds: passes gather a day's worth, and a clock that is wrong
/// by less deletes nothing too early.
pub const EXPIRY_SLACK_MS: u64 = 24 * 60 * 60 * 1_000;

const NS_PER_MS: u64 = 1_000_000;

const SWEEP: &str = "SELECT seq, topic_id, expiry_ns FROM envelope WHERE seq > ? ORDER BY seq LIMIT ?";

/// The newest of a topic stays.
const DELETE: &str =
    "DELETE FROM envelope WHERE seq = ?1 AND seq < (SELECT max(seq) FROM envelope WHERE topic_id = ?2)";

/// Where deletion stands.
#[derive(Debug, Default)]
pub(super) struct Retention {
    /// When the next pass begins, in milliseconds since the Unix epoch; as stored.
    due_ms: Cell<Option<u64>>,
    pass: Cell<Pass>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pass {
    /// The last row looked at.
    after: u64,
    /// The earliest expiry still to come, in nanoseconds since the Unix epoch.
    earliest_ns: Option<u64>,
}

impl Retention {
    pub(super) fn load(sql: &impl Sql) -> Result<Self, SqlError> {
        let rows = sql.query("SELECT due_ms FROM retention", &[])?;
        Ok(Self {
            due_ms: Cell::new(rows.first().map(|row| row.unsigned(0)).transpose()?),
            pass: Cell::default(),
        })
    }

    pub(super) fn due_ms(&self) -> Option<u64> {
        self.due_ms.get()
    }

    fn set_due(&self, sql: &impl Sql, due_ms: Option<u64>) -> Result<(), SqlError> {
        match due_ms {
            Some(due) => sql.execute(
                "INSERT INTO retention (id, due_ms) VALUES (1, ?1) ON CONFLICT (id) DO UPDATE SET due_ms = ?1",
                &[Value::integer(due)?],
            )?,
            None => sql.execute("DELETE FROM retention", &[])?,
        }
        self.due_ms.set(due_ms);
        Ok(())
    }

    /// Takes in what was stored. Whether the next pass is earlier for it.
    fn note(&self, sql: &impl Sql, fresh: &[Fresh]) -> Result<bool, SqlError> {
        let expiries = fresh.iter().map(|stored| stored.receipt.expiry_ns);
        let Some(earliest) = expiries.filter(|expiry| *expiry > 0).min() else {
            return Ok(false);
        };
        let due = due_after(earliest);
        // A pass that runs is due already, and comes to what is stored meanwhile.
        if self.due_ms.get().is_some_and(|known| known <= due) {
            return Ok(false);
        }
        self.set_due(sql, Some(due)).map(|()| true)
    }

    /// One turn of a pass. When the next one is due, in milliseconds since the Unix epoch.
    fn sweep(&self, sql: &impl Sql, now_ns: u64) -> Result<Option<u64>, SqlError> {
        let mut pass = self.pass.get();
        let rows = sql.query(SWEEP, &[Value::integer(pass.after)?, SWEEP_ROWS.into()])?;
        sql.transaction(|| {
            for row in &rows {
                let (sequence_id, expiry_ns) = (row.unsigned(0)?, rows::nanos(row, 2)?);
                pass.after = sequence_id;
                if expiry_ns == 0 {
                    continue;
                }
                if expiry_ns.saturating_add(EXPIRY_SLACK_MS * NS_PER_MS) < now_ns {
                    let statement = match has(Bug::NewestDeleted) {
                        true => "DELETE FROM envelope WHERE seq = ?1 AND topic_id = ?2",
                        false => DELETE,
                    };
                    sql.execute(
                        statement,
                        &[Value::integer(sequence_id)?, Value::integer(row.integer(1)?)?],
                    )?;
                } else {
                    pass.earliest_ns = Some(pass.earliest_ns.map_or(expiry_ns, |known| known.min(expiry_ns)));
                }
            }
            Ok::<(), SqlError>(())
        })?;
        if rows.len() as u64 == u64::from(SWEEP_ROWS) {
            self.pass.set(pass);
            return Ok(Some(now_ns / NS_PER_MS + SWEEP_PAUSE_MS));
        }
        self.pass.set(Pass::default());
        let due = pass.earliest_ns.map(due_after);
        self.set_due(sql, due)?;
        Ok(due)
    }
}

/// The pass that may delete an envelope comes after its slack is over.
fn due_after(expiry_ns: u64) -> u64 {
    expiry_ns / NS_PER_MS + EXPIRY_SLACK_MS + 1
}

impl<P: ObjectPlatform> Shard<P> {
    /// Remembers when the first of these may be deleted. A failure loses nothing: a later envelope brings the pass.
    pub(super) fn note_expiries(&self, fresh: &[Fresh]) {
        if let Ok(true) = self.retention.note(self.platform.sql(), fresh) {
            self.arm_retention();
        }
    }

    /// Runs one turn of a pass if one is due, and sets the alarm for what follows.
    pub(super) fn sweep_expired(self: &Rc<Self>) {
        let now_ns = self.platform.now_ns();
        let is_due = self
            .retention
            .due_ms()
            .is_some_and(|due| due <= now_ns / NS_PER_MS);
        if !is_due {
            self.arm_retention();
            return;
        }
        // Before anything can fail.
        self.arm_at(now_ns / NS_PER_MS + super::recover::RECOVERY_DELAY_MS);
        if let Ok(Some(next)) = self.retention.sweep(self.platform.sql(), now_ns) {
            self.arm_at(next);
        }
    }

    pub(super) fn arm_retention(&self) {
        if let Some(due) = self.retention.due_ms() {
            self.arm_at(due);
        }
    }
}

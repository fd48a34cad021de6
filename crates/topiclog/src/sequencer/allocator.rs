//! Hands out sequence ids and knows which of them may still be stored. No I/O but SQL; runs in the Sequencer, and in
//! shard 0 where it is the only shard.
//!
//! **Ids.** The next id is in memory, under a durable mark raised [`MARK_STEP`] at a time, so an allocation writes
//! nothing. After a restart ids continue above the mark: what lies between is a gap, which the contract allows.
//!
//! **Open ids.** A shard numbers its allocation calls and makes one at a time, and each carries the ids it still holds
//! from earlier ones. So the next call closes everything before it that it does not list, a call that arrives twice is
//! recognised, and an answer that was lost closes itself. Nothing is reported after a shard's last call; a status
//! request asks the shards that have open ids.
//!
//! **Restarts.** A restarted shard has a greater incarnation and holds nothing of the one before but what it lists. A
//! restarted allocator has a greater epoch and knows of no open ids: it computes no boundary until every shard has
//! spoken to it *knowing* that epoch, because from then on that shard ignores ids of an earlier one (a late answer of
//! the predecessor) and lists every id it holds.

use std::collections::BTreeSet;

use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{AllocateRequest, AllocateResponse, IdRange, ShardReport};
use conclave_sql::{INTEGER_MAX, Sql, SqlError, Value};

use crate::{
    planted::{Bug, has},
    status,
};

/// The table that keeps mark and epoch.
pub(crate) const TABLE: &str = "CREATE TABLE sequencer (id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL, mark INTEGER NOT NULL)";

/// How far beyond what it needs the durable mark is raised, in ids.
pub const MARK_STEP: u64 = 1 << 20;

/// The greatest sequence id that can be handed out: the greatest SQL integer that crosses exactly (API-286).
pub const SEQUENCE_ID_MAX: u64 = INTEGER_MAX as u64;

/// The most ids one call can ask for.
pub const ALLOCATION_COUNT_MAX: u32 = 1 << 24;

/// What is known of one shard under this epoch.
#[derive(Debug, Default)]
struct Holder {
    incarnation: u64,
    /// The latest state of the shard that was heard of, within its incarnation.
    revision: u64,
    /// The latest call heard of.
    call: u64,
    /// What that call was given, while it may still be stored or its answer asked for again.
    granted: Option<Grant>,
    /// Ids held from earlier calls.
    open: Vec<IdRange>,
    /// Whether the shard has spoken under this epoch, knowing it.
    heard: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grant {
    first: u64,
    count: u32,
}

impl Holder {
    fn lowest_open(&self) -> Option<u64> {
        let granted = self
            .granted
            .filter(|grant| grant.count > 0)
            .map(|grant| grant.first);
        self.open.iter().map(|range| range.first).chain(granted).min()
    }
}

/// The allocator of a deployment.
#[derive(Debug)]
pub(crate) struct Allocator {
    epoch: u64,
    next: u64,
    mark: u64,
    holders: Vec<Holder>,
    /// The greatest boundary computed so far.
    boundary: u64,
}

impl Allocator {
    /// Begins a new epoch above everything an earlier one may have handed out.
    pub(crate) fn open(sql: &impl Sql, shard_count: u32) -> Result<Self, SqlError> {
        let rows = sql.query("SELECT epoch, mark FROM sequencer", &[])?;
        let (epoch, mark) = match rows.first() {
            None => (0, 0),
            Some(row) => (row.unsigned(0)?, row.unsigned(1)?),
        };
        let mut allocator = Self {
            epoch: epoch + 1,
            next: mark + 1,
            mark,
            holders: (0..shard_count).map(|_| Holder::default()).collect(),
            boundary: 0,
        };
        allocator.persist(sql, mark)?;
        Ok(allocator)
    }

    /// The number of this run; greater than that of every run before.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The greatest id handed out, or never to be.
    pub(crate) fn last_allocated(&self) -> u64 {
        self.next - 1
    }

    /// Answers an allocation call, all but its Router instance.
    pub(crate) fn allocate(
        &mut self,
        sql: &impl Sql,
        request: &AllocateRequest,
    ) -> Result<AllocateResponse, Status> {
        let report = request
            .report
            .as_ref()
            .ok_or_else(|| Status::internal("an allocation without a report"))?;
        if request.count > ALLOCATION_COUNT_MAX {
            return Err(Status::internal("an allocation asks for too many ids"));
        }
        self.check_epoch(report)?;
        let holder = self.holder(report.shard)?;
        if report.incarnation < holder.incarnation {
            let later_incarnation = Some(holder.incarnation);
            return Ok(AllocateResponse {
                epoch: self.epoch,
                later_incarnation,
                ..Default::default()
            });
        }
        let repeated = report.incarnation == holder.incarnation && report.call == holder.call;
        let grant = match (repeated, holder.granted) {
            (true, Some(grant)) if grant.count == request.count => grant,
            (true, _) => return Err(Status::unavailable("the allocation call is over")),
            (false, _) if report.incarnation == holder.incarnation && report.call < holder.call => {
                return Err(Status::unavailable("a later allocation call is known"));
            }
            (false, _) => self.grant(sql, report, request.count)?,
        };
        Ok(AllocateResponse {
            first: grant.first,
            epoch: self.epoch,
            router_instance: String::new(),
            boundary: self.boundary(),
            later_incarnation: None,
        })
    }

    /// Takes in what a shard answered when it was asked. A report that a later one or an allocation call has overtaken
    /// changes nothing: it could list ids that are closed by now.
    pub(crate) fn hear(&mut self, report: &ShardReport) -> Result<(), Status> {
        self.check_epoch(report)?;
        let epoch = self.epoch;
        let holder = self.holder(report.shard)?;
        if (report.incarnation, report.revision) < (holder.incarnation, holder.revision) {
            return Ok(());
        }
        let same_call = report.incarnation == holder.incarnation && report.call == holder.call;
        if report.settled {
            holder.granted = None;
            holder.call = report.call;
        } else if !same_call {
            // Its latest call is still on its way here.
            holder.granted = None;
            holder.call = report.call.saturating_sub(1);
        }
        holder.incarnation = report.incarnation;
        holder.revision = report.revision;
        holder.open.clone_from(&report.open);
        holder.heard |= report.epoch == epoch;
        Ok(())
    }

    /// The shards that must be asked before the boundary can be computed, or could be higher.
    pub(crate) fn unsettled_shards(&self) -> BTreeSet<u32> {
        (0u32..)
            .zip(&self.holders)
            .filter(|(_, holder)| !holder.heard || holder.lowest_open().is_some())
            .map(|(shard, _)| shard)
            .collect()
    }

    /// The closed allocation boundary (API-203), or `None` while a shard has not been heard under this epoch.
    ///
    /// It never falls (API-291): ids are handed out in ascending order, and a range that is closed is never opened
    /// again; a restart begins above everything.
    pub(crate) fn boundary(&mut self) -> Option<u64> {
        if !self.holders.iter().all(|holder| holder.heard) {
            return None;
        }
        let lowest_open = self.holders.iter().filter_map(Holder::lowest_open).min();
        let computed = lowest_open.map_or(self.next - 1, |lowest| lowest - 1);
        debug_assert!(
            computed >= self.boundary,
            "the boundary falls from {} to {computed}",
            self.boundary
        );
        self.boundary = self.boundary.max(computed);
        Some(self.boundary)
    }

    /// A shard that knows a later epoch has ids of it, and others may have lower ones: nothing follows from it here. One
    /// that restarted has forgotten the epoch, and may still hold ids that only a successor can have handed out.
    fn check_epoch(&self, report: &ShardReport) -> Result<(), Status> {
        let is_later = |range: &IdRange| range.last >= self.next;
        match report.epoch > self.epoch || report.open.iter().any(is_later) {
            true => Err(Status::unavailable("this Sequencer has a successor")),
            false => Ok(()),
        }
    }

    fn holder(&mut self, shard: u32) -> Result<&mut Holder, Status> {
        self.holders
            .get_mut(shard as usize)
            .ok_or_else(|| Status::internal(format!("there is no shard {shard}")))
    }

    fn grant(&mut self, sql: &impl Sql, report: &ShardReport, count: u32) -> Result<Grant, Status> {
        let last = self.next - 1 + u64::from(count);
        if last > self.mark {
            let mark = last.saturating_add(MARK_STEP).min(SEQUENCE_ID_MAX);
            if last > mark {
                return Err(Status::internal("the sequence ids are used up"));
            }
            let durable = if has(Bug::MarkNotRaised) { 0 } else { mark };
            self.persist(sql, durable)
                .map_err(|error| status::from_sql_error(&error))?;
            self.mark = mark;
        }
        let grant = Grant {
            first: if count == 0 { 0 } else { self.next },
            count,
        };
        self.next = last + 1;
        let epoch = self.epoch;
        let holder = self.holder(report.shard)?;
        if (report.incarnation, report.revision) >= (holder.incarnation, holder.revision) {
            holder.revision = report.revision;
            holder.open.clone_from(&report.open);
        }
        holder.incarnation = report.incarnation;
        holder.call = report.call;
        holder.granted = Some(grant);
        holder.heard |= report.epoch == epoch;
        Ok(grant)
    }

    /// Durable before anything that follows from it leaves the object.
    fn persist(&mut self, sql: &impl Sql, mark: u64) -> Result<(), SqlError> {
        sql.execute(
            "INSERT INTO sequencer (id, epoch, mark) VALUES (1, ?1, ?2) \
             ON CONFLICT (id) DO UPDATE SET epoch = ?1, mark = ?2",
            &[Value::integer(self.epoch)?, Value::integer(mark)?],
        )?;
        self.mark = mark;
        Ok(())
    }
}

#[cfg(test)]
#[path = "allocator_tests.rs"]
mod tests;

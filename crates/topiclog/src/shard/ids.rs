//! A shard's side of allocation: asks for ids, knows which it still holds, and reports it.
//!
//! The commit loop makes one call at a time. What it may rely on: an answer given under an epoch older than the latest
//! the shard has heard of is never used, because a restarted Sequencer may have been told already that the shard holds
//! nothing of it (see [`crate::sequencer`]).

use std::{cell::RefCell, collections::BTreeMap};

use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{
    AllocateRequest, AllocateResponse, BirthRecord, IdRange, ReportRequest, ShardReport,
};
use conclave_sql::{Sql, SqlError, Value};
use prost::Message as _;

use super::holds::Transaction;
use crate::{
    answer,
    planted::{Bug, has},
    platform::{CallError, ObjectName, ObjectPlatform},
    sequencer::allocator::Allocator,
    status,
};

/// The table that keeps the incarnation.
pub(super) const TABLE: &str =
    "CREATE TABLE incarnation (id INTEGER PRIMARY KEY CHECK (id = 1), value INTEGER NOT NULL)";

/// How long a shard waits for ids, in milliseconds.
const ALLOCATE_DEADLINE_MS: u32 = 5_000;

/// How often one batch asks for ids. A lost answer costs ids, nothing else: they were never used.
const ALLOCATE_ATTEMPTS: u32 = 3;

/// Ids for one batch, and the Router instance they were given under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Allocation {
    /// The first of the ids asked for.
    pub(super) first: u64,
    /// The Router instance, as it was when the ids were given.
    pub(super) router_instance: String,
}

#[derive(Debug, Default)]
struct State {
    /// 0 until the first call of this run.
    incarnation: u64,
    call: u64,
    settled: bool,
    epoch: u64,
    held: Option<IdRange>,
    /// The ids of publishes across shards that are decided and not known to be applied everywhere.
    open: BTreeMap<Transaction, IdRange>,
    /// Raised with every change of what is reported.
    revision: u64,
    /// Ids taken in advance, which is a bug.
    #[cfg(feature = "planted-bugs")]
    spare: Option<(IdRange, String)>,
    /// The allocator itself, where this is the only shard.
    local: Option<Allocator>,
}

#[derive(Debug)]
pub(super) struct Ids<P> {
    platform: P,
    shard: u32,
    state: RefCell<State>,
}

impl<P: ObjectPlatform> Ids<P> {
    /// `open` are the ids that decision records carry.
    pub(super) fn new(platform: P, shard: u32, open: BTreeMap<Transaction, IdRange>) -> Self {
        Self {
            platform,
            shard,
            state: RefCell::new(State {
                settled: true,
                open,
                ..State::default()
            }),
        }
    }

    /// Asks for `count` ids. They are held until [`Ids::release`].
    pub(super) async fn allocate(&self, record: &BirthRecord, count: u32) -> Result<Allocation, Status> {
        #[cfg(feature = "planted-bugs")]
        if has(Bug::IdsTakenInAdvance) && count > 0 {
            return self.allocate_in_advance(record, count).await;
        }
        self.ask(record, count).await
    }

    /// The planted bug: ids of an earlier call for a publish that arrived after it.
    #[cfg(feature = "planted-bugs")]
    async fn allocate_in_advance(&self, record: &BirthRecord, count: u32) -> Result<Allocation, Status> {
        const SPARE: u32 = 64;
        let spare = self.state.borrow_mut().spare.take();
        let (first, last, router_instance) = match spare {
            Some((range, instance)) if range.last - range.first + 1 >= u64::from(count) => {
                (range.first, range.last, instance)
            }
            _ => {
                let asked = self.ask(record, count + SPARE).await?;
                let last = asked.first + u64::from(count + SPARE) - 1;
                (asked.first, last, asked.router_instance)
            }
        };
        let rest = IdRange {
            first: first + u64::from(count),
            last,
        };
        self.state.borrow_mut().spare = Some((rest, router_instance.clone()));
        Ok(Allocation {
            first,
            router_instance,
        })
    }

    async fn ask(&self, record: &BirthRecord, count: u32) -> Result<Allocation, Status> {
        let mut failure = Status::unavailable("no ids were allocated");
        for _ in 0..ALLOCATE_ATTEMPTS {
            let request = self.begin_call(record, count)?;
            match self.call(record, &request).await {
                Ok(Ok(response)) => {
                    if let Some(allocation) = self.conclude(response, count)? {
                        return Ok(allocation);
                    }
                }
                Ok(Err(refused)) => {
                    self.settle();
                    return Err(refused);
                }
                Err(lost) => {
                    self.settle();
                    failure = Status::unavailable(format!("no ids were allocated: {lost}"));
                }
            }
        }
        Err(failure)
    }

    /// The ids of the last allocation are stored, or never will be.
    pub(super) fn release(&self) {
        let mut state = self.state.borrow_mut();
        state.held = None;
        state.revision += 1;
    }

    /// Holds the ids of a decided publish until [`Ids::close`].
    pub(super) fn hold(&self, transaction: Transaction, ids: Option<IdRange>) {
        let mut state = self.state.borrow_mut();
        state.open.extend(ids.map(|ids| (transaction, ids)));
        state.revision += 1;
    }

    /// A decided publish is applied everywhere, and its record is gone.
    pub(super) fn close(&self, transaction: Transaction) {
        let mut state = self.state.borrow_mut();
        state.open.remove(&transaction);
        state.revision += 1;
    }

    /// The number of this run of the shard.
    pub(super) fn incarnation(&self) -> Result<u64, Status> {
        self.ensure_incarnation()?;
        Ok(self.state.borrow().incarnation)
    }

    /// Answers the Sequencer's question, and from here on ignores ids of an earlier epoch.
    pub(super) fn report(&self, request: &[u8]) -> Result<ShardReport, Status> {
        let ReportRequest { epoch } = ReportRequest::decode(request)
            .map_err(|_| Status::internal("a report request does not decode"))?;
        self.ensure_incarnation()?;
        let mut state = self.state.borrow_mut();
        state.epoch = state.epoch.max(epoch);
        state.revision += 1;
        Ok(self.report_of(&state))
    }

    /// The local allocator, up to date with what this shard holds. Only where this is the only shard.
    pub(super) fn with_local<T>(&self, use_it: impl FnOnce(&mut Allocator) -> T) -> Result<T, Status> {
        self.ensure_incarnation()?;
        self.open_local()?;
        let mut state = self.state.borrow_mut();
        if let Some(local) = &state.local {
            state.epoch = local.epoch();
        }
        state.revision += 1;
        let report = self.report_of(&state);
        let local = state
            .local
            .as_mut()
            .ok_or_else(|| Status::internal("there is no local allocator"))?;
        local.hear(&report)?;
        Ok(use_it(local))
    }

    fn begin_call(&self, record: &BirthRecord, count: u32) -> Result<AllocateRequest, Status> {
        self.ensure_incarnation()?;
        let mut state = self.state.borrow_mut();
        state.call += 1;
        state.settled = false;
        state.revision += 1;
        Ok(AllocateRequest {
            report: Some(self.report_of(&state)),
            identifier: record.identifier.clone(),
            shard_count: record.shard_count,
            count,
        })
    }

    async fn call(
        &self,
        record: &BirthRecord,
        request: &AllocateRequest,
    ) -> Result<Result<AllocateResponse, Status>, CallError> {
        if record.shard_count == 1 {
            return Ok(self.allocate_locally(record, request));
        }
        let encoded = request.encode_to_vec();
        let answered = self
            .platform
            .call(ObjectName::Sequencer, "allocate", encoded, ALLOCATE_DEADLINE_MS)
            .await?;
        Ok(answer::decode(answered).result.and_then(|response| {
            AllocateResponse::decode(response)
                .map_err(|_| Status::internal("an allocation answer does not decode"))
        }))
    }

    fn allocate_locally(
        &self,
        record: &BirthRecord,
        request: &AllocateRequest,
    ) -> Result<AllocateResponse, Status> {
        self.open_local()?;
        let mut state = self.state.borrow_mut();
        let local = state
            .local
            .as_mut()
            .ok_or_else(|| Status::internal("there is no local allocator"))?;
        let response = local.allocate(self.platform.sql(), request)?;
        Ok(AllocateResponse {
            router_instance: record.router_instance.clone(),
            ..response
        })
    }

    /// The call is over: whatever answer still comes is ignored.
    fn settle(&self) {
        let mut state = self.state.borrow_mut();
        state.settled = true;
        state.revision += 1;
    }

    /// Takes an answer in. `None` when it is void and the call must be made again.
    fn conclude(&self, response: AllocateResponse, count: u32) -> Result<Option<Allocation>, Status> {
        self.settle();
        let mut state = self.state.borrow_mut();
        if response.epoch < state.epoch && !has(Bug::EpochIgnored) {
            return Ok(None);
        }
        state.epoch = state.epoch.max(response.epoch);
        if let Some(later) = response.later_incarnation {
            // Storage was restored from an earlier time. If instead another run took this one's place, storage refuses
            // the write.
            state.incarnation = later + 1;
            state.call = 0;
            self.persist(state.incarnation)
                .map_err(|error| status::from_sql_error(&error))?;
            return Ok(None);
        }
        if count > 0 {
            if response.first == 0 {
                return Err(Status::internal("an allocation answer gives no ids"));
            }
            let last = response.first + u64::from(count) - 1;
            state.held = Some(IdRange {
                first: response.first,
                last,
            });
        }
        Ok(Some(Allocation {
            first: response.first,
            router_instance: response.router_instance,
        }))
    }

    fn report_of(&self, state: &State) -> ShardReport {
        ShardReport {
            shard: self.shard,
            incarnation: state.incarnation,
            call: state.call,
            settled: state.settled,
            open: state.held.iter().chain(state.open.values()).copied().collect(),
            epoch: state.epoch,
            revision: state.revision,
        }
    }

    fn open_local(&self) -> Result<(), Status> {
        let mut state = self.state.borrow_mut();
        if state.local.is_none() {
            let opened =
                Allocator::open(self.platform.sql(), 1).map_err(|error| status::from_sql_error(&error))?;
            state.epoch = opened.epoch();
            state.local = Some(opened);
        }
        Ok(())
    }

    /// Begins this run's incarnation: durable before the first call that names it leaves.
    fn ensure_incarnation(&self) -> Result<(), Status> {
        let mut state = self.state.borrow_mut();
        if state.incarnation == 0 {
            let previous = self.load().map_err(|error| status::from_sql_error(&error))?;
            self.persist(previous + 1)
                .map_err(|error| status::from_sql_error(&error))?;
            state.incarnation = previous + 1;
        }
        Ok(())
    }

    fn load(&self) -> Result<u64, SqlError> {
        let rows = self.platform.sql().query("SELECT value FROM incarnation", &[])?;
        rows.first().map_or(Ok(0), |row| row.unsigned(0))
    }

    fn persist(&self, incarnation: u64) -> Result<(), SqlError> {
        self.platform.sql().execute(
            "INSERT INTO incarnation (id, value) VALUES (1, ?1) ON CONFLICT (id) DO UPDATE SET value = ?1",
            &[Value::integer(incarnation)?],
        )
    }
}

//! The Sequencer: hands out sequence ids, keeps the birth record, computes the closed boundary. With one shard all of
//! this runs inside shard 0 (see [`crate::shard`]) and this object does not exist.

pub(crate) mod allocator;
pub(crate) mod operator;

use std::{
    cell::{RefCell, RefMut},
    rc::Rc,
};

use conclave_grpc_web::Status;
use conclave_proto::conclave::{
    internal::v1::{AllocateRequest, AllocateResponse, ReportRequest, ShardReport},
    operator::v1::GetStatusResponse,
    router::v1::GetInstanceResponse,
};
use futures_util::future::join_all;
use prost::Message as _;

use crate::{
    Configuration,
    answer::{self, Encoded},
    birth::{self, Birth, Role},
    platform::{ObjectName, ObjectPlatform},
    status,
    storage::{self, Migration, OpenError},
};
use allocator::Allocator;
pub use allocator::{ALLOCATION_COUNT_MAX, MARK_STEP, SEQUENCE_ID_MAX};

const MIGRATIONS: &[Migration] = &[&[birth::TABLE, allocator::TABLE]];

/// How long the Sequencer waits for a shard's report, in milliseconds.
const REPORT_DEADLINE_MS: u32 = 5_000;

/// The Sequencer, where it is an object of its own: with more than one shard.
#[derive(Debug)]
pub struct Sequencer<P: ObjectPlatform> {
    platform: P,
    configuration: Rc<Configuration>,
    birth: Birth<P>,
    /// Opened at the first need, because opening it begins an epoch.
    allocator: RefCell<Option<Allocator>>,
}

impl<P: ObjectPlatform> Sequencer<P> {
    /// Opens the Sequencer on its storage. A birth mismatch is not an error here: every call then answers it.
    ///
    /// # Errors
    /// [`OpenError`]; the object may be opened again later.
    pub fn open(platform: P, configuration: Rc<Configuration>) -> Result<Rc<Self>, OpenError> {
        storage::migrate(platform.sql(), MIGRATIONS)?;
        let birth = Birth::open(platform.clone(), Rc::clone(&configuration), Role::Sequencer)?;
        Ok(Rc::new(Self {
            platform,
            configuration,
            birth,
            allocator: RefCell::new(None),
        }))
    }

    /// Runs a method called by [`crate::platform::Platform::call`] and returns its encoded answer.
    pub async fn handle(self: Rc<Self>, method: &str, request: &[u8]) -> Vec<u8> {
        let result = self.dispatch(method, request).await;
        answer::finish(result, self.birth.router_instance().as_deref())
    }

    /// The alarm went off. The Sequencer sets none.
    pub async fn alarm(self: Rc<Self>) {}

    async fn dispatch(&self, method: &str, request: &[u8]) -> Result<Encoded, Status> {
        match method {
            "allocate" => self
                .allocate(request)
                .await
                .map(|response| Encoded::of(&response)),
            "birth" => self
                .birth
                .answer(request)
                .await
                .map(|response| Encoded::of(&response)),
            "instance" => self.instance().await.map(|response| Encoded::of(&response)),
            "status" => self.status().await.map(|response| Encoded::of(&response)),
            _ => Err(Status::unimplemented(format!(
                "the Sequencer has no method {method:?}"
            ))),
        }
    }

    async fn allocate(&self, request: &[u8]) -> Result<AllocateResponse, Status> {
        let request = AllocateRequest::decode(request)
            .map_err(|_| Status::internal("an allocation request does not decode"))?;
        let record = self.birth.ensure().await?;
        if (&request.identifier, request.shard_count) != (&record.identifier, record.shard_count) {
            return Err(Status::unavailable(format!(
                "this deployment is {:?} with {} shards, and a shard of {:?} with {} shards asks for ids",
                record.identifier, record.shard_count, request.identifier, request.shard_count
            )));
        }
        let response = self.allocator()?.allocate(self.platform.sql(), &request)?;
        Ok(AllocateResponse {
            router_instance: record.router_instance.clone(),
            ..response
        })
    }

    async fn instance(&self) -> Result<GetInstanceResponse, Status> {
        let router_instance_id = self.birth.ensure().await?.router_instance.clone();
        Ok(GetInstanceResponse { router_instance_id })
    }

    async fn status(&self) -> Result<GetStatusResponse, Status> {
        let record = self.birth.ensure().await?;
        let (epoch, unsettled) = {
            let allocator = self.allocator()?;
            (allocator.epoch(), allocator.unsettled_shards())
        };
        let reports = join_all(
            unsettled
                .into_iter()
                .map(|shard| self.ask_for_report(shard, epoch)),
        )
        .await;
        let mut allocator = self.allocator()?;
        for report in reports.into_iter().flatten() {
            allocator.hear(&report)?;
        }
        Ok(operator::status_of(&record, &mut allocator))
    }

    /// Where a shard stands with its ids, or `None` when it does not answer now.
    async fn ask_for_report(&self, shard: u32, epoch: u64) -> Option<ShardReport> {
        let request = ReportRequest { epoch }.encode_to_vec();
        let answered = self
            .platform
            .call(ObjectName::Shard(shard), "report", request, REPORT_DEADLINE_MS)
            .await
            .ok()?;
        ShardReport::decode(answer::decode(answered).result.ok()?)
            .ok()
            .filter(|report| report.shard == shard)
    }

    fn allocator(&self) -> Result<RefMut<'_, Allocator>, Status> {
        let mut slot = self.allocator.borrow_mut();
        if slot.is_none() {
            let opened = Allocator::open(self.platform.sql(), self.configuration.shard_count)
                .map_err(|error| status::from_sql_error(&error))?;
            *slot = Some(opened);
        }
        RefMut::filter_map(slot, Option::as_mut)
            .map_err(|_| Status::internal("the allocator is missing after it was opened"))
    }
}

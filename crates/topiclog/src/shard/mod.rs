//! A shard: stores and orders the topics of its slots, answers reads of them, and tells streams of what is new.
//!
//! - [`commit`]: the only writer of envelopes; `queue`, `batch` and `rows` are its parts;
//! - [`coordinate`], [`participate`]: publishes across shards, from either side; `decide`, `finish` and
//!   `prepared` are their steps and records, `holds` and `conditions` what they check;
//! - `recover`: what the alarm does; [`retention`]: deleting what has expired;
//! - `ids`: this shard's side of allocation;
//! - `read`: pages, newest envelopes, heads; `joined` is how a page leaves the database; `lookup`: duplicates, and inboxes by identifier and handle;
//! - `associations`: the index behind the latter;
//! - `subscribers`: the streams;
//! - `schema`: the tables.
//!
//! A shard never waits for a timer, so that it can sleep. Everything that leaves it (answers, calls, messages) is held
//! by the platform until every write before it is durable.

mod associations;
mod batch;
mod commit;
mod conditions;
pub mod coordinate;
mod decide;
mod finish;
mod holds;
mod ids;
mod joined;
mod lookup;
pub mod participate;
mod parts;
mod prepared;
pub mod queue;
mod read;
mod recover;
pub mod retention;
mod rows;
mod schema;
mod subscribers;

use std::rc::Rc;

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::{
    conclave::{
        internal::v1::{NewestRequest, PageRequest, PageResponse, ShardReport, StoredNewest},
        operator::v1::GetStatusResponse,
        router::v1::GetInstanceResponse,
    },
    xmtp::backend::v1::Continuation,
};
use prost::Message as _;

use crate::{
    Configuration,
    answer::{self, Encoded},
    birth::{Birth, Role},
    platform::{ObjectPlatform, SocketId},
    routing::Routing,
    sequencer::operator,
    status,
    storage::{self, OpenError},
};

/// One shard.
#[derive(Debug)]
pub struct Shard<P: ObjectPlatform> {
    platform: P,
    index: u32,
    configuration: Rc<Configuration>,
    routing: Routing,
    birth: Birth<P>,
    ids: ids::Ids<P>,
    commit: commit::Commit,
    coordinator: coordinate::Coordinator,
    participant: participate::Participant,
    alarm: recover::Alarm,
    retention: retention::Retention,
    subscribers: subscribers::Subscribers,
}

impl<P: ObjectPlatform> Shard<P> {
    /// Opens shard `index` on its storage. A birth mismatch is not an error here: every call then answers it.
    ///
    /// # Errors
    /// [`OpenError`]; the object may be opened again later.
    pub fn open(platform: P, index: u32, configuration: Rc<Configuration>) -> Result<Rc<Self>, OpenError> {
        storage::migrate(platform.sql(), schema::MIGRATIONS)?;
        let birth = Birth::open(platform.clone(), Rc::clone(&configuration), Role::Shard(index))?;
        let shard_count = configuration.shard_count;
        // Shard 0 exists at every shard count, and says so when another one's configuration does not fit its birth.
        if index >= shard_count {
            return Err(OpenError::NoSuchShard { index, shard_count });
        }
        let restored = recover::restore(platform.sql())?;
        Ok(Rc::new(Self {
            ids: ids::Ids::new(platform.clone(), index, restored.open),
            routing: Routing::at_birth(shard_count),
            commit: commit::Commit::new(restored.holds),
            coordinator: coordinate::Coordinator::new(restored.decisions),
            participant: participate::Participant::new(restored.prepared),
            alarm: recover::Alarm::default(),
            retention: restored.retention,
            subscribers: subscribers::Subscribers::default(),
            platform,
            index,
            configuration,
            birth,
        }))
    }

    /// Runs a method called by [`crate::platform::Platform::call`] and returns its encoded answer.
    pub async fn handle(self: Rc<Self>, method: &str, request: &[u8]) -> Vec<u8> {
        let result = self.dispatch(method, request).await;
        answer::finish(result, self.birth.router_instance().as_deref())
    }

    /// A message stream was accepted.
    pub fn opened(&self, socket: SocketId) {
        self.subscribers.opened(socket);
    }

    /// A message arrived on a stream.
    pub async fn message(self: Rc<Self>, socket: SocketId, message: &[u8]) {
        match self.birth.ensure().await {
            Ok(record) => {
                self.subscribers
                    .message(&self.platform, socket, message, &record.router_instance);
            }
            Err(refusal) => subscribers::Subscribers::refuse(&self.platform, socket, refusal),
        }
    }

    /// A stream ended.
    pub fn closed(&self, socket: SocketId) {
        self.subscribers.closed(socket);
    }

    /// The alarm went off: whatever a failure left unfinished is taken up again.
    pub async fn alarm(self: Rc<Self>) {
        self.recover().await;
    }

    async fn dispatch(self: &Rc<Self>, method: &str, request: &[u8]) -> Result<Encoded, Status> {
        self.commit.check()?;
        self.recover_at_first_touch();
        self.keep_armed();
        match method {
            "store" => self.store(request).await.map(|response| Encoded::of(&response)),
            "page" => self.page(request).await.map(|response| Encoded::of(&response)),
            "newest" => self.newest(request).await.map(|response| Encoded::of(&response)),
            "birth" => self
                .birth
                .answer(request)
                .await
                .map(|response| Encoded::of(&response)),
            "find" => self.find(request).await.map(|response| Encoded::of(&response)),
            "resolve" => self.resolve(request).await.map(|response| Encoded::of(&response)),
            "report" => self.report(request).map(|report| Encoded::of(&report)),
            "prepare" => self.prepare(request).await.map(|response| Encoded::of(&response)),
            "apply" => self.apply(request).await.map(|response| Encoded::of(&response)),
            "abort" => self.abort(request).map(|response| Encoded::of(&response)),
            "outcome" => self.outcome(request).map(|response| Encoded::of(&response)),
            "instance" => self.instance().await.map(|response| Encoded::of(&response)),
            "status" => self.status().await.map(|response| Encoded::of(&response)),
            _ => Err(Status::unimplemented(format!("a shard has no method {method:?}"))),
        }
    }

    async fn page(&self, request: &[u8]) -> Result<PageResponse, Status> {
        let request = PageRequest::decode(Bytes::copy_from_slice(request))
            .map_err(|_| Status::internal("a page request does not decode"))?;
        self.birth.ensure().await?;
        let bounds = read::PageBounds {
            limit: request.limit,
            max_bytes: request.max_bytes,
            at_least_one: false,
        };
        let page = read::page(self.platform.sql(), &request.positions, bounds)
            .map_err(|error| status::from_sql_error(&error))?;
        if request.whole && page.cut_by_bytes {
            return Err(too_long(request.max_bytes));
        }
        Ok(PageResponse {
            envelopes: page.envelopes,
            continuation: Some(Continuation {
                has_more: page.has_more,
            }),
            cut_by_bytes: page.cut_by_bytes,
        })
    }

    async fn newest(&self, request: &[u8]) -> Result<StoredNewest, Status> {
        let request = NewestRequest::decode(Bytes::copy_from_slice(request))
            .map_err(|_| Status::internal("a newest request does not decode"))?;
        self.birth.ensure().await?;
        let (full, max_bytes) = (request.include_full_envelope, request.max_bytes);
        read::newest(self.platform.sql(), &request.topics, full, max_bytes)
            .map_err(|error| status::from_sql_error(&error))?
            .map(|results| StoredNewest { results })
            .ok_or_else(|| too_long(max_bytes))
    }

    /// Where this shard stands with its ids, for the Sequencer.
    fn report(&self, request: &[u8]) -> Result<ShardReport, Status> {
        self.flush_finished()?;
        self.ids.report(request)
    }

    async fn instance(&self) -> Result<GetInstanceResponse, Status> {
        let router_instance_id = self.birth.ensure().await?.router_instance.clone();
        Ok(GetInstanceResponse { router_instance_id })
    }

    /// The Sequencer's part, where this is the only shard.
    async fn status(&self) -> Result<GetStatusResponse, Status> {
        let record = self.birth.ensure().await?;
        if record.shard_count != 1 {
            return Err(Status::unimplemented(
                "the Sequencer answers for the status of several shards",
            ));
        }
        self.ids
            .with_local(|allocator| operator::status_of(&record, allocator))
    }
}

/// A response longer than it may be (API-282, API-283).
pub(crate) fn too_long(max_response_bytes: u64) -> Status {
    Status::out_of_range(format!(
        "the response is longer than max_response_bytes, {max_response_bytes}; ask for less"
    ))
}

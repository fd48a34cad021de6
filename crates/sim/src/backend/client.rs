//! A client that follows the contract: it sends the same bytes again after UNAVAILABLE and DEADLINE_EXCEEDED, through any
//! Worker, and never after INVALID_ARGUMENT, OUT_OF_RANGE or UNIMPLEMENTED (API-224, API-284); after OUT_OF_RANGE it reads
//! the topics (API-290).

use std::{cell::RefCell, pin::pin, rc::Rc};

use bytes::Bytes;
use conclave_grpc_web::{Code, Status};
use conclave_proto::{
    Rpc,
    conclave::operator::v1::{GetStatusRequest, operator_service::GetStatus},
    xmtp::backend::v1::{
        Cursor, EnvelopeMeta, PublishRequest, PublishResponse, QueryNewestRequest, QueryRequest,
        ServerEnvelope, Topic, TopicQuery,
        publish_service::Publish,
        query_service::{Query, QueryNewest},
    },
};
use conclave_topiclog::CallContext;
use futures_channel::oneshot;
use futures_util::future::{Either, select};
use prost::Message;
use sha2::{Digest as _, Sha256};

use super::{
    bugs::Breach,
    edge::Edge,
    faults::Fault,
    history::{Asked, Came, History, id_of, topic_of},
    world::World,
};

/// One client.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) world: Rc<World>,
    pub(super) edges: Rc<Vec<Edge>>,
    pub(super) history: Rc<RefCell<History>>,
    pub(super) index: usize,
}

/// A publish as it is sent, time after time.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) number: usize,
    pub(super) request: PublishRequest,
    pub(super) expected_router_instance: Option<String>,
}

impl Client {
    /// Publishes until the outcome is known.
    pub(super) async fn publish(&self, prepared: &Prepared) -> Result<Vec<EnvelopeMeta>, Status> {
        loop {
            match self.try_publish(prepared).await {
                Err(status) if may_retry(&status) => self.back_off().await,
                Err(status) if status.code == Code::OutOfRange => {
                    let topics = {
                        let history = self.history.borrow();
                        let keys = &history.publishes[prepared.number].keys;
                        let mut topics: Vec<Bytes> = keys.iter().map(|(topic, _)| topic.clone()).collect();
                        topics.sort();
                        topics.dedup();
                        topics
                    };
                    self.read_to_end(topics.into_iter().map(|topic| (topic, 0)).collect(), 5)
                        .await;
                    return Err(status);
                }
                outcome => return outcome,
            }
        }
    }

    /// Publishes once.
    pub(super) async fn try_publish(&self, prepared: &Prepared) -> Result<Vec<EnvelopeMeta>, Status> {
        let context = CallContext {
            expected_router_instance: prepared.expected_router_instance.clone(),
            ..CallContext::default()
        };
        let asked = Asked::Publish(prepared.number);
        self.ask::<Publish, _>(asked, &prepared.request, context, |response| {
            Came::Receipts(response.envelope_metas.clone())
        })
        .await
        .map(|response| response.envelope_metas)
    }

    /// Asks for one page.
    pub(super) async fn query(
        &self,
        positions: &[(Bytes, u64)],
        limit: u32,
    ) -> Result<(Vec<EnvelopeMeta>, bool), Status> {
        let request = QueryRequest {
            queries: positions.iter().map(to_query).collect(),
            limit,
        };
        let asked = Asked::Query {
            positions: positions.to_vec(),
            limit,
        };
        let came = |envelopes: &[ServerEnvelope], has_more| Came::Page {
            metas: envelopes.iter().map(meta_of).collect(),
            has_more,
        };
        let has_more = |continuation: &Option<_>| {
            continuation.as_ref().is_some_and(
                |continuation: &conclave_proto::xmtp::backend::v1::Continuation| continuation.has_more,
            )
        };
        let response = self
            .ask::<Query, _>(asked, &request, CallContext::default(), |response| {
                came(&response.envelopes, has_more(&response.continuation))
            })
            .await?;
        let metas = response.envelopes.iter().map(meta_of).collect();
        Ok((metas, has_more(&response.continuation)))
    }

    /// Reads from these positions until there is no more, whatever it takes.
    pub(super) async fn read_to_end(
        &self,
        mut positions: Vec<(Bytes, u64)>,
        limit: u32,
    ) -> Vec<EnvelopeMeta> {
        let (mut all, mut limit) = (Vec::new(), limit);
        loop {
            match self.query(&positions, limit).await {
                Ok((metas, has_more)) => {
                    for (topic, after) in &mut positions {
                        let ids = metas.iter().filter(|meta| topic_of(meta) == *topic).map(id_of);
                        *after = ids.max().unwrap_or(*after).max(*after);
                    }
                    let is_stuck = metas.is_empty();
                    all.extend(metas);
                    if !has_more || is_stuck {
                        return all;
                    }
                }
                Err(status) if may_retry(&status) => self.back_off().await,
                // The page was longer than a response may be.
                Err(status) if status.code == Code::OutOfRange && limit > 1 => limit /= 2,
                Err(_) => return all,
            }
        }
    }

    /// Asks for the newest envelope of each topic, once.
    pub(super) async fn newest(&self, topics: Vec<Bytes>) {
        let request = QueryNewestRequest {
            topics: topics.iter().map(to_topic).collect(),
            include_full_envelope: self.world.random.chance(500),
        };
        let _ = self
            .ask::<QueryNewest, _>(
                Asked::Newest(topics),
                &request,
                CallContext::default(),
                |response| {
                    let metas = response.results.iter().filter_map(|result| result.meta.clone());
                    Came::Newest(metas.collect())
                },
            )
            .await;
    }

    /// Asks for the boundary, once: the boundary and the last allocated id.
    pub(super) async fn status(&self) -> Result<(Option<u64>, u64), Status> {
        let response = self
            .ask::<GetStatus, _>(
                Asked::Status,
                &GetStatusRequest {},
                CallContext::default(),
                |response| Came::Status {
                    boundary: response.closed_allocation_boundary,
                    last_allocated: response.last_allocated_sequence_id,
                },
            )
            .await?;
        Ok((
            response.closed_allocation_boundary,
            response.last_allocated_sequence_id,
        ))
    }

    pub(super) async fn back_off(&self) {
        let milliseconds = self.world.random.between(5, 1_500);
        self.world.sleep_ms(milliseconds).await;
    }

    async fn ask<R: Rpc, F>(
        &self,
        asked: Asked,
        request: &R::Request,
        context: CallContext,
        came: F,
    ) -> Result<R::Response, Status>
    where
        F: FnOnce(&R::Response) -> Came,
    {
        let edge = self.world.random.below(self.edges.len());
        let invoked_ns = self.world.executor.now_ns();
        let attempt = self
            .history
            .borrow_mut()
            .invoke(self.index, edge, invoked_ns, asked);
        let message = request.encode_to_vec().into();
        let outcome = self.send(edge, R::PATH, message, context).await;
        let outcome = outcome.and_then(|bytes| {
            R::Response::decode(&bytes[..]).map_err(|_| Status::internal("a response does not decode"))
        });
        let recorded = match &outcome {
            Ok(response) => came(response),
            Err(status) => Came::Failure(status.code, status.message.clone()),
        };
        self.history.borrow_mut().conclude(attempt, recorded);
        outcome
    }

    /// One request over a network that may lose it or its answer, to a Worker that may be lost.
    async fn send(
        &self,
        edge: usize,
        path: &'static str,
        message: Bytes,
        mut context: CallContext,
    ) -> Result<Vec<u8>, Status> {
        let (sender, receiver) = oneshot::channel();
        let world = Rc::clone(&self.world);
        let patience_ms = match world.random.below(4) {
            0 => world.random.between(50, 4_000),
            _ => 30_000,
        };
        if world.random.chance(500) {
            context.deadline_ms = u32::try_from(patience_ms).ok();
        }
        let (life, backend) = self.edges[edge].current();
        let is_publish = path == Publish::PATH;
        self.world.executor.spawn(async move {
            world.travel().await;
            if world.strikes(Fault::Edge) {
                return;
            }
            let length = message.len();
            let mut sender = Some(sender);
            if is_publish && world.has(Breach::StoredAfterOutOfRange) && world.random.chance(100) {
                let refusal = Status::out_of_range("the response is too long");
                let _ = sender.take().map(|sender| sender.send(Err(refusal)));
                world.sleep_ms(world.random.between(100, 2_000)).await;
            }
            let running = async { backend.unary(path, message, length, &context).await };
            let Some(reply) = life.limit(running).await else {
                return;
            };
            let mut result = reply.result.map(|response| response.to_vec());
            if is_publish && world.has(Breach::MetadataOfTheAnswer) {
                result = result.map(|bytes| retimed(&bytes, world.wall_ns()));
            }
            world.travel().await;
            if world.strikes(Fault::Edge) {
                return;
            }
            let _ = sender.map(|sender| sender.send(result));
        });
        let patience = pin!(self.world.sleep_ms(patience_ms));
        match select(receiver, patience).await {
            Either::Left((Ok(result), _)) => result,
            Either::Left((Err(_), _)) => Err(Status::unavailable("the connection was lost")),
            Either::Right(_) => Err(Status::deadline_exceeded("no answer in time")),
        }
    }
}

/// Whether the same bytes may be sent again (API-284).
pub(super) fn may_retry(status: &Status) -> bool {
    matches!(status.code, Code::Unavailable | Code::DeadlineExceeded)
}

/// The hash of an envelope under API-211: ours are encoded as the backend encodes them.
pub(super) fn hash_of(envelope: &impl Message) -> Bytes {
    Bytes::copy_from_slice(&Sha256::digest(envelope.encode_to_vec()))
}

pub(super) fn to_query((topic, after): &(Bytes, u64)) -> TopicQuery {
    TopicQuery {
        topic: Some(to_topic(topic)),
        cursor: Some(Cursor { sequence_id: *after }),
    }
}

fn to_topic(topic: &Bytes) -> Topic {
    Topic { topic: topic.clone() }
}

/// The metadata of a stored envelope. If its body is not the one that was hashed, its hash says so.
pub(super) fn meta_of(stored: &ServerEnvelope) -> EnvelopeMeta {
    let mut meta = stored.meta.clone().unwrap_or_default();
    let body = stored.envelope.as_ref().map(hash_of).unwrap_or_default();
    if super::history::key_of(&meta).1 != body {
        meta.message_hash = None;
    }
    meta
}

fn retimed(bytes: &[u8], now_ns: u64) -> Vec<u8> {
    let mut response = PublishResponse::decode(bytes).expect("a response decodes");
    response
        .envelope_metas
        .iter_mut()
        .for_each(|meta| meta.server_ns = now_ns);
    response.encode_to_vec()
}

//! The commit loop: the only writer of new envelopes of a shard, but for those a decided publish applies to topics it
//! holds.
//!
//! It takes what has arrived as one batch, finds which envelopes are new, asks for their ids, inserts them in one
//! transaction, waits until that is durable, tells subscribers and answers. A batch gathers while the one before it
//! waits; nothing ever waits for a timer. The ids are asked for *after* the publishes arrived, so a publish that
//! arrives after an envelope became visible gets a greater id than that one (API-289), and one loop means that ids rise
//! on every topic (API-201).
//!
//! Publishes across shards pass through the same loop twice: their parts are prepared in turn, so they see what arrived
//! before them, and their decision shares the batch, its allocation and its transaction.
//!
//! A publish that expects a Router instance is compared with the one its ids were allocated under, before anything
//! else: a publish that expects another fails and stores nothing, whether or not its envelopes are duplicates.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, hash_map::Entry},
    rc::Rc,
};

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{
    Decision, NewEnvelope, StoreRequest, StoreResponse, store_response::Receipt,
};
use conclave_sql::{Sql as _, SqlError};
use futures_channel::oneshot;
use prost::Message as _;

use super::{
    Shard, conditions,
    decide::{self, Decided, Deciding, Undecided},
    holds::{Holds, Transaction},
    ids::Allocation,
    participate::busy_answer,
    queue::{Content, Item, Next, Queue, Waiting, topics_of},
    rows::{self, Found},
};
use crate::{platform::ObjectPlatform, status};

/// The state of the loop.
#[derive(Debug, Default)]
pub(super) struct Commit {
    pub(super) queue: RefCell<Queue>,
    pub(super) holds: RefCell<Holds>,
    is_running: Cell<bool>,
    /// Set when writes were lost: what is in memory may not be what is stored, until the platform restarts the object.
    is_broken: Cell<bool>,
}

impl Commit {
    pub(super) fn new(holds: Holds) -> Self {
        Self {
            holds: RefCell::new(holds),
            ..Self::default()
        }
    }

    /// Writes were lost.
    pub(super) fn break_off(&self) {
        self.is_broken.set(true);
    }

    /// Refuses everything once writes were lost.
    pub(super) fn check(&self) -> Result<(), Status> {
        if self.is_broken.get() {
            return Err(Status::unavailable(
                "this shard lost writes and is about to restart",
            ));
        }
        Ok(())
    }
}

/// The idempotency key: topic and hash.
type Key = (Bytes, Bytes);

/// An envelope that a batch stored.
#[derive(Clone, Debug)]
pub(super) struct Fresh {
    pub(super) envelope: NewEnvelope,
    pub(super) topic_id: i64,
    pub(super) receipt: Receipt,
}

/// What became of one item of a batch.
enum Outcome {
    Stored(Result<StoreResponse, Status>),
    Decided(Result<Decided, Undecided>),
}

/// What a batch did, once its transaction stands.
struct Committed {
    outcomes: Vec<Outcome>,
    fresh: Vec<Fresh>,
}

/// What a batch knows while it is inserted.
struct Batch<'a> {
    found: HashMap<Key, Found>,
    topic_ids: HashMap<Bytes, i64>,
    allocation: Option<&'a Allocation>,
    next: u64,
    fresh: Vec<Fresh>,
    decisions: Vec<(Transaction, Decision)>,
}

impl<P: ObjectPlatform> Shard<P> {
    /// Method "store".
    pub(super) async fn store(self: &Rc<Self>, request: &[u8]) -> Result<StoreResponse, Status> {
        let request = StoreRequest::decode(Bytes::copy_from_slice(request))
            .map_err(|_| Status::internal("a store request does not decode"))?;
        self.birth.ensure().await?;
        let topics = request.envelopes.iter().map(|envelope| &envelope.topic);
        let topics = topics.chain(request.preconditions.iter().map(|condition| &condition.topic));
        let mut keys = topics.chain(request.claims.iter().map(|claim| &claim.key));
        if keys.any(|key| self.routing.shard_of(key) != self.index) {
            return self.coordinate(request).await;
        }
        let content = Content {
            envelopes: request.envelopes,
            preconditions: request.preconditions,
            claims: request.claims,
        };
        self.check_here(&content)?;
        let (reply, outcome) = oneshot::channel();
        self.enqueue(Item::Publish(Waiting {
            content,
            expected_router_instance: request.expected_router_instance,
            reply,
        }))?;
        // The loop is gone only if the object broke: the batch may have been stored.
        outcome
            .await
            .unwrap_or_else(|_| Err(outcome_unknown("the shard stopped while it was stored")))
    }

    /// Hands something to the loop.
    pub(super) fn enqueue(self: &Rc<Self>, item: Item) -> Result<(), Status> {
        self.commit.check()?;
        self.commit
            .queue
            .borrow_mut()
            .push(item)
            .map_err(|_| Status::unavailable("too many publishes wait on this shard; nothing was stored"))?;
        self.run_commit_loop();
        Ok(())
    }

    /// Frees what a transaction holds, and looks again at what waited for it.
    pub(super) fn release(self: &Rc<Self>, transaction: Transaction) {
        self.commit.holds.borrow_mut().release(transaction);
        self.commit.queue.borrow_mut().unpark();
        self.run_commit_loop();
    }

    /// Everything of a part lies on this shard and can be stored.
    pub(super) fn check_here(&self, content: &Content) -> Result<(), Status> {
        content
            .envelopes
            .iter()
            .try_for_each(|envelope| self.check_new(envelope))
    }

    fn check_new(&self, envelope: &NewEnvelope) -> Result<(), Status> {
        let shard = self.routing.shard_of(&envelope.topic);
        if shard != self.index {
            return Err(Status::internal(format!(
                "an envelope of shard {shard} was sent to shard {}",
                self.index
            )));
        }
        if envelope.hash.len() != 32 || envelope.body.is_empty() {
            return Err(Status::internal(
                "an envelope without body or hash was sent to be stored",
            ));
        }
        Ok(())
    }

    /// Starts the loop unless it runs. It goes on when the request that started it has ended.
    fn run_commit_loop(self: &Rc<Self>) {
        if self.commit.is_running.replace(true) {
            return;
        }
        let shard = Rc::clone(self);
        self.platform.spawn(async move {
            let running = Running(&shard.commit.is_running);
            while !shard.commit.is_broken.get() {
                let next = shard.commit.queue.borrow_mut().next(&shard.commit.holds.borrow());
                match next {
                    Next::Nothing => break,
                    Next::Prepare(preparing) => shard.prepare_now(preparing),
                    Next::Busy(preparing) => {
                        let _ = preparing.reply.send(Ok(busy_answer()));
                    }
                    Next::Batch(batch) => shard.commit_batch(batch).await,
                }
            }
            if shard.commit.is_broken.get() {
                // Whoever waits is told that the outcome is unknown.
                shard.commit.queue.take();
            }
            drop(running);
        });
    }

    async fn commit_batch(self: &Rc<Self>, batch: Vec<Item>) {
        let result = self.try_batch(&batch).await;
        self.ids.release();
        let outcomes = match result {
            Ok(committed) => {
                self.subscribers.announce(&self.platform, &committed.fresh);
                committed.outcomes
            }
            Err(status) => batch.iter().map(|item| self.failed(item, &status)).collect(),
        };
        for (item, outcome) in batch.into_iter().zip(outcomes) {
            // A caller that has gone finds the outcome by publishing again (API-224).
            match (item, outcome) {
                (Item::Publish(waiting), Outcome::Stored(outcome)) => {
                    let _ = waiting.reply.send(outcome);
                }
                (Item::Decide(deciding), Outcome::Decided(outcome)) => {
                    // Its own rows are stored, so nothing needs to wait for the other shards here.
                    if outcome.is_ok() {
                        self.release(deciding.home);
                    }
                    let _ = deciding.reply.send(outcome);
                }
                _ => {}
            }
        }
    }

    fn failed(&self, item: &Item, status: &Status) -> Outcome {
        match item {
            Item::Decide(_) if self.commit.is_broken.get() => {
                Outcome::Decided(Err(Undecided::Unknown(status.clone())))
            }
            Item::Decide(_) => Outcome::Decided(Err(Undecided::Refused(status.clone()))),
            _ => Outcome::Stored(Err(status.clone())),
        }
    }

    async fn try_batch(&self, batch: &[Item]) -> Result<Committed, Status> {
        let record = self.birth.ensure().await?;
        let found = self
            .find_all(batch)
            .map_err(|error| status::from_sql_error(&error))?;
        let new = found
            .values()
            .filter(|found| matches!(found, Found::New { .. }))
            .count();
        let decided: usize = decisions_of(batch).map(Deciding::wanted).sum();
        let wanted =
            u32::try_from(new + decided).map_err(|_| Status::internal("a batch has too many envelopes"))?;
        let expects = batch.iter().any(|item| match item {
            Item::Publish(waiting) => waiting.expected_router_instance.is_some(),
            Item::Decide(deciding) => deciding.expected_router_instance.is_some(),
            Item::Prepare(_) => false,
        });
        let allocation = match wanted > 0 || expects {
            true => Some(self.ids.allocate(&record, wanted).await?),
            false => None,
        };
        let next = allocation.as_ref().map_or(0, |allocation| allocation.first);
        let batch_state = Batch {
            found,
            topic_ids: HashMap::new(),
            allocation: allocation.as_ref(),
            next,
            fresh: Vec::new(),
            decisions: Vec::new(),
        };
        let (committed, decisions) = self
            .platform
            .sql()
            .transaction(|| {
                self.coordinator.forget_finished(self.platform.sql())?;
                self.insert_all(batch, batch_state)
            })
            .map_err(|error: SqlError| status::from_sql_error(&error))?;
        // In the turn of the transaction: whatever leaves from here on knows of it, and waits until it is durable.
        self.close_finished();
        for (transaction, decision) in decisions {
            self.ids.hold(transaction, decision.ids);
            self.coordinator.decided(transaction, decision);
            self.arm();
        }
        self.note_expiries(&committed.fresh);
        if let Err(error) = self.platform.sync().await {
            self.commit.break_off();
            return Err(outcome_unknown(&format!("what was stored may be lost: {error}")));
        }
        Ok(committed)
    }

    fn find_all(&self, batch: &[Item]) -> Result<HashMap<Key, Found>, SqlError> {
        let mut found = HashMap::new();
        for envelope in publishes_of(batch).flat_map(|waiting| &waiting.content.envelopes) {
            if let Entry::Vacant(entry) = found.entry((envelope.topic.clone(), envelope.hash.clone())) {
                entry.insert(rows::find(self.platform.sql(), &envelope.topic, &envelope.hash)?);
            }
        }
        Ok(found)
    }

    /// Runs inside the transaction. That an envelope is new needs no second look: nothing else writes to free topics.
    fn insert_all(
        &self,
        batch: &[Item],
        mut state: Batch<'_>,
    ) -> Result<(Committed, Vec<(Transaction, Decision)>), SqlError> {
        let mut outcomes = Vec::with_capacity(batch.len());
        for item in batch {
            outcomes.push(match item {
                Item::Publish(waiting) => Outcome::Stored(self.insert_publish(waiting, &mut state)?),
                Item::Decide(deciding) => Outcome::Decided(self.insert_decision(deciding, &mut state)?),
                Item::Prepare(_) => Outcome::Stored(Err(Status::internal("a prepare is never in a batch"))),
            });
        }
        let Batch { fresh, decisions, .. } = state;
        Ok((Committed { outcomes, fresh }, decisions))
    }

    fn insert_publish(
        &self,
        waiting: &Waiting,
        state: &mut Batch<'_>,
    ) -> Result<Result<StoreResponse, Status>, SqlError> {
        if let Some(refusal) = refuse(waiting.expected_router_instance.as_deref(), state.allocation) {
            return Ok(Err(refusal));
        }
        let content = &waiting.content;
        let is_new = |envelope: &&NewEnvelope| {
            let key = (envelope.topic.clone(), envelope.hash.clone());
            !matches!(state.found.get(&key), Some(Found::Stored(_)))
        };
        let fresh = topics_of(content.envelopes.iter().filter(is_new));
        if let Some(refusal) = conditions::check(self.platform.sql(), content, &fresh)? {
            return Ok(Err(refusal.status));
        }
        let server_ns = self.platform.now_ns();
        let expiries: Result<Vec<u64>, Status> = content
            .envelopes
            .iter()
            .map(|envelope| decide::expiry_ns(&self.configuration, envelope.retention(), server_ns))
            .collect();
        let expiries = match expiries {
            Ok(expiries) => expiries,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut receipts = Vec::with_capacity(content.envelopes.len());
        for (envelope, expiry_ns) in content.envelopes.iter().zip(expiries) {
            let key = (envelope.topic.clone(), envelope.hash.clone());
            let receipt = match state.found.get(&key) {
                Some(Found::Stored(receipt)) => *receipt,
                known => {
                    let topic_id = match known {
                        Some(Found::New { topic_id }) => *topic_id,
                        _ => None,
                    };
                    let receipt = Receipt {
                        sequence_id: state.next,
                        server_ns,
                        expiry_ns,
                    };
                    self.insert_one(envelope, topic_id, receipt, state)?;
                    state.next += 1;
                    state.found.insert(key, Found::Stored(receipt));
                    receipt
                }
            };
            receipts.push(receipt);
        }
        conditions::make_claims(self.platform.sql(), &content.claims)?;
        Ok(Ok(StoreResponse { receipts }))
    }

    /// The commit point of a publish across shards.
    fn insert_decision(
        &self,
        deciding: &Deciding,
        state: &mut Batch<'_>,
    ) -> Result<Result<Decided, Undecided>, SqlError> {
        if let Some(refusal) = refuse(deciding.expected_router_instance.as_deref(), state.allocation) {
            return Ok(Err(Undecided::Refused(refusal)));
        }
        if !self.coordinator.is_undecided(deciding.transaction) {
            let refusal = Status::unavailable("the publish was aborted; nothing was stored");
            return Ok(Err(Undecided::Refused(refusal)));
        }
        let server_ns = self.platform.now_ns();
        let expiry_ns = match decide::expiries(&self.configuration, &deciding.classes, server_ns) {
            Ok(expiry_ns) => expiry_ns,
            Err(refusal) => return Ok(Err(Undecided::Refused(refusal))),
        };
        let decided = Decided::of(deciding, state.next, server_ns, expiry_ns);
        for (sequence_id, envelope) in (decided.first..).zip(&deciding.local.envelopes) {
            let receipt = Receipt {
                sequence_id,
                server_ns,
                expiry_ns: decide::pick(&decided.expiry_ns, envelope),
            };
            let topic_id = rows::topic_id(self.platform.sql(), &envelope.topic)?;
            self.insert_one(envelope, Some(topic_id), receipt, state)?;
        }
        conditions::make_claims(self.platform.sql(), &deciding.local.claims)?;
        state.next += deciding.wanted() as u64;
        if !decided.decision.parts.is_empty() {
            decide::insert(self.platform.sql(), deciding.transaction, &decided.decision)?;
            state
                .decisions
                .push((deciding.transaction, decided.decision.clone()));
        }
        Ok(Ok(decided))
    }

    fn insert_one(
        &self,
        envelope: &NewEnvelope,
        topic_id: Option<i64>,
        receipt: Receipt,
        state: &mut Batch<'_>,
    ) -> Result<(), SqlError> {
        let sql = self.platform.sql();
        let topic_id = match topic_id.or_else(|| state.topic_ids.get(&envelope.topic).copied()) {
            Some(topic_id) => topic_id,
            None => {
                let topic_id = rows::insert_topic(sql, &envelope.topic)?;
                state.topic_ids.insert(envelope.topic.clone(), topic_id);
                topic_id
            }
        };
        rows::insert(sql, topic_id, envelope, &receipt)?;
        state.fresh.push(Fresh {
            envelope: envelope.clone(),
            topic_id,
            receipt,
        });
        Ok(())
    }
}

fn publishes_of(batch: &[Item]) -> impl Iterator<Item = &Waiting> {
    batch.iter().filter_map(|item| match item {
        Item::Publish(waiting) => Some(waiting),
        _ => None,
    })
}

fn decisions_of(batch: &[Item]) -> impl Iterator<Item = &Deciding> {
    batch.iter().filter_map(|item| match item {
        Item::Decide(deciding) => Some(deciding),
        _ => None,
    })
}

/// Why a publish that expects a Router instance fails, if it does.
fn refuse(expected: Option<&str>, allocation: Option<&Allocation>) -> Option<Status> {
    let expected = expected?;
    let current = allocation.map(|allocation| allocation.router_instance.as_str());
    if current == Some(expected) {
        return None;
    }
    Some(Status::failed_precondition(format!(
        "the Router instance is {}, not {expected}; nothing was stored",
        current.unwrap_or("unknown")
    )))
}

/// Marks something as stopped however it ends, so that it is started again when it is needed next.
pub(super) struct Running<'a>(pub(super) &'a Cell<bool>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

pub(super) fn outcome_unknown(reason: &str) -> Status {
    Status::unavailable(format!(
        "the outcome is unknown, publish the same bytes again: {reason}"
    ))
}

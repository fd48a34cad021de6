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
    collections::HashMap,
    rc::Rc,
};

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{NewEnvelope, StoreRequest, StoreResponse};
use conclave_sql::{Sql as _, SqlError};
use futures_channel::oneshot;
use prost::Message as _;

use super::{
    Shard,
    batch::{Batch, Committed, Outcome, decisions_of},
    decide::{Deciding, Undecided},
    holds::{Holds, Transaction},
    participate::busy_answer,
    queue::{Content, Item, Next, Queue, Waiting},
    rows::Found,
};
use crate::{
    planted::{Bug, has},
    platform::ObjectPlatform,
    status,
};

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

impl<P: ObjectPlatform> Shard<P> {
    /// Method "store".
    pub(super) async fn store(self: &Rc<Self>, request: &[u8]) -> Result<StoreResponse, Status> {
        let request = StoreRequest::decode(Bytes::copy_from_slice(request))
            .map_err(|_| Status::internal("a store request does not decode"))?;
        self.birth.ensure().await?;
        let topics = request.envelopes.iter().map(|envelope| &envelope.topic);
        let topics = topics.chain(request.preconditions.iter().map(|condition| &condition.topic));
        let keys = topics.chain(request.claims.iter().map(|claim| &claim.key));
        let mut keys = keys.chain(request.associations.iter().map(|association| &association.key));
        if keys.any(|key| self.routing.shard_of(key) != self.index) {
            return self.coordinate(request).await;
        }
        let content = Content {
            envelopes: request.envelopes,
            preconditions: request.preconditions,
            claims: request.claims,
            associations: request.associations,
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
            if !has(Bug::IdsReleasedBeforeApply) {
                self.ids.hold(transaction, decision.ids);
            }
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

//! The commit loop: the only writer of new envelopes of a shard.
//!
//! It takes what has arrived as one batch, finds which envelopes are new, asks for their ids, inserts them in one
//! transaction, waits until that is durable, tells subscribers and answers. A batch gathers while the one before it
//! waits; nothing ever waits for a timer. The ids are asked for *after* the publishes arrived, so a publish that
//! arrives after an envelope became visible gets a greater id than that one (API-289), and one loop means that ids rise
//! on every topic (API-201).
//!
//! A publish that expects a Router instance is compared with the one its ids were allocated under, before anything
//! else: a publish that expects another fails and stores nothing, whether or not its envelopes are duplicates.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, hash_map::Entry},
    rc::Rc,
};

use bytes::Bytes;
use conclave_envelope::admission::Retention;
use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{
    NewEnvelope, Retention as WireRetention, StoreRequest, StoreResponse, store_response::Receipt,
};
use conclave_sql::{Sql as _, SqlError};
use futures_channel::oneshot;
use prost::Message as _;

use super::{
    Shard,
    ids::Allocation,
    queue::{Queue, Waiting},
    rows::{self, Found},
};
use crate::{platform::ObjectPlatform, status};

/// The state of the loop.
#[derive(Debug, Default)]
pub(super) struct Commit {
    queue: RefCell<Queue>,
    is_running: Cell<bool>,
    /// Set when writes were lost: what is in memory may not be what is stored, until the platform restarts the object.
    is_broken: Cell<bool>,
}

impl Commit {
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

/// What a batch did, once its transaction stands.
struct Committed {
    outcomes: Vec<Result<StoreResponse, Status>>,
    fresh: Vec<Fresh>,
}

/// What a batch knows while it is inserted.
struct Batch<'a> {
    found: HashMap<Key, Found>,
    topic_ids: HashMap<Bytes, i64>,
    allocation: Option<&'a Allocation>,
    next: u64,
    fresh: Vec<Fresh>,
}

impl<P: ObjectPlatform> Shard<P> {
    /// Method "store".
    pub(super) async fn store(self: &Rc<Self>, request: &[u8]) -> Result<StoreResponse, Status> {
        let request = StoreRequest::decode(Bytes::copy_from_slice(request))
            .map_err(|_| Status::internal("a store request does not decode"))?;
        self.birth.ensure().await?;
        request
            .envelopes
            .iter()
            .try_for_each(|envelope| self.check_new(envelope))?;
        let (reply, outcome) = oneshot::channel();
        let publish = Waiting {
            envelopes: request.envelopes,
            expected_router_instance: request.expected_router_instance,
            reply,
        };
        self.commit
            .queue
            .borrow_mut()
            .push(publish)
            .map_err(|_| Status::unavailable("too many publishes wait on this shard; nothing was stored"))?;
        self.run_commit_loop();
        // The loop is gone only if the object broke: the batch may have been stored.
        outcome
            .await
            .unwrap_or_else(|_| Err(outcome_unknown("the shard stopped while it was stored")))
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
            loop {
                let batch = shard.commit.queue.borrow_mut().take_batch();
                if batch.is_empty() || shard.commit.is_broken.get() {
                    break;
                }
                shard.commit_batch(batch).await;
            }
            drop(running);
        });
    }

    async fn commit_batch(&self, batch: Vec<Waiting>) {
        let outcomes = match self.try_batch(&batch).await {
            Ok(committed) => {
                self.subscribers.announce(&self.platform, &committed.fresh);
                committed.outcomes
            }
            Err(status) => batch.iter().map(|_| Err(status.clone())).collect(),
        };
        self.ids.release();
        for (waiting, outcome) in batch.into_iter().zip(outcomes) {
            // A caller that has gone finds the outcome by publishing again (API-224).
            let _ = waiting.reply.send(outcome);
        }
    }

    async fn try_batch(&self, batch: &[Waiting]) -> Result<Committed, Status> {
        let record = self.birth.ensure().await?;
        let found = self
            .find_all(batch)
            .map_err(|error| status::from_sql_error(&error))?;
        let wanted = found
            .values()
            .filter(|found| matches!(found, Found::New { .. }))
            .count();
        let wanted = u32::try_from(wanted).map_err(|_| Status::internal("a batch has too many envelopes"))?;
        let expects = batch
            .iter()
            .any(|waiting| waiting.expected_router_instance.is_some());
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
        };
        let committed = self
            .platform
            .sql()
            .transaction(|| self.insert_all(batch, batch_state))
            .map_err(|error: SqlError| status::from_sql_error(&error))?;
        if let Err(error) = self.platform.sync().await {
            self.commit.is_broken.set(true);
            return Err(outcome_unknown(&format!("what was stored may be lost: {error}")));
        }
        Ok(committed)
    }

    fn find_all(&self, batch: &[Waiting]) -> Result<HashMap<Key, Found>, SqlError> {
        let mut found = HashMap::new();
        for envelope in batch.iter().flat_map(|waiting| &waiting.envelopes) {
            if let Entry::Vacant(entry) = found.entry((envelope.topic.clone(), envelope.hash.clone())) {
                entry.insert(rows::find(self.platform.sql(), &envelope.topic, &envelope.hash)?);
            }
        }
        Ok(found)
    }

    /// Runs inside the transaction. Nothing needs checking again: nothing else writes envelopes.
    fn insert_all(&self, batch: &[Waiting], mut state: Batch<'_>) -> Result<Committed, SqlError> {
        let mut outcomes = Vec::with_capacity(batch.len());
        for waiting in batch {
            outcomes.push(match self.refuse(waiting, &state) {
                Some(refusal) => Err(refusal),
                None => self.insert_publish(waiting, &mut state)?,
            });
        }
        Ok(Committed {
            outcomes,
            fresh: state.fresh,
        })
    }

    fn refuse(&self, waiting: &Waiting, state: &Batch<'_>) -> Option<Status> {
        let expected = waiting.expected_router_instance.as_deref()?;
        let current = state
            .allocation
            .map(|allocation| allocation.router_instance.as_str());
        if current == Some(expected) {
            return None;
        }
        Some(Status::failed_precondition(format!(
            "the Router instance is {}, not {expected}; nothing was stored",
            current.unwrap_or("unknown")
        )))
    }

    fn insert_publish(
        &self,
        waiting: &Waiting,
        state: &mut Batch<'_>,
    ) -> Result<Result<StoreResponse, Status>, SqlError> {
        let server_ns = self.platform.now_ns();
        let expiries: Result<Vec<u64>, Status> = waiting
            .envelopes
            .iter()
            .map(|envelope| self.expiry_ns(envelope, server_ns))
            .collect();
        let expiries = match expiries {
            Ok(expiries) => expiries,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut receipts = Vec::with_capacity(waiting.envelopes.len());
        for (envelope, expiry_ns) in waiting.envelopes.iter().zip(expiries) {
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
        Ok(Ok(StoreResponse { receipts }))
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

    fn expiry_ns(&self, envelope: &NewEnvelope, server_ns: u64) -> Result<u64, Status> {
        let class = match envelope.retention() {
            WireRetention::Exempt => Retention::Exempt,
            WireRetention::GroupMessage => Retention::GroupMessage,
            WireRetention::Welcome => Retention::Welcome,
            WireRetention::KeyPackage => Retention::KeyPackage,
        };
        self.configuration
            .retention
            .expiry_ns(class, server_ns)
            .map_err(|error| Status::internal(format!("{error}; nothing was stored")))
    }
}

/// Marks the loop as stopped however it ends, so that the next publish starts it again.
struct Running<'a>(&'a Cell<bool>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

fn outcome_unknown(reason: &str) -> Status {
    Status::unavailable(format!(
        "the outcome is unknown, publish the same bytes again: {reason}"
    ))
}

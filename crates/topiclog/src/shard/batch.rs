//! The transaction of a batch: the rows of publishes of this shard alone, and the commit points of publishes across
//! shards that it coordinates.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{Decision, NewEnvelope, StoreResponse, store_response::Receipt};
use conclave_sql::SqlError;

use super::{
    Shard, associations, conditions,
    decide::{self, Decided, Deciding, Undecided},
    holds::Transaction,
    ids::Allocation,
    queue::{Item, Waiting, topics_of},
    rows::{self, Found},
};
use crate::platform::ObjectPlatform;

/// The idempotency key: topic and hash.
pub(super) type Key = (Bytes, Bytes);

/// An envelope that a batch stored.
#[derive(Clone, Debug)]
pub(super) struct Fresh {
    pub(super) envelope: NewEnvelope,
    pub(super) topic_id: i64,
    pub(super) receipt: Receipt,
}

/// What became of one item of a batch.
pub(super) enum Outcome {
    Stored(Result<StoreResponse, Status>),
    Decided(Result<Decided, Undecided>),
}

/// What a batch did, once its transaction stands.
pub(super) struct Committed {
    pub(super) outcomes: Vec<Outcome>,
    pub(super) fresh: Vec<Fresh>,
}

/// What a batch knows while it is inserted.
pub(super) struct Batch<'a> {
    pub(super) found: HashMap<Key, Found>,
    pub(super) topic_ids: HashMap<Bytes, i64>,
    pub(super) allocation: Option<&'a Allocation>,
    pub(super) next: u64,
    pub(super) fresh: Vec<Fresh>,
    pub(super) decisions: Vec<(Transaction, Decision)>,
}

impl<P: ObjectPlatform> Shard<P> {
    /// What the store holds of each envelope that is published.
    pub(super) fn find_all(&self, batch: &[Item]) -> Result<HashMap<Key, Found>, SqlError> {
        let envelopes = publishes_of(batch).flat_map(|waiting| &waiting.content.envelopes);
        let keys: BTreeSet<Key> = envelopes
            .map(|envelope| (envelope.topic.clone(), envelope.hash.clone()))
            .collect();
        let keys: Vec<Key> = keys.into_iter().collect();
        let asked: Vec<(&[u8], &[u8])> = keys.iter().map(|(topic, hash)| (&topic[..], &hash[..])).collect();
        let found = rows::find_each(self.platform.sql(), &asked)?;
        Ok(keys.into_iter().zip(found).collect())
    }

    /// Runs inside the transaction. That an envelope is new needs no second look: nothing else writes to free topics.
    pub(super) fn insert_all(
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
        let mut new_ids = BTreeMap::new();
        for ((place, envelope), expiry_ns) in (0u32..).zip(&content.envelopes).zip(expiries) {
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
                    new_ids.insert(place, receipt.sequence_id);
                    state.next += 1;
                    state.found.insert(key, Found::Stored(receipt));
                    receipt
                }
            };
            receipts.push(receipt);
        }
        conditions::make_claims(self.platform.sql(), &content.claims)?;
        for association in &content.associations {
            let sequence_id = new_ids.get(&association.envelope).copied().unwrap_or(0);
            associations::write(self.platform.sql(), association, sequence_id)?;
        }
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
        for association in &deciding.local.associations {
            let sequence_id = deciding.id_of(association, decided.first);
            associations::write(self.platform.sql(), association, sequence_id)?;
        }
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

pub(super) fn decisions_of(batch: &[Item]) -> impl Iterator<Item = &Deciding> {
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

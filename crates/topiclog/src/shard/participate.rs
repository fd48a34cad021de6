//! A shard's part in a publish that another shard coordinates: prepare, then apply or abort, and asking for the outcome
//! where neither comes.
//!
//! A prepared part is durable and holds its topics and claims, so it can be applied whatever happens. Only its
//! coordinator may end it: nothing here gives up by itself.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{
    AbortRequest, AbortResponse, ApplyRequest, ApplyResponse, NewEnvelope, OutcomeRequest, OutcomeResponse,
    PrepareRequest, PrepareResponse, TransactionId,
    outcome_response::Outcome,
    prepare_response::{self, Busy, Found, Prepared, Refused},
    store_response::Receipt,
};
use conclave_sql::{Sql as _, SqlError};
use futures_channel::oneshot;
use prost::Message as _;

use super::{
    Shard, associations,
    batch::Fresh,
    commit::outcome_unknown,
    conditions, decide,
    holds::{Key, Transaction},
    prepared::{self, Held},
    queue::{Content, Item, Preparing, topics_of},
    rows,
};
use crate::{
    answer,
    planted::{Bug, has},
    platform::{ObjectName, ObjectPlatform},
    status,
};

/// The most transactions that are prepared here at a time.
pub const PREPARED_TRANSACTIONS_MAX: usize = 1_024;
/// The most bytes that are prepared here at a time, unless a single transaction has more.
pub const PREPARED_BYTES_MAX: u64 = 64 << 20;
/// How long a participant waits for an answer about an outcome, in milliseconds.
const OUTCOME_DEADLINE_MS: u32 = 5_000;

/// What is prepared here.
#[derive(Debug, Default)]
pub(super) struct Participant {
    prepared: RefCell<BTreeMap<Transaction, Held>>,
    is_asking: Cell<bool>,
}

impl Participant {
    pub(super) fn new(prepared: BTreeMap<Transaction, Held>) -> Self {
        Self {
            prepared: RefCell::new(prepared),
            is_asking: Cell::new(false),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.prepared.borrow().is_empty()
    }

    fn has_room_for(&self, bytes: u64) -> bool {
        let prepared = self.prepared.borrow();
        let held: u64 = prepared.values().map(|held| held.bytes).sum();
        prepared.is_empty()
            || (prepared.len() < PREPARED_TRANSACTIONS_MAX && held + bytes <= PREPARED_BYTES_MAX)
    }
}

impl<P: ObjectPlatform> Shard<P> {
    /// Method "prepare". A second copy of the call is answered like the first.
    pub(super) async fn prepare(self: &Rc<Self>, request: &[u8]) -> Result<PrepareResponse, Status> {
        let request = PrepareRequest::decode(Bytes::copy_from_slice(request))
            .map_err(|_| Status::internal("a prepare request does not decode"))?;
        let transaction = transaction_of(request.transaction.as_ref())?;
        self.birth.ensure().await?;
        let content = Content {
            envelopes: request.envelopes,
            preconditions: request.preconditions,
            claims: request.claims,
            associations: request.associations,
        };
        self.check_here(&content)?;
        self.queue_prepare(transaction, content, request.wait, false)
            .await
    }

    /// Waits in the queue until it is this part's turn.
    pub(super) async fn queue_prepare(
        self: &Rc<Self>,
        transaction: Transaction,
        content: Content,
        wait: bool,
        is_home: bool,
    ) -> Result<PrepareResponse, Status> {
        let (reply, outcome) = oneshot::channel();
        self.enqueue(Item::Prepare(Preparing {
            transaction,
            content,
            wait,
            is_home,
            reply,
        }))?;
        outcome.await.unwrap_or_else(|_| {
            Err(Status::unavailable(
                "the publish was given up; nothing was stored",
            ))
        })
    }

    /// The turn of a part whose topics are free. Its answer is held until what it wrote is durable.
    pub(super) fn prepare_now(self: &Rc<Self>, preparing: Preparing) {
        let Preparing {
            transaction,
            content,
            is_home,
            reply,
            ..
        } = preparing;
        let outcome = self.try_prepare(transaction, content, is_home);
        if reply.send(outcome).is_err() && is_home {
            self.release(transaction);
        }
    }

    fn try_prepare(
        self: &Rc<Self>,
        transaction: Transaction,
        content: Content,
        is_home: bool,
    ) -> Result<PrepareResponse, Status> {
        let from_sql = |error: SqlError| status::from_sql_error(&error);
        let sql = self.platform.sql();
        let mut found = Vec::with_capacity(content.envelopes.len());
        let mut fresh: Vec<NewEnvelope> = Vec::new();
        for envelope in &content.envelopes {
            let stored = match rows::find(sql, &envelope.topic, &envelope.hash).map_err(from_sql)? {
                rows::Found::Stored(receipt) => Some(receipt),
                rows::Found::New { .. } => {
                    fresh.push(envelope.clone());
                    None
                }
            };
            found.push(Found { stored });
        }
        if self.participant.prepared.borrow().contains_key(&transaction) {
            return Ok(prepared_answer(found, true));
        }
        let topics = topics_of(&fresh);
        if let Some(refusal) = conditions::check(sql, &content, &topics).map_err(from_sql)? {
            return Ok(PrepareResponse {
                outcome: Some(prepare_response::Outcome::Refused(Refused {
                    index: refusal.index,
                    failure: Some(answer::to_failure(refusal.status)),
                })),
            });
        }
        let claims = conditions::new_claims(sql, &content.claims).map_err(from_sql)?;
        if fresh.is_empty() && claims.is_empty() && content.associations.is_empty() {
            return Ok(prepared_answer(found, false));
        }
        let held = Held {
            keys: topics
                .into_iter()
                .map(Key::Topic)
                .chain(claims.iter().map(|claim| Key::Claim(claim.key.clone())))
                .collect(),
            bytes: fresh.iter().map(|envelope| envelope.body.len() as u64).sum(),
        };
        if !is_home {
            if !self.participant.has_room_for(held.bytes) {
                return Err(Status::unavailable(
                    "too many publishes are prepared on this shard; nothing was stored",
                ));
            }
            sql.transaction(|| {
                prepared::insert(sql, transaction, &fresh, &claims)?;
                prepared::insert_associations(sql, transaction, &content.associations)
            })
            .map_err(from_sql)?;
            self.participant
                .prepared
                .borrow_mut()
                .insert(transaction, held.clone());
            self.arm();
        }
        self.commit.holds.borrow_mut().take(transaction, held.keys);
        Ok(prepared_answer(found, true))
    }

    /// Method "apply". What is applied already, or was never prepared, changes nothing.
    pub(super) async fn apply(self: &Rc<Self>, request: &[u8]) -> Result<ApplyResponse, Status> {
        let request = ApplyRequest::decode(request)
            .map_err(|_| Status::internal("an apply request does not decode"))?;
        self.apply_decided(&request).await.map(|()| ApplyResponse {})
    }

    async fn apply_decided(self: &Rc<Self>, request: &ApplyRequest) -> Result<(), Status> {
        let transaction = transaction_of(request.transaction.as_ref())?;
        if !self.participant.prepared.borrow().contains_key(&transaction) {
            return Ok(());
        }
        let sql = self.platform.sql();
        let fresh = sql
            .transaction(|| self.apply_rows(transaction, request))
            .map_err(|error: SqlError| status::from_sql_error(&error))?;
        self.participant.prepared.borrow_mut().remove(&transaction);
        self.note_expiries(&fresh);
        if let Err(error) = self.platform.sync().await {
            self.commit.break_off();
            return Err(outcome_unknown(&format!("what was applied may be lost: {error}")));
        }
        self.subscribers.announce(&self.platform, &fresh);
        self.release(transaction);
        Ok(())
    }

    /// Runs inside the transaction.
    fn apply_rows(&self, transaction: Transaction, request: &ApplyRequest) -> Result<Vec<Fresh>, SqlError> {
        let sql = self.platform.sql();
        let (envelopes, claims) = prepared::read(sql, transaction)?;
        if envelopes.len() as u64 != u64::from(request.count) {
            return Err(SqlError::Shape {
                column: 0,
                expected: "as many prepared envelopes as were decided",
                found: "another number",
            });
        }
        let server_ns = match has(Bug::ServerTimePerShard) {
            true => self.platform.now_ns(),
            false => request.server_ns,
        };
        let mut fresh = Vec::with_capacity(envelopes.len());
        for (sequence_id, envelope) in (request.first..).zip(envelopes) {
            let receipt = Receipt {
                sequence_id,
                server_ns,
                expiry_ns: decide::pick(&request.expiry_ns, &envelope),
            };
            let topic_id = rows::topic_id(sql, &envelope.topic)?;
            rows::insert(sql, topic_id, &envelope, &receipt)?;
            fresh.push(Fresh {
                envelope,
                topic_id,
                receipt,
            });
        }
        conditions::make_claims(sql, &claims)?;
        let associations = prepared::read_associations(sql, transaction)?;
        for (association, sequence_id) in associations.iter().zip(&request.association_ids) {
            associations::write(sql, association, *sequence_id)?;
        }
        prepared::delete(sql, transaction)?;
        Ok(fresh)
    }

    /// Method "abort".
    pub(super) fn abort(self: &Rc<Self>, request: &[u8]) -> Result<AbortResponse, Status> {
        let request = AbortRequest::decode(request)
            .map_err(|_| Status::internal("an abort request does not decode"))?;
        self.drop_prepared(transaction_of(request.transaction.as_ref())?)?;
        Ok(AbortResponse {})
    }

    fn drop_prepared(self: &Rc<Self>, transaction: Transaction) -> Result<(), Status> {
        self.commit.queue.borrow_mut().forget(transaction);
        if self.participant.prepared.borrow().contains_key(&transaction) {
            let sql = self.platform.sql();
            sql.transaction(|| prepared::delete(sql, transaction))
                .map_err(|error: SqlError| status::from_sql_error(&error))?;
            self.participant.prepared.borrow_mut().remove(&transaction);
        }
        self.release(transaction);
        Ok(())
    }

    /// Asks the coordinators of everything that is prepared here how it ended. One round at a time.
    pub(super) async fn ask_outcomes(self: &Rc<Self>) {
        if self.participant.is_asking.replace(true) {
            return;
        }
        let asking = super::commit::Running(&self.participant.is_asking);
        let transactions: Vec<Transaction> = self.participant.prepared.borrow().keys().copied().collect();
        for transaction in transactions {
            // A failure is no outcome: the next alarm asks again.
            let _ = self.ask_outcome(transaction).await;
        }
        drop(asking);
    }

    async fn ask_outcome(self: &Rc<Self>, transaction: Transaction) -> Result<(), Status> {
        let request = OutcomeRequest {
            transaction: Some(transaction.to_wire()),
            shard: self.index,
        };
        let coordinator = ObjectName::Shard(transaction.shard);
        let answered = self
            .platform
            .call(
                coordinator,
                "outcome",
                request.encode_to_vec(),
                OUTCOME_DEADLINE_MS,
            )
            .await
            .map_err(|error| status::from_call_error(&error))?;
        let response = OutcomeResponse::decode(answer::decode(answered).result?)
            .map_err(|_| Status::internal("an outcome does not decode"))?;
        match response.outcome {
            Some(Outcome::Committed(request)) => self.apply_decided(&request).await,
            Some(Outcome::Aborted(_)) => self.drop_prepared(transaction),
            Some(Outcome::Pending(_)) | None => Ok(()),
        }
    }
}

pub(super) fn transaction_of(wire: Option<&TransactionId>) -> Result<Transaction, Status> {
    wire.map(Transaction::from_wire)
        .ok_or_else(|| Status::internal("a call about a transaction names none"))
}

pub(super) fn busy_answer() -> PrepareResponse {
    PrepareResponse {
        outcome: Some(prepare_response::Outcome::Busy(Busy {})),
    }
}

fn prepared_answer(found: Vec<Found>, holds: bool) -> PrepareResponse {
    PrepareResponse {
        outcome: Some(prepare_response::Outcome::Prepared(Prepared { found, holds })),
    }
}

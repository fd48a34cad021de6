//! A publish across shards, as its coordinator runs it: the lowest shard that holds any of it.
//!
//! Prepare everywhere, decide here, apply everywhere, answer. The first attempt asks all participants at once and waits
//! for no held topic but this shard's own; where it meets one, it gives up what it took elsewhere and tries again
//! shard by shard in ascending order, waiting. So nobody who waits holds anything above what it waits for, and there
//! is no cycle (docs/decisions/0004-cross-shard-publish.md).
//!
//! Until the decision is written, forgetting the publish aborts it: a coordinator that does not know a transaction
//! answers so, and never decides one of an earlier run.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{
    AbortRequest, Decision, OutcomeRequest, OutcomeResponse, PrepareRequest, PrepareResponse, StoreRequest,
    StoreResponse,
    outcome_response::{Aborted, Outcome, Pending},
    prepare_response::{self, Prepared},
};
use conclave_sql::{Sql, SqlError};
use futures_channel::oneshot;
use futures_util::future::join_all;
use prost::Message as _;

use super::{
    Shard,
    commit::outcome_unknown,
    conditions::Refusal,
    decide::{self, Deciding, Local, Undecided},
    holds::Transaction,
    participate::transaction_of,
    parts::{Parts, offsets, receipts},
    queue::{Content, Item},
};
use crate::{
    answer,
    planted::{Bug, has},
    platform::{ObjectName, ObjectPlatform},
    status,
};

/// The most publishes across shards that one shard coordinates at a time, undecided and unapplied ones together.
pub const COORDINATED_MAX: usize = 256;
/// The most bytes of them that are not decided, unless a single one has more.
pub const COORDINATED_BYTES_MAX: usize = 32 << 20;
/// How long a call to a participant may take, in milliseconds: less than a client waits.
const PARTICIPANT_DEADLINE_MS: u32 = 5_000;

/// What this shard coordinates.
#[derive(Debug, Default)]
pub(super) struct Coordinator {
    number: Cell<u64>,
    bytes: Cell<usize>,
    /// Begun by this run and not decided yet.
    undecided: RefCell<BTreeSet<Transaction>>,
    /// Decided, and not known to be applied everywhere.
    pub(super) decisions: RefCell<BTreeMap<Transaction, Decision>>,
    /// Applied everywhere: the record goes with the next commit, or before the next report, and the ids with it.
    pub(super) finished: RefCell<Vec<Transaction>>,
    pub(super) is_applying: Cell<bool>,
}

impl Coordinator {
    pub(super) fn new(decisions: BTreeMap<Transaction, Decision>) -> Self {
        Self {
            decisions: RefCell::new(decisions),
            ..Self::default()
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.decisions.borrow().is_empty() && self.finished.borrow().is_empty()
    }

    /// Deletes the records of what is applied everywhere.
    pub(super) fn forget_finished(&self, sql: &impl Sql) -> Result<(), SqlError> {
        let finished = self.finished.borrow();
        finished
            .iter()
            .try_for_each(|transaction| decide::delete(sql, *transaction))
    }

    /// Takes in what the commit loop decided.
    pub(super) fn decided(&self, transaction: Transaction, decision: Decision) {
        self.undecided.borrow_mut().remove(&transaction);
        self.decisions.borrow_mut().insert(transaction, decision);
    }

    pub(super) fn is_undecided(&self, transaction: Transaction) -> bool {
        self.undecided.borrow().contains(&transaction)
    }

    fn outcome(&self, transaction: Transaction, shard: u32) -> Outcome {
        if self.is_undecided(transaction) {
            return match has(Bug::PendingAnsweredAborted) {
                true => Outcome::Aborted(Aborted {}),
                false => Outcome::Pending(Pending {}),
            };
        }
        let decisions = self.decisions.borrow();
        let part = decisions
            .get(&transaction)
            .and_then(|decision| decision.parts.iter().find(|part| part.shard == shard));
        match part.and_then(|part| part.apply.clone()) {
            Some(apply) => Outcome::Committed(apply),
            None => Outcome::Aborted(Aborted {}),
        }
    }
}

/// What a participant said.
enum Answer {
    Prepared(Prepared),
    Refused(Refusal),
    Busy,
}

/// How one attempt ended.
enum Attempt {
    Prepared(BTreeMap<u32, Prepared>),
    Busy,
}

impl<P: ObjectPlatform> Shard<P> {
    /// Method "store" for a publish of several shards. It goes on when the caller is gone.
    pub(super) async fn coordinate(self: &Rc<Self>, request: StoreRequest) -> Result<StoreResponse, Status> {
        let parts = self.split(&request)?;
        let bytes: usize = parts.contents.values().map(Content::bytes).sum();
        self.make_room(bytes)?;
        let (reply, outcome) = oneshot::channel();
        let shard = Rc::clone(self);
        self.platform.spawn(async move {
            let result = shard.run(parts, request.expected_router_instance).await;
            let left = shard.coordinator.bytes.get().saturating_sub(bytes);
            shard.coordinator.bytes.set(left);
            let _ = reply.send(result);
        });
        outcome
            .await
            .unwrap_or_else(|_| Err(outcome_unknown("the shard stopped while it was stored")))
    }

    /// Method "outcome".
    pub(super) fn outcome(&self, request: &[u8]) -> Result<OutcomeResponse, Status> {
        let request = OutcomeRequest::decode(request)
            .map_err(|_| Status::internal("an outcome request does not decode"))?;
        let transaction = transaction_of(request.transaction.as_ref())?;
        Ok(OutcomeResponse {
            outcome: Some(self.coordinator.outcome(transaction, request.shard)),
        })
    }

    fn make_room(&self, bytes: usize) -> Result<(), Status> {
        let coordinator = &self.coordinator;
        let count = coordinator.undecided.borrow().len() + coordinator.decisions.borrow().len();
        let held = coordinator.bytes.get();
        if count >= COORDINATED_MAX || (held > 0 && held + bytes > COORDINATED_BYTES_MAX) {
            return Err(Status::unavailable(
                "this shard coordinates too many publishes; nothing was stored",
            ));
        }
        coordinator.bytes.set(held + bytes);
        Ok(())
    }

    fn begin(&self) -> Result<Transaction, Status> {
        let number = self.coordinator.number.get() + 1;
        self.coordinator.number.set(number);
        let transaction = Transaction {
            shard: self.index,
            incarnation: self.ids.incarnation()?,
            number,
        };
        self.coordinator.undecided.borrow_mut().insert(transaction);
        Ok(transaction)
    }

    /// Runs a publish to its answer, and leaves nothing of it undecided.
    async fn run(
        self: &Rc<Self>,
        parts: Parts,
        expected_router_instance: Option<String>,
    ) -> Result<StoreResponse, Status> {
        // Holds this shard's own topics through every attempt.
        let home = self.begin()?;
        let result = self.run_held(home, &parts, expected_router_instance).await;
        self.coordinator.undecided.borrow_mut().remove(&home);
        self.release(home);
        result
    }

    async fn run_held(
        self: &Rc<Self>,
        home: Transaction,
        parts: &Parts,
        expected_router_instance: Option<String>,
    ) -> Result<StoreResponse, Status> {
        let local = parts.contents.get(&self.index).cloned().unwrap_or_default();
        let local = to_answer(self.queue_prepare(home, local, true, true).await?)?;
        let (transaction, prepared) = match self.attempt(home, parts, &local, false).await? {
            Attempt::Prepared(prepared) => (home, prepared),
            Attempt::Busy => {
                let again = self.begin()?;
                let attempt = self.attempt(again, parts, &local, true).await;
                match attempt {
                    Ok(Attempt::Prepared(prepared)) => (again, prepared),
                    Ok(Attempt::Busy) => {
                        return Err(Status::unavailable(
                            "a participant is busy though it was to wait; nothing was stored",
                        ));
                    }
                    Err(failure) => return Err(failure),
                }
            }
        };
        let outcome = self
            .decide_and_apply((home, transaction), parts, &prepared, expected_router_instance)
            .await;
        self.coordinator.undecided.borrow_mut().remove(&transaction);
        outcome
    }

    /// Prepares every part. What does not end prepared is aborted wherever it was sent.
    async fn attempt(
        self: &Rc<Self>,
        transaction: Transaction,
        parts: &Parts,
        local: &Answer,
        wait: bool,
    ) -> Result<Attempt, Status> {
        let asked: BTreeSet<u32> = parts
            .contents
            .keys()
            .copied()
            .filter(|shard| *shard != self.index)
            .collect();
        let gathered = self.gather(transaction, parts, local, &asked, wait).await;
        if !matches!(gathered, Ok(Attempt::Prepared(_))) {
            // Forgotten first: from here on whoever asks is told that it was aborted.
            self.coordinator.undecided.borrow_mut().remove(&transaction);
            join_all(asked.into_iter().map(|shard| self.abort_at(shard, transaction))).await;
        }
        gathered
    }

    async fn gather(
        self: &Rc<Self>,
        transaction: Transaction,
        parts: &Parts,
        local: &Answer,
        asked: &BTreeSet<u32>,
        wait: bool,
    ) -> Result<Attempt, Status> {
        let mut prepared = BTreeMap::new();
        let mut refusal: Option<Refusal> = None;
        let mut is_busy = false;
        match local {
            Answer::Prepared(found) => {
                prepared.insert(self.index, found.clone());
            }
            Answer::Refused(first) => refusal = Some(first.clone()),
            Answer::Busy => is_busy = true,
        }
        let mut take = |shard: u32, answered: Result<Answer, Status>, refusal: &mut Option<Refusal>| {
            match answered {
                Ok(Answer::Prepared(found)) => {
                    prepared.insert(shard, found);
                }
                Ok(Answer::Refused(other)) => {
                    if refusal.as_ref().is_none_or(|known| other.index < known.index) {
                        *refusal = Some(other);
                    }
                }
                Ok(Answer::Busy) => is_busy = true,
                Err(_) if has(Bug::DecideBeforeAllPrepared) => {}
                Err(failure) => return Err(failure),
            }
            Ok(())
        };
        if wait {
            for shard in asked {
                let content = parts.contents.get(shard).cloned().unwrap_or_default();
                // A publish that is refused looks only for a failure of a lower index.
                let may_be_lower = refusal.as_ref().is_none_or(|known| {
                    content
                        .lowest_condition()
                        .is_some_and(|lowest| lowest < known.index)
                });
                if may_be_lower {
                    let answered = self.prepare_at(*shard, transaction, content, true).await;
                    take(*shard, answered, &mut refusal)?;
                }
            }
        } else {
            let calls = asked.iter().map(|shard| {
                let content = parts.contents.get(shard).cloned().unwrap_or_default();
                self.prepare_at(*shard, transaction, content, false)
            });
            let answers = join_all(calls).await;
            for (shard, answered) in asked.iter().zip(answers) {
                take(*shard, answered, &mut refusal)?;
            }
        }
        match (is_busy, refusal) {
            (true, _) => Ok(Attempt::Busy),
            (false, Some(refusal)) => Err(refusal.status),
            (false, None) => Ok(Attempt::Prepared(prepared)),
        }
    }

    async fn decide_and_apply(
        self: &Rc<Self>,
        (home, transaction): (Transaction, Transaction),
        parts: &Parts,
        prepared: &BTreeMap<u32, Prepared>,
        expected_router_instance: Option<String>,
    ) -> Result<StoreResponse, Status> {
        let mut counts = BTreeMap::new();
        let mut local = Local::default();
        let mut classes = BTreeSet::new();
        let mut associations = BTreeMap::new();
        for (shard, answer) in prepared {
            let content = parts.contents.get(shard).cloned().unwrap_or_default();
            if answer.found.len() != content.envelopes.len() {
                self.abort_all(transaction, prepared).await;
                return Err(Status::internal("a participant answered for other envelopes"));
            }
            let fresh = content.envelopes.into_iter().zip(&answer.found);
            let fresh: Vec<_> = fresh
                .filter(|(_, found)| found.stored.is_none())
                .map(|(envelope, _)| envelope)
                .collect();
            classes.extend(fresh.iter().map(|envelope| envelope.retention));
            if *shard == self.index {
                local = Local {
                    envelopes: fresh,
                    claims: content.claims,
                    associations: content.associations,
                };
            } else if answer.holds {
                counts.insert(*shard, u32::try_from(fresh.len()).unwrap_or(u32::MAX));
                associations.insert(*shard, content.associations);
            }
        }
        let nothing_is_new =
            counts.is_empty() && prepared.get(&self.index).is_none_or(|answer| !answer.holds);
        if nothing_is_new && expected_router_instance.is_none() {
            return receipts(parts, prepared, None);
        }
        let (reply, outcome) = oneshot::channel();
        let item = Item::Decide(Deciding {
            transaction,
            home,
            classes,
            local,
            counts,
            offsets: offsets(parts, prepared),
            associations,
            expected_router_instance,
            reply,
        });
        self.enqueue(item)?;
        let decided = match outcome.await {
            Ok(Ok(decided)) => decided,
            Ok(Err(Undecided::Refused(refused))) => {
                self.abort_all(transaction, prepared).await;
                return Err(refused);
            }
            Ok(Err(Undecided::Unknown(unknown))) => return Err(unknown),
            Err(_) => return Err(outcome_unknown("the shard stopped while it was decided")),
        };
        if has(Bug::ReplyBeforeApply) {
            let shard = Rc::clone(self);
            let decision = decided.decision.clone();
            self.platform.spawn(async move {
                let _ = shard.apply_everywhere(transaction, &decision).await;
            });
        } else {
            self.apply_everywhere(transaction, &decided.decision).await?;
        }
        receipts(parts, prepared, Some(&decided))
    }

    async fn abort_all(&self, transaction: Transaction, prepared: &BTreeMap<u32, Prepared>) {
        self.coordinator.undecided.borrow_mut().remove(&transaction);
        let others = prepared.keys().filter(|shard| **shard != self.index);
        join_all(others.map(|shard| self.abort_at(*shard, transaction))).await;
    }

    /// A lost abort costs time, nothing else: the participant asks.
    async fn abort_at(&self, shard: u32, transaction: Transaction) {
        let request = AbortRequest {
            transaction: Some(transaction.to_wire()),
        };
        let _ = self.call_shard(shard, "abort", request.encode_to_vec()).await;
    }

    async fn prepare_at(
        &self,
        shard: u32,
        transaction: Transaction,
        content: Content,
        wait: bool,
    ) -> Result<Answer, Status> {
        let request = PrepareRequest {
            transaction: Some(transaction.to_wire()),
            envelopes: content.envelopes,
            preconditions: content.preconditions,
            claims: content.claims,
            associations: content.associations,
            wait,
        };
        let response = self.call_shard(shard, "prepare", request.encode_to_vec()).await?;
        let response = PrepareResponse::decode(response)
            .map_err(|_| Status::internal("a prepare answer does not decode"))?;
        to_answer(response)
    }

    pub(super) async fn call_shard(
        &self,
        shard: u32,
        method: &str,
        request: Vec<u8>,
    ) -> Result<Bytes, Status> {
        let answered = self
            .platform
            .call(ObjectName::Shard(shard), method, request, PARTICIPANT_DEADLINE_MS)
            .await
            .map_err(|error| status::from_call_error(&error))?;
        answer::decode(answered).result
    }
}

fn to_answer(response: PrepareResponse) -> Result<Answer, Status> {
    Ok(match response.outcome {
        Some(prepare_response::Outcome::Prepared(prepared)) => Answer::Prepared(prepared),
        Some(prepare_response::Outcome::Refused(refused)) => Answer::Refused(Refusal {
            index: refused.index,
            status: answer::from_failure(refused.failure.unwrap_or_default()),
        }),
        Some(prepare_response::Outcome::Busy(_)) => Answer::Busy,
        None => return Err(Status::internal("a prepare answer says nothing")),
    })
}

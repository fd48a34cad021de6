//! Deciding a publish across shards: one local transaction that stores the coordinator's own rows and the record of
//! what the others store. From then on the publish is committed, whatever breaks.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use conclave_envelope::admission::Retention;
use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{
    ApplyRequest, Association, Claim, Decision, IdRange, NewEnvelope, Retention as WireRetention,
    decision::Part,
};
use conclave_sql::{Sql, SqlError, Value};
use futures_channel::oneshot;
use prost::Message as _;

use super::holds::Transaction;
use crate::Configuration;

pub(super) const TABLE: &str =
    "CREATE TABLE decision (tx BLOB PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID";

/// What the coordinator's own shard stores: what is new of its part.
#[derive(Clone, Debug, Default)]
pub(super) struct Local {
    pub(super) envelopes: Vec<NewEnvelope>,
    pub(super) claims: Vec<Claim>,
    pub(super) associations: Vec<Association>,
}

/// A publish whose every participant is prepared.
#[derive(Debug)]
pub(super) struct Deciding {
    pub(super) transaction: Transaction,
    /// What holds the topics of this shard.
    pub(super) home: Transaction,
    /// The retention classes of its new envelopes.
    pub(super) classes: BTreeSet<i32>,
    pub(super) local: Local,
    /// For each participant that holds something, ascending, how many new envelopes it has.
    pub(super) counts: BTreeMap<u32, u32>,
    /// For each new envelope, by its place in the request, how many ids of the publish come before its own.
    pub(super) offsets: BTreeMap<u32, u64>,
    /// The associations of each participant, in the order prepared.
    pub(super) associations: BTreeMap<u32, Vec<Association>>,
    pub(super) expected_router_instance: Option<String>,
    pub(super) reply: oneshot::Sender<Result<Decided, Undecided>>,
}

impl Deciding {
    /// Ids it takes.
    pub(super) fn wanted(&self) -> usize {
        self.local.envelopes.len() + self.counts.values().map(|count| *count as usize).sum::<usize>()
    }

    /// The id of the update that makes an association; 0 when it is stored already.
    pub(super) fn id_of(&self, association: &Association, first: u64) -> u64 {
        let offset = self.offsets.get(&association.envelope);
        offset.map_or(0, |offset| first + offset)
    }
}

/// Why a publish was not decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Undecided {
    /// It never will be.
    Refused(Status),
    /// The decision may or may not be durable; the next run of this shard knows.
    Unknown(Status),
}

/// A publish that is decided.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decided {
    /// The first of its ids: those of this shard's envelopes, then each participant's.
    pub(super) first: u64,
    pub(super) server_ns: u64,
    /// By retention class.
    pub(super) expiry_ns: Vec<u64>,
    pub(super) decision: Decision,
}

impl Decided {
    /// The decision about a publish whose ids begin at `first`.
    pub(super) fn of(deciding: &Deciding, first: u64, server_ns: u64, expiry_ns: Vec<u64>) -> Self {
        let mut next = first + deciding.local.envelopes.len() as u64;
        let mut parts = Vec::with_capacity(deciding.counts.len());
        for (shard, count) in &deciding.counts {
            let associations = deciding.associations.get(shard).map_or(&[][..], Vec::as_slice);
            parts.push(Part {
                shard: *shard,
                apply: Some(ApplyRequest {
                    transaction: Some(deciding.transaction.to_wire()),
                    first: next,
                    count: *count,
                    server_ns,
                    expiry_ns: expiry_ns.clone(),
                    association_ids: associations
                        .iter()
                        .map(|association| deciding.id_of(association, first))
                        .collect(),
                }),
            });
            next += u64::from(*count);
        }
        let ids = (next > first).then(|| IdRange {
            first,
            last: next - 1,
        });
        Self {
            first,
            server_ns,
            expiry_ns,
            decision: Decision { parts, ids },
        }
    }
}

/// The expiry of every retention class for envelopes stored now, in the order of their numbers; 0 where none is asked.
///
/// # Errors
/// A retention that leads beyond what an expiry can be.
pub(super) fn expiries(
    configuration: &Configuration,
    classes: &BTreeSet<i32>,
    server_ns: u64,
) -> Result<Vec<u64>, Status> {
    [
        WireRetention::Exempt,
        WireRetention::GroupMessage,
        WireRetention::Welcome,
        WireRetention::KeyPackage,
    ]
    .into_iter()
    .map(|class| match classes.contains(&i32::from(class)) {
        true => expiry_ns(configuration, class, server_ns),
        false => Ok(0),
    })
    .collect()
}

/// When an envelope of this class that is stored now expires, in nanoseconds since the Unix epoch; 0 for never.
pub(super) fn expiry_ns(
    configuration: &Configuration,
    class: WireRetention,
    server_ns: u64,
) -> Result<u64, Status> {
    let class = match class {
        WireRetention::Exempt => Retention::Exempt,
        WireRetention::GroupMessage => Retention::GroupMessage,
        WireRetention::Welcome => Retention::Welcome,
        WireRetention::KeyPackage => Retention::KeyPackage,
    };
    configuration
        .retention
        .expiry_ns(class, server_ns)
        .map_err(|error| Status::internal(format!("{error}; nothing was stored")))
}

/// The expiry of an envelope among those of all classes.
pub(super) fn pick(expiry_ns: &[u64], envelope: &NewEnvelope) -> u64 {
    usize::try_from(envelope.retention)
        .ok()
        .and_then(|class| expiry_ns.get(class))
        .copied()
        .unwrap_or(0)
}

pub(super) fn insert(sql: &impl Sql, transaction: Transaction, decision: &Decision) -> Result<(), SqlError> {
    sql.execute(
        "INSERT INTO decision (tx, record) VALUES (?, ?)",
        &[
            transaction.to_bytes().as_slice().into(),
            decision.encode_to_vec().into(),
        ],
    )
}

pub(super) fn delete(sql: &impl Sql, transaction: Transaction) -> Result<(), SqlError> {
    sql.execute(
        "DELETE FROM decision WHERE tx = ?",
        &[Value::from(transaction.to_bytes().as_slice())],
    )
}

/// Every decision that is not yet applied everywhere.
pub(super) fn load(sql: &impl Sql) -> Result<BTreeMap<Transaction, Decision>, SqlError> {
    let mut decisions = BTreeMap::new();
    for row in sql.query("SELECT tx, record FROM decision", &[])? {
        let record = Decision::decode(Bytes::copy_from_slice(row.blob(1)?)).map_err(|_| SqlError::Shape {
            column: 1,
            expected: "a decision",
            found: "other bytes",
        })?;
        decisions.insert(Transaction::from_bytes(row.array(0)?), record);
    }
    Ok(decisions)
}

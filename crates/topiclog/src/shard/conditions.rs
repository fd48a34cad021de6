//! What must hold for envelopes to be stored, besides that they are new: expected heads, bounded topics, claims.
//! Checked where the topic or the claim lies, in the turn that stores or holds it (API-232, API-234, API-296).

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use conclave_envelope::request::publish::PUBLISH_ERROR_TYPE_URL;
use conclave_grpc_web::Status;
use conclave_proto::{
    conclave::internal::v1::{Claim, Precondition},
    xmtp::backend::v1::{PublishError, publish_error::Reason},
};
use conclave_sql::{Sql, SqlError, Value};
use prost::Message as _;

use super::queue::Content;
use crate::planted::{Bug, has};

/// The table of claims. Never a row is removed from it.
pub(super) const TABLE: &str = "CREATE TABLE claim (key BLOB PRIMARY KEY, owner BLOB NOT NULL) WITHOUT ROWID";

const HEAD: &str = "SELECT (SELECT max(seq) FROM envelope WHERE envelope.topic_id = topic.id) \
     FROM topic WHERE topic = ?";

/// Counts no further than asked: a bound does not read a long topic whole.
const COUNT: &str = "SELECT count(*) FROM (SELECT 1 FROM envelope \
     WHERE topic_id = (SELECT id FROM topic WHERE topic = ?1) LIMIT ?2)";

const OWNER: &str = "SELECT owner FROM claim WHERE key = ?";

/// The owner of each key of a list; empty for one that nobody has claimed.
pub(super) const OWNERS: &str = "SELECT asked.key, \
     coalesce((SELECT owner FROM claim WHERE claim.key = unhex(asked.value)), x'') \
     FROM json_each(?1) AS asked";

const CLAIM: &str = "INSERT INTO claim (key, owner) VALUES (?, ?) ON CONFLICT (key) DO NOTHING";

/// Why a publish is refused, and by which of its envelopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) index: u32,
    pub(super) status: Status,
}

/// The refusal with the lowest index, if anything does not hold (API-223).
///
/// `fresh` are the topics the publish has new envelopes for. A claim needs no such distinction: it is stored with its
/// envelope and never removed, so a duplicate finds it there.
pub(super) fn check(
    sql: &impl Sql,
    content: &Content,
    fresh: &HashSet<Bytes>,
) -> Result<Option<Refusal>, SqlError> {
    let mut refusals = BTreeMap::new();
    for condition in &content.preconditions {
        if fresh.contains(&condition.topic)
            && let Some(status) = check_topic(sql, condition)?
        {
            refusals.entry(condition.index).or_insert(status);
        }
    }
    let mut claims: Vec<&Claim> = content.claims.iter().collect();
    claims.sort_by_key(|claim| claim.index);
    let mut owners: HashMap<&Bytes, Bytes> = HashMap::new();
    for claim in claims {
        let owner = match owners.get(&claim.key) {
            Some(owner) => Some(owner.clone()),
            None => owner_of(sql, &claim.key)?,
        };
        let owner = owner.unwrap_or_else(|| claim.owner.clone());
        if owner != claim.owner {
            let status = invalid(claim.index, Reason::HandleTaken, "another inbox holds the handle");
            refusals.entry(claim.index).or_insert(status);
        }
        owners.insert(&claim.key, owner);
    }
    Ok(refusals
        .pop_first()
        .map(|(index, status)| Refusal { index, status }))
}

/// The claims of a publish that nobody has made yet.
pub(super) fn new_claims(sql: &impl Sql, claims: &[Claim]) -> Result<Vec<Claim>, SqlError> {
    let mut fresh = Vec::new();
    for claim in claims {
        if owner_of(sql, &claim.key)?.is_none() {
            fresh.push(claim.clone());
        }
    }
    Ok(fresh)
}

/// Makes claims that were checked.
pub(super) fn make_claims(sql: &impl Sql, claims: &[Claim]) -> Result<(), SqlError> {
    claims
        .iter()
        .try_for_each(|claim| sql.execute(CLAIM, &[claim.key.as_ref().into(), claim.owner.as_ref().into()]))
}

fn check_topic(sql: &impl Sql, condition: &Precondition) -> Result<Option<Status>, SqlError> {
    if let Some(expected) = condition.expected_head {
        let rows = sql.query(HEAD, &[condition.topic.as_ref().into()])?;
        let head = rows
            .first()
            .map_or(Ok(None), |row| row.optional_unsigned(0))?
            .unwrap_or(0);
        if head != expected && !has(Bug::HeadIgnored) {
            return Ok(Some(Status::aborted(format!(
                "envelope {}: its topic has grown to {head} since it was read up to {expected}; nothing was stored",
                condition.index
            ))));
        }
    }
    if let Some(max) = condition.max_entries {
        let rows = sql.query(COUNT, &[condition.topic.as_ref().into(), Value::integer(max)?])?;
        if rows.first().map_or(Ok(0), |row| row.unsigned(0))? >= u64::from(max) {
            let status = invalid(
                condition.index,
                Reason::InvalidIdentityUpdate,
                "its topic holds max_identity_entries already",
            );
            return Ok(Some(status));
        }
    }
    Ok(None)
}

fn owner_of(sql: &impl Sql, key: &Bytes) -> Result<Option<Bytes>, SqlError> {
    let rows = sql.query(OWNER, &[key.as_ref().into()])?;
    rows.first()
        .map(|row| row.blob(0).map(Bytes::copy_from_slice))
        .transpose()
}

fn invalid(index: u32, reason: Reason, what: &str) -> Status {
    let message = format!("envelope {index}: {what}");
    let detail = PublishError {
        index: Some(index),
        reason: reason.into(),
        message: message.clone(),
    };
    Status::invalid_argument(message).with_detail(PUBLISH_ERROR_TYPE_URL, detail.encode_to_vec())
}

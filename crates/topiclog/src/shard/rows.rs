//! Rows of the envelope table: finding an envelope by its idempotency key, and inserting a new one.

use conclave_proto::conclave::internal::v1::{NewEnvelope, store_response::Receipt};
use conclave_sql::{Row, Sql, SqlError, Value};

use super::read::{push_hex, unasked};

/// Finds a topic and, on it, an envelope by hash.
pub(super) const FIND: &str = "SELECT topic.id, envelope.seq, envelope.server_ns, envelope.expiry_ns \
     FROM topic LEFT JOIN envelope ON envelope.topic_id = topic.id AND envelope.hash = ?2 \
     WHERE topic.topic = ?1";

/// The same for each pair of a list `[topic, hash]` whose topic is known.
pub(super) const FIND_EACH: &str = "SELECT asked.key, topic.id, envelope.seq, envelope.server_ns, envelope.expiry_ns \
     FROM json_each(?1) AS asked \
     CROSS JOIN topic ON topic.topic = unhex(json_extract(asked.value, '$[0]')) \
     LEFT JOIN envelope ON envelope.topic_id = topic.id \
       AND envelope.hash = unhex(json_extract(asked.value, '$[1]'))";

/// Pairs in one JSON parameter: with 33-byte topics about 600 KiB, well under a value's 2 MB.
const PAIRS_PER_STATEMENT: usize = 4_096;

const INSERT_TOPIC: &str = "INSERT INTO topic (topic) VALUES (?) RETURNING id";

const INSERT: &str = "INSERT INTO envelope \
     (seq, topic_id, hash, server_ns, expiry_ns, is_commit_or_proposal, body) VALUES (?, ?, ?, ?, ?, ?, ?)";

/// What the store holds under an idempotency key.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found {
    /// The envelope is stored.
    Stored(Receipt),
    /// The envelope is not stored; its topic has this row, if it has one.
    New {
        /// The topic's row.
        topic_id: Option<i64>,
    },
}

pub(super) fn find(sql: &impl Sql, topic: &[u8], hash: &[u8]) -> Result<Found, SqlError> {
    let rows = sql.query(FIND, &[topic.into(), hash.into()])?;
    let Some(row) = rows.first() else {
        return Ok(Found::New { topic_id: None });
    };
    to_found(row, 0)
}

/// Finds each of a list of topics and hashes, in its order.
pub(super) fn find_each(sql: &impl Sql, keys: &[(&[u8], &[u8])]) -> Result<Vec<Found>, SqlError> {
    if let [(topic, hash)] = keys {
        return Ok(vec![find(sql, topic, hash)?]);
    }
    let mut found = vec![Found::New { topic_id: None }; keys.len()];
    for (keys, found) in keys
        .chunks(PAIRS_PER_STATEMENT)
        .zip(found.chunks_mut(PAIRS_PER_STATEMENT))
    {
        for row in sql.query(FIND_EACH, &[pairs_to_json(keys).into()])? {
            let place = usize::try_from(row.unsigned(0)?).unwrap_or(usize::MAX);
            *found.get_mut(place).ok_or_else(unasked)? = to_found(&row, 1)?;
        }
    }
    Ok(found)
}

/// Reads the columns from `first` on: topic, sequence id, and both times.
fn to_found(row: &Row, first: usize) -> Result<Found, SqlError> {
    Ok(match row.optional_unsigned(first + 1)? {
        None => Found::New {
            topic_id: Some(row.integer(first)?),
        },
        Some(sequence_id) => Found::Stored(Receipt {
            sequence_id,
            server_ns: nanos(row, first + 2)?,
            expiry_ns: nanos(row, first + 3)?,
        }),
    })
}

fn pairs_to_json(keys: &[(&[u8], &[u8])]) -> String {
    let mut json = String::with_capacity(2 + keys.len() * 150);
    json.push('[');
    for (index, (topic, hash)) in keys.iter().enumerate() {
        json.push_str(if index > 0 { ",[\"" } else { "[\"" });
        push_hex(&mut json, topic);
        json.push_str("\",\"");
        push_hex(&mut json, hash);
        json.push_str("\"]");
    }
    json.push(']');
    json
}

pub(super) fn insert_topic(sql: &impl Sql, topic: &[u8]) -> Result<i64, SqlError> {
    let rows = sql.query(INSERT_TOPIC, &[topic.into()])?;
    rows.first()
        .ok_or(SqlError::Shape {
            column: 0,
            expected: "the id of a new topic",
            found: "no row",
        })?
        .integer(0)
}

/// The row of a topic, made if there is none.
pub(super) fn topic_id(sql: &impl Sql, topic: &[u8]) -> Result<i64, SqlError> {
    let rows = sql.query("SELECT id FROM topic WHERE topic = ?", &[topic.into()])?;
    match rows.first() {
        Some(row) => row.integer(0),
        None => insert_topic(sql, topic),
    }
}

pub(super) fn insert(
    sql: &impl Sql,
    topic_id: i64,
    envelope: &NewEnvelope,
    receipt: &Receipt,
) -> Result<(), SqlError> {
    sql.execute(
        INSERT,
        &[
            Value::integer(receipt.sequence_id)?,
            Value::integer(topic_id)?,
            envelope.hash.as_ref().into(),
            receipt.server_ns.to_be_bytes().as_slice().into(),
            receipt.expiry_ns.to_be_bytes().as_slice().into(),
            envelope.is_commit_or_proposal.into(),
            envelope.body.as_ref().into(),
        ],
    )
}

/// Nanoseconds as they are stored.
pub(super) fn nanos(row: &Row, column: usize) -> Result<u64, SqlError> {
    row.array(column).map(u64::from_be_bytes)
}

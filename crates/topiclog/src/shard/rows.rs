//! Rows of the envelope table: finding an envelope by its idempotency key, and inserting a new one.

use conclave_proto::conclave::internal::v1::{NewEnvelope, store_response::Receipt};
use conclave_sql::{Row, Sql, SqlError, Value};

/// Finds a topic and, on it, an envelope by hash.
pub(super) const FIND: &str = "SELECT topic.id, envelope.seq, envelope.server_ns, envelope.expiry_ns \
     FROM topic LEFT JOIN envelope ON envelope.topic_id = topic.id AND envelope.hash = ?2 \
     WHERE topic.topic = ?1";

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
    Ok(match row.optional_unsigned(1)? {
        None => Found::New {
            topic_id: Some(row.integer(0)?),
        },
        Some(sequence_id) => Found::Stored(Receipt {
            sequence_id,
            server_ns: nanos(row, 2)?,
            expiry_ns: nanos(row, 3)?,
        }),
    })
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

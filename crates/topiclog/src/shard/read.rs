//! Reads of a shard's tables: pages above cursors, newest envelopes, heads. Each is one turn, so everything in an answer
//! is of one moment.
//!
//! A page over many topics joins a JSON list of topics to the tables and has no ORDER BY: order matters within a topic
//! only, and the index gives it. Its length is found before its bodies are read, so that an object never loads more
//! than it may send.

use bytes::Bytes;
use conclave_proto::{
    conclave::internal::v1::{StoredEnvelope, TopicPosition, stored_newest},
    xmtp::backend::v1 as wire,
};
use conclave_sql::{INTEGER_MAX, Row, Sql, SqlError, Value};

use super::{joined, rows::nanos};

/// Topics in one JSON parameter: with 33-byte topics and cursors about 800 KiB, well under a value's 2 MB.
const TOPICS_PER_STATEMENT: usize = 8_192;

/// The eligible envelopes of a list of `[topic, cursor]`.
macro_rules! eligible {
    () => {
        " FROM json_each(?1) AS asked \
          CROSS JOIN topic ON topic.topic = unhex(json_extract(asked.value, '$[0]')) \
          CROSS JOIN envelope ON envelope.topic_id = topic.id \
            AND envelope.seq > json_extract(asked.value, '$[1]') "
    };
}

/// One page as one value.
pub(super) const PAGE_JOINED: &str = concat!(
    "SELECT ",
    joined::joined_rows!(),
    " FROM (SELECT asked.key AS place, envelope.seq, envelope.server_ns, envelope.expiry_ns, \
     envelope.is_commit_or_proposal, envelope.hash, envelope.body",
    eligible!(),
    "LIMIT ?2)"
);

/// One page.
pub(super) const PAGE: &str = concat!(
    "SELECT asked.key, envelope.seq, envelope.server_ns, envelope.expiry_ns, \
     envelope.is_commit_or_proposal, envelope.hash, envelope.body",
    eligible!(),
    "LIMIT ?2"
);

/// How many envelopes are eligible, up to a limit, how many of them come before their bodies exceed a length, and how long
/// the bodies of those are.
pub(super) const PAGE_SIZE: &str = concat!(
    "SELECT count(*), count(*) FILTER (WHERE running <= ?3), \
     coalesce(max(running) FILTER (WHERE running <= ?3), 0) \
     FROM (SELECT sum(size) OVER (ROWS UNBOUNDED PRECEDING) AS running \
     FROM (SELECT length(envelope.body) AS size",
    eligible!(),
    "LIMIT ?2))"
);

/// The newest envelope of each topic of a list.
macro_rules! newest {
    () => {
        " FROM json_each(?1) AS asked \
          CROSS JOIN topic ON topic.topic = unhex(asked.value) \
          CROSS JOIN envelope ON envelope.seq = \
            (SELECT max(seq) FROM envelope AS own WHERE own.topic_id = topic.id) "
    };
}

pub(super) const NEWEST: &str = concat!(
    "SELECT asked.key, envelope.seq, envelope.server_ns, envelope.expiry_ns, \
     envelope.is_commit_or_proposal, envelope.hash",
    newest!()
);

pub(super) const NEWEST_FULL: &str = concat!(
    "SELECT asked.key, envelope.seq, envelope.server_ns, envelope.expiry_ns, \
     envelope.is_commit_or_proposal, envelope.hash, envelope.body",
    newest!()
);

pub(super) const NEWEST_BYTES: &str = concat!("SELECT coalesce(sum(length(envelope.body)), 0)", newest!());

/// The head of each topic of a list that has one.
pub(super) const HEADS: &str = "SELECT asked.key, \
     (SELECT max(seq) FROM envelope WHERE envelope.topic_id = topic.id) \
     FROM json_each(?1) AS asked CROSS JOIN topic ON topic.topic = unhex(asked.value)";

/// The sequence id before another one on its topic.
pub(super) const PREVIOUS: &str = "SELECT max(seq) FROM envelope WHERE topic_id = ? AND seq < ?";

/// How much a page may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageBounds {
    /// Envelopes.
    pub(super) limit: u32,
    /// Bytes of bodies.
    pub(super) max_bytes: u64,
    /// Whether the first envelope is returned however long it is.
    pub(super) at_least_one: bool,
}

/// One page of envelopes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Page {
    pub(super) envelopes: Vec<StoredEnvelope>,
    /// Whether more were eligible than the limit allowed.
    pub(super) has_more: bool,
    /// Whether bytes ended the page before the limit did.
    pub(super) cut_by_bytes: bool,
}

/// The lowest eligible envelopes of each topic, topic by topic, as far as the bounds allow.
pub(super) fn page(
    sql: &impl Sql,
    positions: &[TopicPosition],
    bounds: PageBounds,
) -> Result<Page, SqlError> {
    let mut page = Page::default();
    let mut bytes_left = bounds.max_bytes;
    for chunk in positions.chunks(TOPICS_PER_STATEMENT) {
        let room = u64::from(bounds.limit).saturating_sub(page.envelopes.len() as u64);
        let list = Value::from(positions_to_json(chunk));
        let look = Value::integer(room + 1)?;
        let max_bytes = Value::integer(bytes_left.min(INTEGER_MAX as u64))?;
        let sizes = sql.query(PAGE_SIZE, &[list.clone(), look, max_bytes])?;
        let size = sizes.first().ok_or(SqlError::Shape {
            column: 0,
            expected: "counts",
            found: "no row",
        })?;
        let (eligible, mut fitting) = (size.unsigned(0)?, size.unsigned(1)?);
        if fitting == 0 && eligible > 0 && bounds.at_least_one && page.envelopes.is_empty() {
            fitting = 1;
        }
        let taken = eligible.min(room).min(fitting);
        if taken > 0 {
            let is_short = taken <= size.unsigned(1)?
                && size.unsigned(2)? + taken * joined::HEAD_BYTES <= joined::BYTES_MAX;
            let envelopes = match is_short {
                true => joined_page(sql, list, taken, chunk)?,
                false => separate_page(sql, list, taken, chunk)?,
            };
            let bytes: usize = envelopes.iter().map(|stored| stored.envelope.len()).sum();
            bytes_left = bytes_left.saturating_sub(bytes as u64);
            page.envelopes.extend(envelopes);
        }
        page.has_more = eligible > room;
        page.cut_by_bytes = taken < eligible.min(room);
        if page.has_more || page.cut_by_bytes {
            break;
        }
    }
    Ok(page)
}

/// The first `count` eligible envelopes, all in one value.
fn joined_page(
    sql: &impl Sql,
    list: Value,
    count: u64,
    chunk: &[TopicPosition],
) -> Result<Vec<StoredEnvelope>, SqlError> {
    let joined = sql.query_blob(PAGE_JOINED, &[list, Value::integer(count)?])?;
    joined::cut(joined.into(), chunk)
}

/// The first `count` eligible envelopes, row by row: they are too long for one value.
fn separate_page(
    sql: &impl Sql,
    list: Value,
    count: u64,
    chunk: &[TopicPosition],
) -> Result<Vec<StoredEnvelope>, SqlError> {
    let rows = sql.query(PAGE, &[list, Value::integer(count)?])?;
    // Each row is freed once it was taken over: a page may be as long as the transport carries.
    rows.into_iter()
        .map(|row| to_stored(&row, &chunk_topic(chunk, &row)?))
        .collect()
}

/// The newest envelope of each topic that has one, or `None` when their bodies exceed `max_bytes`.
pub(super) fn newest(
    sql: &impl Sql,
    topics: &[Bytes],
    include_full_envelope: bool,
    max_bytes: u64,
) -> Result<Option<Vec<stored_newest::Result>>, SqlError> {
    let mut results = Vec::new();
    let mut bytes_left = max_bytes;
    for chunk in topics.chunks(TOPICS_PER_STATEMENT) {
        let list = Value::from(topics_to_json(chunk));
        if include_full_envelope {
            let rows = sql.query(NEWEST_BYTES, std::slice::from_ref(&list))?;
            let bytes = rows.first().map_or(Ok(0), |row| row.unsigned(0))?;
            let Some(left) = bytes_left.checked_sub(bytes) else {
                return Ok(None);
            };
            bytes_left = left;
        }
        let statement = if include_full_envelope {
            NEWEST_FULL
        } else {
            NEWEST
        };
        for row in sql.query(statement, &[list])? {
            let topic = chunk
                .get(usize::try_from(row.unsigned(0)?).unwrap_or(usize::MAX))
                .cloned()
                .ok_or_else(unasked)?;
            let body = include_full_envelope
                .then(|| row.blob(6).map(Bytes::copy_from_slice))
                .transpose()?;
            results.push(stored_newest::Result {
                topic: Some(wire::Topic { topic: topic.clone() }),
                meta: Some(to_meta(&row, &topic)?),
                envelope: body,
            });
        }
    }
    Ok(Some(results))
}

/// The head of each topic, in the order given; 0 for one without envelopes.
pub(super) fn heads(sql: &impl Sql, topics: &[Bytes]) -> Result<Vec<u64>, SqlError> {
    let mut heads = vec![0; topics.len()];
    for (chunk, heads) in topics
        .chunks(TOPICS_PER_STATEMENT)
        .zip(heads.chunks_mut(TOPICS_PER_STATEMENT))
    {
        for row in sql.query(HEADS, &[Value::from(topics_to_json(chunk))])? {
            let place = usize::try_from(row.unsigned(0)?).unwrap_or(usize::MAX);
            *heads.get_mut(place).ok_or_else(unasked)? = row.optional_unsigned(1)?.unwrap_or(0);
        }
    }
    Ok(heads)
}

/// The sequence id before `sequence_id` on its topic; 0 for the first.
pub(super) fn previous(sql: &impl Sql, topic_id: i64, sequence_id: u64) -> Result<u64, SqlError> {
    let rows = sql.query(
        PREVIOUS,
        &[Value::integer(topic_id)?, Value::integer(sequence_id)?],
    )?;
    rows.first()
        .map_or(Ok(0), |row| Ok(row.optional_unsigned(0)?.unwrap_or(0)))
}

/// How long a hash is, in bytes.
const HASH_BYTES: usize = 32;

/// Columns from 1: sequence id, server_ns, expiry_ns, is_commit_or_proposal, hash.
fn to_meta(row: &Row, topic: &Bytes) -> Result<wire::EnvelopeMeta, SqlError> {
    Ok(wire::EnvelopeMeta {
        cursor: Some(wire::Cursor {
            sequence_id: row.unsigned(1)?,
        }),
        server_ns: nanos(row, 2)?,
        message_hash: Some(wire::MessageHash {
            hash: Some(wire::message_hash::Hash::Sha256(Bytes::copy_from_slice(
                &row.array::<HASH_BYTES>(5)?,
            ))),
        }),
        topic: Some(wire::Topic { topic: topic.clone() }),
        expiry_ns: nanos(row, 3)?,
        is_commit_or_proposal: row.unsigned(4)? != 0,
    })
}

fn to_stored(row: &Row, topic: &Bytes) -> Result<StoredEnvelope, SqlError> {
    Ok(StoredEnvelope {
        meta: Some(to_meta(row, topic)?),
        envelope: Bytes::copy_from_slice(row.blob(6)?),
    })
}

fn chunk_topic(chunk: &[TopicPosition], row: &Row) -> Result<Bytes, SqlError> {
    let place = usize::try_from(row.unsigned(0)?).unwrap_or(usize::MAX);
    chunk
        .get(place)
        .map(|position| position.topic.clone())
        .ok_or_else(unasked)
}

pub(super) fn unasked() -> SqlError {
    SqlError::Shape {
        column: 0,
        expected: "the place of a topic that was asked for",
        found: "another number",
    }
}

/// `[["hex", cursor], …]`. A cursor above every possible sequence id reads as one at the end (API-286).
fn positions_to_json(positions: &[TopicPosition]) -> String {
    let mut json = String::with_capacity(2 + positions.len() * 90);
    json.push('[');
    for (index, position) in positions.iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        json.push_str("[\"");
        push_hex(&mut json, &position.topic);
        json.push_str("\",");
        json.push_str(&position.after.min(INTEGER_MAX as u64).to_string());
        json.push(']');
    }
    json.push(']');
    json
}

/// `["hex", …]`.
pub(super) fn topics_to_json(topics: &[Bytes]) -> String {
    let mut json = String::with_capacity(2 + topics.len() * 70);
    json.push('[');
    for (index, topic) in topics.iter().enumerate() {
        json.push_str(if index > 0 { ",\"" } else { "\"" });
        push_hex(&mut json, topic);
        json.push('"');
    }
    json.push(']');
    json
}

pub(super) fn push_hex(out: &mut String, bytes: &[u8]) {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;

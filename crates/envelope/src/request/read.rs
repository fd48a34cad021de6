//! Query and QueryNewest (contract sections 4 and 7). Depends on [`crate::topic`] and [`crate::limits`].

use std::collections::BTreeMap;

use bytes::Bytes;
use conclave_proto::xmtp::backend::v1::{QueryNewestRequest, QueryRequest, TopicQuery};
use prost::Message as _;

use super::wire::count_entries;
use crate::{
    limits::{Limits, MAX_SEQUENCE_ID},
    topic::{Topic, TopicError, TopicKind},
};

/// `QueryRequest.queries`, `QueryNewestRequest.topics` and `SubscribeStaticRequest.topics`.
const ENTRIES_FIELD_NUMBER: u32 = 1;

/// A topic and the sequence id to read above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicPosition {
    /// The topic.
    pub topic: Topic,
    /// The cursor, 0 to [`MAX_SEQUENCE_ID`]; 0 is the beginning.
    pub cursor: u64,
}

/// A Query that can be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPlan {
    /// Every topic once, in the order of its first mention, with the lowest cursor given for it (API-242).
    pub positions: Vec<TopicPosition>,
    /// The most envelopes in the page, over all topics: the effective limit (API-241).
    pub limit: u32,
}

/// A QueryNewest that can be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestPlan {
    /// Every topic once, in the order of its first mention.
    pub topics: Vec<Topic>,
    /// Whether results carry the envelope beside its metadata.
    pub include_full_envelope: bool,
}

/// Why a read is refused: INVALID_ARGUMENT, each of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFailure {
    /// The bytes are not the request.
    #[error("the request does not decode: {0}")]
    Undecodable(#[from] prost::DecodeError),
    /// There are more entries than a limit allows. Entries count before repeated topics are merged.
    #[error("{field} has {count} entries, more than {limit}, {max}")]
    TooMany {
        /// The field of the request.
        field: &'static str,
        /// How many entries it has.
        count: usize,
        /// The key of the limit.
        limit: &'static str,
        /// Its value.
        max: u32,
    },
    /// An entry names something that is no topic (TOPIC-003).
    #[error("{field} {index}: {error}")]
    Topic {
        /// The field of the request.
        field: &'static str,
        /// The index of the entry.
        index: usize,
        /// What is wrong with it.
        error: TopicError,
    },
    /// A cursor is greater than [`MAX_SEQUENCE_ID`].
    #[error("{field} {index}: the cursor is greater than 9223372036854775807")]
    Cursor {
        /// The field of the request.
        field: &'static str,
        /// The index of the entry.
        index: usize,
    },
    /// A Query names a key package topic (API-243).
    #[error("queries {index}: key package topics are not paged, only their newest envelope is read")]
    KeyPackageTopic {
        /// The index of the entry.
        index: usize,
    },
    /// A static stream without topics (API-260).
    #[error("topics is empty")]
    NoTopics,
    /// A topic is named twice where once is allowed (API-251, API-260).
    #[error("{field} {index}: the topic is named more than once")]
    RepeatedTopic {
        /// The field of the request.
        field: &'static str,
        /// The index of the later entry.
        index: usize,
    },
    /// The id of an Update is 0 or not greater than the one before (API-251).
    #[error("the id of the update is {id}, and the one before it was {previous}")]
    UpdateId {
        /// The id of this update.
        id: u64,
        /// The id of the update before, or 0.
        previous: u64,
    },
}

impl ReadPlan {
    /// Decodes and reads a Query. Its entries are counted before they are decoded.
    ///
    /// # Errors
    /// As [`parse_queries`], and [`RequestFailure::Undecodable`].
    pub fn decode(encoded: Bytes, limits: &Limits) -> Result<ReadPlan, RequestFailure> {
        check_entries("queries", &encoded, "max_query_topics", limits.max_query_topics)?;
        parse_queries(&QueryRequest::decode(encoded)?, limits)
    }
}

impl NewestPlan {
    /// Decodes and reads a QueryNewest. Its entries are counted before they are decoded.
    ///
    /// # Errors
    /// As [`parse_newest`], and [`RequestFailure::Undecodable`].
    pub fn decode(encoded: Bytes, limits: &Limits) -> Result<NewestPlan, RequestFailure> {
        let (limit, max) = if limits.max_newest_metadata_topics >= limits.max_newest_full_topics {
            ("max_newest_metadata_topics", limits.max_newest_metadata_topics)
        } else {
            ("max_newest_full_topics", limits.max_newest_full_topics)
        };
        check_entries("topics", &encoded, limit, max)?;
        parse_newest(&QueryNewestRequest::decode(encoded)?, limits)
    }
}

/// Reads a Query.
///
/// # Errors
/// [`RequestFailure`] when it has too many entries, or an entry is malformed or names a key package topic.
pub fn parse_queries(request: &QueryRequest, limits: &Limits) -> Result<ReadPlan, RequestFailure> {
    check_count(
        "queries",
        request.queries.len(),
        "max_query_topics",
        limits.max_query_topics,
    )?;
    let mut positions: Vec<TopicPosition> = Vec::with_capacity(request.queries.len());
    let mut place_by_topic = BTreeMap::new();
    for (index, query) in request.queries.iter().enumerate() {
        let position = parse_position("queries", index, query)?;
        if position.topic.kind() == TopicKind::KeyPackage {
            return Err(RequestFailure::KeyPackageTopic { index });
        }
        let place = *place_by_topic.entry(position.topic).or_insert(positions.len());
        match positions.get_mut(place) {
            Some(known) => known.cursor = known.cursor.min(position.cursor),
            None => positions.push(position),
        }
    }
    Ok(ReadPlan {
        positions,
        limit: effective_limit(request.limit, limits),
    })
}

/// Reads a QueryNewest.
///
/// # Errors
/// [`RequestFailure`] when it has too many topics for what it asks of them, or one is malformed.
pub fn parse_newest(request: &QueryNewestRequest, limits: &Limits) -> Result<NewestPlan, RequestFailure> {
    let (limit, max) = if request.include_full_envelope {
        ("max_newest_full_topics", limits.max_newest_full_topics)
    } else {
        ("max_newest_metadata_topics", limits.max_newest_metadata_topics)
    };
    check_count("topics", request.topics.len(), limit, max)?;
    let mut topics = Vec::with_capacity(request.topics.len());
    let mut known = BTreeMap::new();
    for (index, topic) in request.topics.iter().enumerate() {
        let topic = Topic::from_wire(Some(topic)).map_err(|error| RequestFailure::Topic {
            field: "topics",
            index,
            error,
        })?;
        if known.insert(topic, index).is_none() {
            topics.push(topic);
        }
    }
    Ok(NewestPlan {
        topics,
        include_full_envelope: request.include_full_envelope,
    })
}

/// The limit a Query pages by (API-241).
fn effective_limit(requested: u32, limits: &Limits) -> u32 {
    match requested {
        0 => limits.default_query_limit,
        requested => requested.min(limits.max_query_limit),
    }
}

pub(super) fn check_count(
    field: &'static str,
    count: usize,
    limit: &'static str,
    max: u32,
) -> Result<(), RequestFailure> {
    if count as u64 > u64::from(max) {
        return Err(RequestFailure::TooMany {
            field,
            count,
            limit,
            max,
        });
    }
    Ok(())
}

/// Bounds the entries of a request that is still encoded. They are field 1 of every request that has some.
pub(super) fn check_entries(
    field: &'static str,
    encoded: &Bytes,
    limit: &'static str,
    max: u32,
) -> Result<(), RequestFailure> {
    check_count(field, count_entries(encoded, ENTRIES_FIELD_NUMBER), limit, max)
}

pub(super) fn parse_position(
    field: &'static str,
    index: usize,
    query: &TopicQuery,
) -> Result<TopicPosition, RequestFailure> {
    let topic = Topic::from_wire(query.topic.as_ref()).map_err(|error| RequestFailure::Topic {
        field,
        index,
        error,
    })?;
    let cursor = query.cursor.as_ref().map_or(0, |cursor| cursor.sequence_id);
    if cursor > MAX_SEQUENCE_ID {
        return Err(RequestFailure::Cursor { field, index });
    }
    Ok(TopicPosition { topic, cursor })
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;

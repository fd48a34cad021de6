//! What opens and changes a stream: SubscribeStatic, and the Update of a Subscribe stream (contract sections 5 and 7).
//! Depends on [`crate::topic`] and [`crate::limits`].

use std::collections::BTreeSet;

use bytes::Bytes;
use conclave_proto::xmtp::backend::v1::{
    SubscribeRequest, SubscribeStaticRequest, subscribe_request::Update,
};
use prost::Message as _;

use super::{
    read::{RequestFailure, TopicPosition, check_count, check_entries, parse_position},
    wire::{Entries, count_entries},
};
use crate::{limits::Limits, topic::Topic};

/// A SubscribeStatic that can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticPlan {
    /// At least one topic, each once, in request order.
    pub positions: Vec<TopicPosition>,
}

/// An Update of a Subscribe stream that can be applied, as far as the frame alone tells.
///
/// How many topics are registered after it, and how fast updates come, is for the session to bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatePlan {
    /// Greater than the id before.
    pub id: u64,
    /// Topics to register, in request order. None of them is in `removes`.
    pub adds: Vec<TopicPosition>,
    /// Topics to unregister, in request order.
    pub removes: Vec<Topic>,
}

impl StaticPlan {
    /// Decodes and reads a SubscribeStatic. Its entries are counted before they are decoded.
    ///
    /// # Errors
    /// As [`parse_static`], and [`RequestFailure::Undecodable`].
    pub fn decode(encoded: Bytes, limits: &Limits) -> Result<StaticPlan, RequestFailure> {
        check_entries("topics", &encoded, "max_static_topics", limits.max_static_topics)?;
        parse_static(&SubscribeStaticRequest::decode(encoded)?, limits)
    }
}

/// Reads a SubscribeStatic.
///
/// # Errors
/// [`RequestFailure`] when it has no topics or too many, or one is malformed or named twice (API-260).
pub fn parse_static(request: &SubscribeStaticRequest, limits: &Limits) -> Result<StaticPlan, RequestFailure> {
    check_count(
        "topics",
        request.topics.len(),
        "max_static_topics",
        limits.max_static_topics,
    )?;
    if request.topics.is_empty() {
        return Err(RequestFailure::NoTopics);
    }
    let mut known = BTreeSet::new();
    let mut positions = Vec::with_capacity(request.topics.len());
    for (index, query) in request.topics.iter().enumerate() {
        let position = parse_position("topics", index, query)?;
        check_first("topics", index, position.topic, &mut known)?;
        positions.push(position);
    }
    Ok(StaticPlan { positions })
}

/// `SubscribeRequest.update`.
const UPDATE_FIELD_NUMBER: u32 = 1;
/// `Update.adds`.
const ADDS_FIELD_NUMBER: u32 = 2;
/// `Update.removes`.
const REMOVES_FIELD_NUMBER: u32 = 3;

/// Decodes a request frame of a Subscribe stream. The entries of an update are counted before they are decoded.
///
/// # Errors
/// [`RequestFailure::Undecodable`], and [`RequestFailure::TooMany`] for an update with more entries than it may have.
pub fn decode_frame(encoded: Bytes, limits: &Limits) -> Result<SubscribeRequest, RequestFailure> {
    let (mut adds, mut removes) = (0, 0);
    // Of several updates in one frame the entries add up.
    for update in Entries::new(encoded.clone(), UPDATE_FIELD_NUMBER).flatten() {
        adds += count_entries(&update, ADDS_FIELD_NUMBER);
        removes += count_entries(&update, REMOVES_FIELD_NUMBER);
    }
    check_update_counts(adds, removes, limits)?;
    Ok(SubscribeRequest::decode(encoded)?)
}

fn check_update_counts(adds: usize, removes: usize, limits: &Limits) -> Result<(), RequestFailure> {
    check_count("adds", adds, "max_update_adds", limits.max_update_adds)?;
    check_count(
        "removes",
        removes,
        "max_update_removes",
        limits.max_update_removes,
    )
}

/// Reads an Update that follows one with the id `previous`, or 0 where none was accepted yet.
///
/// # Errors
/// [`RequestFailure`] when its id does not rise, it has too many entries, or an entry is malformed or names a topic
/// that another one names (API-251).
pub fn parse_update(update: &Update, previous: u64, limits: &Limits) -> Result<UpdatePlan, RequestFailure> {
    if update.id <= previous {
        return Err(RequestFailure::UpdateId {
            id: update.id,
            previous,
        });
    }
    check_update_counts(update.adds.len(), update.removes.len(), limits)?;
    let mut known = BTreeSet::new();
    let mut plan = UpdatePlan {
        id: update.id,
        adds: Vec::new(),
        removes: Vec::new(),
    };
    for (index, query) in update.adds.iter().enumerate() {
        let position = parse_position("adds", index, query)?;
        check_first("adds", index, position.topic, &mut known)?;
        plan.adds.push(position);
    }
    for (index, topic) in update.removes.iter().enumerate() {
        let topic = Topic::from_wire(Some(topic)).map_err(|error| RequestFailure::Topic {
            field: "removes",
            index,
            error,
        })?;
        check_first("removes", index, topic, &mut known)?;
        plan.removes.push(topic);
    }
    Ok(plan)
}

fn check_first(
    field: &'static str,
    index: usize,
    topic: Topic,
    known: &mut BTreeSet<Topic>,
) -> Result<(), RequestFailure> {
    if known.insert(topic) {
        Ok(())
    } else {
        Err(RequestFailure::RepeatedTopic { field, index })
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;

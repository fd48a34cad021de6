//! A publish as a whole: its bounds, its envelopes, and the duplicates within it (contract sections 3 and 7). Depends
//! on [`crate::admission`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use bytes::Bytes;
use conclave_proto::xmtp::backend::v1::{
    ClientEnvelope, PublishError, PublishRequest, publish_error::Reason,
};
use prost::Message as _;

use super::wire::{Entries, count_actions};
use crate::{
    admission::{Admitted, Refused, Unchecked, count_wallet_signatures},
    limits::{self, Limits},
    topic::Topic,
};

/// `PublishRequest.envelopes`.
const ENVELOPES_FIELD_NUMBER: u32 = 1;

/// What an action of an identity update that can be valid takes at least, in bytes: each carries a signature, and the
/// shortest kind of those has 64 bytes or names a wallet in more than 40.
const MIN_SIGNED_ACTION_BYTES: u64 = 32;

/// The type URL of the detail that a failed publish carries.
pub const PUBLISH_ERROR_TYPE_URL: &str = "type.googleapis.com/xmtp.backend.v1.PublishError";

/// A publish whose envelopes parse and fit their bounds, in request order.
///
/// Only that is decided which needs no storage and no clock: an envelope stored by an earlier request is found by the
/// shard, and what is left [`unchecked`](Admitted::unchecked) is judged after that.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmittedPublish {
    envelopes: Vec<Admitted>,
    first_copies: Vec<usize>,
}

/// Why a publish is refused. Nothing of it may be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishFailure {
    /// INVALID_ARGUMENT, with a PublishError detail (API-223).
    #[error("{message}")]
    Invalid {
        /// The lowest index of a failing envelope, or `None` when the request as a whole fails.
        index: Option<u32>,
        /// The reason the admission table or the bounds table names.
        reason: Reason,
        /// What is wrong, for people.
        message: String,
    },
    /// OUT_OF_RANGE: longer on the wire than a request may be (API-281).
    #[error("the request of {wire_bytes} bytes is longer than max_request_bytes, {max}")]
    WireTooLong {
        /// The wire length, in bytes.
        wire_bytes: u64,
        /// The bound, in bytes.
        max: u64,
    },
}

impl PublishFailure {
    /// The detail of the status, for a failure that is INVALID_ARGUMENT.
    #[must_use]
    pub fn to_publish_error(&self) -> Option<PublishError> {
        match self {
            PublishFailure::Invalid {
                index,
                reason,
                message,
            } => Some(PublishError {
                index: *index,
                reason: (*reason).into(),
                message: message.clone(),
            }),
            PublishFailure::WireTooLong { .. } => None,
        }
    }

    fn too_large(index: Option<usize>, message: String) -> PublishFailure {
        PublishFailure::Invalid {
            index: index.map(to_index),
            reason: Reason::TooLarge,
            message,
        }
    }

    fn malformed(index: Option<usize>, message: String) -> PublishFailure {
        PublishFailure::Invalid {
            index: index.map(to_index),
            reason: Reason::MalformedPayload,
            message,
        }
    }

    /// An envelope fails a row of the admission table.
    #[must_use]
    pub fn not_admitted(index: usize, reason: Reason, why: impl fmt::Display) -> PublishFailure {
        PublishFailure::Invalid {
            index: Some(to_index(index)),
            reason,
            message: format!("envelope {index}: {why}"),
        }
    }

    /// The lowest index of a failing envelope; `None` when the request as a whole fails.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        match self {
            PublishFailure::Invalid { index, .. } => index.and_then(|index| usize::try_from(index).ok()),
            PublishFailure::WireTooLong { .. } => None,
        }
    }
}

/// The index of an envelope on the wire. A request has fewer than 2^32 envelopes, as each takes two bytes of at most
/// 25 MiB.
fn to_index(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl AdmittedPublish {
    /// Decodes and admits a request as it came over the wire.
    ///
    /// Envelopes are decoded one by one, so that one that does not decode is named by its index, and no further than
    /// their bounds allow.
    ///
    /// # Errors
    /// [`PublishFailure`]: OUT_OF_RANGE by its wire length, otherwise as [`AdmittedPublish::admit`].
    pub fn decode(encoded: Bytes, limits: &Limits) -> Result<AdmittedPublish, PublishFailure> {
        match AdmittedPublish::decode_prefix(encoded, limits) {
            (publish, None) => Ok(publish),
            (_, Some(failure)) => Err(failure),
        }
    }

    /// Decodes and admits a request as far as it comes: the failure, and the envelopes before the one that fails, of
    /// which one may fail for what only storage knows (API-223).
    #[must_use]
    pub fn decode_prefix(encoded: Bytes, limits: &Limits) -> (AdmittedPublish, Option<PublishFailure>) {
        let mut admission = Admission::new(limits);
        let added = check_wire_length(encoded.len() as u64, limits).and_then(|()| admission.add_all(encoded));
        let failure = added.and_then(|()| admission.check_whole()).err();
        (admission.finish(), failure)
    }

    /// Admits a decoded request that took `wire_bytes` on the wire.
    ///
    /// # Errors
    /// [`PublishFailure`]: OUT_OF_RANGE by its wire length; then the failure of the lowest index, by its length before
    /// its content; then REASON_TOO_LARGE without an index when the request is too long re-encoded or has too many
    /// topics.
    pub fn admit(
        request: &PublishRequest,
        wire_bytes: u64,
        limits: &Limits,
    ) -> Result<AdmittedPublish, PublishFailure> {
        check_wire_length(wire_bytes, limits)?;
        let mut admission = Admission::new(limits);
        request
            .envelopes
            .iter()
            .try_for_each(|envelope| admission.add(envelope))?;
        admission.check_whole()?;
        Ok(admission.finish())
    }

    /// The envelopes in request order, duplicates included.
    #[must_use]
    pub fn envelopes(&self) -> &[Admitted] {
        &self.envelopes
    }

    /// For every envelope, the index of its first copy in this request: its own index, unless it is a duplicate.
    #[must_use]
    pub fn first_copies(&self) -> &[usize] {
        &self.first_copies
    }

    /// The envelopes that are not duplicates of an earlier index, with their index, in order.
    pub fn distinct(&self) -> impl Iterator<Item = (usize, &Admitted)> {
        let first_copies = self.first_copies.iter();
        self.envelopes
            .iter()
            .enumerate()
            .zip(first_copies)
            .filter(|((index, _), first)| index == *first)
            .map(|(entry, _)| entry)
    }

    /// The distinct topics, in the order of their bytes.
    #[must_use]
    pub fn topics(&self) -> BTreeSet<Topic> {
        self.envelopes.iter().map(|admitted| *admitted.topic()).collect()
    }

    /// Envelopes and first copies, as [`envelopes`](Self::envelopes) and [`first_copies`](Self::first_copies).
    #[must_use]
    pub fn into_parts(self) -> (Vec<Admitted>, Vec<usize>) {
        (self.envelopes, self.first_copies)
    }
}

fn check_wire_length(wire_bytes: u64, limits: &Limits) -> Result<(), PublishFailure> {
    let max = limits.max_request_bytes;
    if wire_bytes > max {
        Err(PublishFailure::WireTooLong { wire_bytes, max })
    } else {
        Ok(())
    }
}

/// Refuses an identity update of more actions than can be valid within its bound, before they are decoded: a hundred
/// and more times as large in memory as on the wire, they would not fit the isolate they are judged in. One that is also
/// longer than its bound is too large, as it would be if it were decoded.
fn check_actions(index: usize, envelope: &Bytes, limits: &Limits) -> Result<(), PublishFailure> {
    let (actions, max) = (count_actions(envelope) as u64, limits.max_envelope_bytes);
    if actions <= max / MIN_SIGNED_ACTION_BYTES {
        return Ok(());
    }
    let message = format!("envelope {index} has {actions} actions, more than fit max_envelope_bytes, {max}");
    if envelope.len() as u64 > max {
        return Err(PublishFailure::too_large(Some(index), message));
    }
    Err(PublishFailure::Invalid {
        index: Some(to_index(index)),
        reason: Reason::InvalidIdentityUpdate,
        message: format!("{message} with a signature each"),
    })
}

/// A publish whose envelopes are being admitted, in order.
struct Admission<'a> {
    limits: &'a Limits,
    envelopes: Vec<Admitted>,
    reencoded_bytes: u64,
}

impl<'a> Admission<'a> {
    fn new(limits: &'a Limits) -> Admission<'a> {
        Admission {
            limits,
            envelopes: Vec::new(),
            reencoded_bytes: 0,
        }
    }

    fn add_all(&mut self, encoded: Bytes) -> Result<(), PublishFailure> {
        for entry in Entries::new(encoded, ENVELOPES_FIELD_NUMBER) {
            let entry = entry.map_err(|error| {
                PublishFailure::malformed(None, format!("the publish request does not decode: {error}"))
            })?;
            let index = self.envelopes.len();
            check_actions(index, &entry, self.limits)?;
            let envelope = ClientEnvelope::decode(entry).map_err(|error| {
                PublishFailure::malformed(Some(index), format!("envelope {index} does not decode: {error}"))
            })?;
            self.add(&envelope)?;
        }
        Ok(())
    }

    fn add(&mut self, envelope: &ClientEnvelope) -> Result<(), PublishFailure> {
        let index = self.envelopes.len();
        let (length, max) = (envelope.encoded_len() as u64, self.limits.max_envelope_bytes);
        if length > max {
            let message = format!(
                "envelope {index} has {length} bytes re-encoded, more than max_envelope_bytes, {max}"
            );
            return Err(PublishFailure::too_large(Some(index), message));
        }
        let admitted = Admitted::from_client_envelope(envelope)
            .map_err(|refused: Refused| PublishFailure::not_admitted(index, refused.reason(), refused))?;
        if let Some(Unchecked::IdentityUpdate(update)) = admitted.unchecked() {
            let (count, max) = (count_wallet_signatures(update), self.limits.max_scw_signatures);
            if count as u64 > u64::from(max) {
                let message = format!(
                    "envelope {index} has {count} wallet signatures, more than max_scw_signatures, {max}"
                );
                return Err(PublishFailure::too_large(Some(index), message));
            }
        }
        self.reencoded_bytes += limits::entry_overhead(length) + length;
        self.envelopes.push(admitted);
        Ok(())
    }

    /// The bounds of the request as a whole.
    fn check_whole(&self) -> Result<(), PublishFailure> {
        let (length, max) = (self.reencoded_bytes, self.limits.max_request_bytes);
        if length > max {
            let message =
                format!("the request has {length} bytes re-encoded, more than max_request_bytes, {max}");
            return Err(PublishFailure::too_large(None, message));
        }
        let topics: BTreeSet<&Topic> = self.envelopes.iter().map(Admitted::topic).collect();
        let (topics, max) = (topics.len(), self.limits.max_publish_topics);
        if topics as u64 > u64::from(max) {
            let message = format!("the request has {topics} topics, more than max_publish_topics, {max}");
            return Err(PublishFailure::too_large(None, message));
        }
        Ok(())
    }

    fn finish(self) -> AdmittedPublish {
        AdmittedPublish {
            first_copies: find_first_copies(&self.envelopes),
            envelopes: self.envelopes,
        }
    }
}

fn find_first_copies(envelopes: &[Admitted]) -> Vec<usize> {
    let mut first_by_key = BTreeMap::new();
    envelopes
        .iter()
        .enumerate()
        .map(|(index, admitted)| {
            *first_by_key
                .entry((admitted.topic(), admitted.message_hash()))
                .or_insert(index)
        })
        .collect()
}

#[cfg(test)]
#[path = "publish_tests.rs"]
mod tests;

//! Query and QueryNewest: at most one call to each involved shard, then a merge (contract section 4).

use std::collections::BTreeMap;

use bytes::Bytes;
use conclave_envelope::request::{NewestPlan, ReadPlan, RequestFailure, TopicPosition};
use conclave_grpc_web::Status;
use conclave_proto::{
    conclave::internal::v1::{self as internal, NewestRequest, PageRequest, PageResponse},
    xmtp::backend::v1::Continuation,
};
use futures_util::future::try_join_all;
use prost::Message as _;

use super::{Backend, CallContext, decode_answer};
use crate::{
    platform::{ObjectName, Platform},
    shard::too_long,
};

impl<P: Platform> Backend<P> {
    pub(super) async fn query(&self, message: Bytes, context: &CallContext) -> Result<P::Passed, Status> {
        let plan = ReadPlan::decode(message, &self.configuration.limits).map_err(|error| invalid(&error))?;
        let max_bytes = self.configuration.limits.max_response_bytes;
        let mut by_shard: BTreeMap<u32, Vec<internal::TopicPosition>> = BTreeMap::new();
        for position in &plan.positions {
            let shard = self.routing.shard_of(position.topic.as_bytes());
            by_shard.entry(shard).or_default().push(to_internal(position));
        }
        if by_shard.is_empty() {
            let continuation = Some(Continuation { has_more: false });
            let page = PageResponse {
                continuation,
                ..PageResponse::default()
            };
            return Ok(passed(&page));
        }
        let whole = by_shard.len() == 1;
        let mut requests = by_shard.into_iter().map(|(shard, positions)| {
            let request = PageRequest {
                positions,
                limit: plan.limit,
                max_bytes,
                whole,
            };
            (ObjectName::Shard(shard), request.encode_to_vec())
        });
        if whole && let Some((shard, request)) = requests.next() {
            return self.call_passing(shard, "page", request, context).await;
        }
        let calls = requests.map(|(shard, request)| self.call(shard, "page", request, context));
        let pages = try_join_all(calls)
            .await?
            .into_iter()
            .map(decode_answer)
            .collect::<Result<Vec<PageResponse>, _>>()?;
        merge(pages, plan.limit, max_bytes).map(|page| passed(&page))
    }

    pub(super) async fn query_newest(
        &self,
        message: Bytes,
        context: &CallContext,
    ) -> Result<Vec<u8>, Status> {
        let plan =
            NewestPlan::decode(message, &self.configuration.limits).map_err(|error| invalid(&error))?;
        let mut by_shard: BTreeMap<u32, Vec<Bytes>> = BTreeMap::new();
        for topic in &plan.topics {
            let shard = self.routing.shard_of(topic.as_bytes());
            by_shard
                .entry(shard)
                .or_default()
                .push(Bytes::copy_from_slice(topic.as_bytes()));
        }
        let calls = by_shard.into_iter().map(|(shard, topics)| {
            let request = NewestRequest {
                topics,
                include_full_envelope: plan.include_full_envelope,
                max_bytes: self.configuration.limits.max_response_bytes,
            };
            self.call(
                ObjectName::Shard(shard),
                "newest",
                request.encode_to_vec(),
                context,
            )
        });
        // Fields of the same number concatenate: the answers together are the response.
        Ok(try_join_all(calls).await?.concat())
    }
}

fn passed<R: From<Bytes>>(page: &PageResponse) -> R {
    Bytes::from(page.encode_to_vec()).into()
}

/// One page of the pages of several shards: shard by shard, at most `limit` envelopes, exact about what is left.
///
/// A shard whose page was cut by bytes holds more than its rows here. If those rows run out before the limit is
/// reached, the whole page is longer than a response may be.
fn merge(pages: Vec<PageResponse>, limit: u32, max_bytes: u64) -> Result<PageResponse, Status> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut merged = PageResponse::default();
    let mut has_more = false;
    for page in pages {
        let room = limit - merged.envelopes.len();
        if page.cut_by_bytes && page.envelopes.len() < room {
            return Err(too_long(max_bytes));
        }
        has_more |= page.envelopes.len() > room
            || page.cut_by_bytes
            || page
                .continuation
                .is_some_and(|continuation| continuation.has_more);
        merged.envelopes.extend(page.envelopes.into_iter().take(room));
    }
    merged.continuation = Some(Continuation { has_more });
    Ok(merged)
}

fn to_internal(position: &TopicPosition) -> internal::TopicPosition {
    internal::TopicPosition {
        topic: Bytes::copy_from_slice(position.topic.as_bytes()),
        after: position.cursor.min(crate::sequencer::SEQUENCE_ID_MAX),
    }
}

pub(super) fn invalid(failure: &RequestFailure) -> Status {
    Status::invalid_argument(failure.to_string())
}

#[cfg(test)]
mod tests {
    use conclave_proto::conclave::internal::v1::StoredEnvelope;

    use super::*;

    fn page(count: usize, has_more: bool, cut_by_bytes: bool) -> PageResponse {
        PageResponse {
            envelopes: vec![StoredEnvelope::default(); count],
            continuation: Some(Continuation { has_more }),
            cut_by_bytes,
        }
    }

    fn merged(pages: Vec<PageResponse>) -> Option<(usize, bool)> {
        let merged = merge(pages, 10, 1).ok()?;
        Some((merged.envelopes.len(), merged.continuation?.has_more))
    }

    // API-240
    #[test]
    fn a_merged_page_is_exact_about_what_is_left() {
        assert_eq!(merged(vec![]), Some((0, false)));
        assert_eq!(
            merged(vec![page(4, false, false), page(6, false, false)]),
            Some((10, false))
        );
        assert_eq!(
            merged(vec![page(4, false, false), page(7, false, false)]),
            Some((10, true))
        );
        assert_eq!(
            merged(vec![page(10, true, false), page(0, false, false)]),
            Some((10, true))
        );
        assert_eq!(
            merged(vec![page(10, false, false), page(1, false, false)]),
            Some((10, true))
        );
    }

    // API-283
    #[test]
    fn a_page_cut_by_bytes_fails_only_where_its_missing_rows_are_needed() {
        assert_eq!(
            merged(vec![page(10, false, false), page(3, false, true)]),
            Some((10, true))
        );
        assert_eq!(
            merged(vec![page(7, false, false), page(3, false, true)]),
            Some((10, true))
        );
        assert_eq!(merged(vec![page(6, false, false), page(3, false, true)]), None);
    }
}

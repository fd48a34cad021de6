//! The parts of a publish across shards: which shard gets what, and one answer from all of theirs.

use std::collections::{BTreeMap, HashSet};

use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{
    StoreRequest, StoreResponse, prepare_response::Prepared, store_response::Receipt,
};

use super::{
    Shard,
    decide::{self, Decided},
    queue::Content,
};
use crate::platform::ObjectPlatform;

/// The parts of a publish by shard, with the place of each envelope in the request.
pub(super) struct Parts {
    pub(super) contents: BTreeMap<u32, Content>,
    pub(super) places: BTreeMap<u32, Vec<usize>>,
    pub(super) total: usize,
}

impl<P: ObjectPlatform> Shard<P> {
    /// Parts a publish by shard. This shard coordinates it.
    pub(super) fn split(&self, request: &StoreRequest) -> Result<Parts, Status> {
        let mut contents: BTreeMap<u32, Content> = BTreeMap::new();
        let mut places: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut keys = HashSet::new();
        for (place, envelope) in request.envelopes.iter().enumerate() {
            if !keys.insert((&envelope.topic, &envelope.hash)) {
                return Err(Status::internal("a publish across shards repeats an envelope"));
            }
            let shard = self.routing.shard_of(&envelope.topic);
            contents
                .entry(shard)
                .or_default()
                .envelopes
                .push(envelope.clone());
            places.entry(shard).or_default().push(place);
        }
        for condition in &request.preconditions {
            let shard = self.routing.shard_of(&condition.topic);
            contents
                .entry(shard)
                .or_default()
                .preconditions
                .push(condition.clone());
        }
        for claim in &request.claims {
            let shard = self.routing.shard_of(&claim.key);
            contents.entry(shard).or_default().claims.push(claim.clone());
        }
        for association in &request.associations {
            let shard = self.routing.shard_of(&association.key);
            let content = contents.entry(shard).or_default();
            content.associations.push(association.clone());
        }
        if contents.keys().next() != Some(&self.index) {
            return Err(Status::internal(
                "a publish across shards was sent to a shard that does not coordinate it",
            ));
        }
        Ok(Parts {
            contents,
            places,
            total: request.envelopes.len(),
        })
    }
}

/// One receipt per envelope of the request, in its order.
pub(super) fn receipts(
    parts: &Parts,
    prepared: &BTreeMap<u32, Prepared>,
    decided: Option<&Decided>,
) -> Result<StoreResponse, Status> {
    let mut receipts: Vec<Option<Receipt>> = vec![None; parts.total];
    let mut next = decided.map_or(0, |decided| decided.first);
    for (shard, content) in &parts.contents {
        let found = prepared.get(shard).map_or(&[][..], |answer| &answer.found);
        let places = parts.places.get(shard).map_or(&[][..], Vec::as_slice);
        for ((place, envelope), found) in places.iter().zip(&content.envelopes).zip(found) {
            let receipt = match (found.stored, decided) {
                (Some(stored), _) => stored,
                (None, Some(decided)) => {
                    next += 1;
                    Receipt {
                        sequence_id: next - 1,
                        server_ns: decided.server_ns,
                        expiry_ns: decide::pick(&decided.expiry_ns, envelope),
                    }
                }
                (None, None) => continue,
            };
            if let Some(slot) = receipts.get_mut(*place) {
                *slot = Some(receipt);
            }
        }
    }
    receipts
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .map(|receipts| StoreResponse { receipts })
        .ok_or_else(|| Status::internal("an envelope of a publish has no receipt"))
}

/// For each new envelope, by its place in the request, how many ids of the publish come before its own: ids go by shard,
/// and within a shard in the order of the request.
pub(super) fn offsets(parts: &Parts, prepared: &BTreeMap<u32, Prepared>) -> BTreeMap<u32, u64> {
    let new_places = parts.places.iter().flat_map(|(shard, places)| {
        let found = prepared.get(shard).map_or(&[][..], |answer| &answer.found);
        let new = places
            .iter()
            .zip(found)
            .filter(|(_, found)| found.stored.is_none());
        new.map(|(place, _)| u32::try_from(*place).unwrap_or(u32::MAX))
    });
    new_places.zip(0..).collect()
}

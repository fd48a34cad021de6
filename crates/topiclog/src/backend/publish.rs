//! Publish: admission, then one call to the lowest shard that holds anything of it (contract section 3).

use bytes::Bytes;
use conclave_envelope::{
    Admitted,
    admission::Retention,
    request::{AdmittedPublish, PublishFailure, publish::PUBLISH_ERROR_TYPE_URL},
};
use conclave_grpc_web::Status;
use conclave_proto::{
    conclave::internal::v1::{
        NewEnvelope, Retention as WireRetention, StoreRequest, StoreResponse, store_response::Receipt,
    },
    xmtp::backend::v1 as wire,
};
use prost::Message as _;

use super::{Backend, CallContext, decode_answer, validation::Rejection};
use crate::platform::{ObjectName, Platform};

impl<P: Platform> Backend<P> {
    pub(super) async fn publish(&self, message: Bytes, context: &CallContext) -> Result<Vec<u8>, Status> {
        let (publish, failure) = AdmittedPublish::decode_prefix(message, &self.configuration.limits);
        let conditions = match failure {
            None => self
                .validate(&publish, context)
                .await
                .map_err(|rejection| match rejection {
                    Rejection::Refused(failure) => refusal(&failure),
                    Rejection::Undecided(status) => status,
                })?,
            Some(failure) => return Err(self.lowest_refusal(&publish, failure, context).await),
        };
        let request = StoreRequest {
            envelopes: publish.distinct().map(|(_, admitted)| to_new(admitted)).collect(),
            expected_router_instance: context.expected_router_instance.clone(),
            preconditions: conditions.preconditions,
            claims: conditions.claims,
            associations: conditions.associations,
        };
        if request.envelopes.is_empty() && request.expected_router_instance.is_none() {
            return Ok(wire::PublishResponse::default().encode_to_vec());
        }
        let answer = self
            .call(
                ObjectName::Shard(self.home_of(&request)),
                "store",
                request.encode_to_vec(),
                context,
            )
            .await?;
        let StoreResponse { receipts } = decode_answer(answer)?;
        metas(&publish, &receipts)
            .map(|envelope_metas| wire::PublishResponse { envelope_metas }.encode_to_vec())
    }

    /// The status of a publish of which an envelope fails already, and those before it may yet (API-223). An outage is no
    /// failure of theirs.
    async fn lowest_refusal(
        &self,
        before: &AdmittedPublish,
        failure: PublishFailure,
        context: &CallContext,
    ) -> Status {
        if failure.index().is_none() {
            return refusal(&failure);
        }
        match self.validate(before, context).await {
            Err(Rejection::Refused(lower)) => refusal(&lower),
            Ok(_) | Err(Rejection::Undecided(_)) => refusal(&failure),
        }
    }

    /// The lowest shard that holds anything of the publish: it coordinates the others. Shard 0 for a publish without
    /// envelopes.
    fn home_of(&self, request: &StoreRequest) -> u32 {
        let topics = request.envelopes.iter().map(|envelope| &envelope.topic);
        let claims = request.claims.iter().map(|claim| &claim.key);
        let associations = request.associations.iter().map(|association| &association.key);
        let keys = topics.chain(claims).chain(associations);
        keys.map(|key| self.routing.shard_of(key)).min().unwrap_or(0)
    }
}

fn to_new(admitted: &Admitted) -> NewEnvelope {
    let retention = match admitted.retention() {
        Retention::Exempt => WireRetention::Exempt,
        Retention::GroupMessage => WireRetention::GroupMessage,
        Retention::Welcome => WireRetention::Welcome,
        Retention::KeyPackage => WireRetention::KeyPackage,
    };
    NewEnvelope {
        topic: Bytes::copy_from_slice(admitted.topic().as_bytes()),
        hash: Bytes::copy_from_slice(admitted.message_hash()),
        body: admitted.stored_bytes().clone(),
        is_commit_or_proposal: admitted.is_commit_or_proposal(),
        retention: retention.into(),
    }
}

/// One entry per envelope of the request, at its index (API-221). `receipts` has one per distinct envelope.
fn metas(publish: &AdmittedPublish, receipts: &[Receipt]) -> Result<Vec<wire::EnvelopeMeta>, Status> {
    let mut receipt_by_index = vec![None; publish.envelopes().len()];
    let mut receipts_left = receipts.iter();
    for (index, _) in publish.distinct() {
        if let Some(place) = receipt_by_index.get_mut(index) {
            *place = receipts_left.next();
        }
    }
    publish
        .envelopes()
        .iter()
        .zip(publish.first_copies())
        .map(|(admitted, first)| {
            let receipt = receipt_by_index.get(*first).copied().flatten();
            receipt.map(|receipt| to_meta(admitted, receipt))
        })
        .collect::<Option<_>>()
        .ok_or_else(|| Status::internal("a shard answered fewer receipts than it was given envelopes"))
}

fn to_meta(admitted: &Admitted, receipt: &Receipt) -> wire::EnvelopeMeta {
    wire::EnvelopeMeta {
        cursor: Some(wire::Cursor {
            sequence_id: receipt.sequence_id,
        }),
        server_ns: receipt.server_ns,
        message_hash: Some(wire::MessageHash {
            hash: Some(wire::message_hash::Hash::Sha256(Bytes::copy_from_slice(
                admitted.message_hash(),
            ))),
        }),
        topic: Some(admitted.topic().to_wire()),
        expiry_ns: receipt.expiry_ns,
        is_commit_or_proposal: admitted.is_commit_or_proposal(),
    }
}

/// The status of a publish that is refused (API-223).
fn refusal(failure: &PublishFailure) -> Status {
    let message = failure.to_string();
    match failure {
        PublishFailure::Invalid { .. } => match failure.to_publish_error() {
            Some(detail) => {
                Status::invalid_argument(message).with_detail(PUBLISH_ERROR_TYPE_URL, detail.encode_to_vec())
            }
            None => Status::invalid_argument(message),
        },
        PublishFailure::WireTooLong { .. } => Status::out_of_range(message),
    }
}

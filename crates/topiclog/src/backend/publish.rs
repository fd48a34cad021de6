//! Publish: admission, then one call to the lowest shard that holds any of its topics (contract section 3).

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

use super::{Backend, CallContext, decode_answer};
use crate::platform::{ObjectName, Platform};

impl<P: Platform> Backend<P> {
    pub(super) async fn publish(&self, message: Bytes, context: &CallContext) -> Result<Vec<u8>, Status> {
        let publish =
            AdmittedPublish::decode(message, &self.configuration.limits).map_err(|error| refusal(&error))?;
        let shard = self.home_of(&publish);
        let request = StoreRequest {
            envelopes: publish.distinct().map(|(_, admitted)| to_new(admitted)).collect(),
            expected_router_instance: context.expected_router_instance.clone(),
            ..StoreRequest::default()
        };
        if request.envelopes.is_empty() && request.expected_router_instance.is_none() {
            return Ok(wire::PublishResponse::default().encode_to_vec());
        }
        let answer = self
            .call(
                ObjectName::Shard(shard),
                "store",
                request.encode_to_vec(),
                context,
            )
            .await?;
        let StoreResponse { receipts } = decode_answer(answer)?;
        metas(&publish, &receipts)
            .map(|envelope_metas| wire::PublishResponse { envelope_metas }.encode_to_vec())
    }

    /// The lowest shard that holds any topic of the publish: it coordinates the others. Shard 0 for a publish without
    /// envelopes.
    fn home_of(&self, publish: &AdmittedPublish) -> u32 {
        let topics = publish.topics();
        let shards = topics.iter().map(|topic| self.routing.shard_of(topic.as_bytes()));
        shards.min().unwrap_or(0)
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

/// The status of a publish that was refused before any storage was asked (API-223).
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
        PublishFailure::NotYetServed { .. } => Status::unimplemented(message),
    }
}

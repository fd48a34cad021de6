//! What an operator is told of the sequence.

use conclave_proto::conclave::{internal::v1::BirthRecord, operator::v1::GetStatusResponse};

use super::allocator::Allocator;

/// The status of a deployment as its allocator sees it.
pub(crate) fn status_of(record: &BirthRecord, allocator: &mut Allocator) -> GetStatusResponse {
    GetStatusResponse {
        identifier: record.identifier.clone(),
        router_instance_id: record.router_instance.clone(),
        shard_count: record.shard_count,
        closed_allocation_boundary: allocator.boundary(),
        last_allocated_sequence_id: allocator.last_allocated(),
        sequencer_epoch: allocator.epoch(),
        server_version: crate::SERVER_VERSION.to_owned(),
    }
}

//! Small reads of several shards at once: which envelopes are stored already, and which inbox a handle or an identifier
//! belongs to.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use conclave_envelope::Admitted;
use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{
    FindRequest, FindResponse, ResolveRequest, ResolveResponse, find_request::Key,
};
use futures_util::future::try_join_all;
use prost::Message as _;

use super::{Backend, CallContext, decode_answer};
use crate::platform::{ObjectName, Platform};

impl<P: Platform> Backend<P> {
    /// Whether each envelope is stored already.
    pub(super) async fn find(
        &self,
        envelopes: &[&Admitted],
        context: &CallContext,
    ) -> Result<Vec<bool>, Status> {
        let mut by_shard: BTreeMap<u32, (Vec<usize>, FindRequest)> = BTreeMap::new();
        for (place, admitted) in envelopes.iter().enumerate() {
            let topic = admitted.topic().as_bytes();
            let (places, request) = by_shard.entry(self.routing.shard_of(topic)).or_default();
            places.push(place);
            request.keys.push(Key {
                topic: Bytes::copy_from_slice(topic),
                hash: Bytes::copy_from_slice(admitted.message_hash()),
            });
        }
        let calls = by_shard.into_iter().map(|(shard, (places, request))| async move {
            let shard = ObjectName::Shard(shard);
            let answer = self.call(shard, "find", request.encode_to_vec(), context).await?;
            let FindResponse { is_stored } = decode_answer(answer)?;
            Ok::<_, Status>((places, is_stored))
        });
        let mut found = vec![false; envelopes.len()];
        for (places, is_stored) in try_join_all(calls).await? {
            for (place, is_stored) in places.into_iter().zip(is_stored) {
                found[place] = is_stored;
            }
        }
        Ok(found)
    }

    /// The inbox behind each key of a claim or an association that has one.
    pub(super) async fn resolve(
        &self,
        claims: &[Bytes],
        associations: &[Bytes],
        context: &CallContext,
    ) -> Result<HashMap<Bytes, Bytes>, Status> {
        let mut by_shard: BTreeMap<u32, ResolveRequest> = BTreeMap::new();
        for key in claims {
            let shard = by_shard.entry(self.routing.shard_of(key)).or_default();
            shard.claims.push(key.clone());
        }
        for key in associations {
            let shard = by_shard.entry(self.routing.shard_of(key)).or_default();
            shard.associations.push(key.clone());
        }
        let calls = by_shard.into_iter().map(|(shard, request)| async move {
            let shard = ObjectName::Shard(shard);
            let answer = self
                .call(shard, "resolve", request.encode_to_vec(), context)
                .await?;
            let response: ResolveResponse = decode_answer(answer)?;
            let found = request.claims.into_iter().zip(response.owners);
            Ok::<_, Status>(found.chain(request.associations.into_iter().zip(response.inboxes)))
        });
        let found = try_join_all(calls).await?.into_iter().flatten();
        Ok(found.filter(|(_, inbox)| !inbox.is_empty()).collect())
    }
}

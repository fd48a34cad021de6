//! GetInboxIds: the inboxes behind identifiers and handles (contract section 6, API-270, API-299).

use std::collections::BTreeSet;

use bytes::Bytes;
use conclave_envelope::request::decode_lookup;
use conclave_grpc_web::Status;
use conclave_identity::{LookupError, LookupKey};
use conclave_proto::xmtp::backend::v1::{GetInboxIdsResponse, get_inbox_ids_response::Response};
use prost::Message as _;

use super::{Backend, CallContext, query::invalid};
use crate::{keys, platform::Platform};

impl<P: Platform> Backend<P> {
    pub(super) async fn get_inbox_ids(
        &self,
        message: Bytes,
        context: &CallContext,
    ) -> Result<Vec<u8>, Status> {
        let request = decode_lookup(message, &self.configuration.limits).map_err(|error| invalid(&error))?;
        let (mut claims, mut associations) = (BTreeSet::new(), BTreeSet::new());
        let mut keys = Vec::with_capacity(request.requests.len());
        for (index, entry) in request.requests.iter().enumerate() {
            let lookup = LookupKey::parse(&entry.identifier, entry.identifier_kind).map_err(
                |error: LookupError| Status::invalid_argument(format!("requests {index}: {error}")),
            )?;
            keys.push(match lookup {
                LookupKey::Handle(handle) => Some(keys::of_handle(&handle)).inspect(|key| {
                    claims.insert(key.clone());
                }),
                LookupKey::Identifier(identifier) => Some(keys::of_identifier(&identifier)).inspect(|key| {
                    associations.insert(key.clone());
                }),
                LookupKey::Nothing => None,
            });
        }
        let (claims, associations) = (Vec::from_iter(claims), Vec::from_iter(associations));
        let found = self.resolve(&claims, &associations, context).await?;
        let responses = request
            .requests
            .into_iter()
            .zip(keys)
            .map(|(entry, key)| Response {
                identifier: entry.identifier,
                identifier_kind: entry.identifier_kind,
                inbox_id: key.and_then(|key| found.get(&key)).map(|inbox| to_hex(inbox)),
            });
        Ok(GetInboxIdsResponse {
            responses: responses.collect(),
        }
        .encode_to_vec())
    }
}

fn to_hex(inbox: &[u8]) -> String {
    inbox.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! The planted bugs that change what passes between objects (see [`super::bugs`]).

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use conclave_proto::conclave::{
    internal::v1::{FromShard, StoreRequest, StoreResponse, from_shard::Message as Outgoing},
    operator::v1::GetStatusResponse,
};
use conclave_topiclog::{answer, platform::ObjectName};
use prost::Message as _;

use super::{bugs::Breach, world::World};

/// What planted bugs remember.
#[derive(Default)]
pub(super) struct Plants {
    pages: RefCell<BTreeMap<Vec<u8>, Vec<u8>>>,
}

pub(super) async fn run_call(
    world: &Rc<World>,
    to: ObjectName,
    method: &str,
    request: Vec<u8>,
) -> Option<Vec<u8>> {
    match (world.breach, method) {
        (Some(Breach::PagesCached), "page") => {
            let known = world.plants.pages.borrow().get(&request).cloned();
            if known.is_some() {
                return known;
            }
            let answer = world.object(to).call(world, method, request.clone()).await.ok()?;
            world.plants.pages.borrow_mut().insert(request, answer.clone());
            Some(answer)
        }
        (Some(Breach::PublishSplit), "store") => split(world, to, &request).await,
        (Some(Breach::BoundaryTooHigh), "status") => {
            let answer = world.object(to).call(world, method, request).await.ok()?;
            let answered = answer::decode(answer);
            let response = answered.result.map(|bytes| {
                let mut status = GetStatusResponse::decode(bytes).expect("a status decodes");
                status.closed_allocation_boundary = Some(status.last_allocated_sequence_id);
                status.encode_to_vec()
            });
            Some(answer::encode(response, answered.router_instance.as_deref()))
        }
        _ => world.object(to).call(world, method, request).await.ok(),
    }
}

async fn split(world: &Rc<World>, to: ObjectName, request: &[u8]) -> Option<Vec<u8>> {
    let whole = StoreRequest::decode(request).expect("a store request decodes");
    let mut receipts = Vec::new();
    for envelope in &whole.envelopes {
        let part = StoreRequest {
            envelopes: vec![envelope.clone()],
            ..whole.clone()
        };
        let answer = world
            .object(to)
            .call(world, "store", part.encode_to_vec())
            .await
            .ok()?;
        let answered = answer::decode(answer);
        match answered.result {
            Ok(bytes) => receipts.extend(StoreResponse::decode(bytes).expect("receipts").receipts),
            Err(status) => return Some(answer::encode(Err(status), answered.router_instance.as_deref())),
        }
    }
    Some(answer::encode(
        Ok(StoreResponse { receipts }.encode_to_vec()),
        None,
    ))
}

/// Whether a message from a shard tells of new envelopes.
pub(super) fn is_push(message: &[u8]) -> bool {
    let decoded = FromShard::decode(message).expect("a message of a shard decodes");
    matches!(decoded.message, Some(Outgoing::Push(_)))
}

/// A message from a shard to a session as a bug leaves it.
pub(super) fn alter_push(world: &World, message: Vec<u8>) -> Vec<u8> {
    if !world.has(Breach::ChainIgnored) {
        return message;
    }
    let mut decoded = FromShard::decode(&message[..]).expect("a message of a shard decodes");
    if let Some(Outgoing::Push(push)) = &mut decoded.message {
        push.links.iter_mut().for_each(|link| link.previous = 0);
    }
    decoded.encode_to_vec()
}

//! Clients that contend for what only one of them can have: the next place on an identity topic, and a handle.
//!
//! They ask the shards directly, as the stateless half asks once it has admitted an update: it read the topic in one
//! snapshot, expects that nothing was added since, and claims the handle that the update names (API-232, API-234,
//! API-296). Everything is on the history as a publish.

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::{
    conclave::internal::v1::{
        Claim, NewEnvelope, Precondition, Retention, StoreRequest, StoreResponse, store_response::Receipt,
    },
    xmtp::backend::v1::{ClientEnvelope, Cursor, EnvelopeMeta, MessageHash, Topic, message_hash::Hash},
};
use conclave_topiclog::{
    answer,
    platform::{CallError, ObjectName},
    routing::Routing,
};
use futures_util::future::join;
use prost::Message as _;

use super::{
    client::{Client, hash_of, may_retry},
    envelopes::Place,
    history::{Asked, Came, Condition, Publish, id_of},
    workload::Plan,
};

/// The most envelopes an identity topic may hold here, so that some are refused for it.
const ENTRIES_MAX: u32 = 4;
/// How long a client waits for a shard, in milliseconds.
const STORE_DEADLINE_MS: u32 = 20_000;

/// Adds to an inbox, or to two: by one publish, or by two at once that claim the same handle.
pub(super) async fn run(client: &Client, plan: &Plan) {
    let random = &client.world.random;
    let (one, other) = (*random.pick(&plan.inboxes), *random.pick(&plan.inboxes));
    match random.below(3) {
        0 => {
            let handle = random.pick(&plan.handles);
            let (one, other) = ([one], [other]);
            let claiming = |inboxes| add(client, plan, inboxes, Some(handle));
            join(claiming(&one), claiming(&other)).await;
        }
        1 if one != other => add(client, plan, &[one, other], None).await,
        _ => add(client, plan, &[one], None).await,
    }
}

/// Adds to these inboxes with a claim, of this handle if one is named, and perhaps to a group as well.
async fn add(client: &Client, plan: &Plan, inboxes: &[Place], claimed: Option<&Bytes>) {
    let (mut conditions, mut request) = (Vec::new(), StoreRequest::default());
    for (index, inbox) in (0u32..).zip(inboxes.iter().copied()) {
        let topic = inbox.topic();
        let log = client.read_to_end(vec![(topic.clone(), 0)], 5).await;
        let mut head = log.last().map_or(0, id_of);
        if client.world.random.chance(100) {
            // As another client would that read earlier.
            head = log.iter().rev().nth(1).map_or(0, id_of);
        }
        let (_, update) = plan.envelope(inbox, false);
        request
            .envelopes
            .push(to_new(topic.clone(), &update, Retention::Exempt));
        request.preconditions.push(Precondition {
            index,
            topic: topic.clone(),
            expected_head: Some(head),
            max_entries: Some(ENTRIES_MAX),
        });
        let random = &client.world.random;
        let handle = (claimed.is_some() || random.chance(300)).then(|| {
            let handle = claimed.unwrap_or_else(|| random.pick(&plan.handles)).clone();
            request.claims.push(Claim {
                index,
                key: handle.clone(),
                owner: topic.clone(),
            });
            handle
        });
        conditions.push(Condition {
            topic,
            expected_head: head,
            entries_max: ENTRIES_MAX,
            handle,
        });
    }
    if client.world.random.chance(300) {
        let place = plan.places[0];
        let (_, envelope) = plan.envelope(place, false);
        let message = to_new(place.topic(), &envelope, Retention::GroupMessage);
        if matches!(place, Place::Group(_)) {
            request.envelopes.push(message);
        }
    }
    let number = {
        let mut history = client.history.borrow_mut();
        let envelopes = request.envelopes.iter();
        history.publishes.push(Publish {
            keys: envelopes
                .map(|new| (new.topic.clone(), new.hash.clone()))
                .collect(),
            conditions,
            ..Publish::default()
        });
        history.publishes.len() - 1
    };
    while let Err(status) = store(client, number, &request).await {
        if !may_retry(&status) {
            break;
        }
        client.back_off().await;
    }
}

fn to_new(topic: Bytes, envelope: &ClientEnvelope, retention: Retention) -> NewEnvelope {
    NewEnvelope {
        topic,
        hash: hash_of(envelope),
        retention: retention.into(),
        body: envelope.encode_to_vec().into(),
        ..NewEnvelope::default()
    }
}

/// Asks the lowest shard that holds any of it, once.
async fn store(client: &Client, number: usize, request: &StoreRequest) -> Result<(), Status> {
    let world = &client.world;
    let routing = Routing::at_birth(world.configuration.shard_count);
    let topics = request.envelopes.iter().map(|envelope| &envelope.topic);
    let keys = topics.chain(request.claims.iter().map(|claim| &claim.key));
    let home = keys.map(|key| routing.shard_of(key)).min().unwrap_or(0);
    let invoked_ns = world.executor.now_ns();
    let attempt = client
        .history
        .borrow_mut()
        .invoke(client.index, 0, invoked_ns, Asked::Publish(number));
    let called = world
        .call(
            ObjectName::Shard(home),
            "store",
            request.encode_to_vec(),
            STORE_DEADLINE_MS,
        )
        .await;
    let outcome = match called {
        Ok(answered) => answer::decode(answered).result.and_then(|bytes| {
            StoreResponse::decode(bytes).map_err(|_| Status::internal("receipts do not decode"))
        }),
        Err(CallError::DeadlineExceeded { .. }) => Err(Status::deadline_exceeded("no answer in time")),
        Err(lost) => Err(Status::unavailable(lost.to_string())),
    };
    let came = match &outcome {
        Ok(response) => {
            let stored = request.envelopes.iter().zip(&response.receipts);
            Came::Receipts(stored.map(|(new, receipt)| meta_of(new, receipt)).collect())
        }
        Err(status) => Came::Failure(status.code, status.message.clone()),
    };
    client.history.borrow_mut().conclude(attempt, came);
    outcome.map(drop)
}

fn meta_of(new: &NewEnvelope, receipt: &Receipt) -> EnvelopeMeta {
    EnvelopeMeta {
        cursor: Some(Cursor {
            sequence_id: receipt.sequence_id,
        }),
        server_ns: receipt.server_ns,
        message_hash: Some(MessageHash {
            hash: Some(Hash::Sha256(new.hash.clone())),
        }),
        topic: Some(Topic {
            topic: new.topic.clone(),
        }),
        expiry_ns: receipt.expiry_ns,
        is_commit_or_proposal: new.is_commit_or_proposal,
    }
}

//! The local agent: a key drawn here, kept here, and registered under one name.
//!
//! The key and the registration's operation id are stored before the Registry hears of them, so that an attempt whose answer
//! was lost is repeated as the same attempt.

use conclave_conversation::store::Key;
use conclave_grpc_web::Code;
use conclave_harness::randomness::random_array;
use conclave_harness::registration::{PRINCIPAL_ID_DEFAULT, RegistrationRequest};
use conclave_harness::{AgentCard, AgentKey, AgentName, OperationId, base64url, canonical_json};
use conclave_proto::conclave::registry::v1::{
    RegisterRequest,
    register_response::{Refusal, Result as Registered},
    registry_service::Register,
};
use serde::{Deserialize, Serialize};

use super::registry::{Registry, unreachable_registry};
use crate::failure::{Failure, Operation, corrupt};
use crate::observer::{Observer, Phase};
use crate::platform::chance::BrowserRandomness;
use crate::store::{AGENT, IndexedDbStore};
use crate::transport::Deployment;

/// The store's name for the local agent's card.
const OWN_CARD: &str = "own-card";

/// What is stored before registering.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentRow {
    agent_name: AgentName,
    /// base64url of 32 bytes.
    seed: String,
    operation_id: OperationId,
}

/// The local agent.
pub(crate) struct Identity {
    /// Its card, verified under the Registry's pinned key.
    pub(crate) card: AgentCard,
    /// Its key.
    pub(crate) key: AgentKey,
    /// Whether it was registered just now.
    pub(crate) is_new: bool,
}

impl Identity {
    /// The agent of this store, registered under `name` if it is not yet.
    pub(crate) async fn open(
        deployment: &Deployment,
        store: &IndexedDbStore,
        registry: &Registry,
        name: &AgentName,
        admission_token: Option<String>,
        observer: &Observer,
    ) -> Result<Self, Failure> {
        let row = match store.local(AGENT).await? {
            Some(bytes) => {
                canonical_json::read(&bytes).map_err(|error| corrupt(format!("the stored agent: {error}")))?
            }
            None => draw(store, name).await?,
        };
        if row.agent_name != *name {
            let message = format!("the store belongs to {}, not to {name}", row.agent_name);
            return Err(Failure::new(Operation::Open, "identity", message));
        }
        let key = key_of(&row)?;
        if let Some(card) = store.local(OWN_CARD).await? {
            let card = registry
                .verify(&card)
                .map_err(|_| corrupt("the local agent's card does not verify"))?;
            return Ok(Identity {
                card: require_own(card, &key, name)?,
                key,
                is_new: false,
            });
        }
        observer.tell_opening(Phase::Registering);
        let bytes = register(deployment, &row, &key, admission_token).await?;
        let card = registry
            .verify(&bytes)
            .map_err(|error| Failure::new(Operation::Open, "registry-untrusted", error.to_string()))?;
        let card = require_own(card, &key, name)?;
        store.put_local(vec![(Key::new([OWN_CARD]), bytes)]).await?;
        Ok(Identity {
            card,
            key,
            is_new: true,
        })
    }
}

async fn draw(store: &IndexedDbStore, name: &AgentName) -> Result<AgentRow, Failure> {
    let row = AgentRow {
        agent_name: name.clone(),
        seed: base64url::encode(&random_array::<32>(&mut BrowserRandomness)),
        operation_id: OperationId::from_bytes(random_array(&mut BrowserRandomness)),
    };
    let bytes = serde_json::to_vec(&row).map_err(|error| corrupt(error.to_string()))?;
    store.put_local(vec![(Key::new([AGENT]), bytes)]).await?;
    Ok(row)
}

fn key_of(row: &AgentRow) -> Result<AgentKey, Failure> {
    base64url::decode_array(&row.seed)
        .map(AgentKey::from_seed)
        .map_err(|_| corrupt("the stored key is malformed"))
}

fn require_own(card: AgentCard, key: &AgentKey, name: &AgentName) -> Result<AgentCard, Failure> {
    if card.public_key() != key.public_key() {
        return Err(Failure::new(
            Operation::Open,
            "identity",
            "the card is of another key",
        ));
    }
    if card.agent_name() != name {
        return Err(Failure::new(
            Operation::Open,
            "identity",
            "the card is of another name",
        ));
    }
    Ok(card)
}

async fn register(
    deployment: &Deployment,
    row: &AgentRow,
    key: &AgentKey,
    admission_token: Option<String>,
) -> Result<Vec<u8>, Failure> {
    let request = RegistrationRequest {
        operation_id: row.operation_id,
        agent_name: row.agent_name.clone(),
        principal_id: PRINCIPAL_ID_DEFAULT,
        public_key: key.public_key(),
    };
    let request = RegisterRequest {
        operation_id: row.operation_id.to_string(),
        agent_name: row.agent_name.to_string(),
        public_jwk: key.public_key().jwk().to_canonical_bytes().into(),
        principal_id: None,
        proof: request.prove(key).as_bytes().to_vec().into(),
        admission_token,
    };
    let answer = deployment
        .unary::<Register>(&request)
        .await
        .map_err(|error| match error.status.code {
            Code::PermissionDenied | Code::Unauthenticated if error.is_stated => {
                Failure::new(Operation::Open, "not-admitted", error.to_string())
            }
            _ => unreachable_registry(&error),
        })?;
    let refused = |code, message: String| Err(Failure::new(Operation::Open, code, message));
    match answer.message.result {
        Some(Registered::AgentCard(card)) => Ok(card.to_vec()),
        Some(Registered::Refusal(refusal)) => match Refusal::try_from(refusal) {
            Ok(Refusal::NameTaken) => refused(
                "name-taken",
                format!(
                    "the name {} belongs to another key. If this browser registered it, its store was removed since and the \
                     key with it: take another name",
                    row.agent_name
                ),
            ),
            Ok(Refusal::KeyAlreadyRegistered) => refused(
                "key-already-registered",
                "the key is registered under another name".to_owned(),
            ),
            Ok(Refusal::IdempotencyConflict) => refused(
                "idempotency-conflict",
                "the Registry holds another request under the same operation".to_owned(),
            ),
            _ => refused(
                "decode-failed",
                format!("the Registry refused for an unknown reason ({refusal})"),
            ),
        },
        None => refused("decode-failed", "the Registry's answer is empty".to_owned()),
    }
}

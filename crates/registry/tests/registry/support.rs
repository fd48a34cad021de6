//! A Registry in memory, and the requests agents make of it.

use conclave_grpc_web::Status;
use conclave_harness::{
    AgentCard, AgentKey, EncodedAgentCard, OperationId, Randomness, WireVersions,
    randomness::SeededRandomness,
    registration::{PRINCIPAL_ID_DEFAULT, RegistrationRequest},
};
use conclave_proto::{
    Rpc,
    conclave::registry::v1::{
        RegisterRequest, RegisterResponse,
        register_response::{Refusal, Result as Answer},
        registry_service::Register,
    },
};
use conclave_registry::{Registry, RegistryConfiguration};
use conclave_sql::native::Database;
use prost::Message;

/// 2026-10-21T12:00:00.999999999Z.
pub(crate) const NOW_NS: u64 = 1_792_584_000_999_999_999;

pub(crate) type TestRegistry = Registry<Database>;

pub(crate) fn configured() -> RegistryConfiguration {
    RegistryConfiguration {
        signing_seed: Some([9; 32]),
        admission_token: None,
    }
}

pub(crate) fn registry() -> TestRegistry {
    Registry::open(
        Database::in_memory().unwrap(),
        configured(),
        &mut SeededRandomness::new(1),
    )
    .unwrap()
}

pub(crate) fn key(number: u8) -> AgentKey {
    AgentKey::from_seed([number; 32])
}

/// The attempt number `operation` of the key `number` to be called `name`.
pub(crate) fn asking(number: u8, operation: u8, name: &str) -> RegistrationRequest {
    RegistrationRequest {
        operation_id: OperationId::from_bytes([operation; 16]),
        agent_name: name.parse().unwrap(),
        principal_id: PRINCIPAL_ID_DEFAULT,
        public_key: key(number).public_key(),
    }
}

/// The request on the wire, proven with the key `number`.
pub(crate) fn proven(request: &RegistrationRequest, number: u8) -> RegisterRequest {
    RegisterRequest {
        operation_id: request.operation_id.to_string(),
        agent_name: request.agent_name.to_string(),
        public_jwk: request.public_key.jwk().to_canonical_bytes().into(),
        principal_id: Some(request.principal_id.to_string()),
        proof: request.prove(&key(number)).as_bytes().to_vec().into(),
        admission_token: None,
    }
}

pub(crate) fn call<R: Rpc>(registry: &TestRegistry, request: &R::Request) -> Result<R::Response, Status> {
    call_with::<R>(registry, request, &mut SeededRandomness::new(rows(registry)))
}

pub(crate) fn call_with<R: Rpc>(
    registry: &TestRegistry,
    request: &R::Request,
    randomness: &mut dyn Randomness,
) -> Result<R::Response, Status> {
    let response = registry.handle(R::PATH, &request.encode_to_vec(), NOW_NS, randomness)?;
    Ok(R::Response::decode(&*response).unwrap())
}

/// A seed that differs after every agent, so that each gets an id of its own.
fn rows(registry: &TestRegistry) -> u64 {
    registry.rows_written() + 100
}

/// What registering came to.
#[derive(Debug, PartialEq)]
pub(crate) enum Registered {
    Card(Box<AgentCard>),
    Refused(Refusal),
}

pub(crate) fn verified(registry: &TestRegistry, bytes: &[u8]) -> AgentCard {
    let card = EncodedAgentCard::from_canonical_bytes(bytes).unwrap();
    card.verify(&registry.signer(), &WireVersions::history()).unwrap()
}

pub(crate) fn outcome(registry: &TestRegistry, response: RegisterResponse) -> Registered {
    match response.result.unwrap() {
        Answer::AgentCard(bytes) => Registered::Card(Box::new(verified(registry, &bytes))),
        Answer::Refusal(refusal) => Registered::Refused(Refusal::try_from(refusal).unwrap()),
    }
}

pub(crate) fn register(registry: &TestRegistry, request: &RegistrationRequest, number: u8) -> Registered {
    outcome(
        registry,
        call::<Register>(registry, &proven(request, number)).unwrap(),
    )
}

/// The card of the key `number`, newly registered as `name`.
pub(crate) fn registered(registry: &TestRegistry, number: u8, name: &str) -> AgentCard {
    match register(registry, &asking(number, number, name), number) {
        Registered::Card(card) => *card,
        Registered::Refused(refusal) => panic!("{name} was refused: {refusal:?}"),
    }
}

//! Requests, parsed. Each refusal names the field and what is wrong with it.

use conclave_grpc_web::Status;
use conclave_harness::{
    AgentId, AgentName, PublicJwk, Signature,
    registration::{PRINCIPAL_ID_DEFAULT, RegistrationRequest},
};
use conclave_proto::{
    Rpc,
    conclave::registry::v1::{ListRequest, LookupRequest, RegisterRequest, lookup_request::By},
};
use prost::Message;
use std::{fmt::Display, str::FromStr};

/// The longest encoded request, in bytes. A registration with every field at its longest takes about 900.
pub const REQUEST_BYTES_MAX: usize = 4_096;

/// A registration as it was asked for; neither its proof nor its admission has been looked at.
pub(crate) struct RegistrationAttempt {
    pub(crate) request: RegistrationRequest,
    pub(crate) proof: Signature,
    pub(crate) admission_token: Option<String>,
}

/// What a card is looked up by.
pub(crate) enum LookupKey {
    AgentId(AgentId),
    AgentName(AgentName),
}

pub(crate) fn decode<R: Rpc>(bytes: &[u8]) -> Result<R::Request, Status> {
    if bytes.len() > REQUEST_BYTES_MAX {
        let message = format!(
            "the request has {} bytes, at most {REQUEST_BYTES_MAX} are read",
            bytes.len()
        );
        return Err(Status::invalid_argument(message));
    }
    R::Request::decode(bytes)
        .map_err(|error| Status::invalid_argument(format!("the request does not decode: {error}")))
}

pub(crate) fn registration(request: RegisterRequest) -> Result<RegistrationAttempt, Status> {
    let public_jwk =
        PublicJwk::from_canonical_bytes(&request.public_jwk).map_err(|error| invalid("public_jwk", error))?;
    let principal_id = match request.principal_id {
        Some(text) => field("principal_id", &text)?,
        None => PRINCIPAL_ID_DEFAULT,
    };
    let proof = <[u8; 64]>::try_from(&*request.proof).map_err(|_| {
        invalid(
            "proof",
            format_args!("{} bytes instead of 64", request.proof.len()),
        )
    })?;
    Ok(RegistrationAttempt {
        request: RegistrationRequest {
            operation_id: field("operation_id", &request.operation_id)?,
            agent_name: field("agent_name", &request.agent_name)?,
            principal_id,
            public_key: public_jwk.public_key(),
        },
        proof: Signature::from_bytes(proof).map_err(|error| invalid("proof", error))?,
        admission_token: request.admission_token,
    })
}

pub(crate) fn lookup(request: LookupRequest) -> Result<LookupKey, Status> {
    match request.by {
        Some(By::AgentId(text)) => field("agent_id", &text).map(LookupKey::AgentId),
        Some(By::AgentName(text)) => field("agent_name", &text).map(LookupKey::AgentName),
        None => Err(Status::invalid_argument(
            "exactly one of agent_id and agent_name is needed",
        )),
    }
}

pub(crate) fn list(request: ListRequest) -> Result<Option<AgentId>, Status> {
    request
        .after_agent_id
        .map(|text| field("after_agent_id", &text))
        .transpose()
}

fn field<T: FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, Status> {
    text.parse().map_err(|error| invalid(name, error))
}

fn invalid(name: &str, problem: impl Display) -> Status {
    Status::invalid_argument(format!("{name}: {problem}"))
}

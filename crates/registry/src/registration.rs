//! Who gets which name and key (reference section 5.2).
//!
//! An attempt is known by the key it submits and its operation id. Repeated word for word it gets the answer it got,
//! refusals included; changed it is a conflict, which is not kept. A new one is refused if the key has a card, then if
//! the name is taken, and otherwise gets a card. Reading and writing are one transaction.

use crate::{Registry, request::RegistrationAttempt};
use conclave_grpc_web::Status;
use conclave_harness::{
    AgentCard, AgentId, IssuedAt, Randomness, agent_card::AgentCardClaims, randomness::random_array,
    registration::RegistrationRequest,
};
use conclave_proto::conclave::registry::v1::{
    RegisterResponse,
    register_response::{Refusal, Result as Answer},
};
use conclave_sql::{Sql, SqlError, Value};
use sha2::{Digest, Sha256};

/// How many agent ids are drawn for one registration before it fails. Two draws of 16 random bytes do not meet; a
/// source that repeats itself is broken.
pub const MINT_ATTEMPTS_MAX: usize = 8;

const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

/// Why a registration has no answer at all.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the Registry's storage failed: {0}")]
    Sql(#[from] SqlError),
    #[error("the Registry's storage is inconsistent: {0}")]
    Inconsistent(&'static str),
    #[error("no free agent id was drawn in {MINT_ATTEMPTS_MAX} attempts")]
    NoFreeAgentId,
    #[error("the Registry's clock shows no year before 10000")]
    Clock,
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoFreeAgentId => Self::resource_exhausted(failure.to_string()),
            Failure::Sql(_) | Failure::Inconsistent(_) | Failure::Clock => {
                Self::internal(failure.to_string())
            }
        }
    }
}

impl<S: Sql> Registry<S> {
    pub(crate) fn register(
        &self,
        attempt: &RegistrationAttempt,
        now_ns: u64,
        randomness: &mut dyn Randomness,
    ) -> Result<RegisterResponse, Status> {
        // One answer for both, so that a token cannot be told right without a key, nor the other way round.
        let admitted = self
            .admission
            .as_ref()
            .is_none_or(|guard| guard.admits(attempt.admission_token.as_deref()));
        if !(attempt.request.is_proven_by(&attempt.proof) && admitted) {
            return Err(Status::unauthenticated(
                "the proof of possession or the admission token is wrong",
            ));
        }
        let issued_at = IssuedAt::from_unix_seconds(now_ns / NANOSECONDS_PER_SECOND).ok_or(Failure::Clock)?;
        let answer = self
            .sql
            .transaction(|| self.answer(&attempt.request, issued_at, randomness))?;
        Ok(RegisterResponse { result: Some(answer) })
    }

    fn answer(
        &self,
        request: &RegistrationRequest,
        issued_at: IssuedAt,
        randomness: &mut dyn Randomness,
    ) -> Result<Answer, Failure> {
        let thumbprint = request.public_key.thumbprint();
        if let Some(answer) = self.stored_answer(request, &thumbprint)? {
            return Ok(answer);
        }
        if self.exists(
            "SELECT 1 FROM agent WHERE key_thumbprint = ?",
            thumbprint.as_slice().into(),
        )? {
            return self.refuse(request, &thumbprint, Refusal::KeyAlreadyRegistered);
        }
        if self.exists(
            "SELECT 1 FROM agent WHERE agent_name = ?",
            request.agent_name.as_str().into(),
        )? {
            return self.refuse(request, &thumbprint, Refusal::NameTaken);
        }
        let card = AgentCard::issue(
            &self.signer,
            AgentCardClaims {
                agent_id: self.mint(randomness)?,
                principal_id: request.principal_id,
                agent_name: request.agent_name.clone(),
                public_key: request.public_key,
                issued_at,
                version: self.wire_version,
            },
        );
        let bytes = card.encoded().to_canonical_bytes();
        self.sql.execute(
            "INSERT INTO agent (agent_id, agent_name, key_thumbprint, card) VALUES (?, ?, ?, ?)",
            &[
                card.agent_id().as_bytes().as_slice().into(),
                request.agent_name.as_str().into(),
                thumbprint.as_slice().into(),
                bytes.as_slice().into(),
            ],
        )?;
        self.store_operation(
            request,
            &thumbprint,
            card.agent_id().as_bytes().as_slice().into(),
            Value::Null,
        )?;
        Ok(Answer::AgentCard(bytes.into()))
    }

    /// What this very operation was answered before; a conflict when it asked for something else then.
    fn stored_answer(
        &self,
        request: &RegistrationRequest,
        thumbprint: &[u8; 32],
    ) -> Result<Option<Answer>, Failure> {
        let rows = self.sql.query(
            "SELECT operation.request_hash, operation.refusal, agent.card
             FROM operation LEFT JOIN agent ON agent.agent_id = operation.agent_id
             WHERE operation.key_thumbprint = ? AND operation.operation_id = ?",
            &[
                thumbprint.as_slice().into(),
                request.operation_id.as_bytes().as_slice().into(),
            ],
        )?;
        let Some(row) = rows.first() else { return Ok(None) };
        if row.array(0)? != request_hash(request) {
            return Ok(Some(Answer::Refusal(Refusal::IdempotencyConflict.into())));
        }
        let answer = match row.optional_unsigned(1)? {
            None => Answer::AgentCard(row.blob(2)?.to_vec().into()),
            Some(number) => {
                let refusal = i32::try_from(number)
                    .ok()
                    .and_then(|number| Refusal::try_from(number).ok());
                Answer::Refusal(
                    refusal
                        .ok_or(Failure::Inconsistent("an unknown refusal is stored"))?
                        .into(),
                )
            }
        };
        Ok(Some(answer))
    }

    fn refuse(
        &self,
        request: &RegistrationRequest,
        thumbprint: &[u8; 32],
        refusal: Refusal,
    ) -> Result<Answer, Failure> {
        self.store_operation(
            request,
            thumbprint,
            Value::Null,
            Value::integer(i32::from(refusal))?,
        )?;
        Ok(Answer::Refusal(refusal.into()))
    }

    fn store_operation(
        &self,
        request: &RegistrationRequest,
        thumbprint: &[u8; 32],
        agent_id: Value,
        refusal: Value,
    ) -> Result<(), Failure> {
        self.sql.execute(
            "INSERT INTO operation (key_thumbprint, operation_id, request_hash, agent_id, refusal)
             VALUES (?, ?, ?, ?, ?)",
            &[
                thumbprint.as_slice().into(),
                request.operation_id.as_bytes().as_slice().into(),
                request_hash(request).as_slice().into(),
                agent_id,
                refusal,
            ],
        )?;
        Ok(())
    }

    fn mint(&self, randomness: &mut dyn Randomness) -> Result<AgentId, Failure> {
        for _ in 0..MINT_ATTEMPTS_MAX {
            let bytes = random_array::<16>(randomness);
            if !self.exists("SELECT 1 FROM agent WHERE agent_id = ?", bytes.as_slice().into())? {
                return Ok(AgentId::from_bytes(bytes));
            }
        }
        Err(Failure::NoFreeAgentId)
    }

    fn exists(&self, statement: &str, parameter: Value) -> Result<bool, Failure> {
        Ok(!self.sql.query(statement, &[parameter])?.is_empty())
    }
}

/// What stands for the whole request when attempts are compared.
fn request_hash(request: &RegistrationRequest) -> [u8; 32] {
    Sha256::digest(request.to_canonical_bytes()).into()
}

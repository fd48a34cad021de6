//! What an agent signs to register: the proof that it holds the key it submits.

use crate::{
    agent_name::AgentName,
    canonical_json,
    identifiers::{OperationId, PrincipalId},
    key::{AgentKey, PublicKey, Signature},
    literals::REGISTRATION_DOMAIN,
};
use serde_json::json;

/// One registration as it is signed, and as the Registry compares repeated attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrationRequest {
    /// Which attempt this is; the same attempt repeated gets the same answer.
    pub operation_id: OperationId,
    /// The name asked for.
    pub agent_name: AgentName,
    /// Whoever the agent acts for.
    pub principal_id: PrincipalId,
    /// The key to be registered.
    pub public_key: PublicKey,
}

/// The principal of an agent that names none: sixteen zero bytes.
pub const PRINCIPAL_ID_DEFAULT: PrincipalId = PrincipalId::from_bytes([0; 16]);

impl RegistrationRequest {
    /// The canonical request: the canonical JSON of the closed object
    ///
    /// ```json
    /// {"agentName":"…","operationId":"opn_…","principalId":"prn_…","publicKey":{"crv":"Ed25519","kty":"OKP","x":"…"}}
    /// ```
    ///
    /// `principalId` is always present: an absent one is [`PRINCIPAL_ID_DEFAULT`].
    pub fn to_canonical_bytes(&self) -> Vec<u8> {
        canonical_json::encode(&json!({
            "operationId": self.operation_id,
            "agentName": self.agent_name,
            "principalId": self.principal_id,
            "publicKey": self.public_key.jwk(),
        }))
    }

    /// The proof of possession: `key`'s signature over [`registration_preimage`].
    pub fn prove(&self, key: &AgentKey) -> Signature {
        key.sign(&registration_preimage(self))
    }

    /// Whether `proof` was made with the submitted key for exactly this request.
    pub fn is_proven_by(&self, proof: &Signature) -> bool {
        self.public_key
            .verify(&registration_preimage(self), proof)
            .is_ok()
    }
}

/// What the proof signs: [`REGISTRATION_DOMAIN`], then the canonical request.
pub fn registration_preimage(request: &RegistrationRequest) -> Vec<u8> {
    let mut preimage = REGISTRATION_DOMAIN.to_vec();
    preimage.extend(request.to_canonical_bytes());
    preimage
}

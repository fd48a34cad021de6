//! Agent cards (reference section 2): the Registry's signed word for which key an agent has.
//!
//! An [`EncodedAgentCard`] has the right form and proves nothing. Only [`EncodedAgentCard::verify`], under a Registry
//! key the caller already trusts, gives an [`AgentCard`].

use crate::{
    agent_name::AgentName,
    canonical_json::{self, CanonicalJsonError, Limits},
    closed_object::{ClosedObject, SchemaError, member_error},
    identifiers::{AgentCardDigest, AgentId, PrincipalId},
    issued_at::IssuedAt,
    jws::{EncodedJws, JwsTexts},
    key::{AgentKey, PublicJwk, PublicKey},
    literals::{
        AGENT_CARD_KIND, AGENT_CARD_TYP, VERSION_MEMBER, VERSION_MEMBER_BEFORE_RENAME, version_member,
    },
    wire_version::{WireVersion, WireVersions},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value, json};

/// The longest canonical text of an agent card, in bytes. The longest name gives about 950.
pub const AGENT_CARD_BYTES_MAX: usize = 2_048;

/// What a card says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCardClaims {
    /// The agent.
    pub agent_id: AgentId,
    /// Whoever it acts for.
    pub principal_id: PrincipalId,
    /// The name it is addressed by.
    pub agent_name: AgentName,
    /// The key it signs with and bodies are sealed to.
    pub public_key: PublicKey,
    /// When the Registry issued the card.
    pub issued_at: IssuedAt,
    /// The wire version the card is written in.
    pub version: WireVersion,
}

impl AgentCardClaims {
    fn to_value(&self) -> Value {
        let mut members = Map::new();
        members.insert("kind".to_owned(), AGENT_CARD_KIND.into());
        members.insert(
            version_member(self.version).to_owned(),
            self.version.to_string().into(),
        );
        members.insert("agentId".to_owned(), self.agent_id.to_string().into());
        members.insert("principalId".to_owned(), self.principal_id.to_string().into());
        members.insert("agentName".to_owned(), self.agent_name.as_str().into());
        members.insert("publicKey".to_owned(), json!(self.public_key.jwk()));
        members.insert("issuedAt".to_owned(), self.issued_at.to_string().into());
        Value::Object(members)
    }

    fn parse(payload: Value) -> Result<Self, SchemaError> {
        let mut object = ClosedObject::open("agent card", payload)?;
        object.literal("kind", AGENT_CARD_KIND)?;
        let version = take_version(&mut object)?;
        let agent_id = object.parsed("agentId")?;
        let principal_id = object.parsed("principalId")?;
        let agent_name = object.parsed("agentName")?;
        let issued_at = object.parsed("issuedAt")?;
        let jwk: PublicJwk = canonical_json::read(&canonical_json::encode(&object.value("publicKey")?))
            .map_err(|error| SchemaError::new("agent card member publicKey", error))?;
        object.close()?;
        Ok(Self {
            agent_id,
            principal_id,
            agent_name,
            public_key: jwk.public_key(),
            issued_at,
            version,
        })
    }
}

/// Takes the version out of a payload, under the one name its own version gives it.
fn take_version(object: &mut ClosedObject) -> Result<WireVersion, SchemaError> {
    let name = if object.has(VERSION_MEMBER) {
        VERSION_MEMBER
    } else {
        VERSION_MEMBER_BEFORE_RENAME
    };
    let version: WireVersion = object.parsed(name)?;
    if version_member(version) == name {
        Ok(version)
    } else {
        Err(SchemaError::new(name, "not the version member of that version"))
    }
}

/// A card whose form has been checked and whose signature has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedAgentCard {
    jws: EncodedJws,
    claims: AgentCardClaims,
}

impl EncodedAgentCard {
    /// The card of a canonical text.
    ///
    /// # Errors
    ///
    /// When it is not the canonical text of exactly one card.
    pub fn from_canonical_bytes(bytes: &[u8]) -> Result<Self, CanonicalJsonError> {
        canonical_json::decode(bytes, Limits::identity(AGENT_CARD_BYTES_MAX))
    }

    /// Its canonical text.
    pub fn to_canonical_bytes(&self) -> Vec<u8> {
        self.jws.to_canonical_bytes()
    }

    /// SHA-256 of the canonical text, the signature included.
    pub fn digest(&self) -> AgentCardDigest {
        AgentCardDigest::from_bytes(self.jws.digest())
    }

    /// What the card claims. Nobody vouches for it yet.
    pub const fn unverified_claims(&self) -> &AgentCardClaims {
        &self.claims
    }

    /// The card, if the Registry whose key is `signer` signed it and its version is one of `versions`.
    ///
    /// # Errors
    ///
    /// Otherwise, without saying why.
    pub fn verify(
        &self,
        signer: &PublicKey,
        versions: &WireVersions,
    ) -> Result<AgentCard, AgentCardVerificationError> {
        if versions.contains(self.claims.version) && self.jws.is_signed_by(signer) {
            Ok(AgentCard {
                encoded: self.clone(),
                digest: self.digest(),
            })
        } else {
            Err(AgentCardVerificationError)
        }
    }
}

impl Serialize for EncodedAgentCard {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.jws.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for EncodedAgentCard {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const WHAT: &str = "agent card";
        let value = Value::deserialize(deserializer)?;
        let texts = JwsTexts::take(WHAT, value).map_err(de::Error::custom)?;
        let (jws, payload) = EncodedJws::parse(WHAT, AGENT_CARD_TYP, &texts).map_err(de::Error::custom)?;
        let payload = canonical_json::decode(&payload, Limits::identity(payload.len()))
            .map_err(|error| de::Error::custom(member_error(WHAT, "payload", &error)))?;
        let claims = AgentCardClaims::parse(payload).map_err(de::Error::custom)?;
        Ok(Self { jws, claims })
    }
}

/// A card the pinned Registry did not sign, or of a version that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent card does not verify")]
pub struct AgentCardVerificationError;

/// A card a trusted Registry key signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCard {
    encoded: EncodedAgentCard,
    digest: AgentCardDigest,
}

impl AgentCard {
    /// Issues the card that says `claims`, signed with the Registry's own key.
    pub fn issue(registry_key: &AgentKey, claims: AgentCardClaims) -> Self {
        let jws = EncodedJws::sign(
            registry_key,
            AGENT_CARD_TYP,
            &canonical_json::encode(&claims.to_value()),
        );
        let digest = AgentCardDigest::from_bytes(jws.digest());
        Self {
            encoded: EncodedAgentCard { jws, claims },
            digest,
        }
    }

    /// The agent.
    pub const fn agent_id(&self) -> AgentId {
        self.encoded.claims.agent_id
    }

    /// Whoever it acts for.
    pub const fn principal_id(&self) -> PrincipalId {
        self.encoded.claims.principal_id
    }

    /// The name it is addressed by.
    pub const fn agent_name(&self) -> &AgentName {
        &self.encoded.claims.agent_name
    }

    /// The key it signs with and bodies are sealed to.
    pub const fn public_key(&self) -> PublicKey {
        self.encoded.claims.public_key
    }

    /// When the Registry issued the card.
    pub const fn issued_at(&self) -> IssuedAt {
        self.encoded.claims.issued_at
    }

    /// The wire version the card is written in.
    pub const fn version(&self) -> WireVersion {
        self.encoded.claims.version
    }

    /// SHA-256 of the canonical text, the signature included.
    pub const fn digest(&self) -> AgentCardDigest {
        self.digest
    }

    /// The card as it travels.
    pub const fn encoded(&self) -> &EncodedAgentCard {
        &self.encoded
    }
}

//! Signed messages (reference section 3): opaque bytes from one agent to up to 128, signed by the sender.
//!
//! An [`EncodedSignedMessage`] has the right form and proves nothing. Only [`EncodedSignedMessage::verify`], under the
//! sender's verified card, gives a [`SignedMessage`].

mod claims;

use crate::{
    agent_card::AgentCard,
    canonical_json::{self, CanonicalJsonError, Limits},
    closed_object::SchemaError,
    identifiers::{AgentCardDigest, AgentId, MessageId, SignedMessageDigest},
    jws::{EncodedJws, JwsTexts},
    key::{AgentKey, PublicKey, Signature},
    literals::SIGNED_MESSAGE_TYP,
    memo,
    wire_version::{WireVersion, WireVersions},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

use self::claims::{MessageClaims, WHAT, is_ascending};

/// The longest body, in bytes.
pub const BODY_BYTES_MAX: usize = 262_144;

/// The most recipients of one message. There is always at least one.
pub const RECIPIENTS_MAX: usize = 128;

/// The longest canonical text of a signed message, in bytes: the longest body to the most recipients.
pub const SIGNED_MESSAGE_BYTES_MAX: usize = 471_674;

/// A message whose form has been checked and whose signature has not.
///
/// Never changes once made, so that copies share it: evidence is kept in certificates, rows and memories at once.
#[derive(Clone, Debug)]
pub struct EncodedSignedMessage(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    jws: EncodedJws,
    claims: MessageClaims,
    /// Computed when somebody first asks.
    digest: OnceLock<SignedMessageDigest>,
    /// A key under which the signature is known to hold.
    verified_under: OnceLock<PublicKey>,
}

impl PartialEq for EncodedSignedMessage {
    fn eq(&self, other: &Self) -> bool {
        // The claims are what the payload says.
        Arc::ptr_eq(&self.0, &other.0) || self.0.jws == other.0.jws
    }
}

impl Eq for EncodedSignedMessage {}

impl EncodedSignedMessage {
    fn new(jws: EncodedJws, claims: MessageClaims) -> Self {
        Self(Arc::new(Parts {
            jws,
            claims,
            digest: OnceLock::new(),
            verified_under: OnceLock::new(),
        }))
    }

    fn of_texts(texts: &JwsTexts<'_>) -> Result<Self, SchemaError> {
        memo::of(
            WHAT,
            || texts.joined(),
            || {
                let (jws, payload) = EncodedJws::parse(WHAT, SIGNED_MESSAGE_TYP, texts)?;
                Ok(Self::new(jws, MessageClaims::parse(&payload)?))
            },
        )
    }

    /// Whether the signature is this key's; computed once, unless it is not.
    fn is_signed_by(&self, key: PublicKey) -> bool {
        if self.0.verified_under.get() == Some(&key) {
            return true;
        }
        let is_signed = self.0.jws.is_signed_by(&key);
        if is_signed {
            // One key was first. Another under which the same signature holds is verified each time.
            let _ = self.0.verified_under.set(key);
        }
        is_signed
    }

    /// The signature, for somebody else to verify: none if that cannot help `verify` under this card, because it fails
    /// anyway or is known to hold.
    pub fn unverified_signature(&self, card: &AgentCard) -> Option<UnverifiedSignature> {
        let key = card.public_key();
        let can_help = self.0.claims.sender == card.agent_id()
            && self.0.verified_under.get() != Some(&key)
            && self.0.jws.names(&key);
        can_help.then(|| UnverifiedSignature {
            message: self.clone(),
            key,
        })
    }

    /// The message of a canonical text.
    ///
    /// # Errors
    ///
    /// When it is not the canonical text of exactly one message.
    pub fn from_canonical_bytes(bytes: &[u8]) -> Result<Self, CanonicalJsonError> {
        if bytes.len() <= SIGNED_MESSAGE_BYTES_MAX
            && let Ok(texts) = JwsTexts::of_canonical_bytes(bytes)
        {
            return Self::of_texts(&texts).map_err(|error| CanonicalJsonError::Schema {
                message: error.to_string(),
            });
        }
        // What else it may be is said better by whoever knows all of JSON.
        canonical_json::decode(bytes, Limits::identity(SIGNED_MESSAGE_BYTES_MAX))
    }

    /// Its canonical text.
    pub fn to_canonical_bytes(&self) -> Vec<u8> {
        self.0.jws.to_canonical_bytes()
    }

    /// SHA-256 of the canonical text, the signature included.
    pub fn digest(&self) -> SignedMessageDigest {
        let digest = || SignedMessageDigest::from_bytes(self.0.jws.digest());
        *self.0.digest.get_or_init(digest)
    }

    /// Who claims to have sent it; unverified.
    pub fn sender(&self) -> AgentId {
        self.0.claims.sender
    }

    /// Which card the sender claims to have; unverified.
    pub fn agent_card_digest(&self) -> AgentCardDigest {
        self.0.claims.agent_card_digest
    }

    /// Whom it claims to be for, strictly ascending; unverified.
    pub fn recipients(&self) -> &[AgentId] {
        &self.0.claims.recipients
    }

    /// Its id within the sender; unverified.
    pub fn message_id(&self) -> MessageId {
        self.0.claims.message_id
    }

    /// The wire version it is written in; unverified.
    pub fn version(&self) -> WireVersion {
        self.0.claims.version
    }

    /// The message, if the agent of `card` signed it under that very card and its version is one of `versions`.
    ///
    /// # Errors
    ///
    /// Otherwise, without saying why.
    pub fn verify(
        &self,
        card: &AgentCard,
        versions: &WireVersions,
    ) -> Result<SignedMessage, SignedMessageVerificationError> {
        let verifies = self.0.claims.sender == card.agent_id()
            && self.0.claims.agent_card_digest == card.digest()
            && versions.contains(self.0.claims.version)
            && self.is_signed_by(card.public_key());
        if verifies {
            Ok(SignedMessage {
                encoded: self.clone(),
            })
        } else {
            Err(SignedMessageVerificationError)
        }
    }
}

impl Serialize for EncodedSignedMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.jws.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for EncodedSignedMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let texts = JwsTexts::take(WHAT, value).map_err(de::Error::custom)?;
        Self::of_texts(&texts).map_err(de::Error::custom)
    }
}

/// A signature that the platform may verify in its own way.
///
/// The message and its copies remember what [`UnverifiedSignature::holds`] says of it.
#[derive(Clone, Debug)]
pub struct UnverifiedSignature {
    message: EncodedSignedMessage,
    key: PublicKey,
}

impl UnverifiedSignature {
    /// Under which key it must hold.
    pub const fn key(&self) -> &PublicKey {
        &self.key
    }

    /// What it is over.
    pub fn signed_text(&self) -> String {
        self.message.0.jws.signed_text()
    }

    /// Its 64 bytes.
    pub fn signature(&self) -> &Signature {
        self.message.0.jws.signature()
    }

    /// Takes the word of an implementation of RFC 8032 without cofactor that it holds.
    ///
    /// There is no way to say that it does not: an implementation may be stricter than
    /// [`PublicKey::verify`](crate::PublicKey::verify), which therefore judges whatever nobody spoke for.
    pub fn holds(self) {
        // Another key may have been first; then this one is verified when it is asked for.
        let _ = self.message.0.verified_under.set(self.key);
    }
}

/// A message its claimed sender did not sign, or of a version that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signed message does not verify")]
pub struct SignedMessageVerificationError;

/// A message that cannot be signed: the key is not the card's, the recipients are none, too many or repeated, or the
/// body is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message cannot be signed")]
pub struct SignedMessageSigningError;

/// A message its sender signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedMessage {
    encoded: EncodedSignedMessage,
}

impl SignedMessage {
    /// Signs `body` for `recipients`, which may come in any order.
    ///
    /// # Errors
    ///
    /// When `key` is not the card's, there are 0 or more than [`RECIPIENTS_MAX`] recipients or one twice, or the body
    /// is longer than [`BODY_BYTES_MAX`].
    pub fn sign(
        card: &AgentCard,
        key: &AgentKey,
        recipients: &[AgentId],
        message_id: MessageId,
        body: &[u8],
        version: WireVersion,
    ) -> Result<Self, SignedMessageSigningError> {
        let mut recipients = recipients.to_vec();
        recipients.sort_unstable();
        let signable = key.public_key() == card.public_key()
            && (1..=RECIPIENTS_MAX).contains(&recipients.len())
            && is_ascending(&recipients)
            && body.len() <= BODY_BYTES_MAX;
        if !signable {
            return Err(SignedMessageSigningError);
        }
        let claims = MessageClaims {
            sender: card.agent_id(),
            agent_card_digest: card.digest(),
            recipients,
            message_id,
            body: body.to_vec(),
            version,
        };
        let jws = EncodedJws::sign(key, SIGNED_MESSAGE_TYP, claims.to_canonical_text().as_bytes());
        let encoded = EncodedSignedMessage::new(jws, claims);
        // It was made a moment ago, by the key of the card.
        let _ = encoded.0.verified_under.set(key.public_key());
        Ok(Self { encoded })
    }

    /// Who sent it.
    pub fn sender(&self) -> AgentId {
        self.encoded.0.claims.sender
    }

    /// The card it was signed under.
    pub fn agent_card_digest(&self) -> AgentCardDigest {
        self.encoded.0.claims.agent_card_digest
    }

    /// Whom it is for, strictly ascending.
    pub fn recipients(&self) -> &[AgentId] {
        &self.encoded.0.claims.recipients
    }

    /// Its id within the sender.
    pub fn message_id(&self) -> MessageId {
        self.encoded.0.claims.message_id
    }

    /// The signed bytes.
    pub fn body(&self) -> &[u8] {
        &self.encoded.0.claims.body
    }

    /// The wire version it is written in.
    pub fn version(&self) -> WireVersion {
        self.encoded.0.claims.version
    }

    /// SHA-256 of the canonical text, the signature included.
    pub fn digest(&self) -> SignedMessageDigest {
        self.encoded.digest()
    }

    /// The message as it travels.
    pub const fn encoded(&self) -> &EncodedSignedMessage {
        &self.encoded
    }

    /// The message as it travels, without a copy.
    pub fn into_encoded(self) -> EncodedSignedMessage {
        self.encoded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_somebody_spoke_for_is_no_other() {
        let [signer, other] = [1, 2].map(|seed| AgentKey::from_seed([seed; 32]));
        let jws = EncodedJws::sign(&other, SIGNED_MESSAGE_TYP, b"{}");
        let claims = MessageClaims {
            sender: AgentId::from_bytes([1; 16]),
            agent_card_digest: AgentCardDigest::from_bytes([1; 32]),
            recipients: Vec::new(),
            message_id: MessageId::from_bytes([1; 16]),
            body: Vec::new(),
            version: crate::WIRE_VERSION,
        };
        let message = EncodedSignedMessage::new(jws, claims);
        UnverifiedSignature {
            message: message.clone(),
            key: signer.public_key(),
        }
        .holds();
        assert!(message.is_signed_by(signer.public_key()));
        let third = AgentKey::from_seed([3; 32]);
        assert!(message.is_signed_by(other.public_key()) && !message.is_signed_by(third.public_key()));
    }
}

//! Signed messages (reference section 3): opaque bytes from one agent to up to 128, signed by the sender.
//!
//! An [`EncodedSignedMessage`] has the right form and proves nothing. Only [`EncodedSignedMessage::verify`], under the
//! sender's verified card, gives a [`SignedMessage`].

use crate::{
    agent_card::AgentCard,
    base64url,
    canonical_json::{self, CanonicalJsonError, FormError, KnownForm, Limits},
    closed_object::{SchemaError, member_error},
    identifiers::{AgentCardDigest, AgentId, MessageId, SignedMessageDigest},
    jws::{EncodedJws, JwsTexts},
    key::{AgentKey, PublicKey, Signature},
    literals::{
        SIGNED_MESSAGE_KIND, SIGNED_MESSAGE_TYP, VERSION_MEMBER, VERSION_MEMBER_BEFORE_RENAME, version_member,
    },
    memo,
    wire_version::{WireVersion, WireVersions},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use std::{
    fmt::Display,
    str::FromStr,
    sync::{Arc, OnceLock},
};

/// The longest body, in bytes.
pub const BODY_BYTES_MAX: usize = 262_144;

/// The most recipients of one message. There is always at least one.
pub const RECIPIENTS_MAX: usize = 128;

/// The longest canonical text of a signed message, in bytes: the longest body to the most recipients.
pub const SIGNED_MESSAGE_BYTES_MAX: usize = 471_674;

/// What errors call it.
const WHAT: &str = "signed message";

#[derive(Clone, Debug, PartialEq, Eq)]
struct MessageClaims {
    sender: AgentId,
    agent_card_digest: AgentCardDigest,
    recipients: Vec<AgentId>,
    message_id: MessageId,
    body: Vec<u8>,
    version: WireVersion,
}

impl MessageClaims {
    /// The canonical text: nothing in it needs escaping, and the members are in order.
    fn to_canonical_text(&self) -> String {
        let version = format!(r#","{}":"{}""#, version_member(self.version), self.version);
        let (early, late) = if version_member(self.version) == VERSION_MEMBER {
            ("", version.as_str())
        } else {
            (version.as_str(), "")
        };
        let recipients: Vec<String> = self.recipients.iter().map(ToString::to_string).collect();
        format!(
            r#"{{"agentCardDigest":"{}","body":"{}","kind":"{SIGNED_MESSAGE_KIND}","messageId":"{}"{early},"recipientAgentIds":["{}"],"senderAgentId":"{}"{late}}}"#,
            self.agent_card_digest,
            base64url::encode(&self.body),
            self.message_id,
            recipients.join(r#"",""#),
            self.sender,
        )
    }

    fn parse(payload: &[u8]) -> Result<Self, SchemaError> {
        let texts = MessageTexts::of_canonical_bytes(payload).map_err(|error| at("payload", &error))?;
        let version: WireVersion = parsed(texts.version_member, texts.version)?;
        if version_member(version) != texts.version_member {
            return Err(at(
                texts.version_member,
                &"not the version member of that version",
            ));
        }
        let body = base64url::decode(texts.body).map_err(|error| at("body", &error))?;
        if body.len() > BODY_BYTES_MAX {
            return Err(at("body", &format_args!("{} bytes", body.len())));
        }
        let recipients = texts
            .recipients
            .into_iter()
            .map(|text| parsed("recipientAgentIds", text))
            .collect::<Result<Vec<AgentId>, _>>()?;
        if !is_ascending(&recipients) {
            return Err(at("recipientAgentIds", &"not strictly ascending"));
        }
        Ok(Self {
            sender: parsed("senderAgentId", texts.sender)?,
            agent_card_digest: parsed("agentCardDigest", texts.agent_card_digest)?,
            recipients,
            message_id: parsed("messageId", texts.message_id)?,
            body,
            version,
        })
    }
}

/// The texts of a payload, not looked into.
struct MessageTexts<'a> {
    agent_card_digest: &'a str,
    body: &'a str,
    message_id: &'a str,
    recipients: Vec<&'a str>,
    sender: &'a str,
    /// The version's name, which decides its place.
    version_member: &'static str,
    version: &'a str,
}

impl<'a> MessageTexts<'a> {
    /// The texts of a payload's canonical text, to at least one and at most [`RECIPIENTS_MAX`] recipients.
    fn of_canonical_bytes(payload: &'a [u8]) -> Result<Self, FormError> {
        let mut form = KnownForm::new(payload);
        let agent_card_digest = form.text(r#"{"agentCardDigest":""#)?;
        let body = form.text(r#","body":""#)?;
        form.literal(r#","kind":""#)?;
        form.literal(SIGNED_MESSAGE_KIND)?;
        let message_id = form.text(r#"","messageId":""#)?;
        let mut ahead = form.clone();
        let early = Self::version(&mut ahead, VERSION_MEMBER_BEFORE_RENAME).ok();
        if early.is_some() {
            form = ahead;
        }
        let mut recipients = vec![form.text(r#","recipientAgentIds":[""#)?];
        while recipients.len() < RECIPIENTS_MAX && form.literal(",").is_ok() {
            recipients.push(form.text("\"")?);
        }
        let sender = form.text(r#"],"senderAgentId":""#)?;
        let (version_member, version) = match early {
            Some(version) => (VERSION_MEMBER_BEFORE_RENAME, version),
            None => (VERSION_MEMBER, Self::version(&mut form, VERSION_MEMBER)?),
        };
        form.end("}")?;
        Ok(Self {
            agent_card_digest,
            body,
            message_id,
            recipients,
            sender,
            version_member,
            version,
        })
    }

    fn version(form: &mut KnownForm<'a>, name: &str) -> Result<&'a str, FormError> {
        form.literal(r#",""#)?;
        form.literal(name)?;
        form.text(r#"":""#)
    }
}

fn parsed<T: FromStr<Err: Display>>(member: &str, text: &str) -> Result<T, SchemaError> {
    text.parse().map_err(|error| at(member, &error))
}

fn at(member: &str, problem: &dyn Display) -> SchemaError {
    member_error(WHAT, member, problem)
}

fn is_ascending(recipients: &[AgentId]) -> bool {
    recipients.is_sorted_by(|earlier, later| earlier < later)
}

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
        let has_length = bytes.len() <= SIGNED_MESSAGE_BYTES_MAX;
        match JwsTexts::of_canonical_bytes(bytes) {
            Ok(texts) if has_length => Self::of_texts(&texts).map_err(|error| CanonicalJsonError::Schema {
                message: error.to_string(),
            }),
            // What else it may be is said better by whoever knows all of JSON.
            _ => canonical_json::decode(bytes, Limits::identity(SIGNED_MESSAGE_BYTES_MAX)),
        }
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
    use crate::wire_version::WIRE_VERSION;
    use proptest::prelude::*;
    use serde_json::json;

    fn claims(recipients: u8, body: &[u8], version: WireVersion) -> MessageClaims {
        MessageClaims {
            sender: AgentId::from_bytes([7; 16]),
            agent_card_digest: AgentCardDigest::from_bytes([8; 32]),
            recipients: (1..=recipients)
                .map(|byte| AgentId::from_bytes([byte; 16]))
                .collect(),
            message_id: MessageId::from_bytes([9; 16]),
            body: body.to_vec(),
            version,
        }
    }

    /// The canonical text by the encoder of all of JSON, which is the rule.
    fn encoded(claims: &MessageClaims) -> Vec<u8> {
        canonical_json::encode(&json!({
            "agentCardDigest": claims.agent_card_digest,
            "body": base64url::encode(&claims.body),
            "kind": SIGNED_MESSAGE_KIND,
            "messageId": claims.message_id,
            "recipientAgentIds": claims.recipients,
            "senderAgentId": claims.sender,
            version_member(claims.version): claims.version,
        }))
    }

    const VERSIONS: [WireVersion; 2] = [WIRE_VERSION, WireVersion::new(2026, 1006, 1)];

    #[test]
    fn a_payload_is_written_and_read_as_its_canonical_text_under_either_name_of_the_version() {
        for version in VERSIONS {
            for (recipients, body) in [(1, &b""[..]), (1, b"a body"), (128, b"to many")] {
                let claims = claims(recipients, body, version);
                let payload = encoded(&claims);
                assert_eq!(claims.to_canonical_text().as_bytes(), payload);
                assert_eq!(MessageClaims::parse(&payload).as_ref(), Ok(&claims));
            }
        }
    }

    #[test]
    fn a_version_under_the_others_name_or_in_the_others_place_is_refused() {
        for version in VERSIONS {
            let text = claims(1, b"body", version).to_canonical_text();
            let member = format!(r#","{}":"{version}""#, version_member(version));
            let elsewhere = if version == WIRE_VERSION {
                text.replace(&member, "")
                    .replace(r#","recipient"#, &format!(r#"{member},"recipient"#))
            } else {
                text.replace(&member, "").replace("\"}", &format!("\"{member}}}"))
            };
            assert_ne!(elsewhere, text);
            assert!(MessageClaims::parse(elsewhere.as_bytes()).is_err(), "{elsewhere}");
            let [_, other] = if version == WIRE_VERSION {
                VERSIONS
            } else {
                [VERSIONS[1], VERSIONS[0]]
            };
            let renamed = text.replace(&version.to_string(), &other.to_string());
            assert!(MessageClaims::parse(renamed.as_bytes()).is_err(), "{renamed}");
        }
    }

    #[test]
    fn a_message_to_129_is_refused() {
        let many = claims(129, b"", WIRE_VERSION);
        let refused = MessageClaims::parse(&encoded(&many));
        assert!(refused.is_err(), "{refused:?}");
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_again_byte_for_byte(
            recipients in 1_u8..4,
            body in proptest::collection::vec(any::<u8>(), 0..20),
            version in proptest::sample::select(VERSIONS.to_vec()),
            place: proptest::sample::Index,
            change in prop_oneof![
                proptest::sample::select(b"\"\\,:{}[]Aa0_- \n.".to_vec()).prop_map(Some),
                any::<u8>().prop_map(Some),
                Just(None),
            ],
            is_inserted: bool,
        ) {
            let mut payload = encoded(&claims(recipients, &body, version));
            let place = place.index(payload.len());
            match change {
                Some(byte) if is_inserted => payload.insert(place, byte),
                Some(byte) => payload[place] = byte,
                None => drop(payload.remove(place)),
            }
            if let Ok(claims) = MessageClaims::parse(&payload) {
                prop_assert_eq!(encoded(&claims), payload);
            }
        }
    }
}

//! The General JWS shape that agent cards and signed messages share (reference 2.3): exactly one signature, everything
//! in it protected, payload and header in canonical JSON.

use crate::{
    base64url,
    canonical_json::{self, Limits},
    closed_object::{ClosedObject, SchemaError},
    key::{AgentKey, PublicKey, Signature, is_thumbprint_uri},
};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The algorithm name of RFC 9864.
const ALGORITHM: &str = "Ed25519";

/// A JWS whose form has been checked and whose signature has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncodedJws {
    payload: String,
    protected: String,
    signature: Signature,
    key_id: String,
}

/// The three texts of a JWS, not looked into.
pub(crate) struct JwsTexts {
    payload: String,
    protected: String,
    signature: String,
}

impl JwsTexts {
    /// The texts of a JSON value. `what` names it in errors.
    pub(crate) fn take(what: &'static str, value: Value) -> Result<Self, SchemaError> {
        let mut object = ClosedObject::open(what, value)?;
        let payload = object.text("payload")?;
        let mut entry = ClosedObject::open(what, object.only("signatures")?)?;
        object.close()?;
        let protected = entry.text("protected")?;
        let signature = entry.text("signature")?;
        entry.close()?;
        Ok(Self {
            payload,
            protected,
            signature,
        })
    }

    /// All of them in one: no two JWS of the right form have the same.
    pub(crate) fn joined(&self) -> String {
        format!("{}.{}.{}", self.payload, self.protected, self.signature)
    }
}

impl EncodedJws {
    /// The JWS of its texts, and its payload. `what` names it in errors.
    pub(crate) fn parse(
        what: &'static str,
        typ: &str,
        texts: &JwsTexts,
    ) -> Result<(Self, Value), SchemaError> {
        let JwsTexts {
            payload,
            protected,
            signature,
        } = texts;
        let signature = base64url::decode_array(signature)
            .map_err(|error| SchemaError::new(format!("{what} member signature"), error))?;
        let mut header = ClosedObject::open(what, decode_part(what, "protected", protected)?)?;
        header.literal("alg", ALGORITHM)?;
        header.literal("typ", typ)?;
        let key_id = header.text("kid")?;
        if !is_thumbprint_uri(&key_id) {
            return Err(SchemaError::new(
                format!("{what} member kid"),
                "not a key's identifier",
            ));
        }
        header.close()?;
        let signature = Signature::from_bytes(signature)
            .map_err(|error| SchemaError::new(format!("{what} member signature"), error))?;
        let content = decode_part(what, "payload", payload)?;
        Ok((
            Self {
                payload: payload.clone(),
                protected: protected.clone(),
                signature,
                key_id,
            },
            content,
        ))
    }

    /// The JWS `key` makes over `payload`.
    pub(crate) fn sign(key: &AgentKey, typ: &str, payload: &Value) -> Self {
        let key_id = key.public_key().thumbprint_uri();
        let header = json!({ "alg": ALGORITHM, "kid": key_id, "typ": typ });
        let protected = base64url::encode(&canonical_json::encode(&header));
        let payload = base64url::encode(&canonical_json::encode(payload));
        let signature = key.sign(format!("{protected}.{payload}").as_bytes());
        Self {
            payload,
            protected,
            signature,
            key_id,
        }
    }

    /// Whether the header names `key` and the signature is that key's.
    pub(crate) fn is_signed_by(&self, key: &PublicKey) -> bool {
        let signed = format!("{}.{}", self.protected, self.payload);
        self.key_id == key.thumbprint_uri() && key.verify(signed.as_bytes(), &self.signature).is_ok()
    }

    /// The canonical text. Base64url needs no escapes and the members are in order, so it is simply written out.
    pub(crate) fn to_canonical_bytes(&self) -> Vec<u8> {
        format!(
            r#"{{"payload":"{}","signatures":[{{"protected":"{}","signature":"{}"}}]}}"#,
            self.payload,
            self.protected,
            base64url::encode(self.signature.as_bytes()),
        )
        .into_bytes()
    }

    /// SHA-256 of the canonical text.
    pub(crate) fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.to_canonical_bytes()).into()
    }
}

/// The canonical JSON value that `text` is the base64url of.
fn decode_part(what: &'static str, member: &str, text: &str) -> Result<Value, SchemaError> {
    let at = || format!("{what} member {member}");
    let bytes = base64url::decode(text).map_err(|error| SchemaError::new(at(), error))?;
    canonical_json::decode(&bytes, Limits::identity(bytes.len()))
        .map_err(|error| SchemaError::new(at(), error))
}

/// How a JWS is written.
#[derive(Serialize)]
struct Written<'a> {
    payload: &'a str,
    signatures: [WrittenSignature<'a>; 1],
}

#[derive(Serialize)]
struct WrittenSignature<'a> {
    protected: &'a str,
    signature: String,
}

impl Serialize for EncodedJws {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let signature = WrittenSignature {
            protected: &self.protected,
            signature: base64url::encode(self.signature.as_bytes()),
        };
        let written = Written {
            payload: &self.payload,
            signatures: [signature],
        };
        written.serialize(serializer)
    }
}

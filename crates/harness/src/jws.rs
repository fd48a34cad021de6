//! The General JWS shape that agent cards and signed messages share (reference 2.3): exactly one signature, everything
//! in it protected, payload and header in canonical JSON.

use crate::{
    base64url,
    canonical_json::{FormError, KnownForm},
    closed_object::{ClosedObject, SchemaError, member_error},
    key::{AgentKey, PublicKey, Signature, is_thumbprint_uri},
};
use serde::{Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::borrow::Cow;

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
pub(crate) struct JwsTexts<'a> {
    payload: Cow<'a, str>,
    protected: Cow<'a, str>,
    signature: Cow<'a, str>,
}

impl<'a> JwsTexts<'a> {
    /// The texts of the canonical text of a JWS.
    pub(crate) fn of_canonical_bytes(bytes: &'a [u8]) -> Result<Self, FormError> {
        let mut form = KnownForm::new(bytes);
        let payload = form.text(r#"{"payload":""#)?.into();
        let protected = form.text(r#","signatures":[{"protected":""#)?.into();
        let signature = form.text(r#","signature":""#)?.into();
        form.end("}]}")?;
        Ok(Self {
            payload,
            protected,
            signature,
        })
    }

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
            payload: payload.into(),
            protected: protected.into(),
            signature: signature.into(),
        })
    }

    /// All of them in one: no two JWS of the right form have the same.
    pub(crate) fn joined(&self) -> String {
        format!("{}.{}.{}", self.payload, self.protected, self.signature)
    }
}

impl EncodedJws {
    /// The JWS of its texts, and the bytes of its payload. `what` names it in errors.
    pub(crate) fn parse(
        what: &'static str,
        typ: &str,
        texts: &JwsTexts<'_>,
    ) -> Result<(Self, Vec<u8>), SchemaError> {
        let JwsTexts {
            payload,
            protected,
            signature,
        } = texts;
        let signature =
            base64url::decode_array(signature).map_err(|error| member_error(what, "signature", &error))?;
        let header = decode_part(what, "protected", protected)?;
        let key_id = key_id(typ, &header)
            .map_err(|error| member_error(what, "protected", &error))?
            .to_owned();
        if !is_thumbprint_uri(&key_id) {
            return Err(member_error(what, "kid", &"not a key's identifier"));
        }
        let signature =
            Signature::from_bytes(signature).map_err(|error| member_error(what, "signature", &error))?;
        let content = decode_part(what, "payload", payload)?;
        Ok((
            Self {
                payload: payload.clone().into_owned(),
                protected: protected.clone().into_owned(),
                signature,
                key_id,
            },
            content,
        ))
    }

    /// The JWS `key` makes over the canonical text of a payload.
    pub(crate) fn sign(key: &AgentKey, typ: &str, payload: &[u8]) -> Self {
        let key_id = key.public_key().thumbprint_uri();
        let header = format!(r#"{{"alg":"{ALGORITHM}","kid":"{key_id}","typ":"{typ}"}}"#);
        let protected = base64url::encode(header.as_bytes());
        let payload = base64url::encode(payload);
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
        self.names(key) && key.verify(self.signed_text().as_bytes(), &self.signature).is_ok()
    }

    /// Whether the header names `key`.
    pub(crate) fn names(&self, key: &PublicKey) -> bool {
        self.key_id == key.thumbprint_uri()
    }

    /// What the signature is over.
    pub(crate) fn signed_text(&self) -> String {
        format!("{}.{}", self.protected, self.payload)
    }

    pub(crate) const fn signature(&self) -> &Signature {
        &self.signature
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

/// The bytes that `text` is the base64url of.
fn decode_part(what: &'static str, member: &str, text: &str) -> Result<Vec<u8>, SchemaError> {
    base64url::decode(text).map_err(|error| member_error(what, member, &error))
}

/// The `kid` of a header, which has nothing else that could differ.
fn key_id<'a>(typ: &str, header: &'a [u8]) -> Result<&'a str, FormError> {
    let mut form = KnownForm::new(header);
    form.literal(r#"{"alg":""#)?;
    form.literal(ALGORITHM)?;
    let key_id = form.text(r#"","kid":""#)?;
    form.literal(r#","typ":""#)?;
    form.literal(typ)?;
    form.end(r#""}"#)?;
    Ok(key_id)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical_json::{self, Limits};
    use serde_json::json;

    const TYP: &str = "application/example+jws";

    /// As reading it as any canonical JSON says, which is the rule.
    fn decoded(bytes: &[u8]) -> Option<Value> {
        canonical_json::decode(bytes, Limits::identity(bytes.len())).ok()
    }

    #[test]
    fn a_header_is_the_canonical_text_of_its_three_members_and_no_other() {
        let key = AgentKey::from_seed([1; 32]);
        let id = key.public_key().thumbprint_uri();
        let header = canonical_json::encode(&json!({ "alg": ALGORITHM, "kid": id, "typ": TYP }));
        let jws = EncodedJws::sign(&key, TYP, b"{}");
        assert_eq!(base64url::decode(&jws.protected).as_ref(), Ok(&header));
        let mut same = 0;
        for_each_change(&header, |changed| {
            let kid = |value: &Value| {
                let kid = value.get("kid")?.as_str()?;
                (*value == json!({ "alg": ALGORITHM, "kid": kid, "typ": TYP })).then(|| kid.to_owned())
            };
            let expected = decoded(changed).as_ref().and_then(kid);
            let plain = expected.filter(|kid| {
                kid.bytes()
                    .all(|byte| !matches!(byte, b'"' | b'\\' | 0x00..=0x1f))
            });
            assert_eq!(key_id(TYP, changed).ok().map(str::to_owned), plain);
            same += u32::from(plain.is_some());
        });
        assert!(same > 0, "in the kid most changes leave a header");
    }

    #[test]
    fn the_texts_of_a_jws_are_those_of_its_canonical_text_and_no_other() {
        let bytes = EncodedJws::sign(&AgentKey::from_seed([1; 32]), TYP, b"{}").to_canonical_bytes();
        let texts = JwsTexts::of_canonical_bytes(&bytes).expect("the known form");
        let (jws, payload) = EncodedJws::parse("it", TYP, &texts).expect("a JWS");
        assert_eq!(
            (jws.to_canonical_bytes(), &payload[..]),
            (bytes.clone(), &b"{}"[..])
        );
        let mut same = 0;
        for_each_change(&bytes, |changed| {
            if let Ok(texts) = JwsTexts::of_canonical_bytes(changed) {
                let taken = JwsTexts::take("it", decoded(changed).expect("canonical")).expect("three texts");
                assert_eq!(texts.joined(), taken.joined());
                same += 1;
            }
        });
        assert!(same > 0, "in the texts most changes leave a JWS's form");
    }

    /// Every byte replaced, joined by another, and left out.
    fn for_each_change(bytes: &[u8], mut visit: impl FnMut(&[u8])) {
        for place in 0..bytes.len() {
            for byte in *b"\"\\,:{}[]A0 \n\x00\x80" {
                let mut changed = bytes.to_vec();
                changed[place] = byte;
                visit(&changed);
                changed.insert(place, bytes[place]);
                visit(&changed);
            }
            let mut changed = bytes.to_vec();
            changed.remove(place);
            visit(&changed);
        }
    }
}

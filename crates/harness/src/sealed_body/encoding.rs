//! The exact bytes of a sealed body (reference 4.3).

use super::key_wrap::{ALGORITHM, WRAPPED_KEY_LENGTH};
use crate::{
    base64url,
    canonical_json::{self, Limits},
    closed_object::{ClosedObject, SchemaError},
    identifiers::{AgentId, MessageId},
    literals::{SEALED_BODY_COMMITMENT_MEMBER, SEALED_BODY_MESSAGE_ID_MEMBER, SEALED_BODY_SENDER_MEMBER},
    signed_message::{BODY_BYTES_MAX, RECIPIENTS_MAX},
};
use serde_json::Value;

const CONTENT_ENCRYPTION: &str = "A256GCM";
const WHAT: &str = "sealed body";

/// What one recipient needs.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) encrypted_key: [u8; WRAPPED_KEY_LENGTH],
    pub(super) ephemeral_key: [u8; 32],
}

/// What the protected header binds the ciphertext to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bindings {
    pub(super) commitment: [u8; 32],
    pub(super) message_id: MessageId,
    pub(super) sender: AgentId,
}

/// The protected header: its bindings, and the one text that spells it.
#[derive(Clone, Debug)]
pub(super) struct Protected {
    bindings: Bindings,
    text: String,
}

impl Protected {
    /// The header for these entries. A sole recipient's ephemeral key stands in it.
    pub(super) fn new(bindings: Bindings, entries: &[Entry]) -> Self {
        let ephemeral_key = match entries {
            [entry] => Some(entry.ephemeral_key),
            _ => None,
        };
        Self::spell(bindings, ephemeral_key)
    }

    fn spell(bindings: Bindings, ephemeral_key: Option<[u8; 32]>) -> Self {
        let json = header_json(&bindings, ephemeral_key.as_ref());
        Self {
            bindings,
            text: base64url::encode(json.as_bytes()),
        }
    }

    pub(super) const fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// The base64url text, which is also what GCM authenticates.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The header of `text`, and the ephemeral key in it. Only the one spelling of its values is accepted, which the
    /// comparison at the end decides: order, spaces, escapes, repetitions and all.
    fn parse(text: &str) -> Result<(Self, Option<[u8; 32]>), SchemaError> {
        let error =
            |problem: &dyn std::fmt::Display| SchemaError::new("sealed body member protected", problem);
        let bytes = base64url::decode(text).map_err(|problem| error(&problem))?;
        let value: Value = canonical_json::read(&bytes).map_err(|problem| error(&problem))?;
        let mut object = ClosedObject::open("sealed body header", value)?;
        object.literal("alg", ALGORITHM)?;
        object.literal("enc", CONTENT_ENCRYPTION)?;
        let bindings = Bindings {
            commitment: object.byte_array(SEALED_BODY_COMMITMENT_MEMBER)?,
            message_id: object.parsed(SEALED_BODY_MESSAGE_ID_MEMBER)?,
            sender: object.parsed(SEALED_BODY_SENDER_MEMBER)?,
        };
        let ephemeral_key = match object.has("epk") {
            true => Some(parse_ephemeral_key(object.value("epk")?)?),
            false => None,
        };
        object.close()?;
        let protected = Self::spell(bindings, ephemeral_key);
        if protected.text != text {
            return Err(error(&"not the one spelling of its values"));
        }
        Ok((protected, ephemeral_key))
    }
}

/// The header as JSON. Not canonical: the order of its members is the construction's own.
fn header_json(bindings: &Bindings, ephemeral_key: Option<&[u8; 32]>) -> String {
    let Bindings {
        commitment,
        message_id,
        sender,
    } = bindings;
    let commitment = base64url::encode(commitment);
    let ephemeral_key = match ephemeral_key {
        Some(key) => format!(
            r#","epk":{{"x":"{}","crv":"X25519","kty":"OKP"}}"#,
            base64url::encode(key)
        ),
        None => String::new(),
    };
    format!(
        r#"{{"alg":"{ALGORITHM}","enc":"{CONTENT_ENCRYPTION}","{SEALED_BODY_COMMITMENT_MEMBER}":"{commitment}","{SEALED_BODY_MESSAGE_ID_MEMBER}":"{message_id}","{SEALED_BODY_SENDER_MEMBER}":"{sender}"{ephemeral_key}}}"#
    )
}

fn parse_ephemeral_key(value: Value) -> Result<[u8; 32], SchemaError> {
    let mut object = ClosedObject::open("sealed body epk", value)?;
    object.literal("crv", "X25519")?;
    object.literal("kty", "OKP")?;
    let key = object.byte_array("x")?;
    object.close()?;
    Ok(key)
}

/// A sealed body in its parts.
#[derive(Clone, Debug)]
pub(super) struct EncodedSealedBody {
    pub(super) ciphertext: Vec<u8>,
    pub(super) iv: [u8; 12],
    pub(super) tag: [u8; 16],
    pub(super) protected: Protected,
    pub(super) entries: Vec<Entry>,
}

impl EncodedSealedBody {
    /// The canonical text. Nothing in it needs escaping and the members are in order.
    pub(super) fn to_canonical_bytes(&self) -> Vec<u8> {
        let sole = self.entries.len() == 1;
        let entries: Vec<String> = self.entries.iter().map(|entry| entry_json(entry, sole)).collect();
        format!(
            r#"{{"ciphertext":"{}","iv":"{}","protected":"{}","recipients":[{}],"tag":"{}"}}"#,
            base64url::encode(&self.ciphertext),
            base64url::encode(&self.iv),
            self.protected.text(),
            entries.join(","),
            base64url::encode(&self.tag),
        )
        .into_bytes()
    }

    /// The parts of a canonical text.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, SchemaError> {
        let value: Value = canonical_json::decode(bytes, Limits::identity(BODY_BYTES_MAX))
            .map_err(|error| SchemaError::new(WHAT, error))?;
        let mut object = ClosedObject::open(WHAT, value)?;
        let ciphertext = object.bytes("ciphertext")?;
        let iv = object.byte_array("iv")?;
        let tag = object.byte_array("tag")?;
        let (protected, shared_key) = Protected::parse(&object.text("protected")?)?;
        let entries = object.array("recipients")?;
        object.close()?;
        if !(1..=RECIPIENTS_MAX).contains(&entries.len()) {
            return Err(SchemaError::new(
                "sealed body member recipients",
                format_args!("{}", entries.len()),
            ));
        }
        let sole = entries.len() == 1;
        if sole != shared_key.is_some() {
            return Err(SchemaError::new(
                "sealed body header member epk",
                "belongs to exactly one recipient",
            ));
        }
        let entries = entries
            .into_iter()
            .map(|entry| parse_entry(entry, shared_key))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            ciphertext,
            iv,
            tag,
            protected,
            entries,
        })
    }
}

fn entry_json(entry: &Entry, sole: bool) -> String {
    let encrypted_key = base64url::encode(&entry.encrypted_key);
    if sole {
        return format!(r#"{{"encrypted_key":"{encrypted_key}"}}"#);
    }
    let ephemeral_key = base64url::encode(&entry.ephemeral_key);
    format!(
        r#"{{"encrypted_key":"{encrypted_key}","header":{{"epk":{{"crv":"X25519","kty":"OKP","x":"{ephemeral_key}"}}}}}}"#
    )
}

fn parse_entry(value: Value, shared_key: Option<[u8; 32]>) -> Result<Entry, SchemaError> {
    let mut object = ClosedObject::open("sealed body recipient", value)?;
    let encrypted_key = object.byte_array("encrypted_key")?;
    let ephemeral_key = match shared_key {
        Some(key) => key,
        None => {
            let mut header = ClosedObject::open("sealed body recipient header", object.value("header")?)?;
            let key = parse_ephemeral_key(header.value("epk")?)?;
            header.close()?;
            key
        }
    };
    object.close()?;
    Ok(Entry {
        encrypted_key,
        ephemeral_key,
    })
}

/// The length of a sealed body to so many recipients without its ciphertext's characters. Every part of it has a fixed
/// length, so a body of blanks measures it.
pub(super) fn length_beside_ciphertext(recipients: usize) -> usize {
    let blank = Entry {
        encrypted_key: [0; WRAPPED_KEY_LENGTH],
        ephemeral_key: [0; 32],
    };
    let bindings = Bindings {
        commitment: [0; 32],
        message_id: MessageId::from_bytes([0; 16]),
        sender: AgentId::from_bytes([0; 16]),
    };
    let measure = |entries: Vec<Entry>| {
        let protected = Protected::new(bindings, &entries);
        EncodedSealedBody {
            ciphertext: Vec::new(),
            iv: [0; 12],
            tag: [0; 16],
            protected,
            entries,
        }
        .to_canonical_bytes()
        .len()
    };
    match recipients {
        0 | 1 => measure(vec![blank]),
        _ => {
            let two = measure(vec![blank.clone(), blank.clone()]);
            let further = entry_json(&blank, false).len() + 1;
            two + (recipients - 2) * further
        }
    }
}

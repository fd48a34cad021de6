//! The payload of a signed message: written and read in its one form, without a tree of JSON in between.

use crate::{
    base64url,
    canonical_json::{FormError, KnownForm},
    closed_object::{SchemaError, member_error},
    identifiers::{AgentCardDigest, AgentId, MessageId},
    literals::{SIGNED_MESSAGE_KIND, VERSION_MEMBER, VERSION_MEMBER_BEFORE_RENAME, version_member},
    wire_version::WireVersion,
};
use std::{fmt::Display, str::FromStr};

use super::{BODY_BYTES_MAX, RECIPIENTS_MAX};

/// What errors call it.
pub(super) const WHAT: &str = "signed message";

/// What a message says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageClaims {
    pub(super) sender: AgentId,
    pub(super) agent_card_digest: AgentCardDigest,
    pub(super) recipients: Vec<AgentId>,
    pub(super) message_id: MessageId,
    pub(super) body: Vec<u8>,
    pub(super) version: WireVersion,
}

impl MessageClaims {
    /// The canonical text: nothing in it needs escaping, and the members are in order.
    pub(super) fn to_canonical_text(&self) -> String {
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

    /// The claims of a payload's canonical text.
    pub(super) fn parse(payload: &[u8]) -> Result<Self, SchemaError> {
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

/// Whether no recipient is there twice, and all are in order.
pub(super) fn is_ascending(recipients: &[AgentId]) -> bool {
    recipients.is_sorted_by(|earlier, later| earlier < later)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{canonical_json, wire_version::WIRE_VERSION};
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

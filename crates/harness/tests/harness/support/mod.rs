//! Agents, keys and forgeries the tests share. The values are those of reference section 11.3.

pub(crate) mod gcm_collision;
pub(crate) mod hand_sealed;
pub(crate) mod sealing;

use conclave_harness::{
    AgentCard, AgentKey, PublicKey, SignedMessage, WIRE_VERSION, WireVersion, agent_card::AgentCardClaims,
    base64url,
};
use conclave_harness::{AgentId, MessageId, PrincipalId, Randomness};

pub(crate) const CARD_A: &[u8] = include_bytes!("../vectors/card_a.json");
pub(crate) const CARD_B: &[u8] = include_bytes!("../vectors/card_b.json");
pub(crate) const MESSAGE_A_TO_A: &[u8] = include_bytes!("../vectors/message_a_to_a.json");
pub(crate) const SEALED_BODY_A: &[u8] = include_bytes!("../vectors/sealed_body_a.json");
pub(crate) const SEALED_BODY_A_B: &[u8] = include_bytes!("../vectors/sealed_body_a_b.json");
pub(crate) const MIXED_ORDER_CARD: &[u8] = include_bytes!("../vectors/mixed_order_card.json");
pub(crate) const COFACTORED_MESSAGE: &[u8] = include_bytes!("../vectors/cofactored_message.json");

pub(crate) fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    hex::decode(hex).unwrap().try_into().unwrap()
}

/// RFC 8032 test 1.
pub(crate) fn registry_key() -> AgentKey {
    AgentKey::from_seed(bytes(
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    ))
}

pub(crate) fn key_a() -> AgentKey {
    AgentKey::from_seed(bytes(
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    ))
}

pub(crate) fn key_b() -> AgentKey {
    AgentKey::from_seed(bytes(
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
    ))
}

pub(crate) fn claims(id: u8, principal: u8, name: &str, public_key: PublicKey) -> AgentCardClaims {
    AgentCardClaims {
        agent_id: AgentId::from_bytes([id; 16]),
        principal_id: PrincipalId::from_bytes([principal; 16]),
        agent_name: name.parse().unwrap(),
        public_key,
        issued_at: "2026-10-21T12:00:00Z".parse().unwrap(),
        version: WIRE_VERSION,
    }
}

pub(crate) fn claims_a() -> AgentCardClaims {
    claims(1, 0x11, "alice-agent", key_a().public_key())
}

pub(crate) fn claims_b() -> AgentCardClaims {
    claims(2, 0x22, "bob-agent", key_b().public_key())
}

pub(crate) fn card_a() -> AgentCard {
    AgentCard::issue(&registry_key(), claims_a())
}

pub(crate) fn card_b() -> AgentCard {
    AgentCard::issue(&registry_key(), claims_b())
}

/// Agent number `id`, with a key and a card of its own.
pub(crate) fn agent(id: u8) -> (AgentKey, AgentCard) {
    let key = AgentKey::from_seed([id; 32]);
    let card = AgentCard::issue(
        &registry_key(),
        claims(id, id, &format!("agent-{id}"), key.public_key()),
    );
    (key, card)
}

pub(crate) fn message_id(byte: u8) -> MessageId {
    MessageId::from_bytes([byte; 16])
}

/// `body` as a message of A.
pub(crate) fn message_of_a(recipients: &[AgentId], id: u8, body: &[u8]) -> SignedMessage {
    SignedMessage::sign(
        &card_a(),
        &key_a(),
        recipients,
        message_id(id),
        body,
        WIRE_VERSION,
    )
    .unwrap()
}

pub(crate) fn version(text: &str) -> WireVersion {
    text.parse().unwrap()
}

/// A JWS over exactly these header and payload texts, canonical or not, validly signed.
pub(crate) fn forge_jws(key: &AgentKey, header: &str, payload: &str) -> Vec<u8> {
    let protected = base64url::encode(header.as_bytes());
    let payload = base64url::encode(payload.as_bytes());
    let signature = key.sign(format!("{protected}.{payload}").as_bytes());
    jws_text(&payload, &protected, signature.as_bytes())
}

pub(crate) fn jws_text(payload: &str, protected: &str, signature: &[u8; 64]) -> Vec<u8> {
    let signature = base64url::encode(signature);
    format!(
        r#"{{"payload":"{payload}","signatures":[{{"protected":"{protected}","signature":"{signature}"}}]}}"#
    )
    .into_bytes()
}

/// The header and payload texts of a JWS.
pub(crate) fn jws_parts(jws: &[u8]) -> (String, String) {
    let value: serde_json::Value = serde_json::from_slice(jws).unwrap();
    let text = |value: &serde_json::Value| {
        String::from_utf8(base64url::decode(value.as_str().unwrap()).unwrap()).unwrap()
    };
    (
        text(&value["signatures"][0]["protected"]),
        text(&value["payload"]),
    )
}

/// Hands out bytes that were written down before.
pub(crate) struct Scripted(pub(crate) Vec<u8>);

impl Randomness for Scripted {
    fn fill(&mut self, bytes: &mut [u8]) {
        let rest = self.0.split_off(bytes.len());
        bytes.copy_from_slice(&self.0);
        self.0 = rest;
    }
}

/// The draws of reference section 11.4 for so many recipients.
pub(crate) fn scripted_seal(recipients: u8) -> Scripted {
    let mut bytes = vec![0x5a; 32];
    bytes.extend(0x10..=0x2f);
    bytes.extend(0xa0..=0xab);
    (0..recipients).for_each(|entry| bytes.extend([0x41 + entry; 32]));
    Scripted(bytes)
}

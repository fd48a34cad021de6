//! Signed messages: only what the sender signed, under its own card, becomes one.

use crate::support::*;
use conclave_harness::{
    AgentCard, AgentId, EncodedSignedMessage, SignedMessage, SignedMessageSigningError, WIRE_VERSION,
    WireVersions,
    agent_card::AgentCardClaims,
    canonical_json::CanonicalJsonError,
    signed_message::{BODY_BYTES_MAX, RECIPIENTS_MAX, SIGNED_MESSAGE_BYTES_MAX},
};
use proptest::prelude::*;

fn verifies(bytes: &[u8]) -> bool {
    EncodedSignedMessage::from_canonical_bytes(bytes)
        .is_ok_and(|message| message.verify(&card_a(), &WireVersions::live()).is_ok())
}

fn two_recipients() -> Vec<u8> {
    let recipients = [card_a().agent_id(), card_b().agent_id()];
    message_of_a(&recipients, 4, b"body")
        .encoded()
        .to_canonical_bytes()
}

#[test]
fn recipients_are_sorted_by_the_signer_and_never_by_the_verifier() {
    let (a, b) = (card_a().agent_id(), card_b().agent_id());
    assert_eq!(message_of_a(&[b, a], 4, b"").recipients(), [a, b]);

    let (header, payload) = jws_parts(&two_recipients());
    let (a, b) = (format!("\"{a}\""), format!("\"{b}\""));
    let right = format!("[{a},{b}]");
    assert!(payload.contains(&right));
    for (list, accepted) in [
        (format!("[{a},{b}]"), true),
        (format!("[{b},{a}]"), false),
        (format!("[{a},{a}]"), false),
        ("[]".to_owned(), false),
        (format!("[{a},7]"), false),
        (a.clone(), false),
    ] {
        let message = forge_jws(&key_a(), &header, &payload.replace(&right, &list));
        assert_eq!(verifies(&message), accepted, "{list}");
    }
}

#[test]
fn one_to_128_recipients_can_be_addressed() {
    let ids: Vec<AgentId> = (0..=RECIPIENTS_MAX as u8)
        .map(|id| AgentId::from_bytes([id; 16]))
        .collect();
    let sign = |recipients: &[AgentId]| {
        SignedMessage::sign(&card_a(), &key_a(), recipients, message_id(1), b"", WIRE_VERSION)
    };
    assert!(sign(&ids[..1]).is_ok());
    assert!(sign(&ids[..RECIPIENTS_MAX]).is_ok());
    assert_eq!(sign(&[]), Err(SignedMessageSigningError));
    assert_eq!(sign(&ids), Err(SignedMessageSigningError));
    assert_eq!(sign(&[ids[0], ids[1], ids[0]]), Err(SignedMessageSigningError));

    // And no more can be read.
    let message = sign(&ids[..RECIPIENTS_MAX])
        .unwrap()
        .encoded()
        .to_canonical_bytes();
    let (header, payload) = jws_parts(&message);
    let last = format!("\"{}\"", ids[RECIPIENTS_MAX - 1]);
    let longer = payload.replace(&last, &format!("{last},\"{}\"", ids[RECIPIENTS_MAX]));
    assert!(verifies(&forge_jws(&key_a(), &header, &payload)));
    assert!(!verifies(&forge_jws(&key_a(), &header, &longer)));
}

#[test]
fn a_body_may_be_empty_and_has_a_bound() {
    let recipients = [card_a().agent_id()];
    let sign = |body: &[u8]| {
        SignedMessage::sign(
            &card_a(),
            &key_a(),
            &recipients,
            message_id(1),
            body,
            WIRE_VERSION,
        )
    };
    assert_eq!(sign(b"").unwrap().body(), b"");
    let longest = vec![0; BODY_BYTES_MAX];
    assert!(verifies(&sign(&longest).unwrap().encoded().to_canonical_bytes()));
    assert_eq!(sign(&vec![0; BODY_BYTES_MAX + 1]), Err(SignedMessageSigningError));

    let (header, payload) = jws_parts(&sign(b"").unwrap().encoded().to_canonical_bytes());
    let body = conclave_harness::base64url::encode(&vec![0; BODY_BYTES_MAX + 1]);
    let longer = payload.replace(r#""body":"""#, &format!(r#""body":"{body}""#));
    assert!(!verifies(&forge_jws(&key_a(), &header, &longer)));
    assert!(matches!(
        EncodedSignedMessage::from_canonical_bytes(&vec![b' '; SIGNED_MESSAGE_BYTES_MAX + 1]),
        Err(CanonicalJsonError::TooLong { .. })
    ));
}

#[test]
fn a_message_is_signed_with_the_key_of_the_card() {
    let recipients = [card_a().agent_id()];
    assert_eq!(
        SignedMessage::sign(&card_a(), &key_b(), &recipients, message_id(1), b"", WIRE_VERSION),
        Err(SignedMessageSigningError)
    );
}

#[test]
fn a_message_verifies_under_its_senders_very_card_alone() {
    let message = EncodedSignedMessage::from_canonical_bytes(MESSAGE_A_TO_A).unwrap();
    let live = WireVersions::live();
    assert!(message.verify(&card_a(), &live).is_ok());
    assert!(message.verify(&card_b(), &live).is_err());
    // Another card of the same agent and key, and the same claims by another Registry.
    let mut claims = claims_a();
    claims.agent_name = "alice-other".parse().unwrap();
    assert!(
        message
            .verify(&AgentCard::issue(&registry_key(), claims), &live)
            .is_err()
    );
    assert!(
        message
            .verify(&AgentCard::issue(&key_b(), claims_a()), &live)
            .is_err()
    );
}

#[test]
fn the_word_of_somebody_else_counts_for_the_very_key_and_message_it_was_given_for() {
    let (header, payload) = jws_parts(&two_recipients());
    // Signed by another key than the one it names: nothing but somebody's word lets it pass.
    let forged = EncodedSignedMessage::from_canonical_bytes(&forge_jws(&key_b(), &header, &payload)).unwrap();
    let passes = |card: &AgentCard| forged.verify(card, &WireVersions::live()).is_ok();
    assert!(!passes(&card_a()));
    assert!(
        forged.unverified_signature(&card_b()).is_none(),
        "of another sender"
    );
    let renewed = AgentCard::issue(
        &key_b(),
        AgentCardClaims {
            public_key: key_b().public_key(),
            ..card_a().encoded().unverified_claims().clone()
        },
    );
    assert!(
        forged.unverified_signature(&renewed).is_none(),
        "it names another key"
    );
    let asked = forged
        .unverified_signature(&card_a())
        .expect("a signature to verify");
    assert_eq!(asked.key(), &card_a().public_key());
    let verified = asked
        .key()
        .verify(asked.signed_text().as_bytes(), asked.signature());
    assert!(verified.is_err());
    asked.holds();
    assert!(passes(&card_a()) && !passes(&card_b()) && !passes(&renewed));
    assert!(
        forged.unverified_signature(&card_a()).is_none(),
        "it is known to hold"
    );
    let another = forge_jws(&key_b(), &header, &payload.replace("msg_BAQ", "msg_AAQ"));
    assert!(!verifies(&another), "{payload}");
}

#[test]
fn a_message_of_a_version_that_is_not_accepted_is_refused() {
    let coming = version("2027.101.0");
    let recipients = [card_a().agent_id()];
    let message = SignedMessage::sign(&card_a(), &key_a(), &recipients, message_id(1), b"", coming).unwrap();
    let bytes = message.encoded().to_canonical_bytes();
    let read = EncodedSignedMessage::from_canonical_bytes(&bytes).unwrap();
    assert_eq!(read.version(), coming);
    assert!(read.verify(&card_a(), &WireVersions::live()).is_err());
    assert!(read.verify(&card_a(), &WireVersions::of(&[coming])).is_ok());
    assert!(
        read.verify(&card_a(), &WireVersions::of(&[coming, WIRE_VERSION]))
            .is_ok()
    );
}

/// Each change is made under the sender's old signature, and again with a signature of another's key.
#[test]
fn any_single_change_is_refused() {
    let bytes = two_recipients();
    let (header, payload) = jws_parts(&bytes);
    let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let signature =
        conclave_harness::base64url::decode_array(value["signatures"][0]["signature"].as_str().unwrap())
            .unwrap();
    let encode = |text: &str| conclave_harness::base64url::encode(text.as_bytes());
    let (a, b) = (card_a(), card_b());
    let (id_a, id_b) = (a.agent_id().to_string(), b.agent_id().to_string());
    assert!(verifies(&jws_text(
        &encode(&payload),
        &encode(&header),
        &signature
    )));
    for (from, to) in [
        (
            format!(r#""senderAgentId":"{id_a}""#),
            format!(r#""senderAgentId":"{id_b}""#),
        ),
        (format!(r#""{id_a}","{id_b}""#), format!(r#""{id_a}""#)),
        (
            "msg_BAQEBAQEBAQEBAQEBAQEBA".to_owned(),
            "msg_AwMDAwMDAwMDAwMDAwMDAw".to_owned(),
        ),
        (
            format!(r#""body":"{}""#, encode("body")),
            format!(r#""body":"{}""#, encode("Body")),
        ),
        ("2026.1021.3".to_owned(), "2026.1021.4".to_owned()),
        (a.digest().to_string(), b.digest().to_string()),
    ] {
        let changed = payload.replace(&from, &to);
        assert_ne!(changed, payload, "{from}");
        assert!(
            !verifies(&jws_text(&encode(&changed), &encode(&header), &signature)),
            "{changed}"
        );
    }
    let key_ids = (a.public_key().thumbprint_uri(), b.public_key().thumbprint_uri());
    for changed in [
        header.replace(&key_ids.0, &key_ids.1),
        header.replace("signed-message", "agent-card"),
    ] {
        assert_ne!(changed, header);
        assert!(!verifies(&jws_text(
            &encode(&payload),
            &encode(&changed),
            &signature
        )));
        assert!(!verifies(&forge_jws(&key_a(), &changed, &payload)));
    }
    assert!(!verifies(&forge_jws(&key_b(), &header, &payload)));
    let mut trivial = [0; 64];
    trivial[0] = 1;
    assert!(!verifies(&jws_text(
        &encode(&payload),
        &encode(&header),
        &trivial
    )));
}

// CONV-B01
#[test]
fn a_payload_has_exactly_its_members() {
    let (header, payload) = jws_parts(&two_recipients());
    assert!(verifies(&forge_jws(&key_a(), &header, &payload)));
    for (from, to) in [
        (r#","kind":"signedMessage""#, ""),
        (r#""body":"Ym9keQ","#, ""),
        (r#","sharnessVersion":"2026.1021.3""#, ""),
        (r#""body":"Ym9keQ","#, r#""body":"Ym9keQ","extra":1,"#),
        ("signedMessage\"", "agentCard\""),
        (r#""Ym9keQ""#, r#""Ym9keR""#),
        (r#""Ym9keQ""#, r#""Ym9keQ==""#),
        (r#""Ym9keQ""#, "null"),
        ("msg_BAQ", "agt_BAQ"),
    ] {
        let changed = payload.replace(from, to);
        assert_ne!(changed, payload, "{from}");
        assert!(!verifies(&forge_jws(&key_a(), &header, &changed)), "{changed}");
    }
}

#[test]
fn every_single_byte_corruption_of_a_message_is_refused() {
    for position in 0..MESSAGE_A_TO_A.len() {
        for flip in [0x01, 0x20, 0x80] {
            let mut damaged = MESSAGE_A_TO_A.to_vec();
            damaged[position] ^= flip;
            assert!(!verifies(&damaged), "byte {position} flipped by {flip:#x}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_is_signed_reads_back_and_verifies(
        body in proptest::collection::vec(any::<u8>(), 0..300),
        recipients in proptest::collection::btree_set(any::<[u8; 16]>(), 1..20),
        id: [u8; 16],
    ) {
        let recipients: Vec<AgentId> = recipients.into_iter().rev().map(AgentId::from_bytes).collect();
        let id = conclave_harness::MessageId::from_bytes(id);
        let message =
            SignedMessage::sign(&card_a(), &key_a(), &recipients, id, &body, WIRE_VERSION).unwrap();
        let read = EncodedSignedMessage::from_canonical_bytes(&message.encoded().to_canonical_bytes()).unwrap();
        prop_assert_eq!(read.digest(), message.digest());
        prop_assert_eq!(read.message_id(), id);
        let verified = read.verify(&card_a(), &WireVersions::live()).unwrap();
        prop_assert_eq!(verified.body(), &body);
        prop_assert_eq!(verified, message);
    }

    #[test]
    fn any_other_byte_anywhere_is_refused(position in 0..MESSAGE_A_TO_A.len(), byte: u8) {
        prop_assume!(MESSAGE_A_TO_A[position] != byte);
        let mut damaged = MESSAGE_A_TO_A.to_vec();
        damaged[position] = byte;
        prop_assert!(!verifies(&damaged));
    }

    #[test]
    fn any_bytes_give_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        prop_assert!(!verifies(&bytes));
    }
}

//! The vectors of reference section 11, byte for byte.

use crate::support::*;
use conclave_harness::{
    AgentCard, EncodedAgentCard, EncodedSignedMessage, SignedMessage, WireVersions, sealed_body,
    signed_message::{BODY_BYTES_MAX, RECIPIENTS_MAX, SIGNED_MESSAGE_BYTES_MAX},
};
use conclave_harness::{AgentId, WIRE_VERSION};

#[test]
fn cards_are_the_known_bytes() {
    for (card, bytes, digest) in [
        (
            card_a(),
            CARD_A,
            "acd_BcLtUst0jMmnJVbQvPtiwVM7hwE7c5t0S61-OuhFSPs",
        ),
        (
            card_b(),
            CARD_B,
            "acd_8AzdpttLmaCe7_Xfsju0kdHc7SWozJ8tCLxTy7kCQGA",
        ),
    ] {
        assert_eq!(card.encoded().to_canonical_bytes(), bytes);
        assert_eq!(card.digest().to_string(), digest);
        let parsed = EncodedAgentCard::from_canonical_bytes(bytes).unwrap();
        assert_eq!(
            parsed.verify(&registry_key().public_key(), &WireVersions::history()),
            Ok(card)
        );
    }
}

#[test]
fn identities_are_the_known_texts() {
    for (card, id, principal, x, thumbprint) in [
        (
            card_a(),
            "agt_AQEBAQEBAQEBAQEBAQEBAQ",
            "prn_EREREREREREREREREREREQ",
            "PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw",
            "FtIu-VbGrfe_KB6CH7GNwODB72MNxj_ml11dEvO-7kk",
        ),
        (
            card_b(),
            "agt_AgICAgICAgICAgICAgICAg",
            "prn_IiIiIiIiIiIiIiIiIiIiIg",
            "_FHNjmIYoaONpH7QAjDwWAgW7RO6MwOsXeuRFUiQgCU",
            "FVV5umTuau890q59V-4Ga_R6qWb7ON_ivJc4EjvCwTM",
        ),
    ] {
        assert_eq!(card.agent_id().to_string(), id);
        assert_eq!(card.principal_id().to_string(), principal);
        assert_eq!(format!("{:?}", card.public_key()), x);
        assert!(card.public_key().thumbprint_uri().ends_with(thumbprint));
        assert_eq!(card.issued_at().to_string(), "2026-10-21T12:00:00Z");
        assert_eq!(card.version(), WIRE_VERSION);
    }
}

#[test]
fn the_retired_spelling_gives_the_known_digests() {
    for (mut claims, digest) in [
        (claims_a(), "acd_G7bEObj9sp6o10bIsLFBcXjqXjTfKkZYsEFOBaMfsXk"),
        (claims_b(), "acd_HX3-Azd6Csyrzs8liw6-k4Q3n_BopqC_n00go-Cq8oE"),
    ] {
        claims.version = version("2026.1006.1");
        assert_eq!(
            AgentCard::issue(&registry_key(), claims).digest().to_string(),
            digest
        );
    }
}

#[test]
fn a_message_is_the_known_bytes() {
    let message = message_of_a(&[card_a().agent_id()], 4, b"{}");
    assert_eq!(message.encoded().to_canonical_bytes(), MESSAGE_A_TO_A);
    assert_eq!(
        message.digest().to_string(),
        "smd_fFfwYjNUHuvC6nbXYsBD4IWC0dNvmB6phOZMdlW7et4"
    );
    let parsed = EncodedSignedMessage::from_canonical_bytes(MESSAGE_A_TO_A).unwrap();
    assert_eq!(parsed.verify(&card_a(), &WireVersions::live()), Ok(message));
}

#[test]
fn a_card_of_a_mixed_order_key_verifies_and_its_cofactored_signature_does_not() {
    let retired = WireVersions::of(&[version("2026.1006.1")]);
    let card = EncodedAgentCard::from_canonical_bytes(MIXED_ORDER_CARD).unwrap();
    let card = card.verify(&registry_key().public_key(), &retired).unwrap();
    assert_eq!(
        card.digest().to_string(),
        "acd_3sspaWrS1VzA3RBkg-ezXZExJRG-8UXi-IYu1P7CcOs"
    );
    assert_eq!(
        format!("{:?}", card.public_key()),
        "lZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZk"
    );
    assert!(
        card.public_key()
            .thumbprint_uri()
            .ends_with("7jTI1Cc6_T4lcL3Vui-LXIjwjxL7Yw9lwXS3UE9hnb4")
    );

    let message = EncodedSignedMessage::from_canonical_bytes(COFACTORED_MESSAGE).unwrap();
    assert_eq!(
        (message.sender(), message.agent_card_digest()),
        (card.agent_id(), card.digest())
    );
    assert!(message.verify(&card, &retired).is_err());
}

#[test]
fn sealed_bodies_are_the_known_bytes() {
    let (a, b) = (card_a(), card_b());
    let plaintext = b"sealed outer body";
    let alone = sealed_body::seal(
        plaintext,
        &[&a],
        a.agent_id(),
        message_id(3),
        &mut scripted_seal(1),
    );
    assert_eq!(alone.as_deref(), Ok(SEALED_BODY_A));
    // The recipients' order is the construction's, whatever the caller's.
    for recipients in [[&a, &b], [&b, &a]] {
        let both = sealed_body::seal(
            plaintext,
            &recipients,
            a.agent_id(),
            message_id(3),
            &mut scripted_seal(2),
        );
        assert_eq!(both.as_deref(), Ok(SEALED_BODY_A_B));
    }
}

#[test]
fn sealed_bodies_open_in_their_messages() {
    let (a, b) = (card_a(), card_b());
    let message = message_of_a(&[b.agent_id(), a.agent_id()], 3, SEALED_BODY_A_B);
    assert_eq!(message.encoded().to_canonical_bytes().len(), 2_185);
    assert_eq!(
        message.digest().to_string(),
        "smd_JTDvwgoKqxEmAQcqBig1hWWqZMfnwlxa3YVI3quHJaI"
    );
    let text = String::from_utf8(message.encoded().to_canonical_bytes()).unwrap();
    assert!(
        text.contains(
            "55lQyct8nPFWcdufD8c1jUZUv6O0VtMpNWCGNAKF6yOJPB2zdoVDsvvvM-j5trABktszS-waT5dkk8lAH-EEDg"
        )
    );
    for (card, key) in [(&a, key_a()), (&b, key_b())] {
        assert_eq!(
            sealed_body::open(card, &key, &message).as_deref(),
            Ok(b"sealed outer body".as_slice())
        );
    }
    let alone = message_of_a(&[a.agent_id()], 3, SEALED_BODY_A);
    assert_eq!(
        sealed_body::open(&a, &key_a(), &alone).as_deref(),
        Ok(b"sealed outer body".as_slice())
    );
}

#[test]
fn lengths_follow_the_formula() {
    for (recipients, constant, plaintext_max) in [
        (1, 577, 196_143),
        (2, 731, 196_027),
        (3, 902, 195_899),
        (32, 5_861, 192_180),
        (128, 22_277, 179_868),
    ] {
        assert_eq!(
            sealed_body::plaintext_length_max(recipients),
            plaintext_max,
            "{recipients}"
        );
        for plaintext in [0_usize, 1, 2, 1_000, plaintext_max] {
            let length = (4 * (plaintext + 32)).div_ceil(3) + constant;
            assert_eq!(sealed_body::sealed_length(plaintext, recipients), length);
        }
        assert!(sealed_body::sealed_length(plaintext_max, recipients) <= BODY_BYTES_MAX);
        assert!(sealed_body::sealed_length(plaintext_max + 1, recipients) > BODY_BYTES_MAX);
    }
    for (plaintext, recipients, length) in [(0, 1, 620), (1, 2, 775), (1_000, 3, 2_278), (1_000, 32, 7_237)] {
        assert_eq!(sealed_body::sealed_length(plaintext, recipients), length);
    }
}

#[test]
fn the_longest_message_has_the_known_length() {
    let recipients: Vec<AgentId> = (0..RECIPIENTS_MAX as u8)
        .map(|id| AgentId::from_bytes([id; 16]))
        .collect();
    let message = message_of_a(&recipients, 4, &vec![0xff; BODY_BYTES_MAX]);
    let bytes = message.encoded().to_canonical_bytes();
    assert_eq!(bytes.len(), SIGNED_MESSAGE_BYTES_MAX);
    let parsed = EncodedSignedMessage::from_canonical_bytes(&bytes).unwrap();
    assert_eq!(
        parsed
            .verify(&card_a(), &WireVersions::live())
            .map(SignedMessage::into_encoded),
        Ok(parsed)
    );
}

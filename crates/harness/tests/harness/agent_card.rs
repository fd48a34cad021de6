//! Agent cards: only the pinned Registry's word, in its one spelling, becomes one.

use crate::support::*;
use conclave_harness::{
    AgentCardVerificationError, EncodedAgentCard, PublicKey, WireVersions, agent_card::AGENT_CARD_BYTES_MAX,
    canonical_json::CanonicalJsonError,
};
use proptest::prelude::*;

fn verifies(bytes: &[u8]) -> bool {
    EncodedAgentCard::from_canonical_bytes(bytes).is_ok_and(|card| {
        card.verify(&registry_key().public_key(), &WireVersions::history())
            .is_ok()
    })
}

/// Signs these header and payload texts as the Registry would.
fn forged(header: &str, payload: &str) -> bool {
    verifies(&forge_jws(&registry_key(), header, payload))
}

#[test]
fn the_forger_can_make_a_card_that_verifies() {
    let (header, payload) = jws_parts(CARD_A);
    assert_eq!(forge_jws(&registry_key(), &header, &payload), CARD_A);
    assert!(forged(&header, &payload));
}

#[test]
fn a_card_is_refused_under_another_registry_key() {
    let card = EncodedAgentCard::from_canonical_bytes(CARD_A).unwrap();
    assert_eq!(
        card.verify(&key_b().public_key(), &WireVersions::history()),
        Err(AgentCardVerificationError)
    );
    // Signed by the right key under another's name, and the other way round.
    let (header, payload) = jws_parts(CARD_A);
    assert!(!verifies(&forge_jws(&key_b(), &header, &payload)));
    let registry = registry_key().public_key().thumbprint_uri();
    let foreign = header.replace(&registry, &key_b().public_key().thumbprint_uri());
    assert_ne!(foreign, header);
    assert!(!forged(&foreign, &payload));
}

#[test]
fn a_card_is_refused_under_a_version_that_is_not_accepted() {
    let card = EncodedAgentCard::from_canonical_bytes(CARD_A).unwrap();
    let signer = registry_key().public_key();
    let other = WireVersions::of(&[version("2027.101.0")]);
    assert!(card.verify(&signer, &other).is_err());
    let both = WireVersions::of(&[version("2027.101.0"), version("2026.1021.3")]);
    assert!(card.verify(&signer, &both).is_ok());
}

// CONV-B01
#[test]
fn a_payload_has_exactly_its_members() {
    let (header, payload) = jws_parts(CARD_A);
    for (from, to) in [
        // Missing.
        (r#""agentName":"alice-agent","#, ""),
        (r#""kind":"agentCard","#, ""),
        (r#","sharnessVersion":"2026.1021.3""#, ""),
        // More than there should be.
        (r#"{"agentId""#, r#"{"a":1,"agentId""#),
        (r#""2026.1021.3"}"#, r#""2026.1021.3","z":null}"#),
        (r#"{"crv""#, r#"{"alg":"Ed25519","crv""#),
        // Another kind, type or value.
        ("agentCard", "signedMessage"),
        (r#""alice-agent""#, "7"),
        ("alice-agent", "Alice-agent"),
        ("agt_AQEBAQEBAQEBAQEBAQEBAQ", "prn_AQEBAQEBAQEBAQEBAQEBAQ"),
        ("agt_AQEBAQEBAQEBAQEBAQEBAQ", "agt_AQEBAQEBAQEBAQEBAQEBAR"),
        ("2026-10-21T12:00:00Z", "2026-02-30T12:00:00Z"),
        ("2026-10-21T12:00:00Z", "2026-10-21T12:00:60Z"),
        ("2026-10-21T12:00:00Z", "2026-10-21T12:00:00.000Z"),
        ("2026.1021.3", "2026.1021.03"),
        ("sharnessVersion", "srarnessVersion"),
        (
            "PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw",
            "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        ),
        // Not canonical.
        (r#""kind":"agentCard""#, r#""kind": "agentCard""#),
        (r#""kind":"agentCard""#, r#""kind":"agent\u0043ard""#),
        (
            r#""kind":"agentCard""#,
            r#""kind":"agentCard","kind":"agentCard""#,
        ),
    ] {
        let changed = payload.replace(from, to);
        assert_ne!(changed, payload, "{from}");
        assert!(!forged(&header, &changed), "{changed}");
    }
    assert!(!forged(&header, &format!("{payload} ")));
    assert!(!forged(&header, &format!("\u{feff}{payload}")));
    assert!(!forged(&header, "[]"));
}

#[test]
fn each_version_names_its_own_version_member() {
    let (header, payload) = jws_parts(CARD_A);
    let accepted = WireVersions::of(&[version("2026.1006.1"), version("2026.1021.3")]);
    let verifies = |payload: &str| {
        EncodedAgentCard::from_canonical_bytes(&forge_jws(&registry_key(), &header, payload))
            .is_ok_and(|card| card.verify(&registry_key().public_key(), &accepted).is_ok())
    };
    assert!(verifies(&payload));
    // The current member with a version from before the rename, and the retired member with the current version.
    assert!(!verifies(&payload.replace("2026.1021.3", "2026.1006.1")));
    let retired = payload.replace(r#","sharnessVersion":"2026.1021.3""#, "");
    let retired = retired.replace(
        r#","principalId""#,
        r#","moltzapVersion":"2026.1006.1","principalId""#,
    );
    assert!(verifies(&retired));
    assert!(!verifies(&retired.replace("2026.1006.1", "2026.1021.3")));
    assert!(!verifies(
        &retired.replace("}}", r#"},"sharnessVersion":"2026.1021.3"}"#)
    ));
}

#[test]
fn a_header_has_exactly_its_members() {
    let (header, payload) = jws_parts(CARD_A);
    for (from, to) in [
        (r#""alg":"Ed25519","#, ""),
        (r#""alg":"Ed25519""#, r#""alg":"EdDSA""#),
        (r#""alg":"Ed25519""#, r#""alg":"none""#),
        (r#"{"alg""#, r#"{"a":1,"alg""#),
        (r#""kid""#, r#""b64":true,"kid""#),
        (r#""kid""#, r#""crit":[],"kid""#),
        (r#""kid""#, r#""cty":"json","kid""#),
        (
            r#""kid""#,
            r#""jwk":{"crv":"Ed25519","kty":"OKP","x":"PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw"},"kid""#,
        ),
        (r#""kid""#, r#""jku":"x","kid""#),
        (r#","typ""#, r#","kid2":"x","typ""#),
        ("agent-card", "signed-message"),
        (r#""alg":"Ed25519","kid""#, r#""alg":"Ed25519", "kid""#),
    ] {
        let changed = header.replace(from, to);
        assert_ne!(changed, header, "{from}");
        assert!(!forged(&changed, &payload), "{changed}");
    }
    let (alg, rest) = header.split_once(',').unwrap();
    let reordered = format!(
        "{{{},{}}}",
        rest.trim_end_matches('}'),
        alg.trim_start_matches('{')
    );
    assert!(!forged(&reordered, &payload));
}

/// Refused as a form already, so that no reader holds a `kid` of any length until it verifies.
#[test]
fn a_key_identifier_is_the_uri_of_a_thumbprint() {
    let (header, payload) = jws_parts(CARD_A);
    let registry = registry_key().public_key().thumbprint_uri();
    let reads = |key_id: &str| {
        let header = header.replace(&registry, key_id);
        EncodedAgentCard::from_canonical_bytes(&forge_jws(&registry_key(), &header, &payload)).is_ok()
    };
    assert!(reads(&registry) && reads(&key_b().public_key().thumbprint_uri()));
    for wrong in [
        "",
        "registry",
        &registry.replace("urn:", "URN:"),
        &registry.replace("sha-256", "sha-512"),
        &registry[..registry.len() - 1],
        &format!("{registry}A"),
        // The same 32 bytes with an unused bit set.
        &format!("{}l", &registry[..registry.len() - 1]),
    ] {
        assert!(!reads(wrong), "{wrong}");
    }
}

#[test]
fn only_the_general_form_with_one_signature_is_a_card() {
    let text = String::from_utf8(CARD_A.to_vec()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let (payload, entry) = (&value["payload"], &value["signatures"][0]);
    let (protected, signature) = (&entry["protected"], &entry["signature"]);
    let compact = |part: &serde_json::Value| part.as_str().unwrap().to_owned();
    for wrong in [
        format!(
            r#""{}.{}.{}""#,
            compact(protected),
            compact(payload),
            compact(signature)
        ),
        format!(r#"{{"payload":{payload},"protected":{protected},"signature":{signature}}}"#),
        format!(r#"{{"signatures":[{entry}]}}"#),
        format!(r#"{{"payload":{payload},"signatures":[]}}"#),
        format!(r#"{{"payload":{payload},"signatures":[{entry},{entry}]}}"#),
        format!(r#"{{"header":{{}},"payload":{payload},"signatures":[{entry}]}}"#),
        format!(
            r#"{{"payload":{payload},"signatures":[{{"header":{{}},"protected":{protected},"signature":{signature}}}]}}"#
        ),
        format!(r#"{{"payload":{payload},"signatures":[{{"protected":{protected}}}]}}"#),
        format!(r#"{{"payload":{payload},"signatures":{entry}}}"#),
        format!(r#"{{"payload":null,"signatures":[{entry}]}}"#),
        format!(r#"{{"signatures":[{entry}],"payload":{payload}}}"#),
        format!("{text}\n"),
        format!("[{text}]"),
        String::new(),
    ] {
        assert!(!verifies(wrong.as_bytes()), "{wrong}");
    }
    assert!(verifies(text.as_bytes()));
}

#[test]
fn the_trivial_signature_is_refused() {
    let value: serde_json::Value = serde_json::from_slice(CARD_A).unwrap();
    let mut signature = [0; 64];
    signature[0] = 1;
    let protected = value["signatures"][0]["protected"].as_str().unwrap();
    assert!(!verifies(&jws_text(
        value["payload"].as_str().unwrap(),
        protected,
        &signature
    )));
}

#[test]
fn the_longest_card_is_below_the_bound_and_a_longer_text_is_not_read() {
    let claims = claims(255, 255, &"x".repeat(32), key_a().public_key());
    let card = conclave_harness::AgentCard::issue(&registry_key(), claims);
    let bytes = card.encoded().to_canonical_bytes();
    assert!(bytes.len() * 2 < AGENT_CARD_BYTES_MAX, "{}", bytes.len());
    assert!(matches!(
        EncodedAgentCard::from_canonical_bytes(&vec![b' '; AGENT_CARD_BYTES_MAX + 1]),
        Err(CanonicalJsonError::TooLong { .. })
    ));
}

#[test]
fn a_card_survives_inside_another_value() {
    let cards = vec![card_a().encoded().clone(), card_b().encoded().clone()];
    let bytes = conclave_harness::canonical_json::encode(&cards);
    let limits = conclave_harness::canonical_json::Limits::identity(bytes.len());
    assert_eq!(
        conclave_harness::canonical_json::decode::<Vec<EncodedAgentCard>>(&bytes, limits),
        Ok(cards)
    );
}

#[test]
fn every_single_byte_corruption_of_a_card_is_refused() {
    for position in 0..CARD_A.len() {
        for flip in [0x01, 0x20, 0x80] {
            let mut damaged = CARD_A.to_vec();
            damaged[position] ^= flip;
            assert!(!verifies(&damaged), "byte {position} flipped by {flip:#x}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_other_byte_anywhere_is_refused(position in 0..CARD_A.len(), byte: u8) {
        prop_assume!(CARD_A[position] != byte);
        let mut damaged = CARD_A.to_vec();
        damaged[position] = byte;
        prop_assert!(!verifies(&damaged));
    }

    #[test]
    fn whatever_is_issued_reads_back_and_verifies(
        id: u8, principal: u8, name in "[a-z0-9]{1,10}(-[a-z0-9]{2,6}){1,3}", seed: [u8; 32],
    ) {
        let key = conclave_harness::AgentKey::from_seed(seed).public_key();
        let claims = claims(id, principal, &name, key);
        let card = conclave_harness::AgentCard::issue(&registry_key(), claims.clone());
        let read = EncodedAgentCard::from_canonical_bytes(&card.encoded().to_canonical_bytes()).unwrap();
        prop_assert_eq!(read.unverified_claims(), &claims);
        let signer: PublicKey = registry_key().public_key();
        prop_assert_eq!(read.verify(&signer, &WireVersions::history()), Ok(card));
    }

    #[test]
    fn any_bytes_give_a_card_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        prop_assert!(!verifies(&bytes));
    }
}

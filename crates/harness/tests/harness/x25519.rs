//! Key agreement against RFC 7748 and Wycheproof, and the keys derived from Ed25519 ones.

use crate::support::{self, bytes};
use conclave_harness::{AgentKey, PublicKey, x25519};
use curve25519_dalek::constants::ED25519_BASEPOINT_COMPRESSED;
use wycheproof::xdh;

#[test]
fn exchanges_are_those_of_rfc_7748() {
    for (secret, public, shared) in [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
    ] {
        assert_eq!(
            *x25519::shared_secret(&bytes(secret), &bytes(public)).unwrap(),
            bytes(shared)
        );
    }
    // Section 6.1: both sides from their secrets alone.
    let alice = bytes("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
    let bob = bytes("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
    let shared = bytes("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
    assert_eq!(
        *x25519::shared_secret(&alice, &x25519::public_key(&bob)).unwrap(),
        shared
    );
    assert_eq!(
        *x25519::shared_secret(&bob, &x25519::public_key(&alice)).unwrap(),
        shared
    );
}

#[test]
fn a_thousand_iterations_reach_the_value_of_rfc_7748() {
    let mut public = [0; 32];
    public[0] = 9;
    let mut secret = public;
    for _ in 0..1_000 {
        (public, secret) = (secret, *x25519::shared_secret(&secret, &public).unwrap());
    }
    assert_eq!(
        secret,
        bytes("684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51")
    );
}

/// Wycheproof calls an all-zero result acceptable; an exchange to which the other side contributed nothing is refused
/// here. Everything else it calls acceptable (twists, unreduced and small coordinates) is computed as RFC 7748 says.
#[test]
fn wycheproof_agrees_on_every_exchange() {
    let set = xdh::TestSet::load(xdh::TestName::X25519).unwrap();
    let (mut tests, mut refused) = (0, 0);
    for test in set.test_groups.into_iter().flat_map(|group| group.tests) {
        let secret = test.private_key.as_ref().try_into().unwrap();
        let public = test.public_key.as_ref().try_into().unwrap();
        let shared = x25519::shared_secret(&secret, &public);
        let zero = test.flags.contains(&xdh::TestFlag::ZeroSharedSecret);
        assert_eq!(shared.is_none(), zero, "{}: {}", test.tc_id, test.comment);
        match shared {
            Some(shared) => assert_eq!(shared.as_slice(), test.shared_secret.as_ref(), "{}", test.tc_id),
            None => refused += 1,
        }
        tests += 1;
    }
    assert_eq!(tests, set.number_of_tests);
    assert!(refused > 0);
}

#[test]
fn the_base_point_maps_to_the_base_point() {
    let mut nine = [0; 32];
    nine[0] = 9;
    assert_eq!(
        PublicKey::from_bytes(ED25519_BASEPOINT_COMPRESSED.to_bytes())
            .unwrap()
            .x25519(),
        Some(nine)
    );
}

#[test]
fn opening_keys_are_derived_from_signing_keys() {
    for (seed, secret, public) in [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            None,
            "d85e07ec22b0ad881537c2f44d662d1a143cf830c57aca4305d85c7a90f6b62e",
        ),
        (
            "421151a459faeade3d247115f94aedae42318124095afabe4d1451a559faedee",
            None,
            "f1814f0e8ff1043d8a44d25babff3cedcae6c22c3edaa48f857ae70de2baae50",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            Some("68bd9ed75882d52815a97585caf4790a7f6c6b3b7f821c5e259a24b02e502e51"),
            "25c704c594b88afc00a76b69d1ed2b984d7e22550f3ed0802d04fbcd07d38d47",
        ),
        (
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            Some("909a8b755ed902849023a55b15c23d11ba4d7f4ec5c2f51b1325a181991ea95c"),
            "cbb22fc9f790bd3eba9b84680c157ca4950a9894362601701f89c3c4d9fda23a",
        ),
    ] {
        let key = AgentKey::from_seed(bytes(seed));
        assert_eq!(key.public_key().x25519(), Some(bytes(public)));
        assert_eq!(x25519::public_key(&key.x25519_secret()), bytes(public));
        if let Some(secret) = secret {
            assert_eq!(*key.x25519_secret(), bytes(secret));
        }
    }
}

#[test]
fn a_key_and_its_negation_share_one_opening_key() {
    let mut negated = *support::key_a().public_key().as_bytes();
    negated[31] ^= 0x80;
    let negated = PublicKey::from_bytes(negated).unwrap();
    assert_eq!(negated.x25519(), support::key_a().public_key().x25519());
}

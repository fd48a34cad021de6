//! What a parsed key package must hold, one broken rule at a time, and what must not be checked.

use super::{
    InvalidKeyPackage, ParsedKeyPackage,
    building::{NOW, Package, credential_of, lifetime, vector},
    cipher_suite::{ED25519_SUITES, signs_with_ed25519},
};

fn judge_at(package: &Package, now_seconds: u64) -> Result<String, InvalidKeyPackage> {
    let bytes = package.write();
    let valid = ParsedKeyPackage::parse(&bytes)
        .expect("it parses")
        .validate(now_seconds)?;
    assert_eq!(
        valid.topic(),
        ParsedKeyPackage::parse(&bytes).expect("it parses").topic()
    );
    Ok(valid.inbox_id().to_owned())
}

fn judge(package: &Package) -> Result<String, InvalidKeyPackage> {
    judge_at(package, NOW)
}

// API-230, API-235
#[test]
fn a_package_in_the_shape_installations_publish_is_accepted() {
    assert_eq!(judge(&Package::sound()), Ok("ab".repeat(32)));
}

// API-235
#[test]
fn any_inbox_id_is_accepted() {
    for inbox_id in ["", "not-a-hex-inbox", "Zoë", &"x".repeat(20_000)] {
        let package = Package {
            credential: credential_of(inbox_id),
            ..Package::sound()
        };
        assert_eq!(judge(&package).as_deref(), Ok(inbox_id));
    }
    let with_unknown_field = Package {
        credential: [credential_of("a"), vec![0x12, 1, 9]].concat(),
        ..Package::sound()
    };
    assert_eq!(judge(&with_unknown_field).as_deref(), Ok("a"));
}

// API-235
#[test]
fn every_suite_with_ed25519_signatures_is_accepted_and_no_other() {
    for cipher_suite in ED25519_SUITES {
        let package = Package {
            cipher_suite,
            ..Package::sound()
        };
        assert!(judge(&package).is_ok(), "{cipher_suite:#06x}");
    }
    for cipher_suite in [0, 2, 4, 5, 6, 7, 0x42, 0x50, 0x51, 0x0906, 0x0a0a, 0xeaea, 0xffff] {
        let package = Package {
            cipher_suite,
            ..Package::sound()
        };
        assert_eq!(judge(&package), Err(InvalidKeyPackage::CipherSuite(cipher_suite)));
    }
    assert_eq!(
        (0..=u16::MAX).filter(|suite| signs_with_ed25519(*suite)).count(),
        6
    );
}

// API-235
#[test]
fn capabilities_may_list_nothing() {
    let package = Package {
        capable_extensions: vec![],
        ..Package::sound()
    };
    assert!(judge(&package).is_ok());
}

// API-235
#[test]
fn no_lifetime_is_too_long() {
    for not_after in [NOW + 630_720_000, u64::MAX] {
        let package = Package {
            source: lifetime(0, not_after),
            ..Package::sound()
        };
        assert!(judge(&package).is_ok());
    }
}

// API-230
#[test]
fn a_lifetime_holds_its_first_second_and_not_its_last() {
    let package = Package {
        source: lifetime(NOW, NOW + 10),
        ..Package::sound()
    };
    let at = |now| judge_at(&package, now).is_ok();
    assert_eq!(
        (at(NOW - 1), at(NOW), at(NOW + 9), at(NOW + 10)),
        (false, true, true, false)
    );
    for (not_before, not_after) in [(NOW, NOW), (NOW + 1, NOW), (u64::MAX, 0), (1, 2)] {
        let package = Package {
            source: lifetime(not_before, not_after),
            ..Package::sound()
        };
        assert_eq!(
            judge(&package),
            Err(InvalidKeyPackage::Lifetime {
                not_before,
                not_after,
                now: NOW
            })
        );
    }
}

// API-230
#[test]
fn each_rule_that_one_package_can_break_makes_it_invalid() {
    let sound = Package::sound;
    let second_key = [vec![3], vector(&[9; 32])].concat();
    // A key that is one, though not the signer's.
    let base_point = [&[0x58][..], &[0x66; 31]].concat();
    let cases = [
        (
            Package {
                version: 2,
                ..sound()
            },
            InvalidKeyPackage::Version(2),
        ),
        (
            Package {
                version: 0,
                ..sound()
            },
            InvalidKeyPackage::Version(0),
        ),
        (
            Package {
                source: vec![2],
                ..sound()
            },
            InvalidKeyPackage::LeafNodeSource,
        ),
        (
            Package {
                source: second_key,
                ..sound()
            },
            InvalidKeyPackage::LeafNodeSource,
        ),
        (
            Package {
                encryption_key: vec![0xaa; 32],
                ..sound()
            },
            InvalidKeyPackage::SameKey,
        ),
        (
            Package {
                credential_type: 2,
                ..sound()
            },
            InvalidKeyPackage::Credential,
        ),
        (
            Package {
                credential: vec![0x0a, 5, 1],
                ..sound()
            },
            InvalidKeyPackage::Credential,
        ),
        (
            Package {
                credential: vec![0x08, 1],
                ..sound()
            },
            InvalidKeyPackage::Credential,
        ),
        (
            Package {
                credential: vec![0x0a, 1, 0xff],
                ..sound()
            },
            InvalidKeyPackage::Credential,
        ),
        (
            Package {
                wrong_leaf_signature: true,
                ..sound()
            },
            InvalidKeyPackage::LeafNodeSignature,
        ),
        (
            Package {
                wrong_package_signature: true,
                ..sound()
            },
            InvalidKeyPackage::KeyPackageSignature,
        ),
        (
            Package {
                signature_key: Some(base_point),
                ..sound()
            },
            InvalidKeyPackage::LeafNodeSignature,
        ),
        // No point of the curve has this coordinate.
        (
            Package {
                signature_key: Some(vec![7; 32]),
                ..sound()
            },
            InvalidKeyPackage::SignatureKey,
        ),
    ];
    for (package, expected) in cases {
        assert_eq!(judge(&package), Err(expected));
    }
}

// API-230
#[test]
fn a_key_of_small_order_signs_nothing() {
    let identity = [&[1][..], &[0; 31]].concat();
    let package = Package {
        signature_key: Some(identity.clone()),
        ..Package::sound()
    };
    let mut bytes = package.write();
    // R is the identity and S is zero: the equation holds for every message.
    let forged = [&identity[..], &[0; 32]].concat();
    let leaf_signature = ParsedKeyPackage::parse(&bytes)
        .expect("it parses")
        .leaf
        .signed
        .end
        + 2;
    bytes[leaf_signature..leaf_signature + 64].copy_from_slice(&forged);
    let end = bytes.len();
    bytes[end - 64..].copy_from_slice(&forged);
    let parsed = ParsedKeyPackage::parse(&bytes).expect("it parses");
    assert_eq!(parsed.validate(NOW), Err(InvalidKeyPackage::LeafNodeSignature));
}

// API-230
#[test]
fn a_signature_has_64_bytes() {
    let bytes = Package::sound().write();
    let end = bytes.len();
    // The last vector of the package, shorter by a byte and longer by one.
    for length in [63, 65] {
        let signature = vec![1; length];
        let other = [&bytes[..end - 66], &vector(&signature)].concat();
        let parsed = ParsedKeyPackage::parse(&other).expect("it parses");
        assert_eq!(parsed.validate(NOW), Err(InvalidKeyPackage::KeyPackageSignature));
    }
}

// API-230, API-235
#[test]
fn a_leaf_lists_its_own_extensions_and_the_package_need_not() {
    let unlisted_in_leaf = Package {
        leaf_extensions: vec![(0xfabc, vec![])],
        ..Package::sound()
    };
    assert_eq!(
        judge(&unlisted_in_leaf),
        Err(InvalidKeyPackage::UnlistedExtension(0xfabc))
    );
    let listed = Package {
        leaf_extensions: vec![(0xfabc, vec![])],
        capable_extensions: vec![0xfabc],
        ..Package::sound()
    };
    assert!(judge(&listed).is_ok());
    let every_default = Package {
        leaf_extensions: (1..=5).map(|kind| (kind, vec![])).collect(),
        capable_extensions: vec![],
        ..Package::sound()
    };
    assert!(judge(&every_default).is_ok());
    for kind in [0, 6] {
        let package = Package {
            leaf_extensions: vec![(kind, vec![])],
            capable_extensions: vec![],
            ..Package::sound()
        };
        assert_eq!(judge(&package), Err(InvalidKeyPackage::UnlistedExtension(kind)));
    }
    let unlisted_in_package = Package {
        package_extensions: vec![(0xfabc, vec![])],
        ..Package::sound()
    };
    assert!(judge(&unlisted_in_package).is_ok());
}

// API-230, API-235
#[test]
fn bodies_and_places_of_extensions_are_not_judged() {
    let odd_bodies = Package {
        leaf_extensions: vec![(0x0001, vec![0xff, 0xff]), (0x000a, vec![1, 2, 3])],
        package_extensions: vec![(0x000a, vec![9]), (0x0001, vec![]), (0x0002, vec![0xc0])],
        ..Package::sound()
    };
    assert!(judge(&odd_bodies).is_ok());
}

// API-230
#[test]
fn keys_for_encryption_are_not_judged() {
    for (init_key, encryption_key) in [
        (vec![], vec![1]),
        (vec![0; 32], vec![]),
        (vec![1; 1216], vec![2; 3]),
    ] {
        let package = Package {
            init_key,
            encryption_key,
            ..Package::sound()
        };
        assert!(judge(&package).is_ok());
    }
}

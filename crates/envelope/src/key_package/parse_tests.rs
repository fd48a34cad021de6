//! What is a key package and what is not: structure, every truncation, left-over bytes, the topic.

use proptest::prelude::*;

use super::{
    MalformedKeyPackage, ParsedKeyPackage,
    building::{NOW, Package, lifetime, vector},
};
use crate::topic::{Topic, TopicError, TopicKind};

/// A sound package of suite 0003, written by an MLS library; valid from 1970 to 2100.
pub(super) fn fixed() -> Vec<u8> {
    hex::decode(include_str!("vectors/fixed_key_package.hex")).expect("hexadecimal")
}

// API-230
#[test]
fn a_package_by_another_implementation_parses_and_gives_the_topic_of_its_signature_key() {
    let bytes = fixed();
    assert_eq!(bytes.len(), 360);
    let parsed = ParsedKeyPackage::parse(&bytes).expect("sound");
    let topic = Topic::from_identifier(TopicKind::KeyPackage, &bytes[71..103]).expect("32 bytes");
    assert_eq!(parsed.topic(), &topic);
    assert_eq!(
        (parsed.leaf.signed.clone(), parsed.signed.clone()),
        (37..218, 0..294)
    );
    assert!(parsed.validate(NOW).is_ok());
}

// API-230
#[test]
fn a_package_takes_every_byte() {
    for bytes in [fixed(), Package::sound().write()] {
        for length in 0..bytes.len() {
            assert!(
                ParsedKeyPackage::parse(&bytes[..length]).is_err(),
                "cut at {length}"
            );
        }
        let continued = [&bytes[..], &[0, 0]].concat();
        let error = ParsedKeyPackage::parse(&continued).expect_err("too long");
        assert_eq!(error, MalformedKeyPackage::LeftOver(2));
    }
}

// API-230
#[test]
fn a_package_in_an_mls_message_is_not_a_key_package() {
    let framed = [&[0, 1, 0, 5][..], &fixed()].concat();
    assert!(ParsedKeyPackage::parse(&framed).is_err());
}

// API-230
#[test]
fn a_signature_key_of_another_length_gives_no_topic_before_any_cryptography() {
    for length in [0, 31, 33, 65, 97] {
        let bytes = Package {
            signature_key: Some(vec![4; length]),
            ..Package::sound()
        }
        .write();
        assert_eq!(
            ParsedKeyPackage::parse(&bytes).expect_err("no topic"),
            MalformedKeyPackage::Topic(TopicError::IdentifierLength {
                kind: TopicKind::KeyPackage,
                actual: length
            })
        );
    }
}

// API-230
#[test]
fn an_extension_type_twice_in_one_list_does_not_parse() {
    let twice = vec![(0xff03, vec![1]), (0x0001, vec![0]), (0xff03, vec![2])];
    let in_leaf = Package {
        leaf_extensions: twice.clone(),
        ..Package::sound()
    };
    let in_package = Package {
        package_extensions: twice,
        ..Package::sound()
    };
    for package in [in_leaf, in_package] {
        assert_eq!(
            ParsedKeyPackage::parse(&package.write()).expect_err("repeated"),
            MalformedKeyPackage::RepeatedExtension(0xff03)
        );
    }
    let once_in_each = Package {
        leaf_extensions: vec![(0xff03, vec![1])],
        package_extensions: vec![(0xff03, vec![1])],
        ..Package::sound()
    };
    assert!(ParsedKeyPackage::parse(&once_in_each.write()).is_ok());
}

// API-230
#[test]
fn only_known_sources_of_a_leaf_node_parse() {
    let parses = |source: Vec<u8>| {
        ParsedKeyPackage::parse(
            &Package {
                source,
                ..Package::sound()
            }
            .write(),
        )
        .map(|_| ())
    };
    assert_eq!(parses(lifetime(0, u64::MAX)), Ok(()));
    assert_eq!(parses(vec![2]), Ok(()));
    assert_eq!(parses([vec![3], vector(&[9; 32])].concat()), Ok(()));
    for source in [0, 4, 255] {
        let error = parses(vec![source]).expect_err("unknown");
        assert!(
            error.to_string().contains("an unknown source of a leaf node"),
            "{error}"
        );
    }
}

// API-230
#[test]
fn vectors_have_one_encoding_and_numbers_are_whole() {
    let bytes = fixed();
    // The header of the init key, in two bytes and in four, and as one that is never valid.
    for header in [&[0x40, 0x20][..], &[0x80, 0, 0, 0x20], &[0xc0]] {
        let other = [&bytes[..4], header, &bytes[5..]].concat();
        assert!(ParsedKeyPackage::parse(&other).is_err(), "{header:x?}");
    }
    // The capabilities' versions, cut within a number.
    let mut odd = bytes.clone();
    odd[173] = 3;
    odd.insert(176, 0);
    let error = ParsedKeyPackage::parse(&odd).expect_err("odd");
    assert_eq!(
        error,
        MalformedKeyPackage::Structure {
            offset: 173,
            problem: "a vector of numbers that ends within one"
        }
    );
}

// API-230, API-235
#[test]
fn any_version_and_any_cipher_suite_parse() {
    for number in [0, 2, 0x0a0a, 0xeaea, 0xffff] {
        let package = Package {
            version: number,
            cipher_suite: number,
            ..Package::sound()
        };
        assert!(ParsedKeyPackage::parse(&package.write()).is_ok());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_package_or_refused(bytes in proptest::collection::vec(0u8.., 0..300)) {
        let _ = ParsedKeyPackage::parse(&bytes);
    }

    // API-230
    #[test]
    fn no_damage_to_a_sound_package_leaves_it_valid(at in 0usize..360, flip in 1u8..) {
        let mut bytes = fixed();
        bytes[at] ^= flip;
        let valid = ParsedKeyPackage::parse(&bytes).ok().and_then(|parsed| parsed.validate(NOW).ok());
        prop_assert_eq!(valid, None);
    }
}

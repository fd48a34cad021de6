//! The rows of the admission table, the stored encoding, and the metadata derived from a payload.

use conclave_proto::xmtp::{
    backend::v1::{KeyPackage, welcome_message},
    identity::associations::RecoverableEd25519Signature,
};
use proptest::prelude::*;

use super::*;
use crate::key_package::building::{Package, lifetime};

const GROUP_ID: [u8; 16] = [0x11; 16];

/// A PrivateMessage of the group with this content type and ciphertext, shorter than 64 bytes.
fn private_message(group_id: &[u8], content_type: u8, ciphertext: &[u8]) -> Bytes {
    let length = |bytes: &[u8]| u8::try_from(bytes.len()).expect("short");
    let mut data = vec![0, 1, 0, 2, length(group_id)];
    data.extend(group_id);
    data.extend([0, 0, 0, 0, 0, 0, 0, 0, content_type, 0, 0, length(ciphertext)]);
    data.extend(ciphertext);
    data.into()
}

fn group_message(data: Bytes) -> ClientEnvelope {
    let message = GroupMessage {
        data,
        sender_hmac: Bytes::from_static(b"hmac"),
        should_push: true,
    };
    ClientEnvelope {
        payload: Some(Payload::GroupMessage(message)),
    }
}

fn welcome(version: Option<Version>) -> ClientEnvelope {
    ClientEnvelope {
        payload: Some(Payload::WelcomeMessage(WelcomeMessage { version })),
    }
}

fn commit_log_entry(serialized: Vec<u8>) -> ClientEnvelope {
    let entry = CommitLogEntry {
        serialized_commit_log_entry: serialized.into(),
        signature: None,
    };
    ClientEnvelope {
        payload: Some(Payload::CommitLogEntry(entry)),
    }
}

fn key_package(serialized: Bytes) -> ClientEnvelope {
    let package = KeyPackage {
        key_package_tls_serialized: serialized,
    };
    ClientEnvelope {
        payload: Some(Payload::KeyPackage(package)),
    }
}

fn identity_update(inbox_id: &str) -> ClientEnvelope {
    let update = IdentityUpdate {
        inbox_id: inbox_id.to_owned(),
        ..IdentityUpdate::default()
    };
    ClientEnvelope {
        payload: Some(Payload::IdentityUpdate(update)),
    }
}

fn admit(envelope: &ClientEnvelope) -> Result<Admitted, Refused> {
    Admitted::from_client_envelope(envelope)
}

fn assert_malformed(envelope: &ClientEnvelope) {
    match admit(envelope) {
        Err(refused) => assert_eq!(refused.reason(), Reason::MalformedPayload),
        Ok(admitted) => panic!("{admitted:?}"),
    }
}

// API-212, API-230
#[test]
fn a_group_message_is_stored_on_its_group_and_commits_and_proposals_for_ever() {
    for (content_type, is_commit_or_proposal, retention) in [
        (1, false, Retention::GroupMessage),
        (2, true, Retention::Exempt),
        (3, true, Retention::Exempt),
    ] {
        let admitted =
            admit(&group_message(private_message(&GROUP_ID, content_type, b"x"))).expect("admitted");
        assert_eq!(admitted.topic().as_bytes(), [&[0][..], &GROUP_ID].concat());
        assert_eq!(admitted.is_commit_or_proposal(), is_commit_or_proposal);
        assert_eq!(admitted.retention(), retention);
    }
}

// API-230
#[test]
fn a_group_message_cut_anywhere_is_malformed() {
    let data = private_message(&GROUP_ID, 1, b"ciphertext");
    for length in 0..data.len() {
        assert_malformed(&group_message(data.slice(..length)));
    }
}

// API-230
#[test]
fn bytes_after_the_mls_message_are_accepted_and_stored() {
    let data = Bytes::from([&private_message(&GROUP_ID, 1, b"x")[..], b"trailing"].concat());
    let admitted = admit(&group_message(data.clone())).expect("admitted");
    let stored = ClientEnvelope::decode(admitted.stored_bytes().clone()).expect("decodes");
    assert_eq!(stored, group_message(data));
}

// API-230
#[test]
fn a_group_id_of_another_length_is_malformed() {
    for length in [0, 15, 17, 32] {
        assert_malformed(&group_message(private_message(&vec![1; length], 1, b"x")));
    }
}

// API-212, API-230
#[test]
fn a_welcome_is_stored_on_its_installation_whichever_version_it_has() {
    let key = Bytes::from(vec![7; 32]);
    let v1 = welcome_message::V1 {
        installation_key: key.clone(),
        wrapper_algorithm: 99,
        ..welcome_message::V1::default()
    };
    let pointer = welcome_message::WelcomePointer {
        installation_key: key.clone(),
        wrapper_algorithm: 1,
        ..welcome_message::WelcomePointer::default()
    };
    for version in [Version::V1(v1), Version::WelcomePointer(pointer)] {
        let envelope = welcome(Some(version));
        let admitted = admit(&envelope).expect("admitted");
        assert_eq!(admitted.topic().as_bytes(), [&[1][..], &key].concat());
        assert_eq!(
            (admitted.is_commit_or_proposal(), admitted.retention()),
            (false, Retention::Welcome)
        );
        assert_eq!(
            ClientEnvelope::decode(admitted.stored_bytes().clone()),
            Ok(envelope)
        );
    }
}

// API-230
#[test]
fn a_welcome_without_a_version_or_a_whole_key_is_malformed() {
    assert_malformed(&welcome(None));
    for length in [0, 31, 33] {
        let installation_key = Bytes::from(vec![7; length]);
        assert_malformed(&welcome(Some(Version::V1(welcome_message::V1 {
            installation_key: installation_key.clone(),
            ..welcome_message::V1::default()
        }))));
        assert_malformed(&welcome(Some(Version::WelcomePointer(
            welcome_message::WelcomePointer {
                installation_key,
                ..welcome_message::WelcomePointer::default()
            },
        ))));
    }
}

// API-212, API-230
#[test]
fn a_commit_log_entry_is_stored_on_its_group_for_ever_with_the_bytes_received() {
    let plaintext = PlaintextCommitLogEntry {
        group_id: Bytes::copy_from_slice(&GROUP_ID),
        commit_result: 77,
        ..PlaintextCommitLogEntry::default()
    };
    // Unknown fields and a signature of any shape are stored as received.
    let serialized = [plaintext.encode_to_vec(), vec![0xfa, 0x01, 0x01, 0xff]].concat();
    let mut envelope = commit_log_entry(serialized);
    if let Some(Payload::CommitLogEntry(entry)) = &mut envelope.payload {
        entry.signature = Some(RecoverableEd25519Signature {
            bytes: Bytes::from_static(b"short"),
            public_key: Bytes::new(),
        });
    }
    let admitted = admit(&envelope).expect("admitted");
    assert_eq!(admitted.topic().as_bytes(), [&[4][..], &GROUP_ID].concat());
    assert_eq!(
        (admitted.is_commit_or_proposal(), admitted.retention()),
        (false, Retention::Exempt)
    );
    assert_eq!(
        ClientEnvelope::decode(admitted.stored_bytes().clone()),
        Ok(envelope)
    );
}

// API-230
#[test]
fn a_commit_log_entry_that_does_not_decode_or_has_no_group_is_malformed() {
    assert_malformed(&commit_log_entry(vec![]));
    assert_malformed(&commit_log_entry(vec![0x0a, 16, 1]));
    let short = PlaintextCommitLogEntry {
        group_id: vec![1; 15].into(),
        ..PlaintextCommitLogEntry::default()
    };
    assert_malformed(&commit_log_entry(short.encode_to_vec()));
}

// API-230
#[test]
fn an_envelope_without_a_payload_is_malformed() {
    assert_malformed(&ClientEnvelope { payload: None });
    // One with a payload this schema does not know decodes to none.
    let unknown = ClientEnvelope::decode(&[0x32, 1, 0xaa][..]).expect("decodes");
    assert_malformed(&unknown);
}

// API-212, API-230
#[test]
fn a_key_package_is_stored_on_its_installation_and_left_to_be_judged() {
    let serialized = Bytes::from(Package::sound().write());
    let envelope = key_package(serialized.clone());
    let admitted = admit(&envelope).expect("admitted");
    let topic = *ParsedKeyPackage::parse(&serialized).expect("parses").topic();
    assert_eq!(admitted.topic(), &topic);
    assert_eq!(topic.kind(), TopicKind::KeyPackage);
    assert_eq!(
        (admitted.is_commit_or_proposal(), admitted.retention()),
        (false, Retention::KeyPackage)
    );
    assert_eq!(admitted.unchecked(), Some(&Unchecked::KeyPackage(serialized)));
    assert_eq!(
        ClientEnvelope::decode(admitted.stored_bytes().clone()),
        Ok(envelope)
    );
}

// API-222, API-230
#[test]
fn a_key_package_that_parses_is_admitted_whatever_else_is_wrong_with_it() {
    let invalid = Package {
        wrong_package_signature: true,
        source: lifetime(0, 1),
        ..Package::sound()
    };
    assert!(admit(&key_package(invalid.write().into())).is_ok());
}

// API-230
#[test]
fn a_key_package_that_does_not_parse_or_has_no_topic_is_malformed() {
    let sound = Package::sound().write();
    assert_malformed(&key_package(Bytes::new()));
    assert_malformed(&key_package([&sound[..], &[0]].concat().into()));
    assert_malformed(&key_package(Bytes::copy_from_slice(&sound[..sound.len() - 1])));
    let long_key = Package {
        signature_key: Some(vec![4; 65]),
        ..Package::sound()
    };
    assert_malformed(&key_package(long_key.write().into()));
}

// API-212, API-230
#[test]
fn an_identity_update_is_stored_on_its_inbox_for_ever_and_left_to_be_judged() {
    for inbox_id in ["0a".repeat(32), "0A".repeat(32)] {
        let envelope = identity_update(&inbox_id);
        let admitted = admit(&envelope).expect("admitted");
        assert_eq!(admitted.topic().as_bytes(), [&[2][..], &[0x0a; 32]].concat());
        assert_eq!(
            (admitted.is_commit_or_proposal(), admitted.retention()),
            (false, Retention::Exempt)
        );
        let Some(Payload::IdentityUpdate(update)) = envelope.payload else {
            panic!("an identity update");
        };
        assert_eq!(admitted.unchecked(), Some(&Unchecked::IdentityUpdate(update)));
    }
    let whole = "0a".repeat(32);
    for inbox_id in [
        "",
        "not hexadecimal",
        &whole[1..],
        &whole[2..],
        &format!("{whole}0"),
        &format!("{whole}0a"),
    ] {
        assert_malformed(&identity_update(inbox_id));
    }
}

// API-230
#[test]
fn nothing_is_left_to_check_of_the_other_kinds() {
    let plaintext = PlaintextCommitLogEntry {
        group_id: Bytes::copy_from_slice(&GROUP_ID),
        ..PlaintextCommitLogEntry::default()
    };
    let v1 = welcome_message::V1 {
        installation_key: vec![7; 32].into(),
        ..welcome_message::V1::default()
    };
    for envelope in [
        group_message(private_message(&GROUP_ID, 1, b"x")),
        welcome(Some(Version::V1(v1))),
        commit_log_entry(plaintext.encode_to_vec()),
    ] {
        assert_eq!(admit(&envelope).expect("admitted").unchecked(), None);
    }
}

// API-211
#[test]
fn inputs_that_decode_to_the_same_value_hash_alike() {
    let envelope = group_message(private_message(&GROUP_ID, 1, b"x"));
    let canonical = envelope.encode_to_vec();
    // The same envelope with its fields in another order, with a field nobody knows, and split in two.
    let inner = canonical[2..].to_vec();
    let data_end = 2 + usize::from(inner[1]);
    let (data, rest) = inner.split_at(data_end);
    let wrap = |inner: &[u8]| [&[0x0a, u8::try_from(inner.len()).expect("short")][..], inner].concat();
    let variants = [
        wrap(&[rest, data].concat()),
        wrap(&[data, &[0xfa, 0x01, 0x01, 0xff], rest].concat()),
        [wrap(data), wrap(rest)].concat(),
        [canonical.clone(), vec![0xfa, 0x01, 0x01, 0xff]].concat(),
    ];
    let expected = admit(&envelope).expect("admitted");
    assert_eq!(expected.stored_bytes()[..], canonical[..]);
    assert_eq!(expected.message_hash()[..], Sha256::digest(&canonical)[..]);
    for variant in variants {
        let decoded = ClientEnvelope::decode(&variant[..]).expect("decodes");
        assert_eq!(admit(&decoded), Ok(expected.clone()), "{}", hex::encode(variant));
    }
}

proptest! {
    // API-211
    #[test]
    fn every_payload_field_is_returned_as_received(
        ciphertext in proptest::collection::vec(0u8.., 0..40),
        trailing in proptest::collection::vec(0u8.., 0..40),
        sender_hmac in proptest::collection::vec(0u8.., 0..40),
        should_push in any::<bool>(),
    ) {
        let data = [&private_message(&GROUP_ID, 1, &ciphertext)[..], &trailing].concat().into();
        let message = GroupMessage { data, sender_hmac: sender_hmac.into(), should_push };
        let envelope = ClientEnvelope { payload: Some(Payload::GroupMessage(message)) };
        let admitted = admit(&envelope).expect("admitted");
        prop_assert_eq!(admitted.reencoded_bytes(), envelope.encoded_len());
        prop_assert_eq!(&ClientEnvelope::decode(admitted.stored_bytes().clone()).expect("decodes"), &envelope);
        let digest: MessageHash = Sha256::digest(admitted.stored_bytes()).into();
        prop_assert_eq!(admitted.message_hash(), &digest);
    }

    // API-211
    #[test]
    fn unknown_numbers_of_an_enum_survive(wrapper_algorithm in any::<i32>()) {
        let envelope = welcome(Some(Version::V1(welcome_message::V1 {
            installation_key: vec![7; 32].into(),
            wrapper_algorithm,
            ..welcome_message::V1::default()
        })));
        let stored = admit(&envelope).expect("admitted").stored_bytes().clone();
        prop_assert_eq!(ClientEnvelope::decode(stored), Ok(envelope));
    }

    #[test]
    fn any_bytes_are_admitted_or_refused(bytes in proptest::collection::vec(0u8.., 0..120)) {
        if let Ok(envelope) = ClientEnvelope::decode(&bytes[..]) {
            let _ = admit(&envelope);
        }
        let _ = admit(&group_message(bytes.clone().into()));
        let _ = admit(&commit_log_entry(bytes));
    }
}

//! The bounds of a publish, the failure it names, and the duplicates within it.

use conclave_proto::xmtp::{
    backend::v1::{
        GroupMessage, KeyPackage, WelcomeMessage,
        client_envelope::Payload,
        welcome_message::{V1, Version},
    },
    identity::associations::{self, CreateInbox, IdentityAction, IdentityUpdate, identity_action::Kind},
};
use proptest::prelude::*;

use super::*;

fn payload(payload: Payload) -> ClientEnvelope {
    ClientEnvelope {
        payload: Some(payload),
    }
}

/// A Welcome to the installation `[key; 32]` with this much data.
fn welcome(key: u8, data: &[u8]) -> ClientEnvelope {
    payload(Payload::WelcomeMessage(WelcomeMessage {
        version: Some(Version::V1(V1 {
            installation_key: vec![key; 32].into(),
            data: Bytes::copy_from_slice(data),
            ..V1::default()
        })),
    }))
}

fn malformed() -> ClientEnvelope {
    payload(Payload::GroupMessage(GroupMessage::default()))
}

fn key_package() -> ClientEnvelope {
    payload(Payload::KeyPackage(KeyPackage::default()))
}

/// Admits a request both encoded and decoded, which must come to the same.
fn admit(envelopes: &[ClientEnvelope], limits: &Limits) -> Result<AdmittedPublish, PublishFailure> {
    let request = PublishRequest {
        envelopes: envelopes.to_vec(),
    };
    let encoded = request.encode_to_vec();
    let decoded = AdmittedPublish::admit(&request, encoded.len() as u64, limits);
    assert_eq!(AdmittedPublish::decode(encoded.into(), limits), decoded);
    decoded
}

fn index_and_reason(failure: &PublishFailure) -> (Option<u32>, Reason) {
    let error = failure.to_publish_error().expect("a publish error");
    assert_eq!(
        error.message,
        failure.to_string(),
        "the detail says what the status says"
    );
    (error.index, error.reason())
}

// API-221, API-222
#[test]
fn duplicates_within_a_request_keep_their_place_and_name_their_first_copy() {
    let (a, b) = (welcome(1, b"a"), welcome(1, b"b"));
    let elsewhere = welcome(2, b"a");
    let publish = admit(
        &[a.clone(), b.clone(), a.clone(), elsewhere, b, a],
        &Limits::default(),
    )
    .expect("admitted");
    assert_eq!(publish.envelopes().len(), 6);
    assert_eq!(publish.first_copies(), [0, 1, 0, 3, 1, 0]);
    assert_eq!(
        publish.distinct().map(|(index, _)| index).collect::<Vec<_>>(),
        [0, 1, 3]
    );
    assert_eq!(publish.topics().len(), 2);
    let (envelopes, first_copies) = publish.into_parts();
    assert_eq!(
        (envelopes[2].message_hash(), first_copies[2]),
        (envelopes[0].message_hash(), 0)
    );
}

#[test]
fn an_empty_publish_is_admitted() {
    assert_eq!(
        admit(&[], &Limits::default())
            .expect("admitted")
            .envelopes()
            .len(),
        0
    );
}

// API-223
#[test]
fn a_failure_names_the_lowest_failing_index() {
    let limits = Limits {
        max_envelope_bytes: 60,
        ..Limits::default()
    };
    let large = welcome(1, &[0; 100]);
    let fine = welcome(1, b"");
    let failure =
        |envelopes: &[ClientEnvelope]| index_and_reason(&admit(envelopes, &limits).expect_err("refused"));
    assert_eq!(
        failure(&[fine.clone(), malformed(), large.clone()]),
        (Some(1), Reason::MalformedPayload)
    );
    assert_eq!(
        failure(&[fine.clone(), large.clone(), malformed()]),
        (Some(1), Reason::TooLarge)
    );
    assert_eq!(
        failure(&[malformed(), malformed(), fine]),
        (Some(0), Reason::MalformedPayload)
    );
    assert_eq!(
        failure(&[malformed(), key_package()]),
        (Some(0), Reason::MalformedPayload)
    );
}

// API-223
#[test]
fn an_envelope_that_does_not_decode_is_named_by_its_index() {
    let fine = PublishRequest {
        envelopes: vec![welcome(1, b"")],
    }
    .encode_to_vec();
    let encoded = [&fine[..], &[0x0a, 1, 0xff], &fine].concat();
    let failure = AdmittedPublish::decode(encoded.into(), &Limits::default()).expect_err("refused");
    assert_eq!(index_and_reason(&failure), (Some(1), Reason::MalformedPayload));
}

// API-223
#[test]
fn a_request_that_does_not_decode_has_no_index() {
    for encoded in [&[0xff][..], &[0x0a], &[0x0a, 5, 1], &[0x08, 1]] {
        let failure = AdmittedPublish::decode(Bytes::copy_from_slice(encoded), &Limits::default());
        assert_eq!(
            index_and_reason(&failure.expect_err("refused")),
            (None, Reason::MalformedPayload)
        );
    }
}

// API-223
#[test]
fn each_bound_of_a_publish_holds_exactly() {
    let envelopes = [welcome(1, b"x"), welcome(2, b"x"), welcome(2, b"y")];
    let request_bytes = PublishRequest {
        envelopes: envelopes.to_vec(),
    }
    .encoded_len() as u64;
    let envelope_bytes = envelopes[0].encoded_len() as u64;
    let exact = Limits {
        max_request_bytes: request_bytes,
        max_envelope_bytes: envelope_bytes,
        max_publish_topics: 2,
        ..Limits::default()
    };
    assert!(admit(&envelopes, &exact).is_ok());
    let refused = |limits: Limits| index_and_reason(&admit(&envelopes, &limits).expect_err("refused"));
    let limits = Limits {
        max_envelope_bytes: envelope_bytes - 1,
        ..exact
    };
    assert_eq!(refused(limits), (Some(0), Reason::TooLarge));
    assert_eq!(
        refused(Limits {
            max_publish_topics: 1,
            ..exact
        }),
        (None, Reason::TooLarge)
    );
}

/// Were they decoded to be measured, they would not fit the memory they are served from.
// API-223
#[test]
fn more_actions_than_an_envelope_can_hold_are_counted_and_not_decoded() {
    let update = |actions: usize| {
        let update = [0x0a, 0].repeat(actions);
        let envelope = [&[0x22][..], &length(update.len()), &update].concat();
        Bytes::from([&[0x0a][..], &length(envelope.len()), &envelope].concat())
    };
    let limits = Limits {
        max_envelope_bytes: 2_000,
        ..Limits::default()
    };
    let failure =
        |actions| index_and_reason(&AdmittedPublish::decode(update(actions), &limits).expect_err("refused"));
    assert_eq!(failure(5_000_000), (Some(0), Reason::TooLarge));
    assert_eq!(failure(1_001), (Some(0), Reason::TooLarge));
    // Within the bound, but not with the signature that each needs.
    assert_eq!(failure(900), (Some(0), Reason::InvalidIdentityUpdate));
    assert_eq!(failure(63), (Some(0), Reason::InvalidIdentityUpdate));
    // Few enough to be judged: refused for the inbox id that is not there.
    assert_eq!(failure(62), (Some(0), Reason::MalformedPayload));
}

// API-223, API-281
#[test]
fn an_update_longer_than_an_envelope_may_be_is_too_large_however_many_actions_it_has() {
    let limits = Limits {
        max_envelope_bytes: 2_000,
        ..Limits::default()
    };
    let reason = |actions: usize| {
        let action = IdentityAction {
            kind: Some(Kind::CreateInbox(CreateInbox {
                initial_identifier: "a".repeat(40),
                ..CreateInbox::default()
            })),
        };
        let update = IdentityUpdate {
            actions: vec![action; actions],
            inbox_id: "ab".repeat(32),
            ..IdentityUpdate::default()
        };
        let request = PublishRequest {
            envelopes: vec![ClientEnvelope {
                payload: Some(Payload::IdentityUpdate(update)),
            }],
        };
        AdmittedPublish::decode(request.encode_to_vec().into(), &limits)
            .map_err(|failure| index_and_reason(&failure))
            .map(drop)
    };
    assert_eq!(reason(40), Ok(()));
    for actions in [50, 62, 63, 64, 100, 1_000] {
        assert_eq!(reason(actions), Err((Some(0), Reason::TooLarge)), "{actions}");
    }
}

/// A length as protobuf writes it.
fn length(bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encode_length_delimiter(bytes, &mut out).expect("a vector grows as needed");
    out
}

// API-281
#[test]
fn a_request_too_long_on_the_wire_is_not_an_invalid_argument() {
    let envelopes = [welcome(1, b"x")];
    let limits = Limits {
        max_request_bytes: 40,
        ..Limits::default()
    };
    let failure = admit(&envelopes, &limits).expect_err("too long");
    assert!(matches!(failure, PublishFailure::WireTooLong { max: 40, .. }));
    assert_eq!(failure.to_publish_error(), None);
}

// API-281
#[test]
fn the_re_encoded_length_counts_the_framing_of_every_envelope() {
    let request = PublishRequest {
        envelopes: vec![welcome(1, b"x"), welcome(2, &[0; 200])],
    };
    let reencoded = request.encoded_len() as u64;
    let admit = |max_request_bytes| {
        let limits = Limits {
            max_request_bytes,
            ..Limits::default()
        };
        AdmittedPublish::admit(&request, 0, &limits)
    };
    assert!(admit(reencoded).is_ok());
    let failure = admit(reencoded - 1).expect_err("one byte too long");
    assert_eq!(index_and_reason(&failure), (None, Reason::TooLarge));
}

// API-281
#[test]
fn a_wire_form_shorter_than_ours_is_measured_as_ours() {
    // A sign-extended enum takes ten bytes from us; a client may send the low five bytes of it.
    let (head, short) = (&[0x0a, 32][..], [0x20, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    let v1 = [head, &[7; 32], &short].concat();
    let wrap =
        |tag: u8, inner: &[u8]| [&[tag, u8::try_from(inner.len()).expect("short")][..], inner].concat();
    let encoded = wrap(0x0a, &wrap(0x12, &wrap(0x0a, &v1)));
    let limits = Limits {
        max_request_bytes: encoded.len() as u64,
        ..Limits::default()
    };
    let failure = AdmittedPublish::decode(encoded.into(), &limits).expect_err("longer re-encoded");
    assert_eq!(index_and_reason(&failure), (None, Reason::TooLarge));
}

// API-223
#[test]
fn the_envelopes_before_a_failing_one_are_kept_for_what_only_storage_knows() {
    let request = PublishRequest {
        envelopes: vec![welcome(1, b"a"), welcome(1, b"a"), malformed(), welcome(2, b"b")],
    };
    let (before, failure) =
        AdmittedPublish::decode_prefix(request.encode_to_vec().into(), &Limits::default());
    assert_eq!(failure.and_then(|failure| failure.index()), Some(2));
    assert_eq!(before.first_copies(), [0, 0]);
    let whole = AdmittedPublish::decode_prefix(Bytes::new(), &Limits::default());
    assert_eq!(whole.1, None);
}

/// An update whose every action has as many signatures of wallets as it can.
fn wallet_update(pairs: usize) -> ClientEnvelope {
    let wallet = Some(associations::Signature {
        signature: Some(associations::signature::Signature::Erc6492(
            associations::SmartContractWalletSignature::default(),
        )),
    });
    let account = Some(associations::Signature {
        signature: Some(associations::signature::Signature::Erc191(
            associations::RecoverableEcdsaSignature::default(),
        )),
    });
    let add = |existing: &Option<associations::Signature>| {
        Kind::Add(associations::AddAssociation {
            existing_member_signature: existing.clone(),
            new_member_signature: wallet.clone(),
            ..Default::default()
        })
    };
    let mut kinds = vec![add(&wallet); pairs];
    kinds.extend([
        add(&account),
        Kind::CreateInbox(associations::CreateInbox {
            initial_identifier_signature: wallet.clone(),
            ..Default::default()
        }),
        Kind::Revoke(associations::RevokeAssociation {
            recovery_identifier_signature: wallet.clone(),
            ..Default::default()
        }),
        Kind::ChangeRecoveryAddress(associations::ChangeRecoveryAddress {
            existing_recovery_identifier_signature: wallet.clone(),
            ..Default::default()
        }),
        Kind::ClaimHandle(associations::ClaimHandle {
            existing_member_signature: wallet.clone(),
            ..Default::default()
        }),
        Kind::CreateInbox(associations::CreateInbox {
            initial_identifier_signature: account,
            ..Default::default()
        }),
    ]);
    let actions = kinds
        .into_iter()
        .map(|kind| associations::IdentityAction { kind: Some(kind) });
    payload(Payload::IdentityUpdate(associations::IdentityUpdate {
        actions: actions.collect(),
        inbox_id: "0a".repeat(32),
        ..Default::default()
    }))
}

// API-223, API-222
#[test]
fn wallet_signatures_are_counted_in_every_position() {
    // Two a pair, and five more.
    let limits = Limits {
        max_scw_signatures: 9,
        ..Limits::default()
    };
    assert!(admit(&[wallet_update(2)], &limits).is_ok());
    let failure = admit(&[welcome(1, b""), wallet_update(3)], &limits).expect_err("eleven");
    assert_eq!(index_and_reason(&failure), (Some(1), Reason::TooLarge));
    // The limit is one of each update.
    let mut other = wallet_update(2);
    if let Some(Payload::IdentityUpdate(update)) = &mut other.payload {
        update.inbox_id = "0b".repeat(32);
    }
    assert!(admit(&[wallet_update(2), other], &limits).is_ok());
}

// API-222
#[test]
fn the_bounds_apply_to_duplicates_too() {
    let envelope = welcome(1, b"x");
    let one = PublishRequest {
        envelopes: vec![envelope.clone()],
    }
    .encoded_len() as u64;
    let limits = Limits {
        max_request_bytes: one * 2,
        ..Limits::default()
    };
    assert!(admit(&[envelope.clone(), envelope.clone()], &limits).is_ok());
    assert!(admit(&[envelope.clone(), envelope.clone(), envelope], &limits).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_admitted_or_refused(bytes in proptest::collection::vec(prop_oneof![3 => 0u8..40, 1 => 0u8..], 0..80)) {
        let _ = AdmittedPublish::decode(bytes.into(), &Limits::default());
    }

    #[test]
    fn a_first_copy_is_the_first_equal_envelope(picks in proptest::collection::vec((0u8..3, 0u8..3), 0..20)) {
        let envelopes: Vec<_> = picks.iter().map(|(key, data)| welcome(*key, &[*data])).collect();
        let publish = admit(&envelopes, &Limits::default()).expect("admitted");
        let expected: Vec<_> =
            picks.iter().map(|pick| picks.iter().position(|other| other == pick).expect("itself")).collect();
        prop_assert_eq!(publish.first_copies(), &expected[..]);
    }
}

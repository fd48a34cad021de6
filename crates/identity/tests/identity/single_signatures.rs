//! The published text and single signatures.

use conclave_identity::{
    MemberIdentifier,
    signature::{ReplayKey, SignatureError, SignedText, ethereum::personal_message_hash},
    update::Update,
};
use conclave_proto::xmtp::identity::associations::{
    self as wire, identity_action::Kind, member_identifier, signature::Signature,
};
use sha2::{Digest as _, Sha256, Sha512};

use crate::sequences::named;

const A1: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const CREATE_TEXT: &str = "XMTP : Authenticate to inbox\n\nInbox ID: \
    41ff994ea1f9462295cee1ad48c270f6fe3e6307cd9a062e9320cf43a724e348\nCurrent time: 2024-04-10T12:00:00Z\n\n\
    - Create inbox\n  (Owner: 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266)\n\nFor more info: https://xmtp.org/signatures";
const W1: &str = "366e27e6cfa5cbb062e848edd2f44459e7fc56907ec2693600c48b8eed64254722ce85e8bab6e412122fccb23d8e499865a2e\
    3924ba5a720a56868f4de56ae601c";
const W1_MIRRORED: &str = "366e27e6cfa5cbb062e848edd2f44459e7fc56907ec2693600c48b8eed642547dd317a1745491bededd0334dc271b6\
    66550bf95463a2f91b1a69f597f1df92e11b";

fn bytes(text: &str) -> Vec<u8> {
    hex::decode(text).expect("hexadecimal")
}

fn text_of(name: &str) -> String {
    Update::parse(&named(name))
        .expect("a sound structure")
        .signature_text()
}

fn account_signature(signature: &[u8]) -> Signature {
    Signature::Erc191(wire::RecoverableEcdsaSignature {
        bytes: signature.to_vec().into(),
    })
}

// API-230
#[test]
fn the_text_of_six_actions_is_the_published_one() {
    let member = |kind| Some(wire::MemberIdentifier { kind: Some(kind) });
    let address = || {
        member(member_identifier::Kind::EthereumAddress(
            "0x4567890abcdef1234567890abcdef12345678123".into(),
        ))
    };
    let installation = || {
        member(member_identifier::Kind::InstallationPublicKey(
            vec![1, 2, 3].into(),
        ))
    };
    let signature = || {
        Some(wire::Signature {
            signature: Some(account_signature(&[])),
        })
    };
    let add = |new_member_identifier| {
        Kind::Add(wire::AddAssociation {
            new_member_identifier,
            existing_member_signature: signature(),
            new_member_signature: signature(),
            relying_party: None,
        })
    };
    let revoke = |member_to_revoke| {
        Kind::Revoke(wire::RevokeAssociation {
            member_to_revoke,
            recovery_identifier_signature: signature(),
        })
    };
    let kinds = [
        Kind::CreateInbox(wire::CreateInbox {
            initial_identifier: "0x1234567890abcdef1234567890abcdef12345678".into(),
            initial_identifier_signature: signature(),
            ..Default::default()
        }),
        add(address()),
        add(installation()),
        revoke(address()),
        revoke(installation()),
        Kind::ChangeRecoveryAddress(wire::ChangeRecoveryAddress {
            new_recovery_identifier: "0x7890abcdef1234567890abcdef12345678123456".into(),
            existing_recovery_identifier_signature: signature(),
            ..Default::default()
        }),
    ];
    let update = wire::IdentityUpdate {
        actions: kinds
            .map(|kind| wire::IdentityAction { kind: Some(kind) })
            .to_vec(),
        client_timestamp_ns: 12,
        inbox_id: "fcd18d86276d7a99fe522dba9660c420f03c8648785ada7c5daae232a3df77a9".into(),
    };
    let text = Update::parse(&update)
        .expect("a sound structure")
        .signature_text();
    assert_eq!(text.len(), 602);
    assert_eq!(
        hex::encode(Sha256::digest(&text)),
        "4ed17618a43bb361b910a6da12ebc9f0b9f3582a10af3196f3c47bc9a3204942"
    );
    assert_eq!(
        hex::encode(personal_message_hash(text.as_bytes())),
        "a45a0f9edbc211be20538f728d6504099ce7620281902fb87e3a7c708adad3c0"
    );
}

// API-230
#[test]
fn the_texts_of_the_published_updates_are_theirs() {
    assert_eq!(text_of("U1"), CREATE_TEXT);
    assert_eq!(CREATE_TEXT.len(), 253);
    assert_eq!(
        hex::encode(personal_message_hash(CREATE_TEXT.as_bytes())),
        "308894511e85414e75d6ca9b74a2763ab6f31e26209d14f4fcfbfb717b947add"
    );
    assert_eq!(
        hex::encode(Sha512::digest(text_of("U2"))),
        "5623258d19209a8ccdd2807f2078c7972ae68de5c4d54b3274562a4dd1f62305259bec4ef6bda278dfca434caaf2df0935ef64676b5e\
         c63807ca2c70587406b8"
    );
}

// API-230
#[test]
fn the_four_encodings_of_an_accounts_signature_are_one() {
    let text = SignedText::new(CREATE_TEXT.to_owned());
    let canonical = [&bytes(W1)[..64], &[1]].concat();
    for (signature, last) in [(W1, 28), (W1, 1), (W1_MIRRORED, 27), (W1_MIRRORED, 0)] {
        let mut signature = bytes(signature);
        signature[64] = last;
        let checked = text.check(&account_signature(&signature)).expect("sound");
        assert_eq!(checked.verified.signer.to_string(), A1);
        assert_eq!(checked.verified.replay_key, ReplayKey::of(&canonical));
        assert_eq!((checked.verified.chain_id, checked.question), (None, None));
    }
    let mut other_parity = bytes(W1_MIRRORED);
    other_parity[64] = 28;
    let checked = text
        .check(&account_signature(&other_parity))
        .expect("it recovers someone");
    assert_eq!(
        checked.verified.signer.to_string(),
        "0xe13738fc7060c01732125d890b655498c4626b34"
    );
}

// API-230
#[test]
fn an_accounts_signature_has_65_bytes_and_one_of_four_last_bytes() {
    let text = SignedText::new(CREATE_TEXT.to_owned());
    for last in (0..=255).filter(|last| ![0, 1, 27, 28].contains(last)) {
        let mut signature = bytes(W1);
        signature[64] = last;
        assert!(matches!(
            text.check(&account_signature(&signature)),
            Err(SignatureError::Unreadable(_))
        ));
    }
    for signature in [&bytes(W1)[..64], &[&bytes(W1)[..], &[0]].concat(), &[]] {
        assert!(matches!(
            text.check(&account_signature(signature)),
            Err(SignatureError::Unreadable(_))
        ));
    }
}

// API-230
#[test]
fn an_installation_signs_a_hash_in_a_context_and_nothing_else() {
    let key = bytes("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    let text = SignedText::new(text_of("U2"));
    let check = |signature: &str, public_key: &[u8]| {
        text.check(&Signature::InstallationKey(wire::RecoverableEd25519Signature {
            bytes: bytes(signature).into(),
            public_key: public_key.to_vec().into(),
        }))
    };
    let sound = "22b230dd4dae9d52af623dee0737035aba8f9c507c8fe2df849e1e52355a2e3407076e57bc893fc6ec7f14ba914fd21784f755ad\
                 f1c3e850529905692754e901";
    let checked = check(sound, &key).expect("sound");
    assert_eq!(
        checked.verified.signer,
        MemberIdentifier::Installation(key.clone().into())
    );
    assert_eq!(checked.verified.replay_key, ReplayKey::of(&bytes(sound)));
    let plain = "5b9a8a35ebcd8949fa5f8931a3db92577c3f15863c490c7b43b182b8b50f22bfcf5b519e47e81329fe3e7cbca4b9b718d2e9fafa\
                 32fec735d3894ac85184190a";
    let no_context = "6dd2b2d83354bac505a4b25e3a2cfcf74e4b8f30ea1d466695b4d759bbb5b456587af6bfc6b8022f3ea93f14b6a7ef403d5\
                      b3a38ab49c903fdd2754759683204";
    for wrong in [plain, no_context] {
        assert!(matches!(check(wrong, &key), Err(SignatureError::Wrong(_))));
    }
    for (signature, public_key) in [
        (&sound[2..], &key[..]),
        (sound, &key[1..]),
        (sound, &[]),
        (sound, &[0xff; 33]),
    ] {
        assert!(matches!(
            check(signature, public_key),
            Err(SignatureError::Unreadable(_))
        ));
    }
}

// API-230
#[test]
fn both_s_of_a_passkeys_signature_verify_and_are_one() {
    let published = named("P1");
    let Some(Kind::CreateInbox(create)) = &published.actions[0].kind else {
        panic!("P1 opens an inbox")
    };
    let Some(Signature::Passkey(sound)) = create
        .initial_identifier_signature
        .as_ref()
        .and_then(|of| of.signature.clone())
    else {
        panic!("P1 is signed by a passkey")
    };
    let text = SignedText::new(text_of("P1"));
    let mirrored = "3046022100fea4fac4caf3542cffe1c603709265580af469143b289ce5ac03c344391fc28d022100b013120a4233faae2badd1\
                    84538ee5d169cf9ae8b907b5065d78f7be54cbbd0e";
    let replay_key = ReplayKey::of(&bytes(
        "fea4fac4caf3542cffe1c603709265580af469143b289ce5ac03c344391fc28d4fecedf4bdcc0552d4522e7bac711a2e53175fc4ee0fe97\
         e9640d304a7976843",
    ));
    let authenticator_data = "bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b50500000001";
    assert_eq!(sound.authenticator_data, bytes(authenticator_data));
    for signature in [sound.signature.clone(), bytes(mirrored).into()] {
        let signature = wire::RecoverablePasskeySignature {
            signature,
            ..sound.clone()
        };
        let checked = text.check(&Signature::Passkey(signature)).expect("sound");
        assert_eq!(
            checked.verified.signer,
            MemberIdentifier::Passkey(sound.public_key.clone())
        );
        assert_eq!(checked.verified.replay_key, replay_key);
    }
}

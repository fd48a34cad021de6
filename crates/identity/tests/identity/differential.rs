//! Signatures and times against other implementations; see tests/oracles/identity.

use conclave_identity::{
    MemberIdentifier,
    signature::{SignedText, ethereum::personal_message_hash},
    timestamp,
};
use conclave_proto::xmtp::identity::associations::{self as wire, signature::Signature};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    texts: Vec<String>,
    ethereum: Vec<Ethereum>,
    installations: Vec<Installation>,
    passkeys: Vec<Passkey>,
    times: Vec<Time>,
}

#[derive(Deserialize)]
struct Ethereum {
    what: String,
    text: usize,
    hash: String,
    signature: String,
    /// Nobody when it is refused.
    signer: Option<String>,
}

#[derive(Deserialize)]
struct Installation {
    what: String,
    text: usize,
    signature: String,
    public_key: String,
    valid: bool,
}

#[derive(Deserialize)]
struct Passkey {
    what: String,
    text: usize,
    public_key: String,
    signature: String,
    authenticator_data: String,
    client_data_json: String,
    valid: bool,
}

#[derive(Deserialize)]
struct Time {
    ns: String,
    text: String,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("vectors/differential.json")).expect("vectors")
}

fn bytes(text: &str) -> bytes::Bytes {
    hex::decode(text).expect("hexadecimal").into()
}

/// Who signed, if anyone did.
fn signer(text: &str, signature: &Signature) -> Option<MemberIdentifier> {
    let checked = SignedText::new(text.to_owned()).check(signature).ok()?;
    Some(checked.verified.signer)
}

// API-230
#[test]
fn accounts_are_recovered_as_another_implementation_recovers_them() {
    let Vectors { texts, ethereum, .. } = vectors();
    assert!(ethereum.len() > 400 && ethereum.iter().any(|case| case.signer.is_none()));
    for case in ethereum {
        let text = &texts[case.text];
        assert_eq!(
            hex::encode(personal_message_hash(text.as_bytes())),
            case.hash,
            "{}",
            case.what
        );
        let signature = Signature::Erc191(wire::RecoverableEcdsaSignature {
            bytes: bytes(&case.signature),
        });
        let signer = signer(text, &signature).map(|signer| signer.to_string());
        assert_eq!(signer, case.signer, "{} {}", case.what, case.signature);
    }
}

// API-230
#[test]
fn installations_verify_as_another_implementation_verifies_them() {
    let Vectors {
        texts, installations, ..
    } = vectors();
    assert!(installations.iter().any(|case| case.valid) && installations.iter().any(|case| !case.valid));
    for case in installations {
        let signature = Signature::InstallationKey(wire::RecoverableEd25519Signature {
            bytes: bytes(&case.signature),
            public_key: bytes(&case.public_key),
        });
        let expected = case
            .valid
            .then(|| MemberIdentifier::Installation(bytes(&case.public_key)));
        assert_eq!(signer(&texts[case.text], &signature), expected, "{}", case.what);
    }
}

// API-230
#[test]
fn passkeys_verify_as_another_implementation_verifies_them() {
    let Vectors { texts, passkeys, .. } = vectors();
    assert!(passkeys.iter().any(|case| case.valid) && passkeys.iter().any(|case| !case.valid));
    for case in passkeys {
        let signature = Signature::Passkey(wire::RecoverablePasskeySignature {
            public_key: bytes(&case.public_key),
            signature: bytes(&case.signature),
            authenticator_data: bytes(&case.authenticator_data),
            client_data_json: bytes(&case.client_data_json),
        });
        let expected = case
            .valid
            .then(|| MemberIdentifier::Passkey(bytes(&case.public_key)));
        assert_eq!(signer(&texts[case.text], &signature), expected, "{}", case.what);
    }
}

// API-230
#[test]
fn times_read_as_another_implementation_writes_them() {
    for time in vectors().times {
        let ns = time.ns.parse().expect("a number");
        assert_eq!(timestamp::to_text(ns), time.text, "{ns}");
    }
}

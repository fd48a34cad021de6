//! Signatures of passkeys: WebAuthn assertions over P-256. Depends on identifiers.
//!
//! The assertion proves possession of the key and nothing else: ceremony, relying party, flags, counter and origin are
//! not compared with anything.

use conclave_proto::xmtp::identity::associations::RecoverablePasskeySignature;
use p256::ecdsa::{Signature, VerifyingKey, signature::Verifier as _};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{ReplayKey, SignatureError, VerifiedSignature};
use crate::identifier::MemberIdentifier;

/// The lengths of a SEC1 point, compressed and not, in bytes. No other key signs, so none becomes a member.
pub const KEY_BYTES: [usize; 2] = [33, 65];

/// What is read of the client data. Both must be there; other members are ignored.
#[derive(Deserialize)]
struct ClientData<'a> {
    #[serde(borrow)]
    challenge: std::borrow::Cow<'a, str>,
    #[serde(borrow, rename = "origin")]
    _origin: std::borrow::Cow<'a, str>,
}

/// Verifies an assertion for a challenge.
///
/// # Errors
/// [`SignatureError`] when the client data is not a JSON object with this challenge and an origin, the key is no point,
/// the signature is not DER, or it does not verify.
pub(super) fn verify(
    challenge: &str,
    signature: &RecoverablePasskeySignature,
) -> Result<VerifiedSignature, SignatureError> {
    let client_data = read_client_data(&signature.client_data_json).ok_or(SignatureError::Unreadable(
        "a passkey's client data is not what a browser writes",
    ))?;
    if client_data.challenge != challenge {
        return Err(SignatureError::Wrong("a passkey's"));
    }
    let key = read_key(&signature.public_key)
        .ok_or(SignatureError::Unreadable("a passkey's key is not a P-256 point"))?;
    let parsed = Signature::from_der(&signature.signature)
        .map_err(|_| SignatureError::Unreadable("a passkey's signature is not DER"))?;
    let signed = [
        &signature.authenticator_data[..],
        &Sha256::digest(&signature.client_data_json),
    ]
    .concat();
    key.verify(&signed, &parsed)
        .map_err(|_| SignatureError::Wrong("a passkey's"))?;
    // Both s verify, so the low one stands for both.
    let canonical = parsed.normalize_s().unwrap_or(parsed).to_bytes();
    Ok(VerifiedSignature {
        signer: MemberIdentifier::passkey(&signature.public_key),
        replay_key: ReplayKey::of(&canonical),
        chain_id: None,
    })
}

/// A list would deserialise as well, so the brace is looked for.
fn read_client_data(json: &[u8]) -> Option<ClientData<'_>> {
    json.trim_ascii_start()
        .starts_with(b"{")
        .then(|| serde_json::from_slice(json).ok())
        .flatten()
}

/// A SEC1 point, compressed or not. The library reads other forms too, which no validator knows.
fn read_key(bytes: &[u8]) -> Option<VerifyingKey> {
    let [compressed, whole] = KEY_BYTES;
    let length = match bytes.first()? {
        2 | 3 => compressed,
        4 => whole,
        _ => return None,
    };
    (bytes.len() == length)
        .then(|| VerifyingKey::from_sec1_bytes(bytes).ok())
        .flatten()
}

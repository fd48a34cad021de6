//! Signatures of installations: Ed25519ph with a context (RFC 8032, section 5.1). Depends on identifiers.

use conclave_proto::xmtp::identity::associations::RecoverableEd25519Signature;
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::Sha512;

use super::{ReplayKey, SignatureError, VerifiedSignature};
use crate::identifier::MemberIdentifier;

/// The context of every signature of an identity update.
pub const CONTEXT: &[u8] = b"IDENTITY UPDATE SIGNATURE";

/// Verifies a signature of a hashed text, without the cofactor and without refusing keys of small order, as every
/// validator of the log does.
///
/// # Errors
/// [`SignatureError`] when the key is no point of 32 bytes, the signature has not 64 bytes, or it does not verify.
pub(super) fn verify(
    prehash: &Sha512,
    signature: &RecoverableEd25519Signature,
) -> Result<VerifiedSignature, SignatureError> {
    let key = signature
        .public_key
        .as_ref()
        .try_into()
        .ok()
        .and_then(|bytes| VerifyingKey::from_bytes(bytes).ok())
        .ok_or(SignatureError::Unreadable(
            "an installation's key is not an Ed25519 key",
        ))?;
    let parsed = Signature::from_slice(&signature.bytes)
        .map_err(|_| SignatureError::Unreadable("an installation's signature has not 64 bytes"))?;
    key.verify_prehashed(prehash.clone(), Some(CONTEXT), &parsed)
        .map_err(|_| SignatureError::Wrong("an installation's"))?;
    Ok(VerifiedSignature {
        signer: MemberIdentifier::installation(&signature.public_key),
        replay_key: ReplayKey::of(&signature.bytes),
        chain_id: None,
    })
}

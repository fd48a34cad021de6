//! Signatures of Ethereum accounts: secp256k1 over a personal message (ERC-191), with the key recovered from them.
//! Depends on identifiers.

use k256::{
    AffinePoint, ProjectivePoint, Scalar, U256,
    ecdsa::{Signature, VerifyingKey},
    elliptic_curve::{
        ops::{Invert as _, LinearCombination as _, Reduce},
        point::DecompressPoint as _,
    },
};
use sha3::{Digest as _, Keccak256};

use super::{ReplayKey, SignatureError, VerifiedSignature};
use crate::identifier::{ADDRESS_BYTES, EthereumAddress, MemberIdentifier};

/// The length of r, s and v, in bytes.
pub const SIGNATURE_BYTES: usize = 65;

/// The hash of a personal message: Keccak-256 of the byte 0x19, its name, its length in decimal, and the message.
#[must_use]
pub fn personal_message_hash(message: &[u8]) -> [u8; 32] {
    Keccak256::new()
        .chain_update(b"\x19Ethereum Signed Message:\n")
        .chain_update(message.len().to_string())
        .chain_update(message)
        .finalize()
        .into()
}

/// Recovers who signed a hash. A sound signature of another text recovers another account, which then is not the one
/// the action names; only one that recovers nothing is refused here.
///
/// # Errors
/// [`SignatureError`] when it has not 65 bytes, v is not 0, 1, 27 or 28, r or s is no scalar, or no key fits.
pub(super) fn verify(hash: &[u8; 32], bytes: &[u8]) -> Result<VerifiedSignature, SignatureError> {
    let bytes: &[u8; SIGNATURE_BYTES] = bytes
        .try_into()
        .map_err(|_| SignatureError::Unreadable("an account's signature has not 65 bytes"))?;
    let [scalars @ .., v] = bytes;
    let odd = match v {
        0 | 27 => false,
        1 | 28 => true,
        _ => return Err(SignatureError::Unreadable("v is not 0, 1, 27 or 28")),
    };
    let signature =
        Signature::from_slice(scalars).map_err(|_| SignatureError::Unreadable("r or s is out of range"))?;
    // Of the two s that sign alike the low one counts; negating s mirrors the recovered point.
    let (signature, odd) = match signature.normalize_s() {
        Some(low) => (low, !odd),
        None => (signature, odd),
    };
    let key = recover(hash, &signature, odd).ok_or(SignatureError::Wrong("an account's"))?;
    let mut canonical = [0; SIGNATURE_BYTES];
    canonical[..SIGNATURE_BYTES - 1].copy_from_slice(&signature.to_bytes());
    canonical[SIGNATURE_BYTES - 1] = u8::from(odd);
    Ok(VerifiedSignature {
        signer: MemberIdentifier::Ethereum(address_of(&key)),
        replay_key: ReplayKey::of(&canonical),
        chain_id: None,
    })
}

/// The key Q with r·Q = s·R - z·G, where R is the point with x = r and a y of the given parity (SEC 1, section 4.1.6).
///
/// The library's own recovery also verifies the signature with the key it found, which takes as long again and cannot
/// fail: the equation it would check is the one solved here.
fn recover(hash: &[u8; 32], signature: &Signature, odd: bool) -> Option<VerifyingKey> {
    let (r, s) = signature.split_scalars();
    let z = <Scalar as Reduce<U256>>::reduce_bytes(&(*hash).into());
    let point = Option::<AffinePoint>::from(AffinePoint::decompress(&r.to_bytes(), u8::from(odd).into()))?;
    let r_inverse = *r.invert();
    let key = ProjectivePoint::lincomb(
        &ProjectivePoint::GENERATOR,
        &-(r_inverse * z),
        &ProjectivePoint::from(point),
        &(r_inverse * *s),
    );
    VerifyingKey::from_affine(key.to_affine()).ok()
}

/// The last 20 bytes of the Keccak-256 of the key's coordinates.
fn address_of(key: &VerifyingKey) -> EthereumAddress {
    let point = key.to_encoded_point(false);
    // Without the tag of an uncompressed point.
    let hash: [u8; 32] = Keccak256::digest(&point.as_bytes()[1..]).into();
    let mut address = [0; ADDRESS_BYTES];
    address.copy_from_slice(&hash[32 - ADDRESS_BYTES..]);
    EthereumAddress::from_bytes(address)
}

//! X25519 (RFC 7748), refusing an exchange to which the other side contributed nothing.

use curve25519_dalek::montgomery::MontgomeryPoint;
use zeroize::Zeroizing;

/// The secret with the three low bits and the top bit cleared and the next one set.
pub const fn clamp(mut secret: [u8; 32]) -> [u8; 32] {
    secret[0] &= 0b1111_1000;
    secret[31] &= 0b0111_1111;
    secret[31] |= 0b0100_0000;
    secret
}

/// The public key of `secret`.
pub fn public_key(secret: &[u8; 32]) -> [u8; 32] {
    MontgomeryPoint::mul_base_clamped(*secret).to_bytes()
}

/// What both sides compute. `None` when `public` is of small order, so that the result would be the same for every
/// secret.
///
/// The top bit of `public` is ignored and an unreduced coordinate accepted, as RFC 7748 section 5 requires.
pub fn shared_secret(secret: &[u8; 32], public: &[u8; 32]) -> Option<Zeroizing<[u8; 32]>> {
    let shared = Zeroizing::new(MontgomeryPoint(*public).mul_clamped(*secret).to_bytes());
    (*shared != [0; 32]).then_some(shared)
}

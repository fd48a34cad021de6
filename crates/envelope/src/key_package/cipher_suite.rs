//! Which cipher suites sign with Ed25519, the one scheme whose keys have 32 bytes. Depends on nothing.

/// The code points of every suite with the signature scheme Ed25519: two of RFC 9420, then the provisional code points
/// of drafts that installations may use.
///
/// - `0001`: X25519, AES-128-GCM, SHA-256;
/// - `0003`: X25519, ChaCha20-Poly1305, SHA-256, the suite JOIN-072 names;
/// - `004d`: X-Wing, ChaCha20-Poly1305, SHA-256 (draft);
/// - `004e`, `004f`: ML-KEM-768 with X25519 (draft);
/// - `f042`: ML-KEM-768, AES-256-GCM, SHA-384 (draft, private range).
pub const ED25519_SUITES: [u16; 6] = [0x0001, 0x0003, 0x004d, 0x004e, 0x004f, 0xf042];

/// Whether signatures of a suite are Ed25519, so that they can be verified here.
///
/// D3 (our choice): an unknown suite is a number like any other and parses. Its signatures cannot be verified, so the
/// package is invalid, not malformed.
#[must_use]
pub fn signs_with_ed25519(cipher_suite: u16) -> bool {
    ED25519_SUITES.contains(&cipher_suite)
}

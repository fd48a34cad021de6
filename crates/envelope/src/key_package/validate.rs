//! What a key package that parses must hold besides (JOIN-004, JOIN-007, JOIN-008; RFC 9420, sections 7.3 and 10.1).
//! Depends on the parsed package and on Ed25519.
//!
//! Every failure has the same reason, so cheap checks come first. What RFC 9420 judges against a group (suite and version
//! of the group, its required capabilities, its other members) has no meaning at the backend. That the inbox exists or
//! owns the key is not established (API-230). D1 (our choice): extensions of the package that the capabilities do not
//! list are accepted, because that rule stands in section 10 and API-235 forbids the reason.

use std::collections::BTreeSet;

use conclave_proto::xmtp::identity::MlsCredential;
use ed25519_dalek::{Signature, VerifyingKey};
use prost::Message as _;

use super::{
    cipher_suite::signs_with_ed25519,
    parse::{LeafNode, LeafNodeSource, ParsedKeyPackage},
};
use crate::topic::Topic;

/// The protocol version there is.
const VERSION_MLS_10: u16 = 1;
/// The credential type `basic` (RFC 9420, section 5.3).
const CREDENTIAL_BASIC: u16 = 1;
/// The last of the extension types that every client supports without listing them (RFC 9420, section 7.2); the first
/// is 1.
const LAST_DEFAULT_EXTENSION: u16 = 5;

/// A key package that parses and may not be stored: REASON_INVALID_KEY_PACKAGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeyPackage {
    /// Not MLS 1.0 (D8, our choice: the number parses, RFC 9420 section 10.1 refuses it).
    #[error("the key package has the version {0}, not 1")]
    Version(u16),
    /// A suite whose signatures are not Ed25519.
    #[error("the key package has the cipher suite {0:#06x}, whose signatures are not Ed25519")]
    CipherSuite(u16),
    /// The leaf node is one of an update or a commit.
    #[error("the leaf node of the key package is not one for a key package")]
    LeafNodeSource,
    /// One key for both purposes.
    #[error("the init key of the key package is its encryption key")]
    SameKey,
    /// Not valid yet, or no more (JOIN-008).
    #[error("the key package is valid from {not_before} until before {not_after}, and it is {now}")]
    Lifetime {
        /// The first second of the lifetime, since the Unix epoch.
        not_before: u64,
        /// The first second after the lifetime, since the Unix epoch.
        not_after: u64,
        /// The time it was judged at, in seconds since the Unix epoch.
        now: u64,
    },
    /// A leaf extension that the capabilities do not list.
    #[error("the leaf node has the extension {0:#06x}, which its capabilities do not list")]
    UnlistedExtension(u16),
    /// The credential is not basic or is no `MlsCredential` (JOIN-004).
    #[error("the credential of the key package is not a basic one with an inbox id")]
    Credential,
    /// The signature key is no point of the curve.
    #[error("the signature key of the key package is not an Ed25519 key")]
    SignatureKey,
    /// The leaf node's signature does not verify.
    #[error("the signature of the leaf node does not verify")]
    LeafNodeSignature,
    /// The package's signature does not verify.
    #[error("the signature of the key package does not verify")]
    KeyPackageSignature,
}

/// A key package that may be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidKeyPackage {
    topic: Topic,
    inbox_id: String,
}

impl ValidKeyPackage {
    /// The topic it belongs to.
    #[must_use]
    pub const fn topic(&self) -> &Topic {
        &self.topic
    }

    /// The inbox its credential names. Any text (API-235); that the inbox exists or owns the key is not established.
    #[must_use]
    pub fn inbox_id(&self) -> &str {
        &self.inbox_id
    }
}

impl ParsedKeyPackage<'_> {
    /// Judges the package at a time, in whole seconds since the Unix epoch.
    ///
    /// # Errors
    /// [`InvalidKeyPackage`], the first check that fails.
    pub fn validate(&self, now_seconds: u64) -> Result<ValidKeyPackage, InvalidKeyPackage> {
        if self.version != VERSION_MLS_10 {
            return Err(InvalidKeyPackage::Version(self.version));
        }
        if !signs_with_ed25519(self.cipher_suite) {
            return Err(InvalidKeyPackage::CipherSuite(self.cipher_suite));
        }
        check_lifetime(self.leaf.source, now_seconds)?;
        if self.init_key == self.leaf.encryption_key {
            return Err(InvalidKeyPackage::SameKey);
        }
        check_leaf_extensions(&self.leaf)?;
        let inbox_id = read_credential(&self.leaf)?;
        self.check_signatures()?;
        Ok(ValidKeyPackage {
            topic: self.topic,
            inbox_id,
        })
    }

    /// Both signatures are made with the leaf's key, over the received bytes. A vector has one encoding, so these are
    /// also the bytes of a new serialisation.
    fn check_signatures(&self) -> Result<(), InvalidKeyPackage> {
        let key = self
            .leaf
            .signature_key
            .try_into()
            .ok()
            .and_then(|bytes| VerifyingKey::from_bytes(bytes).ok())
            .ok_or(InvalidKeyPackage::SignatureKey)?;
        let leaf = self.bytes.get(self.leaf.signed.clone()).unwrap_or_default();
        if !verifies(&key, "LeafNodeTBS", leaf, self.leaf.signature) {
            return Err(InvalidKeyPackage::LeafNodeSignature);
        }
        let package = self.bytes.get(self.signed.clone()).unwrap_or_default();
        if !verifies(&key, "KeyPackageTBS", package, self.signature) {
            return Err(InvalidKeyPackage::KeyPackageSignature);
        }
        Ok(())
    }
}

/// Neither end is tolerant: producers date their packages back for skewed clocks. No lifetime is too long (API-235).
fn check_lifetime(source: LeafNodeSource, now: u64) -> Result<(), InvalidKeyPackage> {
    match source {
        LeafNodeSource::KeyPackage {
            not_before,
            not_after,
        } if not_before <= now && now < not_after => Ok(()),
        LeafNodeSource::KeyPackage {
            not_before,
            not_after,
        } => Err(InvalidKeyPackage::Lifetime {
            not_before,
            not_after,
            now,
        }),
        LeafNodeSource::Other => Err(InvalidKeyPackage::LeafNodeSource),
    }
}

/// D2 (our choice): RFC 9420 section 7.3 demands that the capabilities list the leaf's own extensions, so JOIN-007 does,
/// though libraries do not check it. To follow them instead, drop the call of this function.
fn check_leaf_extensions(leaf: &LeafNode<'_>) -> Result<(), InvalidKeyPackage> {
    let mut to_be_listed = leaf
        .extension_types
        .iter()
        .filter(|kind| !(1..=LAST_DEFAULT_EXTENSION).contains(*kind))
        .peekable();
    if to_be_listed.peek().is_none() {
        return Ok(());
    }
    let (listed, _) = leaf.capable_extensions.as_chunks::<2>();
    let listed: BTreeSet<u16> = listed.iter().map(|bytes| u16::from_be_bytes(*bytes)).collect();
    match to_be_listed.find(|kind| !listed.contains(kind)) {
        Some(kind) => Err(InvalidKeyPackage::UnlistedExtension(*kind)),
        None => Ok(()),
    }
}

fn read_credential(leaf: &LeafNode<'_>) -> Result<String, InvalidKeyPackage> {
    if leaf.credential_type != CREDENTIAL_BASIC {
        return Err(InvalidKeyPackage::Credential);
    }
    MlsCredential::decode(leaf.credential)
        .map(|credential| credential.inbox_id)
        .map_err(|_| InvalidKeyPackage::Credential)
}

/// SignWithLabel of RFC 9420, section 5.1.2, verified strictly: no key or nonce of small order, no second encoding.
fn verifies(key: &VerifyingKey, label: &str, content: &[u8], signature: &[u8]) -> bool {
    let Ok(signature) = Signature::from_slice(signature) else {
        return false;
    };
    let label = format!("MLS 1.0 {label}");
    let mut signed = Vec::with_capacity(2 * MAX_HEADER_BYTES + label.len() + content.len());
    write_vector(&mut signed, label.as_bytes());
    write_vector(&mut signed, content);
    key.verify_strict(&signed, &signature).is_ok()
}

/// The longest header of a vector, in bytes.
const MAX_HEADER_BYTES: usize = 4;

/// Appends a vector with the shortest header (RFC 9420, section 2.1.2). The content was read from a vector or is
/// shorter than a request, so its length fits 30 bits.
fn write_vector(out: &mut Vec<u8>, content: &[u8]) {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    match length {
        0..0x40 => out.extend_from_slice(&length.to_be_bytes()[3..]),
        0x40..0x4000 => out.extend_from_slice(&(length | 0x4000).to_be_bytes()[2..]),
        _ => out.extend_from_slice(&(length | 0x8000_0000).to_be_bytes()),
    }
    out.extend_from_slice(content);
}

//! Writes and signs key packages for tests, sound ones and every kind that MLS libraries refuse to build. Depends on
//! Ed25519.
#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    reason = "for tests: a field is what the structure calls it"
)]

use conclave_proto::xmtp::identity::MlsCredential;
use ed25519_dalek::{Signer as _, SigningKey};
use prost::Message as _;

/// A time within the lifetime of [`Package::sound`], in seconds since the Unix epoch.
pub const NOW: u64 = 1_700_000_000;

/// The fields of a key package. Both signatures are made when it is written.
#[derive(Clone, Debug)]
pub struct Package {
    pub version: u16,
    pub cipher_suite: u16,
    pub init_key: Vec<u8>,
    pub encryption_key: Vec<u8>,
    /// The seed of the signer's key.
    pub signer: [u8; 32],
    /// In place of the signer's key.
    pub signature_key: Option<Vec<u8>>,
    pub credential_type: u16,
    pub credential: Vec<u8>,
    pub capable_extensions: Vec<u16>,
    /// The bytes of the source and of what follows it.
    pub source: Vec<u8>,
    pub leaf_extensions: Vec<(u16, Vec<u8>)>,
    pub package_extensions: Vec<(u16, Vec<u8>)>,
    /// Signs the leaf node with another key.
    pub wrong_leaf_signature: bool,
    /// Signs the package with another key.
    pub wrong_package_signature: bool,
}

impl Package {
    /// One in the shape that installations publish.
    pub fn sound() -> Package {
        Package {
            version: 1,
            cipher_suite: 3,
            init_key: vec![0xaa; 32],
            encryption_key: vec![0xbb; 32],
            signer: [0x42; 32],
            signature_key: None,
            credential_type: 1,
            credential: credential_of(&"ab".repeat(32)),
            capable_extensions: vec![0x000a, 0x0001, 0xf000, 0x0006, 0xff03, 0xff04],
            source: lifetime(NOW - 3600, NOW + 7_257_600),
            leaf_extensions: vec![(0x0001, vector(b"application"))],
            package_extensions: vec![
                (0x000a, vec![]),
                (0xff04, vec![0x0a, 1, 3]),
                (0xff03, vec![7; 40]),
            ],
            wrong_leaf_signature: false,
            wrong_package_signature: false,
        }
    }

    /// The bytes, signed.
    pub fn write(&self) -> Vec<u8> {
        let signer = SigningKey::from_bytes(&self.signer);
        let other = SigningKey::from_bytes(&[0x43; 32]);
        let by = |wrong: bool| if wrong { &other } else { &signer };
        let signature_key = self
            .signature_key
            .clone()
            .unwrap_or_else(|| signer.verifying_key().to_bytes().to_vec());
        let mut leaf = [
            vector(&self.encryption_key),
            vector(&signature_key),
            self.credential_type.to_be_bytes().to_vec(),
            vector(&self.credential),
            numbers(&[1]),
            numbers(&[3]),
            numbers(&self.capable_extensions),
            numbers(&[7, 8]),
            numbers(&[1]),
            self.source.clone(),
            extensions(&self.leaf_extensions),
        ]
        .concat();
        let signature = sign(by(self.wrong_leaf_signature), "MLS 1.0 LeafNodeTBS", &leaf);
        leaf.extend(vector(&signature));
        let mut package = [
            self.version.to_be_bytes().to_vec(),
            self.cipher_suite.to_be_bytes().to_vec(),
            vector(&self.init_key),
            leaf,
            extensions(&self.package_extensions),
        ]
        .concat();
        let signature = sign(
            by(self.wrong_package_signature),
            "MLS 1.0 KeyPackageTBS",
            &package,
        );
        package.extend(vector(&signature));
        package
    }
}

/// A credential that names an inbox.
pub fn credential_of(inbox_id: &str) -> Vec<u8> {
    MlsCredential {
        inbox_id: inbox_id.to_owned(),
    }
    .encode_to_vec()
}

/// The source `key_package` with its lifetime.
pub fn lifetime(not_before: u64, not_after: u64) -> Vec<u8> {
    [&[1][..], &not_before.to_be_bytes(), &not_after.to_be_bytes()].concat()
}

/// A vector with its header.
pub fn vector(content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("short");
    let header = match length {
        0..64 => vec![u8::try_from(length).expect("less than 64")],
        64..16384 => u16::try_from(length | 0x4000)
            .expect("14 bits")
            .to_be_bytes()
            .to_vec(),
        _ => (length | 0x8000_0000).to_be_bytes().to_vec(),
    };
    [header, content.to_vec()].concat()
}

fn numbers(numbers: &[u16]) -> Vec<u8> {
    vector(
        &numbers
            .iter()
            .flat_map(|number| number.to_be_bytes())
            .collect::<Vec<u8>>(),
    )
}

fn extensions(list: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let content: Vec<u8> = list
        .iter()
        .flat_map(|(kind, body)| [kind.to_be_bytes().to_vec(), vector(body)].concat())
        .collect();
    vector(&content)
}

fn sign(key: &SigningKey, label: &str, content: &[u8]) -> Vec<u8> {
    key.sign(&[vector(label.as_bytes()), vector(content)].concat())
        .to_vec()
}

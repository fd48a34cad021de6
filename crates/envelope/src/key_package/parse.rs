//! The structure of a key package. Depends on the reader and on topics.
//!
//! Extension bodies are opaque and may stand in either list (D5, D6, our choice: neither RFC 9420 sections 7.3 and 10.1
//! nor the contract name such a check, and API-230 forbids any other).

use std::ops::Range;

use crate::{
    mls::{Malformed, reader::Reader},
    topic::{Topic, TopicError, TopicKind},
};

/// Bytes that are no key package, or one that gives no topic: REASON_MALFORMED_PAYLOAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedKeyPackage {
    /// The structure does not walk to its end.
    #[error("not a key package: {problem} at byte {offset}")]
    Structure {
        /// Where, counted from the start of the package.
        offset: usize,
        /// What is wrong there.
        problem: &'static str,
    },
    /// Bytes follow the package.
    #[error("{0} bytes follow the key package")]
    LeftOver(usize),
    /// One list holds an extension type twice (D4: RFC 9420, section 13.4; no client can parse it).
    #[error("an extension list of the key package holds the type {0:#06x} twice")]
    RepeatedExtension(u16),
    /// The signature key gives no topic (TOPIC-002).
    #[error(transparent)]
    Topic(#[from] TopicError),
}

impl From<Malformed> for MalformedKeyPackage {
    fn from(Malformed { offset, problem }: Malformed) -> MalformedKeyPackage {
        MalformedKeyPackage::Structure { offset, problem }
    }
}

/// A key package that parses, borrowed from its bytes. Nothing in it is judged yet.
#[derive(Clone, Debug)]
pub struct ParsedKeyPackage<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) topic: Topic,
    pub(super) version: u16,
    pub(super) cipher_suite: u16,
    pub(super) init_key: &'a [u8],
    pub(super) leaf: LeafNode<'a>,
    /// What the package signature signs, as a range of the bytes: everything before that signature.
    pub(super) signed: Range<usize>,
    pub(super) signature: &'a [u8],
}

/// The leaf node of a key package.
#[derive(Clone, Debug)]
pub(super) struct LeafNode<'a> {
    pub(super) encryption_key: &'a [u8],
    pub(super) signature_key: &'a [u8],
    pub(super) credential_type: u16,
    pub(super) credential: &'a [u8],
    /// The extension types that the capabilities list, two bytes each.
    pub(super) capable_extensions: &'a [u8],
    pub(super) source: LeafNodeSource,
    /// The types of the leaf's extensions, in rising order.
    pub(super) extension_types: Vec<u16>,
    /// What the leaf signature signs, as a range of the package's bytes.
    pub(super) signed: Range<usize>,
    pub(super) signature: &'a [u8],
}

/// Where a leaf node comes from (RFC 9420, section 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeafNodeSource {
    /// A key package, with its lifetime in seconds since the Unix epoch.
    KeyPackage { not_before: u64, not_after: u64 },
    /// An update proposal or a commit.
    Other,
}

impl<'a> ParsedKeyPackage<'a> {
    /// Reads a key package that takes every byte (API-230).
    ///
    /// # Errors
    /// [`MalformedKeyPackage`] for anything else, and when the signature key has not 32 bytes (TOPIC-002). That comes
    /// before any cryptography: a sound package with a P-256 key is malformed, not invalid.
    pub fn parse(bytes: &'a [u8]) -> Result<ParsedKeyPackage<'a>, MalformedKeyPackage> {
        let mut reader = Reader::new(bytes);
        let version = reader.u16()?;
        let cipher_suite = reader.u16()?;
        let init_key = reader.vec()?;
        let leaf = leaf_node(&mut reader)?;
        let _extension_types = extension_types(&mut reader)?;
        let signed = 0..reader.offset();
        let signature = reader.vec()?;
        if !reader.is_empty() {
            return Err(MalformedKeyPackage::LeftOver(bytes.len() - reader.offset()));
        }
        Ok(ParsedKeyPackage {
            bytes,
            topic: Topic::from_identifier(TopicKind::KeyPackage, leaf.signature_key)?,
            version,
            cipher_suite,
            init_key,
            leaf,
            signed,
            signature,
        })
    }

    /// The key package topic of the signature key (TOPIC-001). Its identifier is the installation key.
    #[must_use]
    pub const fn topic(&self) -> &Topic {
        &self.topic
    }
}

fn leaf_node<'a>(reader: &mut Reader<'a>) -> Result<LeafNode<'a>, MalformedKeyPackage> {
    let start = reader.offset();
    let encryption_key = reader.vec()?;
    let signature_key = reader.vec()?;
    let credential_type = reader.u16()?;
    let credential = reader.vec()?;
    let _versions = numbers(reader)?;
    let _cipher_suites = numbers(reader)?;
    let capable_extensions = numbers(reader)?;
    let _proposals = numbers(reader)?;
    let _credentials = numbers(reader)?;
    let source = leaf_node_source(reader)?;
    let extension_types = extension_types(reader)?;
    let signed = start..reader.offset();
    let signature = reader.vec()?;
    Ok(LeafNode {
        encryption_key,
        signature_key,
        credential_type,
        credential,
        capable_extensions,
        source,
        extension_types,
        signed,
        signature,
    })
}

/// A vector of two-byte numbers, as its bytes.
fn numbers<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let here = reader.clone();
    let content = reader.vec()?;
    if content.len() % 2 != 0 {
        return Err(here.malformed("a vector of numbers that ends within one"));
    }
    Ok(content)
}

fn leaf_node_source(reader: &mut Reader<'_>) -> Result<LeafNodeSource, Malformed> {
    let here = reader.clone();
    match reader.u8()? {
        1 => Ok(LeafNodeSource::KeyPackage {
            not_before: reader.u64()?,
            not_after: reader.u64()?,
        }),
        2 => Ok(LeafNodeSource::Other),
        3 => {
            let _parent_hash = reader.vec()?;
            Ok(LeafNodeSource::Other)
        }
        _ => Err(here.malformed("an unknown source of a leaf node")),
    }
}

/// Reads an extension list and returns its types in rising order, each once.
fn extension_types(reader: &mut Reader<'_>) -> Result<Vec<u16>, MalformedKeyPackage> {
    let mut types = Vec::new();
    reader.vec_of(|extension| {
        types.push(extension.u16()?);
        let _body = extension.vec()?;
        Ok(())
    })?;
    types.sort_unstable();
    match types.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(MalformedKeyPackage::RepeatedExtension(pair[0])),
        None => Ok(types),
    }
}

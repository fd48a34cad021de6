//! Why the two sides may differ on an input: D1 to D8 of `conclave_envelope::key_package`. Depends on openmls for what it
//! knows, and on the reader for where it stands.

use conclave_envelope::{
    key_package::{InvalidKeyPackage, ParsedKeyPackage},
    mls::{Malformed, reader::Reader},
};
use openmls::prelude::{Ciphersuite, Extension};
use tls_codec::Deserialize as _;

use crate::{now_seconds, verdict::Verdict};

/// The extension lists of a key package, and what its capabilities list.
#[derive(Debug, Default)]
struct Extensions<'a> {
    cipher_suite: u16,
    capable: Vec<u16>,
    leaf: Vec<(u16, &'a [u8])>,
    package: Vec<(u16, &'a [u8])>,
}

/// Why the verdicts on a key package differ, if they may.
#[must_use]
pub fn key_package(input: &[u8], ours: Verdict, theirs: Verdict) -> Option<&'static str> {
    let extensions = read(input).ok()?;
    let suite_is_unknown = Ciphersuite::try_from(extensions.cipher_suite).is_err();
    let in_package = |kinds: &[u16]| extensions.package.iter().any(|(kind, _)| kinds.contains(kind));
    let in_leaf = |kinds: &[u16]| extensions.leaf.iter().any(|(kind, _)| kinds.contains(kind));
    match (ours, theirs) {
        (Verdict::Invalid, Verdict::Malformed) if suite_is_unknown => Some("D3 unknown cipher suite"),
        (Verdict::Accepted(_) | Verdict::Invalid, Verdict::Malformed) => {
            if extensions
                .leaf
                .iter()
                .chain(&extensions.package)
                .any(has_a_body_openmls_cannot_read)
            {
                Some("D5 body of an extension")
            } else if in_leaf(&[2, 3, 4, 5, 10]) {
                Some("D6 place of an extension in the leaf")
            } else {
                None
            }
        }
        (Verdict::Accepted(_), Verdict::Invalid) => {
            let listed = |kind: &u16| (1..=5).contains(kind) || extensions.capable.contains(kind);
            if in_package(&[1, 2, 3, 4, 5]) {
                Some("D6 place of an extension in the package")
            } else if extensions.package.iter().any(|(kind, _)| !listed(kind)) {
                Some("D1 package extension not listed")
            } else {
                None
            }
        }
        (Verdict::Invalid, Verdict::Accepted(_)) => {
            let judged = ParsedKeyPackage::parse(input).ok()?.validate(now_seconds());
            matches!(judged, Err(InvalidKeyPackage::UnlistedExtension(_)))
                .then_some("D2 leaf extension not listed")
        }
        _ => None,
    }
}

/// Why the verdicts on a group message differ, if they may: openmls judges what stands inside a proposal or a commit.
#[must_use]
pub fn group_message(input: &[u8], ours: Verdict, theirs: Verdict) -> Option<&'static str> {
    let is_public = input.get(2..4) == Some(&[0, 1]);
    (is_public && ours == Verdict::Accepted(true) && theirs == Verdict::Malformed)
        .then_some("D7 what a proposal or a commit holds")
}

fn has_a_body_openmls_cannot_read((kind, body): &(u16, &[u8])) -> bool {
    let encoded = [&kind.to_be_bytes()[..], &crate::building::vector(body)].concat();
    Extension::tls_deserialize_exact(encoded).is_err()
}

fn read(input: &[u8]) -> Result<Extensions<'_>, Malformed> {
    let mut reader = Reader::new(input);
    let _version = reader.u16()?;
    let mut read = Extensions {
        cipher_suite: reader.u16()?,
        ..Extensions::default()
    };
    let _init_key = reader.vec()?;
    let _encryption_key = reader.vec()?;
    let _signature_key = reader.vec()?;
    let _credential_type = reader.u16()?;
    let _credential = reader.vec()?;
    let _versions = reader.vec()?;
    let _cipher_suites = reader.vec()?;
    reader.vec_of(|kind| {
        read.capable.push(kind.u16()?);
        Ok(())
    })?;
    let _proposals = reader.vec()?;
    let _credentials = reader.vec()?;
    match reader.u8()? {
        1 => {
            let _not_before = reader.u64()?;
            let _not_after = reader.u64()?;
        }
        3 => {
            let _parent_hash = reader.vec()?;
        }
        _ => {}
    }
    read_list(&mut reader, &mut read.leaf)?;
    let _leaf_signature = reader.vec()?;
    read_list(&mut reader, &mut read.package)?;
    Ok(read)
}

fn read_list<'a>(reader: &mut Reader<'a>, list: &mut Vec<(u16, &'a [u8])>) -> Result<(), Malformed> {
    reader.vec_of(|extension| {
        list.push((extension.u16()?, extension.vec()?));
        Ok(())
    })
}

//! What each side says of an input. Depends on both.

use conclave_envelope::{
    key_package::ParsedKeyPackage,
    mls::{ContentType, Framing},
    topic::GROUP_ID_BYTES,
};
use conclave_proto::xmtp::identity::MlsCredential;
use openmls::prelude::{
    BasicCredential, ContentType as TheirContentType, KeyPackageIn, MlsMessageIn, OpenMlsProvider as _,
    ProtocolVersion,
};
use openmls_rust_crypto::OpenMlsRustCrypto;
use prost::Message as _;
use tls_codec::Deserialize as _;

/// The length of an Ed25519 key, in bytes.
const KEY_BYTES: usize = 32;

/// An outcome of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be stored. Of a group message, whether it is a commit or a proposal.
    Accepted(bool),
    /// REASON_MALFORMED_PAYLOAD.
    Malformed,
    /// REASON_INVALID_KEY_PACKAGE.
    Invalid,
}

/// Ours on a group message.
#[must_use]
pub fn of_group_message(input: &[u8]) -> Verdict {
    match Framing::parse(input) {
        Ok(framing) if framing.group_id.len() == GROUP_ID_BYTES => {
            Verdict::Accepted(framing.content_type != ContentType::Application)
        }
        _ => Verdict::Malformed,
    }
}

/// That of openmls on a group message, with the length of the group id that topics need.
#[must_use]
pub fn of_group_message_by_openmls(input: &[u8]) -> Verdict {
    let message = MlsMessageIn::tls_deserialize(&mut &input[..]).ok();
    match message.and_then(|message| message.try_into_protocol_message().ok()) {
        Some(message) if message.group_id().as_slice().len() == GROUP_ID_BYTES => {
            Verdict::Accepted(message.content_type() != TheirContentType::Application)
        }
        _ => Verdict::Malformed,
    }
}

/// Ours on a key package at a time in seconds since the Unix epoch.
#[must_use]
pub fn of_key_package(input: &[u8], now_seconds: u64) -> Verdict {
    match ParsedKeyPackage::parse(input) {
        Err(_) => Verdict::Malformed,
        Ok(parsed) => match parsed.validate(now_seconds) {
            Ok(_) => Verdict::Accepted(false),
            Err(_) => Verdict::Invalid,
        },
    }
}

/// That of openmls on a key package, with the length of the key that topics need and the credential of JOIN-004.
#[must_use]
pub fn of_key_package_by_openmls(input: &[u8]) -> Verdict {
    let Ok(package) = KeyPackageIn::tls_deserialize_exact(input) else {
        return Verdict::Malformed;
    };
    let claimed = package.unverified_credential();
    if claimed.signature_key.as_slice().len() != KEY_BYTES {
        return Verdict::Malformed;
    }
    let names_an_inbox = BasicCredential::try_from(claimed.credential)
        .is_ok_and(|credential| MlsCredential::decode(credential.identity()).is_ok());
    let provider = OpenMlsRustCrypto::default();
    match package.validate(provider.crypto(), ProtocolVersion::Mls10) {
        Ok(_) if names_an_inbox => Verdict::Accepted(false),
        _ => Verdict::Invalid,
    }
}

//! Why a well-formed value is not true.

use crate::certificates::{CertificateError, EvidenceError};

/// The binding of the chapter's cross-field validation that a value breaks. It rejects the complete containing value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerificationError {
    /// Another conversation is named.
    #[error("{0} names another conversation")]
    ForeignConversation(&'static str),
    /// Another membership is named or embedded.
    #[error("{0} names another membership")]
    ForeignMembership(&'static str),
    /// An agent that must be a member is none.
    #[error("the {0} is not a member")]
    NotAMember(&'static str),
    /// A stated hash is not that of what it names.
    #[error("the {0} does not recompute")]
    WrongHash(&'static str),
    /// A version that must be copied was not.
    #[error("{0} does not carry the version it must copy")]
    ForeignVersion(&'static str),
    /// The anchor shown is not the one the record was made under.
    #[error("the Router anchor is not the one the record names")]
    WrongAnchor,
    /// The value does not belong at the position.
    #[error("{0} does not extend the position")]
    WrongPosition(&'static str),
    /// One known hash is null and the other is not.
    #[error("a catch-up request knows both a record and an anchor, or neither")]
    HalfPosition,
    /// A certificate does not hold.
    #[error("{what}: {source}")]
    Certificate {
        /// Which certificate.
        what: &'static str,
        /// Why not.
        source: CertificateError,
    },
    /// A catch-up attestation is no evidence.
    #[error("attestation: {0}")]
    Attestation(#[from] EvidenceError),
    /// A catch-up attestation does not attest this response by this sender.
    #[error("the attestation is about something else: {0}")]
    ForeignAttestation(&'static str),
}

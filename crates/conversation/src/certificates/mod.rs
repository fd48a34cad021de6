//! Evidence and certificates: thresholds, the verification of one signed statement, the map of signers, and the
//! certificate that is its canonical form.
//!
//! Statement kinds are never interchangeable, whatever their counts: a [`SignerMap`] holds statements about one
//! [`Subject`], and a subject says what kind of statement speaks about it.
//!
//! May depend on [`crate::values`] and [`crate::membership`].

mod evidence;
mod evidence_memory;
mod signer_map;
mod threshold;
mod verify;

pub use evidence::{EvidenceError, Subject, VerifiedEvidence, verify_evidence};
pub use evidence_memory::EvidenceMemory;
pub use signer_map::{Merge, SignerMap, WrongSubject};
pub use threshold::{CertificateRule, conversion_votes, faults, quorum, readiness_answers};
pub use verify::{CertificateError, verify_certificate};

//! The verification of a certificate's array of evidence.

use conclave_harness::signed_message::EncodedSignedMessage;

use super::{CertificateRule, EvidenceError, EvidenceMemory, SignerMap, Subject, verify_evidence};
use crate::membership::Membership;
use crate::values::EvidenceMessages;

/// Why an array of evidence is no certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// More entries than members.
    #[error("{entries} entries for {members} members")]
    TooMany {
        /// How many entries there are.
        entries: usize,
        /// How many members there are.
        members: usize,
    },
    /// An entry is no evidence of a member.
    #[error("entry {index}: {source}")]
    Evidence {
        /// Which entry, from 0.
        index: usize,
        /// What is wrong with it.
        #[source]
        source: EvidenceError,
    },
    /// An entry is of another kind or about another value.
    #[error("entry {index} is a statement about something else")]
    WrongSubject {
        /// Which entry, from 0.
        index: usize,
    },
    /// An entry's signer does not come strictly after the one before.
    #[error("entry {index} is a repeated signer or out of order")]
    OutOfOrder {
        /// Which entry, from 0.
        index: usize,
    },
    /// Too few signers, or not the one that must be among them.
    #[error("{entries} signers do not complete the certificate")]
    Incomplete {
        /// How many signers there are.
        entries: usize,
    },
}

/// Verifies an array of evidence as a complete certificate about `subject`.
///
/// Counts and order are checked before any signature.
///
/// # Errors
/// [`CertificateError`] names the first failing entry.
pub fn verify_certificate(
    messages: &EvidenceMessages,
    subject: Subject,
    rule: &CertificateRule,
    membership: &Membership,
    memory: &mut EvidenceMemory,
) -> Result<SignerMap, CertificateError> {
    let (entries, members) = (messages.len(), membership.len());
    if entries > members {
        return Err(CertificateError::TooMany { entries, members });
    }
    if entries < rule.signers_min(members) {
        return Err(CertificateError::Incomplete { entries });
    }
    let senders = || messages.iter().map(EncodedSignedMessage::sender);
    if let Some(index) = senders()
        .zip(senders().skip(1))
        .position(|(earlier, later)| earlier >= later)
    {
        return Err(CertificateError::OutOfOrder { index: index + 1 });
    }
    let mut signers = SignerMap::new(subject);
    for (index, message) in messages.iter().enumerate() {
        // A verified statement's signer is its message's sender, whose order was just checked.
        let evidence = verify_evidence(message, membership, memory)
            .map_err(|source| CertificateError::Evidence { index, source })?;
        signers
            .merge(evidence)
            .map_err(|_| CertificateError::WrongSubject { index })?;
    }
    if signers.satisfies(rule, members) {
        Ok(signers)
    } else {
        Err(CertificateError::Incomplete { entries })
    }
}

//! Re-anchors with their certificate, and the anchor a record is shown with.

use super::VerificationError;
use super::action::verify_genesis_anchor;
use crate::certificates::{CertificateRule, EvidenceMemory, SignerMap, Subject, verify_certificate};
use crate::membership::Membership;
use crate::values::{
    AnchorHash, CompletedReanchor, CompletedReanchorKind, ReanchorBody, ReanchorCertificate, RouterAnchor,
};

/// A re-anchor that a quorum of one membership voted for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedCompletedReanchor {
    value: CompletedReanchor,
    votes: SignerMap,
}

impl VerifiedCompletedReanchor {
    /// Verifies a completed re-anchor. That it follows the right anchor at the right record is the caller's to compare.
    ///
    /// # Errors
    /// [`VerificationError`] names the binding that fails.
    pub fn verify(
        value: CompletedReanchor,
        membership: &Membership,
        memory: &mut EvidenceMemory,
    ) -> Result<Self, VerificationError> {
        verify_body(&value.reanchor, membership)?;
        if value.reanchor.hash() != value.anchor_hash {
            return Err(VerificationError::WrongHash("anchor hash"));
        }
        if value.certificate.anchor_hash != value.anchor_hash {
            return Err(VerificationError::WrongHash(
                "anchor hash of the re-anchor certificate",
            ));
        }
        let version = value.reanchor.sharness_version;
        if value.sharness_version != version || value.certificate.sharness_version != version {
            return Err(VerificationError::ForeignVersion("the completed re-anchor"));
        }
        let subject = Subject::Reanchor(value.anchor_hash);
        let votes = verify_certificate(
            &value.certificate.votes,
            subject,
            &CertificateRule::Reanchor,
            membership,
            memory,
        )
        .map_err(|source| VerificationError::Certificate {
            what: "re-anchor certificate",
            source,
        })?;
        Ok(Self { value, votes })
    }

    /// The completed re-anchor of a body and the votes for it; none while they do not complete it or the body is not of
    /// this membership.
    pub fn assemble(body: ReanchorBody, votes: SignerMap, membership: &Membership) -> Option<Self> {
        let anchor_hash = body.hash();
        let complete = votes.subject() == Subject::Reanchor(anchor_hash)
            && votes.satisfies(&CertificateRule::Reanchor, membership.len())
            && votes.iter().all(|vote| membership.contains(vote.signer()));
        if !complete || verify_body(&body, membership).is_err() {
            return None;
        }
        let sharness_version = body.sharness_version;
        let certificate = ReanchorCertificate::assemble(sharness_version, &votes)?;
        let kind = CompletedReanchorKind;
        let value = CompletedReanchor {
            sharness_version,
            kind,
            anchor_hash,
            reanchor: body,
            certificate,
        };
        Some(Self { value, votes })
    }

    /// The completed re-anchor.
    pub fn value(&self) -> &CompletedReanchor {
        &self.value
    }

    /// The completed re-anchor itself, no longer known to be verified.
    pub fn into_value(self) -> CompletedReanchor {
        self.value
    }

    /// The new anchor.
    pub fn anchor_hash(&self) -> &AnchorHash {
        &self.value.anchor_hash
    }

    /// The body.
    pub fn body(&self) -> &ReanchorBody {
        &self.value.reanchor
    }

    /// The votes.
    pub fn votes(&self) -> &SignerMap {
        &self.votes
    }
}

fn verify_body(body: &ReanchorBody, membership: &Membership) -> Result<(), VerificationError> {
    if body.conversation_id != *membership.conversation_id() {
        return Err(VerificationError::ForeignConversation("the re-anchor"));
    }
    if body.membership_hash != *membership.hash() {
        return Err(VerificationError::ForeignMembership("the re-anchor"));
    }
    Ok(())
}

/// An anchor of one membership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedRouterAnchor {
    value: RouterAnchor,
    hash: AnchorHash,
}

impl VerifiedRouterAnchor {
    /// Verifies the anchor a record is shown with.
    ///
    /// # Errors
    /// [`VerificationError`] names the binding that fails.
    pub fn verify(
        value: RouterAnchor,
        membership: &Membership,
        memory: &mut EvidenceMemory,
    ) -> Result<Self, VerificationError> {
        match value {
            RouterAnchor::Genesis(body) => {
                verify_genesis_anchor(&body, membership)?;
                Ok(Self {
                    hash: body.hash(),
                    value: RouterAnchor::Genesis(body),
                })
            }
            RouterAnchor::Completed(completed) => {
                VerifiedCompletedReanchor::verify(*completed, membership, memory).map(Self::from)
            }
        }
    }

    /// An anchor that was verified before.
    pub(super) fn known(value: RouterAnchor) -> Self {
        Self {
            hash: value.to_body().hash(),
            value,
        }
    }

    /// The anchor.
    pub fn value(&self) -> &RouterAnchor {
        &self.value
    }

    /// The hash of the anchor's body.
    pub fn hash(&self) -> &AnchorHash {
        &self.hash
    }
}

impl From<VerifiedCompletedReanchor> for VerifiedRouterAnchor {
    fn from(completed: VerifiedCompletedReanchor) -> Self {
        Self {
            hash: *completed.anchor_hash(),
            value: completed.into_value().into(),
        }
    }
}

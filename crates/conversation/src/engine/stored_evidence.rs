//! Stored evidence, verified: every row is filed under its signer and about its subject.

use conclave_harness::{EncodedSignedMessage, UnverifiedSignature};

use super::error::Corruption;
use super::stored::{Trust, corrupt, require};
use crate::certificates::{Merge, SignerMap, Subject, verify_evidence};
use crate::membership::Membership;
use crate::store::Snapshot;
use crate::store::rows::{EvidenceKind, EvidenceRow};
use crate::values::AnchorHash;
use crate::verification::VerifiedRecordCore;

/// The votes kept for a re-anchor candidate.
pub(super) fn load_reanchor_votes(
    rows: &Snapshot,
    anchor: &AnchorHash,
    membership: &Membership,
    trust: &mut Trust<'_>,
) -> Result<SignerMap, Corruption> {
    let subject = Subject::Reanchor(*anchor);
    StoredEvidence::decode(
        rows,
        EvidenceKind::Reanchor,
        &anchor.to_string(),
        subject,
        membership,
    )?
    .verify(membership, trust)
}

/// The evidence kept about one subject, decoded and not verified.
pub(super) struct StoredEvidence {
    subject: Subject,
    messages: Vec<(EvidenceRow, EncodedSignedMessage)>,
}

impl StoredEvidence {
    /// The signatures kept on a record's action.
    pub(super) fn signatures(
        rows: &Snapshot,
        record: &VerifiedRecordCore,
        membership: &Membership,
    ) -> Result<Self, Corruption> {
        let id = record.action_hash().to_string();
        Self::decode(
            rows,
            EvidenceKind::Action,
            &id,
            record.action_subject(),
            membership,
        )
    }

    /// The votes kept for a record.
    pub(super) fn votes(
        rows: &Snapshot,
        record: &VerifiedRecordCore,
        membership: &Membership,
    ) -> Result<Self, Corruption> {
        let id = record.hash().to_string();
        Self::decode(
            rows,
            EvidenceKind::Durability,
            &id,
            record.durability_subject(),
            membership,
        )
    }

    fn decode(
        rows: &Snapshot,
        kind: EvidenceKind,
        id: &str,
        subject: Subject,
        membership: &Membership,
    ) -> Result<Self, Corruption> {
        let prefix = EvidenceRow::below(&membership.conversation_id().to_string(), kind, id);
        let mut messages = Vec::new();
        for row in rows.below::<EvidenceRow>(&prefix)? {
            let message = EncodedSignedMessage::from_canonical_bytes(row.canonical_evidence.as_bytes())
                .map_err(|error| corrupt(&row, error))?;
            messages.push((row, message));
        }
        Ok(Self { subject, messages })
    }

    /// The signatures that the platform may verify.
    pub(super) fn unverified(&self, membership: &Membership) -> impl Iterator<Item = UnverifiedSignature> {
        self.messages
            .iter()
            .filter_map(|(_, message)| message.unverified_signature(membership.card(&message.sender())?))
    }

    /// The evidence by signer, if every message is evidence about the subject.
    pub(super) fn verify(
        self,
        membership: &Membership,
        trust: &mut Trust<'_>,
    ) -> Result<SignerMap, Corruption> {
        let mut signers = SignerMap::new(self.subject);
        for (row, message) in self.messages {
            let evidence =
                verify_evidence(&message, membership, trust.memory).map_err(|error| corrupt(&row, error))?;
            require(
                &row,
                row.evidence_key == evidence.signer().to_string(),
                "the key is not the signer",
            )?;
            let merged = signers.merge(evidence).map_err(|error| corrupt(&row, error))?;
            require(&row, merged == Merge::Added, "the signer is there twice")?;
        }
        Ok(signers)
    }
}

//! Stored evidence, verified: every row is filed under its signer and about its subject.

use conclave_harness::EncodedSignedMessage;

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
    let (subject, signers) = (anchor.to_string(), SignerMap::new(Subject::Reanchor(*anchor)));
    load_evidence(rows, EvidenceKind::Reanchor, &subject, signers, membership, trust)
}

/// The signatures kept on a record's action.
pub(super) fn load_signatures(
    rows: &Snapshot,
    record: &VerifiedRecordCore,
    membership: &Membership,
    trust: &mut Trust<'_>,
) -> Result<SignerMap, Corruption> {
    let subject = record.action_hash().to_string();
    let signers = SignerMap::new(record.action_subject());
    load_evidence(rows, EvidenceKind::Action, &subject, signers, membership, trust)
}

/// The votes kept for a record.
pub(super) fn load_votes(
    rows: &Snapshot,
    record: &VerifiedRecordCore,
    membership: &Membership,
    trust: &mut Trust<'_>,
) -> Result<SignerMap, Corruption> {
    let subject = record.hash().to_string();
    let signers = SignerMap::new(record.durability_subject());
    load_evidence(
        rows,
        EvidenceKind::Durability,
        &subject,
        signers,
        membership,
        trust,
    )
}

fn load_evidence(
    rows: &Snapshot,
    kind: EvidenceKind,
    subject: &str,
    mut signers: SignerMap,
    membership: &Membership,
    trust: &mut Trust<'_>,
) -> Result<SignerMap, Corruption> {
    let prefix = EvidenceRow::below(&membership.conversation_id().to_string(), kind, subject);
    for row in rows.below::<EvidenceRow>(&prefix)? {
        let message = EncodedSignedMessage::from_canonical_bytes(row.canonical_evidence.as_bytes())
            .map_err(|error| corrupt(&row, error))?;
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

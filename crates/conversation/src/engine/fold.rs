//! One action on its way to a certified record, and the rows it is kept in.

use super::text::{canonical, message_text};
use crate::certificates::{CertificateRule, SignerMap, Subject, VerifiedEvidence};
use crate::membership::Membership;
use crate::store::rows::{EvidenceKind, EvidenceRow, ProposalLockRow, StagedRecordRow};
use crate::verification::{
    VerifiedActionCertifiedRecord, VerifiedCertifiedRecord, VerifiedRecordCore, VerifiedRouterAnchor,
};

/// What is known of one locked or certified action.
#[derive(Clone, Debug)]
pub(super) struct Fold {
    /// The action, as the record it becomes.
    pub(super) record: VerifiedRecordCore,
    /// Its action signatures.
    pub(super) signatures: SignerMap,
    /// The votes for its record.
    pub(super) votes: SignerMap,
    /// Whether the record is held durably.
    pub(super) staged: bool,
    /// Its place in the certified chain.
    pub(super) ordinal: Option<u64>,
}

impl Fold {
    /// An action nobody signed yet.
    pub(super) fn new(record: VerifiedRecordCore) -> Self {
        Fold {
            signatures: SignerMap::new(record.action_subject()),
            votes: SignerMap::new(record.durability_subject()),
            record,
            staged: false,
            ordinal: None,
        }
    }

    /// Whether the action's signatures complete its certificate.
    pub(super) fn action_complete(&self, membership: &Membership) -> bool {
        self.signatures
            .satisfies(&self.record.action_rule(), membership.len())
    }

    /// Whether the votes complete the record's certificate.
    pub(super) fn durable(&self, membership: &Membership) -> bool {
        self.votes
            .satisfies(&CertificateRule::Durability, membership.len())
    }

    /// The record with its action certificate, once complete.
    pub(super) fn action_certified(
        &self,
        anchor: &VerifiedRouterAnchor,
        membership: &Membership,
    ) -> Option<VerifiedActionCertifiedRecord> {
        VerifiedActionCertifiedRecord::assemble(
            self.record.clone(),
            anchor,
            self.signatures.clone(),
            membership,
        )
    }

    /// The record with both certificates, once complete.
    pub(super) fn certified(
        &self,
        anchor: &VerifiedRouterAnchor,
        membership: &Membership,
    ) -> Option<VerifiedCertifiedRecord> {
        let action_certified = self.action_certified(anchor, membership)?;
        VerifiedCertifiedRecord::assemble(action_certified, self.votes.clone(), membership)
    }

    /// Every statement held, as rows.
    pub(super) fn evidence_rows(&self) -> Vec<EvidenceRow> {
        self.signatures
            .iter()
            .chain(self.votes.iter())
            .filter_map(|held| evidence_row(&self.record, held))
            .collect()
    }

    /// The record's row.
    pub(super) fn staged_row(&self) -> StagedRecordRow {
        staged_row(&self.record)
    }

    /// The lock on the action.
    pub(super) fn lock_row(&self) -> ProposalLockRow {
        lock_row(&self.record)
    }
}

/// The row of a record core.
pub(super) fn staged_row(record: &VerifiedRecordCore) -> StagedRecordRow {
    staged_row_of_text(record, canonical(record.core()))
}

/// The row of a record core whose canonical text is known.
pub(super) fn staged_row_of_text(
    record: &VerifiedRecordCore,
    canonical_record_core: String,
) -> StagedRecordRow {
    let core = record.core();
    StagedRecordRow {
        conversation_id: core.conversation_id().to_string(),
        record_hash: record.hash().to_string(),
        previous_record_hash: core.previous_record_hash().map(ToString::to_string),
        membership_hash: record.membership_hash().to_string(),
        anchor_hash: record.anchor_hash().to_string(),
        action_hash: record.action_hash().to_string(),
        author_agent_id: record.author().to_string(),
        post_id: core.post_intent().post_id.to_string(),
        canonical_record_core,
    }
}

/// The row that locks a record's action at its predecessor.
pub(super) fn lock_row(record: &VerifiedRecordCore) -> ProposalLockRow {
    let previous = record.core().previous_record_hash().map(ToString::to_string);
    ProposalLockRow {
        conversation_id: record.core().conversation_id().to_string(),
        predecessor_key: previous.clone().unwrap_or_default(),
        previous_record_hash: previous,
        action_hash: record.action_hash().to_string(),
        canonical_action_core: canonical(&record.core().to_action()),
    }
}

/// The row of a statement about a record or its action; none for a statement about something else.
pub(super) fn evidence_row(record: &VerifiedRecordCore, evidence: &VerifiedEvidence) -> Option<EvidenceRow> {
    let (evidence_kind, subject_id) = match evidence.subject() {
        Subject::Action(hash) => (EvidenceKind::Action, hash.to_string()),
        Subject::Record { record_hash, .. } => (EvidenceKind::Durability, record_hash.to_string()),
        Subject::Reanchor(_) | Subject::CatchUp => return None,
    };
    Some(EvidenceRow {
        conversation_id: record.core().conversation_id().to_string(),
        evidence_kind,
        subject_id,
        evidence_key: evidence.signer().to_string(),
        canonical_evidence: message_text(evidence.encoded()),
    })
}

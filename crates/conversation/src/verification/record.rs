//! Records: their cores, and the cores with one or both certificates.

use conclave_harness::identifiers::AgentId;
use conclave_harness::wire_version::WireVersion;

use super::action::{verify_genesis, verify_post};
use super::{Position, VerificationError, VerifiedAction, VerifiedRouterAnchor};
use crate::certificates::{CertificateRule, EvidenceMemory, SignerMap, Subject, verify_certificate};
use crate::membership::Membership;
use crate::values::{
    ActionCertificate, ActionCertifiedRecord, ActionCertifiedRecordKind, ActionHash, AnchorHash,
    CertifiedRecord, CertifiedRecordKind, DurabilityCertificate, MembershipHash, RecordCore, RecordHash,
    RouterAnchor,
};

/// A record core whose every binding holds under one membership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedRecordCore {
    core: RecordCore,
    hash: RecordHash,
}

impl VerifiedRecordCore {
    /// Verifies a record core under a membership.
    ///
    /// # Errors
    /// [`VerificationError`] names the binding that fails.
    pub fn verify(core: RecordCore, membership: &Membership) -> Result<Self, VerificationError> {
        let (anchor_hash, action_hash, version) = match &core {
            RecordCore::Genesis(core) => {
                if core.membership != *membership.descriptor() {
                    return Err(VerificationError::ForeignMembership("the record core"));
                }
                let anchor_hash = verify_genesis(&core.action, membership)?;
                (anchor_hash, core.action.hash(), core.action.sharness_version)
            }
            RecordCore::Post(core) => {
                if core.membership_hash != *membership.hash() {
                    return Err(VerificationError::ForeignMembership("the record core"));
                }
                let anchor_hash = verify_post(&core.action, membership)?;
                (anchor_hash, core.action.hash(), core.action.sharness_version)
            }
        };
        if core.sharness_version() != version {
            return Err(VerificationError::ForeignVersion("the record core"));
        }
        if *core.anchor_hash() != anchor_hash {
            return Err(VerificationError::WrongHash("anchor hash of the record core"));
        }
        if *core.action_hash() != action_hash {
            return Err(VerificationError::WrongHash("action hash"));
        }
        Ok(Self {
            hash: core.hash(),
            core,
        })
    }

    /// The record core of a verified action, true of the same membership.
    pub fn of_action(action: VerifiedAction) -> Self {
        let anchor_hash = *action.anchor_hash();
        let core = RecordCore::of_action(action.into_core(), anchor_hash);
        Self {
            hash: core.hash(),
            core,
        }
    }

    /// The core.
    pub fn core(&self) -> &RecordCore {
        &self.core
    }

    /// The record's hash.
    pub fn hash(&self) -> &RecordHash {
        &self.hash
    }

    /// The action's hash.
    pub fn action_hash(&self) -> &ActionHash {
        self.core.action_hash()
    }

    /// The anchor it was made under.
    pub fn anchor_hash(&self) -> &AnchorHash {
        self.core.anchor_hash()
    }

    /// Where in a history the record belongs: its predecessor and its anchor.
    pub fn position(&self) -> Position {
        Position {
            record_hash: self.core.previous_record_hash().copied(),
            anchor_hash: *self.anchor_hash(),
        }
    }

    /// The membership the record is true of.
    pub fn membership_hash(&self) -> &MembershipHash {
        // The intent's binding to conversation and membership is part of what was verified.
        &self.core.post_intent().membership_hash
    }

    /// The author.
    pub fn author(&self) -> &AgentId {
        &self.core.post_intent().author_agent_id
    }

    /// The version every wrapper and certificate copies.
    pub fn sharness_version(&self) -> WireVersion {
        self.core.sharness_version()
    }

    /// What completes the action's certificate.
    pub fn action_rule(&self) -> CertificateRule {
        match &self.core {
            RecordCore::Genesis(_) => CertificateRule::GenesisAction,
            RecordCore::Post(core) => CertificateRule::PostAction {
                author: core.action.post_intent.author_agent_id,
            },
        }
    }

    /// What signatures on the record's action are about.
    pub fn action_subject(&self) -> Subject {
        Subject::Action(*self.action_hash())
    }

    /// What votes for the record's durability are about.
    pub fn durability_subject(&self) -> Subject {
        Subject::Record {
            record_hash: self.hash,
            conversation_id: *self.core.conversation_id(),
            membership_hash: *self.membership_hash(),
        }
    }
}

/// A record whose action is completely certified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedActionCertifiedRecord {
    record: VerifiedRecordCore,
    anchor: RouterAnchor,
    signatures: SignerMap,
}

impl VerifiedActionCertifiedRecord {
    /// Verifies a record with its action certificate. That it extends the right position is the caller's to compare.
    ///
    /// # Errors
    /// [`VerificationError`] names the binding that fails.
    pub fn verify(
        value: ActionCertifiedRecord,
        membership: &Membership,
        memory: &mut EvidenceMemory,
    ) -> Result<Self, VerificationError> {
        let ActionCertifiedRecord {
            sharness_version,
            kind: _,
            record_hash,
            record_core,
            router_anchor,
            action_certificate,
        } = value;
        let record = VerifiedRecordCore::verify(record_core, membership)?;
        if *record.hash() != record_hash {
            return Err(VerificationError::WrongHash("record hash"));
        }
        let version = record.sharness_version();
        if sharness_version != version || action_certificate.sharness_version != version {
            return Err(VerificationError::ForeignVersion("the action-certified record"));
        }
        if action_certificate.action_hash != *record.action_hash() {
            return Err(VerificationError::WrongHash(
                "action hash of the action certificate",
            ));
        }
        let anchor = VerifiedRouterAnchor::verify(router_anchor, membership, memory)?;
        check_anchor(&record, &anchor)?;
        let signatures = verify_certificate(
            &action_certificate.signatures,
            record.action_subject(),
            &record.action_rule(),
            membership,
            memory,
        )
        .map_err(|source| VerificationError::Certificate {
            what: "action certificate",
            source,
        })?;
        Ok(Self {
            record,
            anchor: anchor.value().clone(),
            signatures,
        })
    }

    /// The record of a core, its anchor and the signatures on its action; none while they do not complete it.
    pub fn assemble(
        record: VerifiedRecordCore,
        anchor: &VerifiedRouterAnchor,
        signatures: SignerMap,
        membership: &Membership,
    ) -> Option<Self> {
        let complete = check_anchor(&record, anchor).is_ok()
            && *record.membership_hash() == *membership.hash()
            && signatures.subject() == record.action_subject()
            && signatures.satisfies(&record.action_rule(), membership.len())
            && signatures
                .iter()
                .all(|signature| membership.contains(signature.signer()));
        complete.then(|| Self {
            record,
            anchor: anchor.value().clone(),
            signatures,
        })
    }

    /// The record core.
    pub fn record(&self) -> &VerifiedRecordCore {
        &self.record
    }

    /// The anchor.
    pub fn anchor(&self) -> &RouterAnchor {
        &self.anchor
    }

    /// The anchor, known to be verified.
    pub fn verified_anchor(&self) -> VerifiedRouterAnchor {
        VerifiedRouterAnchor::known(self.anchor.clone())
    }

    /// The signatures on the action.
    pub fn signatures(&self) -> &SignerMap {
        &self.signatures
    }

    /// The value to send or store.
    pub fn to_value(&self) -> ActionCertifiedRecord {
        let sharness_version = self.record.sharness_version();
        ActionCertifiedRecord {
            sharness_version,
            kind: ActionCertifiedRecordKind,
            record_hash: self.record.hash,
            record_core: self.record.core.clone(),
            router_anchor: self.anchor.clone(),
            action_certificate: ActionCertificate::assemble(sharness_version, &self.signatures)
                .expect("a complete certificate has signers"),
        }
    }
}

/// GENESIS is shown with the very anchor it embeds; the hashes say so for POST too.
fn check_anchor(record: &VerifiedRecordCore, anchor: &VerifiedRouterAnchor) -> Result<(), VerificationError> {
    let genesis_elsewhere =
        matches!(record.core, RecordCore::Genesis(_)) && !matches!(anchor.value(), RouterAnchor::Genesis(_));
    if genesis_elsewhere || anchor.hash() != record.anchor_hash() {
        return Err(VerificationError::WrongAnchor);
    }
    Ok(())
}

/// A record with both certificates complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedCertifiedRecord {
    action_certified: VerifiedActionCertifiedRecord,
    votes: SignerMap,
}

impl VerifiedCertifiedRecord {
    /// Verifies a record with both certificates. That it extends the right position is the caller's to compare.
    ///
    /// # Errors
    /// [`VerificationError`] names the binding that fails.
    pub fn verify(
        value: CertifiedRecord,
        membership: &Membership,
        memory: &mut EvidenceMemory,
    ) -> Result<Self, VerificationError> {
        let CertifiedRecord {
            sharness_version,
            kind: _,
            action_certified_record,
            durability_certificate,
        } = value;
        let action_certified =
            VerifiedActionCertifiedRecord::verify(action_certified_record, membership, memory)?;
        let record = &action_certified.record;
        let version = record.sharness_version();
        if sharness_version != version || durability_certificate.sharness_version != version {
            return Err(VerificationError::ForeignVersion("the certified record"));
        }
        if durability_certificate.record_hash != record.hash {
            return Err(VerificationError::WrongHash(
                "record hash of the durability certificate",
            ));
        }
        let votes = verify_certificate(
            &durability_certificate.votes,
            record.durability_subject(),
            &CertificateRule::Durability,
            membership,
            memory,
        )
        .map_err(|source| VerificationError::Certificate {
            what: "durability certificate",
            source,
        })?;
        Ok(Self {
            action_certified,
            votes,
        })
    }

    /// The certified record of an action-certified one and the votes for it; none while they do not complete it.
    pub fn assemble(
        action_certified: VerifiedActionCertifiedRecord,
        votes: SignerMap,
        membership: &Membership,
    ) -> Option<Self> {
        let record = &action_certified.record;
        let complete = *record.membership_hash() == *membership.hash()
            && votes.subject() == record.durability_subject()
            && votes.satisfies(&CertificateRule::Durability, membership.len())
            && votes.iter().all(|vote| membership.contains(vote.signer()));
        complete.then_some(Self {
            action_certified,
            votes,
        })
    }

    /// The record with its signatures.
    pub fn action_certified(&self) -> &VerifiedActionCertifiedRecord {
        &self.action_certified
    }

    /// The record core.
    pub fn record(&self) -> &VerifiedRecordCore {
        &self.action_certified.record
    }

    /// The record core as a value.
    pub fn record_core(&self) -> &RecordCore {
        &self.action_certified.record.core
    }

    /// The signatures on the action.
    pub fn signatures(&self) -> &SignerMap {
        &self.action_certified.signatures
    }

    /// The votes for durability.
    pub fn votes(&self) -> &SignerMap {
        &self.votes
    }

    /// The core, the signatures on the action and the votes for durability.
    pub fn into_parts(self) -> (VerifiedRecordCore, SignerMap, SignerMap) {
        let VerifiedActionCertifiedRecord {
            record, signatures, ..
        } = self.action_certified;
        (record, signatures, self.votes)
    }

    /// The position after the record.
    pub fn position_after(&self) -> Position {
        Position {
            record_hash: Some(*self.record().hash()),
            anchor_hash: *self.record().anchor_hash(),
        }
    }

    /// The value to send or store.
    pub fn to_value(&self) -> CertifiedRecord {
        let sharness_version = self.record().sharness_version();
        CertifiedRecord {
            sharness_version,
            kind: CertifiedRecordKind,
            action_certified_record: self.action_certified.to_value(),
            durability_certificate: DurabilityCertificate::assemble(sharness_version, &self.votes)
                .expect("a complete certificate has signers"),
        }
    }
}

//! The mergeable map behind a certificate: at most one statement a member, all about one subject.

use conclave_harness::identifiers::AgentId;
use conclave_harness::wire_version::WireVersion;

use super::{CertificateRule, Subject, VerifiedEvidence};
use crate::ordered::OrderedMap;
use crate::values::{
    ActionCertificate, ActionCertificateKind, DurabilityCertificate, DurabilityCertificateKind,
    EvidenceMessages, ReanchorCertificate, ReanchorCertificateKind,
};

/// What a merge did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// The signer was new.
    Added,
    /// The same bytes are held already.
    Existing,
    /// Other bytes of the same signer are held; they are kept and the new ones are not.
    Different,
}

/// Evidence about something else than the map's subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the statement is about something else")]
pub struct WrongSubject;

/// Verified statements about one subject, by signer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignerMap {
    subject: Subject,
    signers: OrderedMap<AgentId, VerifiedEvidence>,
}

impl SignerMap {
    /// An empty map about `subject`.
    pub fn new(subject: Subject) -> Self {
        Self {
            subject,
            signers: OrderedMap::new(),
        }
    }

    /// What the statements are about.
    pub fn subject(&self) -> Subject {
        self.subject
    }

    /// Adds a statement; the first of a signer stays.
    ///
    /// # Errors
    /// [`WrongSubject`] for a statement of another kind or about another value.
    pub fn merge(&mut self, evidence: VerifiedEvidence) -> Result<Merge, WrongSubject> {
        if evidence.subject() != self.subject || self.subject == Subject::CatchUp {
            return Err(WrongSubject);
        }
        match self.signers.get(evidence.signer()) {
            Some(held) if held.encoded() == evidence.encoded() => Ok(Merge::Existing),
            Some(_) => Ok(Merge::Different),
            None => {
                self.signers.insert(*evidence.signer(), evidence);
                Ok(Merge::Added)
            }
        }
    }

    /// How many members have signed.
    pub fn len(&self) -> usize {
        self.signers.len()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.signers.is_empty()
    }

    /// Whether `member` has signed.
    pub fn contains(&self, member: &AgentId) -> bool {
        self.signers.contains_key(member)
    }

    /// The statement of `member`.
    pub fn get(&self, member: &AgentId) -> Option<&VerifiedEvidence> {
        self.signers.get(member)
    }

    /// The statements, ascending by signer.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &VerifiedEvidence> {
        self.signers.values()
    }

    /// Whether the signers complete a certificate under `rule` among `members` members.
    pub fn satisfies(&self, rule: &CertificateRule, members: usize) -> bool {
        let of_the_rule = matches!(
            (rule, self.subject),
            (
                CertificateRule::GenesisAction | CertificateRule::PostAction { .. },
                Subject::Action(_)
            ) | (CertificateRule::Durability, Subject::Record { .. })
                | (CertificateRule::Reanchor, Subject::Reanchor(_))
        );
        of_the_rule
            && (rule.signers_min(members)..=members).contains(&self.len())
            && rule
                .required_signer()
                .is_none_or(|required| self.contains(required))
    }

    fn messages(&self) -> Option<EvidenceMessages> {
        EvidenceMessages::new(self.iter().map(|evidence| evidence.encoded().clone()).collect())
    }
}

impl ActionCertificate {
    /// The canonical form of a map of action signatures; none if it is empty or about something else.
    ///
    /// `sharness_version` is that of the action, never the caller's own.
    pub fn assemble(sharness_version: WireVersion, signers: &SignerMap) -> Option<Self> {
        let Subject::Action(action_hash) = signers.subject else {
            return None;
        };
        Some(Self {
            sharness_version,
            kind: ActionCertificateKind,
            action_hash,
            signatures: signers.messages()?,
        })
    }
}

impl DurabilityCertificate {
    /// The canonical form of a map of durability votes; none if it is empty or about something else.
    ///
    /// `sharness_version` is that of the record, never the caller's own.
    pub fn assemble(sharness_version: WireVersion, signers: &SignerMap) -> Option<Self> {
        let Subject::Record { record_hash, .. } = signers.subject else {
            return None;
        };
        Some(Self {
            sharness_version,
            kind: DurabilityCertificateKind,
            record_hash,
            votes: signers.messages()?,
        })
    }
}

impl ReanchorCertificate {
    /// The canonical form of a map of re-anchor votes; none if it is empty or about something else.
    ///
    /// `sharness_version` is that of the re-anchor body, never the caller's own.
    pub fn assemble(sharness_version: WireVersion, signers: &SignerMap) -> Option<Self> {
        let Subject::Reanchor(anchor_hash) = signers.subject else {
            return None;
        };
        Some(Self {
            sharness_version,
            kind: ReanchorCertificateKind,
            anchor_hash,
            votes: signers.messages()?,
        })
    }
}

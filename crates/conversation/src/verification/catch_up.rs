//! Catch-up: requests, and the attested answers to them.

use conclave_harness::identifiers::AgentId;
use conclave_harness::signed_message::EncodedSignedMessage;

use super::{Position, VerificationError, VerifiedCertifiedRecord, VerifiedCompletedReanchor};
use crate::certificates::{EvidenceMemory, VerifiedEvidence, verify_evidence};
use crate::membership::Membership;
use crate::values::{
    CatchUpAttestationStatement, CatchUpIncomplete, CatchUpItem, CatchUpItemHash, CatchUpItemKind,
    CatchUpPage, CatchUpRequest, EvidenceStatement,
};

/// A request of a member about its own position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedCatchUpRequest(CatchUpRequest);

impl VerifiedCatchUpRequest {
    /// Verifies a request that arrived from `sender`: it asks for itself, about this membership.
    ///
    /// # Errors
    /// [`VerificationError`] names the binding that fails.
    pub fn verify(
        request: CatchUpRequest,
        sender: &AgentId,
        membership: &Membership,
    ) -> Result<Self, VerificationError> {
        verify_request(&request, membership)?;
        if request.requester_agent_id != *sender {
            return Err(VerificationError::NotAMember("requester on another's behalf"));
        }
        Ok(Self(request))
    }

    /// The request.
    pub fn value(&self) -> &CatchUpRequest {
        &self.0
    }

    /// The position asked about; none before GENESIS.
    pub fn position(&self) -> Option<Position> {
        position(&self.0)
    }
}

/// The item of a verified page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifiedCatchUpItem {
    /// A record that extends the position.
    CertifiedRecord(Box<VerifiedCertifiedRecord>),
    /// A re-anchor at the position.
    CompletedReanchor(Box<VerifiedCompletedReanchor>),
}

/// A member's answer that carries the next item of the requested position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedCatchUpPage {
    request: CatchUpRequest,
    item: VerifiedCatchUpItem,
    has_more: bool,
    attestation: VerifiedEvidence,
}

impl VerifiedCatchUpPage {
    /// Verifies a page that arrived from `sender`. That the request is one of ours is the caller's to compare.
    ///
    /// # Errors
    /// [`VerificationError`] names the binding that fails.
    pub fn verify(
        page: CatchUpPage,
        sender: &AgentId,
        membership: &Membership,
        memory: &mut EvidenceMemory,
    ) -> Result<Self, VerificationError> {
        let CatchUpPage {
            sharness_version: _,
            kind: _,
            request,
            item,
            has_more,
            attestation,
        } = page;
        verify_request(&request, membership)?;
        let (item_kind, item_hash) = match &item {
            CatchUpItem::CertifiedRecord(record) => {
                let hash = CatchUpItemHash::Record(record.action_certified_record.record_hash);
                (CatchUpItemKind::CertifiedRecord, hash)
            }
            CatchUpItem::CompletedReanchor(completed) => (
                CatchUpItemKind::CompletedReanchor,
                CatchUpItemHash::Anchor(completed.anchor_hash),
            ),
        };
        let expected = Answer {
            request: &request,
            item_kind,
            item_hash: Some(item_hash),
            has_more,
        };
        let attestation = expected.verify_attestation(&attestation, sender, membership, memory)?;
        let item = match item {
            CatchUpItem::CertifiedRecord(record) => {
                let record = VerifiedCertifiedRecord::verify(*record, membership, memory)?;
                let before = record.record().position();
                if !follows(&request, &before, before.record_hash.is_none()) {
                    return Err(VerificationError::WrongPosition("the record"));
                }
                VerifiedCatchUpItem::CertifiedRecord(Box::new(record))
            }
            CatchUpItem::CompletedReanchor(completed) => {
                let completed = VerifiedCompletedReanchor::verify(*completed, membership, memory)?;
                let body = completed.body();
                let before = Position {
                    record_hash: Some(body.selected_record_hash),
                    anchor_hash: body.previous_anchor_hash,
                };
                if !follows(&request, &before, false) {
                    return Err(VerificationError::WrongPosition("the re-anchor"));
                }
                VerifiedCatchUpItem::CompletedReanchor(Box::new(completed))
            }
        };
        Ok(Self {
            request,
            item,
            has_more,
            attestation,
        })
    }

    /// The request answered.
    pub fn request(&self) -> &CatchUpRequest {
        &self.request
    }

    /// The next item.
    pub fn item(&self) -> &VerifiedCatchUpItem {
        &self.item
    }

    /// The next item, taken out.
    pub fn into_item(self) -> VerifiedCatchUpItem {
        self.item
    }

    /// The responder's hint that more follows.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Who answered, and its signature on the answer.
    pub fn attestation(&self) -> &VerifiedEvidence {
        &self.attestation
    }
}

/// A member's answer that it cannot supply a next item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedCatchUpIncomplete {
    request: CatchUpRequest,
    attestation: VerifiedEvidence,
}

impl VerifiedCatchUpIncomplete {
    /// Verifies an answer that arrived from `sender`. That the request is one of ours is the caller's to compare.
    ///
    /// # Errors
    /// [`VerificationError`] names the binding that fails.
    pub fn verify(
        incomplete: CatchUpIncomplete,
        sender: &AgentId,
        membership: &Membership,
        memory: &mut EvidenceMemory,
    ) -> Result<Self, VerificationError> {
        let CatchUpIncomplete {
            sharness_version: _,
            kind: _,
            request,
            attestation,
        } = incomplete;
        verify_request(&request, membership)?;
        let expected = Answer {
            request: &request,
            item_kind: CatchUpItemKind::Incomplete,
            item_hash: None,
            has_more: false,
        };
        let attestation = expected.verify_attestation(&attestation, sender, membership, memory)?;
        Ok(Self { request, attestation })
    }

    /// The request answered.
    pub fn request(&self) -> &CatchUpRequest {
        &self.request
    }

    /// Who answered, and its signature on the answer.
    pub fn attestation(&self) -> &VerifiedEvidence {
        &self.attestation
    }
}

/// What an attestation must say.
struct Answer<'a> {
    request: &'a CatchUpRequest,
    item_kind: CatchUpItemKind,
    item_hash: Option<CatchUpItemHash>,
    has_more: bool,
}

impl Answer<'_> {
    fn verify_attestation(
        &self,
        attestation: &EncodedSignedMessage,
        sender: &AgentId,
        membership: &Membership,
        memory: &mut EvidenceMemory,
    ) -> Result<VerifiedEvidence, VerificationError> {
        let evidence = verify_evidence(attestation, membership, memory)?;
        let EvidenceStatement::CatchUpAttestation(statement) = evidence.statement() else {
            return Err(VerificationError::ForeignAttestation(
                "not a catch-up attestation",
            ));
        };
        let CatchUpAttestationStatement {
            signer_agent_id,
            request,
            item_kind,
            item_hash,
            has_more,
            ..
        } = statement.as_ref();
        if signer_agent_id != sender {
            return Err(VerificationError::ForeignAttestation(
                "its signer did not send the response",
            ));
        }
        if request != self.request {
            return Err(VerificationError::ForeignAttestation("another request"));
        }
        if (*item_kind, *item_hash) != (self.item_kind, self.item_hash) {
            return Err(VerificationError::ForeignAttestation("another item"));
        }
        if *has_more != self.has_more {
            return Err(VerificationError::ForeignAttestation("another hint"));
        }
        Ok(evidence)
    }
}

fn verify_request(request: &CatchUpRequest, membership: &Membership) -> Result<(), VerificationError> {
    if request.conversation_id != *membership.conversation_id() {
        return Err(VerificationError::ForeignConversation("the catch-up request"));
    }
    if request.membership_hash != *membership.hash() {
        return Err(VerificationError::ForeignMembership("the catch-up request"));
    }
    if !membership.contains(&request.requester_agent_id) {
        return Err(VerificationError::NotAMember("requester"));
    }
    if request.known_record_hash.is_some() != request.known_anchor_hash.is_some() {
        return Err(VerificationError::HalfPosition);
    }
    Ok(())
}

fn position(request: &CatchUpRequest) -> Option<Position> {
    Some(Position {
        record_hash: Some(request.known_record_hash?),
        anchor_hash: request.known_anchor_hash?,
    })
}

/// Whether an item that belongs at `before` is the next one of the requested position.
fn follows(request: &CatchUpRequest, before: &Position, is_genesis: bool) -> bool {
    match position(request) {
        None => is_genesis,
        Some(position) => position == *before,
    }
}

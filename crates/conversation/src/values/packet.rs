//! What the sealed body of an outer message may hold.

use conclave_harness::signed_message::EncodedSignedMessage;
use conclave_harness::wire_version::WireVersions;

use super::closed::{ClosedValue, ValueError, closed_value, kind_union};
use super::{
    ActionCertifiedRecord, ActionCore, CatchUpIncomplete, CatchUpPage, CatchUpRequest, CertifiedRecord,
    CompletedReanchor,
};

closed_value! {
    /// An author's candidate for the next record. Its outer sender is the author; its outer signature is no evidence.
    pub struct ActionProposal (ActionProposalKind = "action_proposal") {
        /// The candidate.
        pub action: ActionCore,
    }
}

kind_union! {
    /// Every packet that travels directly in a sealed body.
    pub enum DirectPacket {
        /// A candidate action.
        ActionProposal(ActionProposal),
        /// A record with its action certificate.
        ActionCertifiedRecord(ActionCertifiedRecord),
        /// A record with both certificates.
        CertifiedRecord(CertifiedRecord),
        /// A completed re-anchor.
        CompletedReanchor(CompletedReanchor),
        /// A catch-up request.
        CatchUpRequest(CatchUpRequest),
        /// A catch-up answer with an item.
        CatchUpPage(CatchUpPage),
        /// A catch-up answer without one.
        CatchUpIncomplete(CatchUpIncomplete),
    }
}

impl ClosedValue for EncodedSignedMessage {
    const NAME: &'static str = "EncodedSignedMessage";
    /// The bound of the Identity layer, which alone says what is inside.
    const DEPTH_MAX: usize = conclave_harness::canonical_json::DEPTH_MAX_IDENTITY;
}

/// The opened body of an outer message: one of two disjoint representations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plaintext {
    /// A packet.
    Packet(DirectPacket),
    /// One stable inner evidence message, not yet verified.
    Evidence(Box<EncodedSignedMessage>),
}

/// Why a plaintext is neither of its two representations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("neither a direct packet ({packet}) nor one signed message ({message})")]
pub struct PlaintextError {
    /// Why it is no packet.
    pub packet: ValueError,
    /// Why it is no signed message.
    pub message: ValueError,
}

impl Plaintext {
    /// Decodes an opened body: a [`DirectPacket`] first, and one [`EncodedSignedMessage`] if that fails.
    ///
    /// # Errors
    /// [`PlaintextError`] when it is neither. That is its sender's fault: ignore the message, process the next.
    pub fn decode(bytes: &[u8]) -> Result<Self, PlaintextError> {
        Self::decode_over(&WireVersions::history(), bytes)
    }

    /// As [`decode`](Self::decode), over another set of versions.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_over(versions: &WireVersions, bytes: &[u8]) -> Result<Self, PlaintextError> {
        let packet = match DirectPacket::decode_over(versions, bytes) {
            Ok(packet) => return Ok(Self::Packet(packet)),
            Err(error) => error,
        };
        match EncodedSignedMessage::decode_over(versions, bytes) {
            Ok(message) => Ok(Self::Evidence(Box::new(message))),
            Err(message) => Err(PlaintextError { packet, message }),
        }
    }

    /// The canonical bytes to seal.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Packet(packet) => packet.encode(),
            Self::Evidence(message) => ClosedValue::encode(message.as_ref()),
        }
    }
}

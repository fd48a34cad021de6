//! Asking for the next item of a history and answering with exactly one.

use conclave_harness::identifiers::AgentId;
use conclave_harness::signed_message::EncodedSignedMessage;

use super::closed::{closed_value, kind_union, required_nullable};
use super::{AnchorHash, CertifiedRecord, CompletedReanchor, ConversationId, MembershipHash, RecordHash};

closed_value! {
    /// "What follows this position?" Both known hashes are null (before GENESIS) or neither is.
    pub struct CatchUpRequest (CatchUpRequestKind = "catch_up_request") {
        /// The conversation.
        pub conversation_id: ConversationId,
        /// Its membership.
        pub membership_hash: MembershipHash,
        /// Who asks.
        pub requester_agent_id: AgentId,
        /// The last record the requester holds.
        #[serde(deserialize_with = "required_nullable")]
        pub known_record_hash: Option<RecordHash>,
        /// The anchor the requester is at.
        #[serde(deserialize_with = "required_nullable")]
        pub known_anchor_hash: Option<AnchorHash>,
    }
}

kind_union! {
    /// The one next item of a history.
    pub enum CatchUpItem {
        /// A record that extends the position.
        CertifiedRecord(CertifiedRecord),
        /// A re-anchor at the position.
        CompletedReanchor(CompletedReanchor),
    }
}

closed_value! {
    /// The answer that carries an item.
    pub struct CatchUpPage (CatchUpPageKind = "catch_up_page") {
        /// The request, byte for byte.
        pub request: CatchUpRequest,
        /// The next item.
        pub item: CatchUpItem,
        /// A hint about progress, never about completeness.
        pub has_more: bool,
        /// The responder's signed `CatchUpAttestationStatement`.
        pub attestation: EncodedSignedMessage,
    }
}

closed_value! {
    /// The answer of a member that can supply no next item.
    pub struct CatchUpIncomplete (CatchUpIncompleteKind = "catch_up_incomplete") {
        /// The request, byte for byte.
        pub request: CatchUpRequest,
        /// The responder's signed `CatchUpAttestationStatement`.
        pub attestation: EncodedSignedMessage,
    }
}

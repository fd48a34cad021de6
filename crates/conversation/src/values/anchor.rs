//! The bodies that bind a conversation to one Router instance.

use conclave_harness::identifiers::RouterInstanceId;

use super::closed::{closed_value, kind_union};
use super::{AnchorHash, ConversationId, MembershipHash, RecordHash};

closed_value! {
    /// The first anchor of a conversation. Its version is the descriptor's, never the sender's own.
    pub struct GenesisAnchorBody (GenesisAnchorBodyKind = "genesis_anchor_body") {
        /// The conversation.
        pub conversation_id: ConversationId,
        /// Its membership.
        pub membership_hash: MembershipHash,
        /// The Router instance of an omitted-cursor poll.
        pub router_instance_id: RouterInstanceId,
    }
}

closed_value! {
    /// A later anchor at a certified head. Its version is the head's.
    pub struct ReanchorBody (ReanchorBodyKind = "reanchor_body") {
        /// The conversation.
        pub conversation_id: ConversationId,
        /// Its membership.
        pub membership_hash: MembershipHash,
        /// The anchor this one follows.
        pub previous_anchor_hash: AnchorHash,
        /// The certified head this anchor is placed at.
        pub selected_record_hash: RecordHash,
        /// The new Router instance.
        pub router_instance_id: RouterInstanceId,
    }
}

kind_union! {
    /// Either anchor body.
    pub enum AnchorBody {
        /// The first.
        Genesis(GenesisAnchorBody),
        /// A later one.
        Reanchor(ReanchorBody),
    }
}

impl AnchorBody {
    /// The Router instance this anchor binds.
    pub fn router_instance_id(&self) -> &RouterInstanceId {
        match self {
            Self::Genesis(body) => &body.router_instance_id,
            Self::Reanchor(body) => &body.router_instance_id,
        }
    }
}

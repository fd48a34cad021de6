//! How a member is told that a conversation exists. Of the deployment's binding, not of the chapter.

use conclave_harness::agent_card::EncodedAgentCard;
use conclave_harness::wire_version::WireVersion;

use super::closed::{ClosedValue, Kinded, kind_literal};
use super::membership_descriptor::between_two_and_32;
use super::{ConversationId, Versions};

kind_literal!(ConversationInvitationKind = "conversation_invitation");

/// Names a conversation and its members to one of them. Creates no conversation state.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConversationInvitation {
    /// The wire version this value was created under.
    pub sharness_version: WireVersion,
    /// The literal that names this schema.
    pub kind: ConversationInvitationKind,
    /// The conversation, which re-derives from the members.
    pub conversation_id: ConversationId,
    /// Every member's card, ascending by decoded AgentId.
    #[serde(deserialize_with = "between_two_and_32")]
    pub members: Vec<EncodedAgentCard>,
}

impl Kinded for ConversationInvitation {
    const KIND: &'static str = "conversation_invitation";
}

impl ClosedValue for ConversationInvitation {
    const NAME: &'static str = "ConversationInvitation";
    const BYTES_MAX: usize = super::INVITATION_BYTES_MAX;
}

impl Versions for ConversationInvitation {
    fn each_version(&self, visit: &mut dyn FnMut(WireVersion)) {
        visit(self.sharness_version);
        self.members.each_version(visit);
    }
}

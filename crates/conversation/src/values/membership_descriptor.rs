//! Who a conversation is between: the version-free identity input and the descriptor with every card.

use conclave_harness::agent_card::EncodedAgentCard;
use conclave_harness::identifiers::AgentId;
use conclave_harness::wire_version::WireVersion;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::closed::{ClosedValue, Kinded, closed_value, kind_literal};
use super::{ConversationId, MEMBERS_MAX, MEMBERS_MIN, Versions};

kind_literal!(ConversationIdentityKind = "conversation_identity");

/// The preimage of a [`ConversationId`]: the members' ids and no version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConversationIdentityInput {
    /// The literal that names this schema.
    pub kind: ConversationIdentityKind,
    /// 2 to 32 ids, strictly ascending by decoded bytes.
    #[serde(deserialize_with = "between_two_and_32")]
    pub member_agent_ids: Vec<AgentId>,
}

impl Kinded for ConversationIdentityInput {
    const KIND: &'static str = "conversation_identity";
}

impl ClosedValue for ConversationIdentityInput {
    const NAME: &'static str = "ConversationIdentityInput";
}

impl Versions for ConversationIdentityInput {
    fn each_version(&self, _visit: &mut dyn FnMut(WireVersion)) {}
}

closed_value! {
    /// A conversation's members as their signed cards. Its version is that of the first card.
    pub struct MembershipDescriptor (MembershipDescriptorKind = "membership_descriptor") {
        /// The conversation, which re-derives from the cards.
        pub conversation_id: ConversationId,
        /// 2 to 32 cards, strictly ascending by decoded AgentId.
        #[serde(deserialize_with = "between_two_and_32")]
        pub members: Vec<EncodedAgentCard>,
    }
}

/// Deserializes an array of [`MEMBERS_MIN`] to [`MEMBERS_MAX`] entries.
pub(super) fn between_two_and_32<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let entries = Vec::<T>::deserialize(deserializer)?;
    if (MEMBERS_MIN..=MEMBERS_MAX).contains(&entries.len()) {
        Ok(entries)
    } else {
        Err(D::Error::custom(format_args!(
            "{} members, expected {MEMBERS_MIN} to {MEMBERS_MAX}",
            entries.len()
        )))
    }
}

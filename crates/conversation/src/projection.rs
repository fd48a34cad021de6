//! What a host sees of a certified record ("Pending runtime delivery").

use conclave_harness::wire_version::WireVersion;
use serde::{Deserialize, Serialize};

use crate::address::{agent_address, canonical_address};
use crate::membership::Membership;
use crate::values::{ClosedValue, Content, GROUP_MEMBERS_MIN, PostId, Versions, kind_literal, kind_union};
use crate::verification::VerifiedCertifiedRecord;

kind_literal!(DirectMessageKind = "direct");
kind_literal!(GroupMessageKind = "group");

/// A post of a conversation of two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DirectMessage {
    /// The literal that names this schema.
    pub kind: DirectMessageKind,
    /// Unique for the author.
    pub post_id: PostId,
    /// `agent:` and the other agent, who for a received post is the author.
    pub address: String,
    /// `agent:` and the author.
    pub sender: String,
    /// What is said.
    pub content: Content,
}

/// A post of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupMessage {
    /// The literal that names this schema.
    pub kind: GroupMessageKind,
    /// Unique for the author.
    pub post_id: PostId,
    /// The canonical address with all members.
    pub address: String,
    /// `agent:` and the author.
    pub sender: String,
    /// What is said.
    pub content: Content,
    /// All members as `agent:` addresses, in the order of the group's address.
    pub members: Vec<String>,
}

macro_rules! unversioned {
    ($($name:ident = $kind:literal),+) => {$(
        impl crate::values::Kinded for $name {
            const KIND: &'static str = $kind;
        }

        impl ClosedValue for $name {
            const NAME: &'static str = stringify!($name);
        }

        impl Versions for $name {
            fn each_version(&self, _visit: &mut dyn FnMut(WireVersion)) {}
        }
    )+};
}

unversioned!(DirectMessage = "direct", GroupMessage = "group");

kind_union! {
    /// The message projection of a certified record.
    pub enum Message {
        /// Of a conversation of two.
        Direct(DirectMessage),
        /// Of a group.
        Group(GroupMessage),
    }
}

impl Message {
    /// What the member `recipient` sees of a record. None if `recipient` is no member, or wrote it: authors get no
    /// delivery of their own posts.
    pub fn for_recipient(
        record: &VerifiedCertifiedRecord,
        membership: &Membership,
        recipient: &conclave_harness::identifiers::AgentId,
    ) -> Option<Self> {
        let intent = record.record_core().post_intent();
        if intent.author_agent_id == *recipient
            || record.record_core().conversation_id() != membership.conversation_id()
        {
            return None;
        }
        let author = membership.card(&intent.author_agent_id)?;
        let address = canonical_address(membership, recipient)?;
        let sender = agent_address(author.agent_name());
        let (post_id, content) = (intent.post_id, intent.content.clone());
        Some(if membership.len() < GROUP_MEMBERS_MIN {
            DirectMessage {
                kind: DirectMessageKind,
                post_id,
                address,
                sender,
                content,
            }
            .into()
        } else {
            let members = membership.names().into_iter().map(agent_address).collect();
            GroupMessage {
                kind: GroupMessageKind,
                post_id,
                address,
                sender,
                content,
                members,
            }
            .into()
        })
    }
}

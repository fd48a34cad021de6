//! The exact thing a member signs: an intent at one place of one history.

use conclave_harness::wire_version::WireVersion;

use super::closed::{closed_value, kind_union, required_null};
use super::{
    AnchorHash, ConversationId, GenesisAnchorBody, MembershipDescriptor, MembershipHash, Null, PostIntent,
    PostIntentHash, RecordHash,
};

closed_value! {
    /// The first post of a conversation, with everything the conversation is founded on.
    pub struct GenesisActionCore (GenesisActionKind = "GENESIS") {
        /// The conversation.
        pub conversation_id: ConversationId,
        /// All members.
        pub membership: MembershipDescriptor,
        /// The first anchor.
        pub anchor: GenesisAnchorBody,
        /// Nothing precedes GENESIS.
        #[serde(deserialize_with = "required_null")]
        pub previous_record_hash: Null,
        /// The post.
        pub post_intent: PostIntent,
        /// The post's hash.
        pub post_intent_hash: PostIntentHash,
    }
}

closed_value! {
    /// A post that extends one certified record under the current anchor.
    pub struct PostActionCore (PostActionKind = "POST") {
        /// The conversation.
        pub conversation_id: ConversationId,
        /// Its membership, held since GENESIS.
        pub membership_hash: MembershipHash,
        /// The current anchor.
        pub anchor_hash: AnchorHash,
        /// The certified head it extends.
        pub previous_record_hash: RecordHash,
        /// The post.
        pub post_intent: PostIntent,
        /// The post's hash.
        pub post_intent_hash: PostIntentHash,
    }
}

kind_union! {
    /// Either action.
    pub enum ActionCore {
        /// The first post.
        Genesis(GenesisActionCore),
        /// Any later post.
        Post(PostActionCore),
    }
}

impl ActionCore {
    /// The version, that of the author's intent.
    pub fn sharness_version(&self) -> WireVersion {
        match self {
            Self::Genesis(core) => core.sharness_version,
            Self::Post(core) => core.sharness_version,
        }
    }

    /// The conversation the action names.
    pub fn conversation_id(&self) -> &ConversationId {
        match self {
            Self::Genesis(core) => &core.conversation_id,
            Self::Post(core) => &core.conversation_id,
        }
    }

    /// The author's intent.
    pub fn post_intent(&self) -> &PostIntent {
        match self {
            Self::Genesis(core) => &core.post_intent,
            Self::Post(core) => &core.post_intent,
        }
    }

    /// The intent hash the action states.
    pub fn post_intent_hash(&self) -> &PostIntentHash {
        match self {
            Self::Genesis(core) => &core.post_intent_hash,
            Self::Post(core) => &core.post_intent_hash,
        }
    }

    /// The record the action extends; none for GENESIS.
    pub fn previous_record_hash(&self) -> Option<&RecordHash> {
        match self {
            Self::Genesis(_) => None,
            Self::Post(core) => Some(&core.previous_record_hash),
        }
    }
}

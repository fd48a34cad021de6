//! Record cores: an action with its hash, the unit of certified history.

use std::borrow::Cow;

use conclave_harness::wire_version::WireVersion;
use serde::{Deserialize, Deserializer, Serialize};

use super::closed::{ClosedValue, Kinded, closed_value_of_kind, kind_literal};
use super::undecided::Undecided;
use super::{
    ActionCore, ActionHash, AnchorHash, GenesisActionCore, MembershipDescriptor, MembershipHash,
    PostActionCore, PostIntent, RecordHash, Versions,
};

kind_literal!(RecordCoreKind = "record_core");

closed_value_of_kind! {
    /// The first record of a conversation, complete with its membership.
    pub struct GenesisRecordCore (RecordCoreKind = "record_core") {
        /// The same descriptor that the action carries.
        pub membership: MembershipDescriptor,
        /// The hash of the action's genesis anchor.
        pub anchor_hash: AnchorHash,
        /// The action.
        pub action: GenesisActionCore,
        /// The action's hash.
        pub action_hash: ActionHash,
    }
}

closed_value_of_kind! {
    /// Any later record; verified against the membership held since GENESIS.
    pub struct PostRecordCore (RecordCoreKind = "record_core") {
        /// The held membership's hash.
        pub membership_hash: MembershipHash,
        /// The anchor the record was certified under.
        pub anchor_hash: AnchorHash,
        /// The action.
        pub action: PostActionCore,
        /// The action's hash.
        pub action_hash: ActionHash,
    }
}

/// Either record core. Both have the `kind` "record_core"; the action's `kind` tells them apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum RecordCore {
    /// The first record.
    Genesis(Box<GenesisRecordCore>),
    /// Any later record.
    Post(Box<PostRecordCore>),
}

impl<'de> Deserialize<'de> for RecordCore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let value = Undecided::take(deserializer)?;
        let kind = value.kind_of_action().map(Cow::into_owned);
        if kind.as_deref() == Some(GenesisActionCore::KIND) {
            value.decide().map(Self::Genesis)
        } else if kind.as_deref() == Some(PostActionCore::KIND) {
            value.decide().map(Self::Post)
        } else {
            Err(D::Error::custom(
                "the action of a record core is neither GENESIS nor POST",
            ))
        }
    }
}

impl ClosedValue for RecordCore {
    const NAME: &'static str = "RecordCore";
}

impl Versions for RecordCore {
    fn each_version(&self, visit: &mut dyn FnMut(WireVersion)) {
        match self {
            Self::Genesis(core) => core.each_version(visit),
            Self::Post(core) => core.each_version(visit),
        }
    }
}

impl RecordCore {
    /// The record core of an action under an anchor. Copies the version of the action, which is the author's.
    pub fn of_action(action: ActionCore, anchor_hash: AnchorHash) -> Self {
        let action_hash = action.hash();
        match action {
            ActionCore::Genesis(action) => Self::Genesis(Box::new(GenesisRecordCore {
                sharness_version: action.sharness_version,
                kind: RecordCoreKind,
                membership: action.membership.clone(),
                anchor_hash,
                action: *action,
                action_hash,
            })),
            ActionCore::Post(action) => Self::Post(Box::new(PostRecordCore {
                sharness_version: action.sharness_version,
                kind: RecordCoreKind,
                membership_hash: action.membership_hash,
                anchor_hash,
                action: *action,
                action_hash,
            })),
        }
    }

    /// The version, that of the author's intent.
    pub fn sharness_version(&self) -> WireVersion {
        match self {
            Self::Genesis(core) => core.sharness_version,
            Self::Post(core) => core.sharness_version,
        }
    }

    /// The conversation the record's action names.
    pub fn conversation_id(&self) -> &super::ConversationId {
        match self {
            Self::Genesis(core) => &core.action.conversation_id,
            Self::Post(core) => &core.action.conversation_id,
        }
    }

    /// The anchor the record states.
    pub fn anchor_hash(&self) -> &AnchorHash {
        match self {
            Self::Genesis(core) => &core.anchor_hash,
            Self::Post(core) => &core.anchor_hash,
        }
    }

    /// The action hash the record states.
    pub fn action_hash(&self) -> &ActionHash {
        match self {
            Self::Genesis(core) => &core.action_hash,
            Self::Post(core) => &core.action_hash,
        }
    }

    /// The record it extends; none for GENESIS.
    pub fn previous_record_hash(&self) -> Option<&RecordHash> {
        match self {
            Self::Genesis(_) => None,
            Self::Post(core) => Some(&core.action.previous_record_hash),
        }
    }

    /// The author's intent.
    pub fn post_intent(&self) -> &PostIntent {
        match self {
            Self::Genesis(core) => &core.action.post_intent,
            Self::Post(core) => &core.action.post_intent,
        }
    }

    /// The action, as its union.
    pub fn to_action(&self) -> ActionCore {
        match self {
            Self::Genesis(core) => core.action.clone().into(),
            Self::Post(core) => core.action.clone().into(),
        }
    }
}

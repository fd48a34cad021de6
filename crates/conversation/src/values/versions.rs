//! Which wire versions a value and everything nested in it carry.

use conclave_harness::agent_card::EncodedAgentCard;
use conclave_harness::identifiers::{AgentId, RouterInstanceId};
use conclave_harness::signed_message::EncodedSignedMessage;
use conclave_harness::wire_version::WireVersion;

use super::{
    ActionHash, AnchorHash, CatchUpItemHash, CatchUpItemKind, Content, ConversationId, EvidenceMessages,
    MembershipHash, Null, PostId, PostIntentHash, RecordHash,
};

/// Something that may carry wire versions.
pub trait Versions {
    /// Calls `visit` with each version inside, nested cards and signed messages included.
    fn each_version(&self, visit: &mut dyn FnMut(WireVersion));
}

macro_rules! without_version {
    ($($type:ty),+ $(,)?) => {$(
        impl Versions for $type {
            fn each_version(&self, _visit: &mut dyn FnMut(WireVersion)) {}
        }
    )+};
}

without_version! {
    bool, Null, AgentId, RouterInstanceId, ConversationId, MembershipHash, PostId, PostIntentHash, AnchorHash, ActionHash,
    RecordHash, CatchUpItemKind, CatchUpItemHash,
    // What a host says is its own: a member of that name in it is no version of ours.
    Content,
}

impl<T: Versions> Versions for Vec<T> {
    fn each_version(&self, visit: &mut dyn FnMut(WireVersion)) {
        self.iter().for_each(|entry| entry.each_version(visit));
    }
}

impl<T: Versions> Versions for Option<T> {
    fn each_version(&self, visit: &mut dyn FnMut(WireVersion)) {
        self.iter().for_each(|entry| entry.each_version(visit));
    }
}

impl Versions for EvidenceMessages {
    fn each_version(&self, visit: &mut dyn FnMut(WireVersion)) {
        self.iter().for_each(|message| message.each_version(visit));
    }
}

impl Versions for EncodedAgentCard {
    fn each_version(&self, visit: &mut dyn FnMut(WireVersion)) {
        visit(self.unverified_claims().version);
    }
}

impl Versions for EncodedSignedMessage {
    fn each_version(&self, visit: &mut dyn FnMut(WireVersion)) {
        visit(self.version());
    }
}

//! The six hashes and the evidence MessageId ("Canonical encoding and preimages").

use conclave_harness::identifiers::MessageId;
use sha2::{Digest, Sha256};

use super::closed::ClosedValue;
use super::{
    ActionCore, ActionHash, AnchorBody, AnchorHash, ConversationId, ConversationIdentityInput,
    EvidenceStatement, GenesisActionCore, GenesisAnchorBody, MembershipDescriptor, MembershipHash,
    PostActionCore, PostIntent, PostIntentHash, ReanchorBody, RecordCore, RecordHash,
};

/// Every hash of the chapter is separated by this text, the artifact's name and a zero byte.
pub(crate) const HASH_DOMAIN: &str = "org.social-harness/client/v2/";

/// `H(artifact, S, v)` over the value's canonical bytes.
fn hash<V: ClosedValue>(artifact: &str, value: &V) -> [u8; 32] {
    domain(artifact).chain_update(value.encode()).finalize().into()
}

fn domain(artifact: &str) -> Sha256 {
    Sha256::new()
        .chain_update(HASH_DOMAIN)
        .chain_update(artifact)
        .chain_update([0])
}

impl ConversationIdentityInput {
    /// The conversation's identity.
    pub fn hash(&self) -> ConversationId {
        ConversationId::from_bytes(hash("conversation", self))
    }
}

impl MembershipDescriptor {
    /// The membership's hash.
    pub fn hash(&self) -> MembershipHash {
        MembershipHash::from_bytes(hash("membership", self))
    }
}

impl PostIntent {
    /// The intent's hash: excludes predecessor, anchor and all evidence.
    pub fn hash(&self) -> PostIntentHash {
        PostIntentHash::from_bytes(hash("post-intent", self))
    }
}

impl GenesisAnchorBody {
    /// The anchor's hash.
    pub fn hash(&self) -> AnchorHash {
        AnchorHash::from_bytes(hash("anchor", self))
    }
}

impl ReanchorBody {
    /// The anchor's hash.
    pub fn hash(&self) -> AnchorHash {
        AnchorHash::from_bytes(hash("anchor", self))
    }
}

impl AnchorBody {
    /// The anchor's hash.
    pub fn hash(&self) -> AnchorHash {
        AnchorHash::from_bytes(hash("anchor", self))
    }
}

impl GenesisActionCore {
    /// The action's hash: excludes signatures.
    pub fn hash(&self) -> ActionHash {
        ActionHash::from_bytes(hash("action", self))
    }
}

impl PostActionCore {
    /// The action's hash: excludes signatures.
    pub fn hash(&self) -> ActionHash {
        ActionHash::from_bytes(hash("action", self))
    }
}

impl ActionCore {
    /// The action's hash: excludes signatures.
    pub fn hash(&self) -> ActionHash {
        ActionHash::from_bytes(hash("action", self))
    }
}

impl RecordCore {
    /// The record's hash: covers the action's hash, excludes every signature and vote.
    pub fn hash(&self) -> RecordHash {
        RecordHash::from_bytes(hash("record", self))
    }
}

impl EvidenceStatement {
    /// The one MessageId under which this statement's signer may sign it.
    pub fn evidence_message_id(&self) -> MessageId {
        self.message_id_of(&self.encode())
    }

    /// The same, where the statement's canonical bytes are at hand.
    pub(crate) fn message_id_of(&self, encoded: &[u8]) -> MessageId {
        let digest: [u8; 32] = domain("evidence-message-id")
            .chain_update(self.signer_agent_id().as_bytes())
            .chain_update(encoded)
            .finalize()
            .into();
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        MessageId::from_bytes(id)
    }
}

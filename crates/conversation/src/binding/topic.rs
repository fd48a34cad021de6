//! The backend topics of a conversation and of an agent.

use conclave_harness::key::PublicKey;
use sha2::{Digest, Sha256};

use crate::values::ConversationId;

/// Separates the conversation topic from every other hash.
const CONVERSATION_TOPIC_DOMAIN: &[u8] = b"org.social-harness/edge/v1/conversation-topic\0";

/// The topic kind of group messages.
const GROUP_MESSAGE_KIND: u8 = 0x00;
/// The topic kind of welcome messages.
const WELCOME_MESSAGE_KIND: u8 = 0x01;

/// Where a conversation's outer messages are published: `0x00` and a 16-byte group id derived from its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationTopic([u8; 17]);

impl ConversationTopic {
    /// The topic of a conversation.
    pub fn of(conversation: &ConversationId) -> Self {
        let digest = Sha256::new()
            .chain_update(CONVERSATION_TOPIC_DOMAIN)
            .chain_update(conversation.as_bytes())
            .finalize();
        let mut topic = [GROUP_MESSAGE_KIND; 17];
        topic[1..].copy_from_slice(&digest[..16]);
        Self(topic)
    }

    /// The topic's bytes.
    pub const fn as_bytes(&self) -> &[u8; 17] {
        &self.0
    }

    /// The MLS group id, the topic without its kind.
    pub fn group_id(&self) -> [u8; 16] {
        let mut group_id = [0; 16];
        group_id.copy_from_slice(&self.0[1..]);
        group_id
    }
}

/// Where an agent is told of conversations: `0x01` and its 32-byte Ed25519 public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WelcomeTopic([u8; 33]);

impl WelcomeTopic {
    /// The topic of the agent with this key.
    pub fn of(key: &PublicKey) -> Self {
        let mut topic = [WELCOME_MESSAGE_KIND; 33];
        topic[1..].copy_from_slice(key.as_bytes());
        Self(topic)
    }

    /// The topic's bytes.
    pub const fn as_bytes(&self) -> &[u8; 33] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_topic_is_the_kind_and_half_a_separated_hash() {
        let topic = ConversationTopic::of(&ConversationId::from_bytes([7; 32]));
        let mut preimage = b"org.social-harness/edge/v1/conversation-topic\0".to_vec();
        preimage.extend([7; 32]);
        let digest = Sha256::digest(&preimage);
        assert_eq!(topic.as_bytes()[0], 0);
        assert_eq!(topic.as_bytes()[1..], digest[..16]);
        assert_eq!(topic.group_id(), digest[..16]);
    }
}

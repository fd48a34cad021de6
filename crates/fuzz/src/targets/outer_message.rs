//! The framing of a conversation's messages on its topic.

use conclave_conversation::{
    binding::{ConversationTopic, frame_outer_message, parse_outer_message},
    values::ConversationId,
};

/// Whatever is read is written back byte for byte.
pub fn run(data: &[u8]) {
    let topic = ConversationTopic::of(&ConversationId::from_bytes([7; 32]));
    if let Ok(message) = parse_outer_message(&topic, data) {
        assert_eq!(frame_outer_message(&topic, &message), data);
    }
}

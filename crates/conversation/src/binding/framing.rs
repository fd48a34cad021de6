//! An outer message as the group message the backend stores: an MLS PrivateMessage with everything but the group id and
//! the ciphertext fixed.
//!
//! There is one framing of one message: parsing refuses every other, so equal messages are equal envelopes and the
//! backend's idempotency by hash holds for them.

use conclave_harness::canonical_json::CanonicalJsonError;
use conclave_harness::signed_message::{EncodedSignedMessage, SIGNED_MESSAGE_BYTES_MAX};

use super::ConversationTopic;

/// MLS protocol version 1.0.
const MLS_VERSION: [u8; 2] = [0x00, 0x01];
/// `mls_private_message`.
const WIRE_FORMAT: [u8; 2] = [0x00, 0x02];
/// The variable-size header of 16 bytes.
const GROUP_ID_HEADER: u8 = 16;
/// `epoch` is always 0: the harness's seals and signatures take the place of MLS epochs.
const EPOCH: [u8; 8] = [0; 8];
/// `application`.
const CONTENT_TYPE: u8 = 0x01;
/// The headers of empty `authenticated_data` and `encrypted_sender_data`.
const EMPTY_VECTORS: [u8; 2] = [0, 0];
/// Bytes before the ciphertext's header.
const PREFIX_LENGTH: usize = 2 + 2 + 1 + 16 + 8 + 1 + 2;
/// The longest variable-size header in use.
const HEADER_LENGTH_MAX: usize = 4;

/// Most bytes of a framed outer message.
pub const FRAME_BYTES_MAX: usize = PREFIX_LENGTH + HEADER_LENGTH_MAX + SIGNED_MESSAGE_BYTES_MAX;

/// Why bytes are not the framing of an outer message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// The bytes are more than any framed message.
    #[error("{0} bytes, more than {FRAME_BYTES_MAX}")]
    TooLong(usize),
    /// The bytes before the ciphertext are not those of this conversation.
    #[error("the framing before the ciphertext is not that of this conversation")]
    Prefix,
    /// The ciphertext's length header is wrong, not minimal, or does not end at the end.
    #[error("the ciphertext does not fill the rest of the frame")]
    Length,
    /// The ciphertext is no canonical signed message.
    #[error("the ciphertext is no signed message: {0}")]
    Message(#[from] CanonicalJsonError),
}

/// The group message `data` of an outer message on the conversation's topic.
pub fn frame_outer_message(topic: &ConversationTopic, message: &EncodedSignedMessage) -> Vec<u8> {
    let ciphertext = message.to_canonical_bytes();
    let mut frame = prefix(topic);
    frame.extend(length_header(ciphertext.len()));
    frame.extend(ciphertext);
    frame
}

/// The outer message in a group message `data` from the conversation's topic. Nothing about it is verified yet.
///
/// # Errors
/// [`FramingError`] for anything but the one framing of one canonical message. That is its sender's fault: ignore the
/// envelope, process the next.
pub fn parse_outer_message(
    topic: &ConversationTopic,
    data: &[u8],
) -> Result<EncodedSignedMessage, FramingError> {
    if data.len() > FRAME_BYTES_MAX {
        return Err(FramingError::TooLong(data.len()));
    }
    let rest = data
        .strip_prefix(prefix(topic).as_slice())
        .ok_or(FramingError::Prefix)?;
    let header_length = match rest.first() {
        Some(first) => 1 << (first >> 6),
        None => return Err(FramingError::Length),
    };
    let (header, ciphertext) = rest.split_at_checked(header_length).ok_or(FramingError::Length)?;
    if header != length_header(ciphertext.len()) {
        return Err(FramingError::Length);
    }
    Ok(EncodedSignedMessage::from_canonical_bytes(ciphertext)?)
}

fn prefix(topic: &ConversationTopic) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(FRAME_BYTES_MAX.min(4_096));
    prefix.extend(MLS_VERSION);
    prefix.extend(WIRE_FORMAT);
    prefix.push(GROUP_ID_HEADER);
    prefix.extend(topic.group_id());
    prefix.extend(EPOCH);
    prefix.push(CONTENT_TYPE);
    prefix.extend(EMPTY_VECTORS);
    prefix
}

/// The one minimal variable-size header of a length, which here is below 2^30.
fn length_header(length: usize) -> Vec<u8> {
    let bytes = (length as u32).to_be_bytes();
    match length {
        0..=0x3f => vec![bytes[3]],
        0x40..=0x3fff => vec![0x40 | bytes[2], bytes[3]],
        _ => vec![0x80 | bytes[0], bytes[1], bytes[2], bytes[3]],
    }
}

use conclave_conversation::binding::{
    ConversationTopic, FramingError, WelcomeTopic, frame_outer_message, parse_outer_message,
};
use conclave_conversation::test_support::{Agent, Conversation};
use conclave_conversation::values::{ActionHash, ConversationId};
use conclave_harness::identifiers::MessageId;
use conclave_harness::signed_message::{BODY_BYTES_MAX, EncodedSignedMessage, SignedMessage};
use conclave_harness::wire_version::WIRE_VERSION;
use proptest::prelude::*;

fn message(body_length: usize) -> EncodedSignedMessage {
    let agent = Agent::new(0);
    let id = MessageId::from_bytes([1; 16]);
    SignedMessage::sign(
        &agent.card,
        &agent.key,
        &[agent.id()],
        id,
        &vec![7; body_length],
        WIRE_VERSION,
    )
    .unwrap()
    .into_encoded()
}

fn topic() -> ConversationTopic {
    ConversationTopic::of(Conversation::new(2).membership.conversation_id())
}

#[test]
fn a_frame_is_an_mls_private_message_with_everything_but_group_and_ciphertext_fixed() {
    let message = message(10);
    let ciphertext = message.to_canonical_bytes();
    let frame = frame_outer_message(&topic(), &message);
    let mut expected = vec![0, 1, 0, 2, 16];
    expected.extend(topic().group_id());
    expected.extend([0; 8]);
    expected.extend([1, 0, 0]);
    expected.extend([0x40 | (ciphertext.len() >> 8) as u8, ciphertext.len() as u8]);
    expected.extend(&ciphertext);
    assert_eq!(frame, expected);
}

#[test]
fn short_and_long_messages_read_back_from_their_frames() {
    for body_length in [0, 100, 12_000, 13_000, BODY_BYTES_MAX] {
        let message = message(body_length);
        let frame = frame_outer_message(&topic(), &message);
        assert_eq!(parse_outer_message(&topic(), &frame), Ok(message));
    }
}

#[test]
fn any_other_framing_of_a_message_is_refused() {
    let message = message(10);
    let frame = frame_outer_message(&topic(), &message);
    let header = 32;
    let mut longer_header = frame[..header].to_vec();
    longer_header.extend([0x80, 0, frame[header] & 0x3f, frame[header + 1]]);
    longer_header.extend(&frame[header + 2..]);
    assert_eq!(
        parse_outer_message(&topic(), &longer_header),
        Err(FramingError::Length)
    );
    assert_eq!(
        parse_outer_message(&topic(), &[frame.as_slice(), &[0]].concat()),
        Err(FramingError::Length)
    );
    assert_eq!(
        parse_outer_message(&topic(), &frame[..header]),
        Err(FramingError::Length)
    );
    let elsewhere = ConversationTopic::of(&ConversationId::from_bytes([1; 32]));
    assert_eq!(parse_outer_message(&elsewhere, &frame), Err(FramingError::Prefix));
    assert_eq!(parse_outer_message(&topic(), b""), Err(FramingError::Prefix));
}

#[test]
fn topics_name_their_kind_first() {
    let agent = Agent::new(0);
    let welcome = WelcomeTopic::of(&agent.card.public_key());
    assert_eq!(welcome.as_bytes()[0], 1);
    assert_eq!(welcome.as_bytes()[1..], *agent.card.public_key().as_bytes());
    assert_eq!(topic().as_bytes()[0], 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_changed_byte_never_gives_the_same_message(place: prop::sample::Index, other in 1..=255_u8) {
        let evidence = Conversation::new(2).action_signature(0, ActionHash::from_bytes([1; 32]));
        let mut frame = frame_outer_message(&topic(), evidence.encoded());
        let place = place.index(frame.len());
        frame[place] ^= other;
        if let Ok(read) = parse_outer_message(&topic(), &frame) {
            prop_assert_ne!(&read, evidence.encoded());
        }
    }

    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64), keep in 0..40_usize) {
        let frame = frame_outer_message(&topic(), &message(1));
        let mixed = [&frame[..keep], bytes.as_slice()].concat();
        prop_assert!(parse_outer_message(&topic(), &mixed).is_err());
    }
}

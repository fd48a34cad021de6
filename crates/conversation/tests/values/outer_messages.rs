use conclave_conversation::outer_message::{
    OuterMessage, OuterMessageError, open_outer_message, seal_outer_message,
};
use conclave_conversation::test_support::{Agent, Conversation, SECOND_VERSION};
use conclave_conversation::values::*;
use conclave_harness::identifiers::MessageId;
use conclave_harness::randomness::SeededRandomness;
use conclave_harness::sealed_body;
use conclave_harness::signed_message::{EncodedSignedMessage, SignedMessage};
use conclave_harness::wire_version::{WIRE_VERSION, WireVersions};

fn seal(conversation: &Conversation, plaintext: &[u8]) -> EncodedSignedMessage {
    let agent = conversation.agent(0);
    let mut randomness = SeededRandomness::new(1);
    seal_outer_message(
        plaintext,
        &conversation.membership,
        &agent.card,
        &agent.key,
        WIRE_VERSION,
        &mut randomness,
    )
    .unwrap()
    .into_encoded()
}

fn open(
    conversation: &Conversation,
    reader: usize,
    message: &EncodedSignedMessage,
) -> Result<OuterMessage, OuterMessageError> {
    let agent = conversation.agent(reader);
    open_outer_message(
        message,
        &conversation.membership,
        &agent.card,
        &agent.key,
        &WireVersions::live(),
    )
}

/// A message of agent 0 with this body, to everyone unless said otherwise.
fn with_body(conversation: &Conversation, message_id: MessageId, body: &[u8]) -> EncodedSignedMessage {
    let agent = conversation.agent(0);
    let everyone = conversation.membership.agent_ids();
    SignedMessage::sign(&agent.card, &agent.key, &everyone, message_id, body, WIRE_VERSION)
        .unwrap()
        .into_encoded()
}

#[test]
fn every_member_opens_what_one_sealed_the_sender_included() {
    let conversation = Conversation::new(3);
    let packet = Plaintext::Packet(conversation.catch_up_request(0, None).into());
    let evidence = conversation.action_signature(0, ActionHash::from_bytes([1; 32]));
    let evidence = Plaintext::Evidence(Box::new(evidence.encoded().clone()));
    for plaintext in [packet, evidence] {
        let message = seal(&conversation, &plaintext.encode());
        for reader in 0..3 {
            let opened = open(&conversation, reader, &message).unwrap();
            assert_eq!(opened.plaintext, plaintext);
            assert_eq!(opened.sender, conversation.agent(0).id());
            assert_eq!(opened.message_id, message.message_id());
        }
    }
}

// CONV-B10
#[test]
fn a_bad_body_is_refused_and_the_next_message_is_read() {
    let conversation = Conversation::new(3);
    let plaintext = Plaintext::Packet(conversation.catch_up_request(0, None).into()).encode();
    let id = MessageId::from_bytes([7; 16]);
    let sealed = |recipients: &[usize], sender: usize, id: MessageId| {
        let cards: Vec<_> = recipients
            .iter()
            .map(|index| conversation.agent(*index).card.clone())
            .collect();
        let mut randomness = SeededRandomness::new(2);
        sealed_body::seal(
            &plaintext,
            &cards,
            conversation.agent(sender).id(),
            id,
            &mut randomness,
        )
        .unwrap()
    };

    let neither = seal(&conversation, b"{}");
    assert!(matches!(
        open(&conversation, 1, &neither),
        Err(OuterMessageError::Plaintext(_))
    ));
    let noncanonical = seal(&conversation, &[plaintext.as_slice(), b" "].concat());
    assert!(matches!(
        open(&conversation, 1, &noncanonical),
        Err(OuterMessageError::Plaintext(_))
    ));
    for body in [
        plaintext.clone(),
        Vec::new(),
        sealed(&[0, 1], 0, id),
        sealed(&[0, 1, 2], 1, id),
        sealed(&[0, 1, 2], 0, MessageId::from_bytes([8; 16])),
    ] {
        let message = with_body(&conversation, id, &body);
        assert_eq!(open(&conversation, 1, &message), Err(OuterMessageError::Sealed));
    }
    let proper = with_body(&conversation, id, &sealed(&[0, 1, 2], 0, id));
    assert!(open(&conversation, 1, &proper).is_ok());
}

#[test]
fn a_message_of_a_stranger_to_others_or_of_a_version_that_is_not_live_is_refused() {
    let conversation = Conversation::new(3);
    let agent = conversation.agent(0);
    let plaintext = Plaintext::Packet(conversation.catch_up_request(0, None).into()).encode();
    let mut randomness = SeededRandomness::new(3);

    let larger = Conversation::new(4);
    let larger_sender = larger
        .agents
        .iter()
        .find(|other| other.id() == agent.id())
        .unwrap();
    let to_more = seal_outer_message(
        &plaintext,
        &larger.membership,
        &larger_sender.card,
        &larger_sender.key,
        WIRE_VERSION,
        &mut randomness,
    );
    let refused = open(&conversation, 1, &to_more.unwrap().into_encoded());
    assert_eq!(refused, Err(OuterMessageError::ForeignRecipients));

    let old = seal_outer_message(
        &plaintext,
        &conversation.membership,
        &agent.card,
        &agent.key,
        SECOND_VERSION,
        &mut randomness,
    );
    let refused = open(&conversation, 1, &old.unwrap().into_encoded());
    assert_eq!(refused, Err(OuterMessageError::WrongSignature));

    let stranger = Agent::new(9);
    let by_stranger = seal_outer_message(
        &plaintext,
        &conversation.membership,
        &stranger.card,
        &stranger.key,
        WIRE_VERSION,
        &mut randomness,
    );
    assert_eq!(by_stranger, Err(OuterMessageError::NotAMember));
    let everyone = conversation.membership.agent_ids();
    let by_stranger = SignedMessage::sign(
        &stranger.card,
        &stranger.key,
        &everyone,
        MessageId::from_bytes([1; 16]),
        b"",
        WIRE_VERSION,
    );
    let refused = open(&conversation, 1, &by_stranger.unwrap().into_encoded());
    assert_eq!(refused, Err(OuterMessageError::NotAMember));
}

#[test]
fn a_plaintext_that_is_too_long_is_not_sealed() {
    let conversation = Conversation::new(3);
    let agent = conversation.agent(0);
    let plaintext = vec![b'x'; sealed_body::plaintext_length_max(3) + 1];
    let mut randomness = SeededRandomness::new(4);
    let refused = seal_outer_message(
        &plaintext,
        &conversation.membership,
        &agent.card,
        &agent.key,
        WIRE_VERSION,
        &mut randomness,
    );
    assert_eq!(refused, Err(OuterMessageError::NotSigned));
}

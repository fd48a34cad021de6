use conclave_conversation::values::ConversationId;
use conclave_grpc_web::Status;
use conclave_proto::xmtp::backend::v1::MessageHash;

use super::*;

fn instance(byte: u8) -> RouterInstanceId {
    RouterInstanceId::from_bytes([byte; 16])
}

fn topic() -> ConversationTopic {
    ConversationTopic::of(&ConversationId::from_bytes([7; 32]))
}

fn envelope(data: &'static [u8]) -> ClientEnvelope {
    ClientEnvelope {
        payload: Some(Payload::GroupMessage(GroupMessage {
            data: data.into(),
            ..GroupMessage::default()
        })),
    }
}

fn receipt(topic: &[u8], hash: &[u8]) -> EnvelopeMeta {
    EnvelopeMeta {
        cursor: Some(Cursor { sequence_id: 4 }),
        topic: Some(Topic {
            topic: topic.to_vec().into(),
        }),
        message_hash: Some(MessageHash {
            hash: Some(message_hash::Hash::Sha256(hash.to_vec().into())),
        }),
        ..EnvelopeMeta::default()
    }
}

#[test]
fn a_receipt_is_ours_by_topic_and_hash_and_otherwise_sends_us_to_read() {
    let (topic, envelope) = (topic(), envelope(b"data"));
    let hash = Sha256::digest(envelope.encode_to_vec());
    assert_eq!(
        judge_receipt(&receipt(topic.as_bytes(), &hash), &topic, &envelope),
        Receipt::Ours
    );
    assert_eq!(
        judge_receipt(&receipt(topic.as_bytes(), &[0; 32]), &topic, &envelope),
        Receipt::Stored { at: 4 }
    );
    assert_eq!(
        judge_receipt(&receipt(&[1; 33], &hash), &topic, &envelope),
        Receipt::Foreign
    );
    assert_eq!(
        judge_receipt(&EnvelopeMeta::default(), &topic, &envelope),
        Receipt::Foreign
    );
}

#[test]
fn a_refusal_of_another_router_instance_is_its_restart() {
    let refused = |router_instance| CallError {
        status: Status::failed_precondition("another instance"),
        is_stated: true,
        router_instance,
    };
    assert_eq!(
        outcome_of_failure(&refused(Some(instance(2))), &instance(1)),
        SendOutcome::RouterRestarted {
            router_instance_id: instance(2)
        }
    );
    assert_eq!(
        outcome_of_failure(&refused(Some(instance(1))), &instance(1)),
        SendOutcome::TransportFailure
    );
    assert_eq!(
        outcome_of_failure(&refused(None), &instance(1)),
        SendOutcome::TransportFailure
    );
}

// API-284
#[test]
fn only_a_stated_refusal_of_the_message_is_final() {
    let failed = |code, is_stated| CallError {
        status: Status::new(code, ""),
        is_stated,
        router_instance: None,
    };
    for code in [Code::InvalidArgument, Code::OutOfRange, Code::Unimplemented] {
        assert_eq!(
            outcome_of_failure(&failed(code, true), &instance(1)),
            SendOutcome::MessageInvalid
        );
    }
    for unknown in [
        failed(Code::InvalidArgument, false),
        failed(Code::Unavailable, true),
        failed(Code::DeadlineExceeded, false),
        failed(Code::ResourceExhausted, true),
        failed(Code::Internal, true),
    ] {
        assert_eq!(
            outcome_of_failure(&unknown, &instance(1)),
            SendOutcome::TransportFailure
        );
    }
}

#[test]
fn an_invitation_travels_under_the_key_its_topic_is_made_of() {
    let key = conclave_harness::AgentKey::from_seed([3; 32]).public_key();
    let topic = WelcomeTopic::of(&key);
    let Some(Payload::WelcomeMessage(welcome)) = welcome_envelope(&topic, b"sealed").payload else {
        panic!("a welcome");
    };
    let Some(welcome_message::Version::V1(welcome)) = welcome.version else {
        panic!("version 1")
    };
    assert_eq!(welcome.installation_key[..], key.as_bytes()[..]);
    assert_eq!(welcome.data[..], b"sealed"[..]);
    assert!(welcome.hpke_public_key.is_empty() && welcome.welcome_metadata.is_empty());
}

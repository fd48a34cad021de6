//! Offering an envelope to the Router, and reading what became of it (design "conversation binding", Router).

use conclave_conversation::binding::{
    ConversationTopic, WelcomeTopic, frame_outer_message, parse_outer_message,
};
use conclave_conversation::engine::{SendOutcome, Transmit};
use conclave_grpc_web::Code;
use conclave_harness::{EncodedSignedMessage, RouterInstanceId, SignedMessageDigest};
use conclave_proto::xmtp::backend::v1::{
    ClientEnvelope, Cursor, EnvelopeMeta, GroupMessage, PublishRequest, QueryRequest, Topic, TopicQuery,
    WelcomeMessage, client_envelope::Payload, message_hash, publish_service::Publish, query_service::Query,
    welcome_message,
};
use prost::Message as _;
use sha2::{Digest as _, Sha256};

use super::call::{CallError, Deployment};

/// One attempt. Never fails: whatever happens is an outcome the engine has a rule for.
///
/// The envelope and its invitations are one atomic publish (API-220), and a repetition is the same publish again (API-222).
pub(crate) async fn publish(deployment: &Deployment, transmit: Transmit) -> SendOutcome {
    let message = &transmit.message;
    let topic = ConversationTopic::of(&transmit.conversation_id);
    let expected = transmit.expected_router_instance_id;
    let envelope = conversation_envelope(&topic, message);
    let mut envelopes: Vec<_> = transmit
        .invitations
        .iter()
        .map(|invitation| welcome_envelope(&WelcomeTopic::of(&invitation.recipient_key), &invitation.message))
        .collect();
    envelopes.push(envelope.clone());

    match publish_envelopes(deployment, envelopes, &expected).await {
        Err(error) => outcome_of_failure(&error, &expected),
        Ok(Published {
            metas,
            router_instance,
        }) => {
            let router_instance_id = router_instance.unwrap_or(expected);
            let receipt = metas.last().map(|meta| judge_receipt(meta, &topic, &envelope));
            let digest = match receipt {
                Some(Receipt::Ours) => Some(message.digest()),
                Some(Receipt::Stored { at }) => read_back(deployment, &topic, at).await,
                Some(Receipt::Foreign) | None => None,
            };
            match digest {
                Some(digest) => SendOutcome::Accepted {
                    router_instance_id,
                    digest,
                },
                None => SendOutcome::TransportFailure,
            }
        }
    }
}

struct Published {
    metas: Vec<EnvelopeMeta>,
    router_instance: Option<RouterInstanceId>,
}

async fn publish_envelopes(
    deployment: &Deployment,
    envelopes: Vec<ClientEnvelope>,
    expected: &RouterInstanceId,
) -> Result<Published, CallError> {
    let answer = deployment
        .unary_expecting::<Publish>(&PublishRequest { envelopes }, Some(expected))
        .await?;
    Ok(Published {
        metas: answer.message.envelope_metas,
        router_instance: answer.router_instance,
    })
}

/// What the backend stored at a place, when its receipt names another hash than ours.
async fn read_back(
    deployment: &Deployment,
    topic: &ConversationTopic,
    at: u64,
) -> Option<SignedMessageDigest> {
    let query = TopicQuery {
        topic: Some(Topic {
            topic: topic.as_bytes().to_vec().into(),
        }),
        cursor: Some(Cursor {
            sequence_id: at.checked_sub(1)?,
        }),
    };
    let answer = deployment
        .unary::<Query>(&QueryRequest {
            queries: vec![query],
            limit: 1,
        })
        .await
        .ok()?;
    let stored = answer.message.envelopes.into_iter().next()?;
    if stored.meta?.cursor?.sequence_id != at {
        return None;
    }
    match stored.envelope?.payload? {
        Payload::GroupMessage(group) => Some(parse_outer_message(topic, &group.data).ok()?.digest()),
        _ => None,
    }
}

/// The envelope of an outer message.
fn conversation_envelope(topic: &ConversationTopic, message: &EncodedSignedMessage) -> ClientEnvelope {
    let data = frame_outer_message(topic, message).into();
    ClientEnvelope {
        payload: Some(Payload::GroupMessage(GroupMessage {
            data,
            ..GroupMessage::default()
        })),
    }
}

/// The envelope of an invitation. Its topic is its installation key, after the kind.
fn welcome_envelope(topic: &WelcomeTopic, message: &[u8]) -> ClientEnvelope {
    let version = welcome_message::Version::V1(welcome_message::V1 {
        installation_key: topic.as_bytes()[1..].to_vec().into(),
        data: message.to_vec().into(),
        ..welcome_message::V1::default()
    });
    ClientEnvelope {
        payload: Some(Payload::WelcomeMessage(WelcomeMessage {
            version: Some(version),
        })),
    }
}

/// What a receipt says of our envelope.
#[derive(Debug, PartialEq, Eq)]
enum Receipt {
    /// It is the receipt of exactly our bytes.
    Ours,
    /// It is of our topic; the backend encodes the envelope in its own way, so what it stored is to be read.
    Stored {
        /// The sequence id.
        at: u64,
    },
    /// It is of something else.
    Foreign,
}

fn judge_receipt(meta: &EnvelopeMeta, topic: &ConversationTopic, envelope: &ClientEnvelope) -> Receipt {
    if meta
        .topic
        .as_ref()
        .is_none_or(|stored| stored.topic != topic.as_bytes()[..])
    {
        return Receipt::Foreign;
    }
    let ours = Sha256::digest(envelope.encode_to_vec());
    match (&meta.message_hash, meta.cursor) {
        (Some(hash), _) if matches!(&hash.hash, Some(message_hash::Hash::Sha256(stored)) if stored[..] == ours[..]) => {
            Receipt::Ours
        }
        (_, Some(cursor)) => Receipt::Stored {
            at: cursor.sequence_id,
        },
        (_, None) => Receipt::Foreign,
    }
}

/// What a failed publish means.
fn outcome_of_failure(error: &CallError, expected: &RouterInstanceId) -> SendOutcome {
    if let Some(router_instance_id) = error.router_instance.filter(|instance| instance != expected) {
        return SendOutcome::RouterRestarted { router_instance_id };
    }
    match error.status.code {
        Code::InvalidArgument
        | Code::OutOfRange
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::Unimplemented
            if error.is_stated =>
        {
            SendOutcome::MessageInvalid
        }
        _ => SendOutcome::TransportFailure,
    }
}

#[cfg(test)]
#[path = "publish_tests.rs"]
mod tests;

//! The envelopes clients publish: group messages, commits, welcomes, commit-log entries and identity updates of valid
//! shape. Nobody verifies an identity update here.

use bytes::Bytes;
use conclave_proto::xmtp::{
    backend::v1::{
        ClientEnvelope, CommitLogEntry, GroupMessage, WelcomeMessage, client_envelope::Payload,
        welcome_message,
    },
    identity::associations::IdentityUpdate,
    mls::message_contents::PlaintextCommitLogEntry,
};

/// Where an envelope goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Messages of a group.
    Group([u8; 16]),
    /// Welcomes to an installation.
    Installation([u8; 32]),
    /// The commit log of a group.
    CommitLog([u8; 16]),
    /// The association log of an inbox.
    Inbox([u8; 32]),
}

impl Place {
    /// The topic of an envelope that goes here (TOPIC-001).
    pub(super) fn topic(self) -> Bytes {
        let topic = |kind: u8, identifier: &[u8]| [&[kind][..], identifier].concat().into();
        match self {
            Self::Group(group) => topic(0, &group),
            Self::Installation(installation) => topic(1, &installation),
            Self::Inbox(inbox) => topic(2, &inbox),
            Self::CommitLog(group) => topic(4, &group),
        }
    }

    /// An envelope for this place; different numbers give different bytes.
    pub(super) fn envelope(self, number: u64, is_commit: bool) -> ClientEnvelope {
        let payload = match self {
            Self::Group(group) => Payload::GroupMessage(GroupMessage {
                data: private_message(&group, is_commit, &number.to_be_bytes()).into(),
                sender_hmac: Bytes::new(),
                should_push: true,
            }),
            Self::Installation(installation) => {
                let v1 = welcome_message::V1 {
                    installation_key: Bytes::copy_from_slice(&installation),
                    data: Bytes::copy_from_slice(&number.to_be_bytes()),
                    ..Default::default()
                };
                Payload::WelcomeMessage(WelcomeMessage {
                    version: Some(welcome_message::Version::V1(v1)),
                })
            }
            Self::Inbox(inbox) => Payload::IdentityUpdate(IdentityUpdate {
                inbox_id: inbox.iter().map(|byte| format!("{byte:02x}")).collect(),
                client_timestamp_ns: number,
                ..Default::default()
            }),
            Self::CommitLog(group) => {
                let plaintext = PlaintextCommitLogEntry {
                    group_id: Bytes::copy_from_slice(&group),
                    commit_sequence_id: number,
                    ..Default::default()
                };
                Payload::CommitLogEntry(CommitLogEntry {
                    serialized_commit_log_entry: prost::Message::encode_to_vec(&plaintext).into(),
                    signature: None,
                })
            }
        };
        ClientEnvelope {
            payload: Some(payload),
        }
    }
}

/// An MLS PrivateMessage around a ciphertext; everything in it is shorter than 64 bytes.
fn private_message(group: &[u8; 16], is_commit: bool, ciphertext: &[u8; 8]) -> Vec<u8> {
    let content_type = if is_commit { 3 } else { 1 };
    [
        &[0, 1, 0, 2, 16][..],
        group,
        &[0; 8],
        &[content_type, 0, 0, 8],
        ciphertext,
    ]
    .concat()
}

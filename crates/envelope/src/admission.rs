//! Admission of one envelope by its kind (contract section 3.1, API-230). Depends on [`crate::topic`] and
//! [`crate::mls`].
//!
//! An envelope is parsed for its topic and metadata and for nothing else: that a sender is a member, that a signature
//! verifies or that a destination exists is not established here and must not be checked here. Two kinds are checked
//! further unless they are duplicates (API-222), which only storage knows: [`Admitted::unchecked`] is what that takes.
//!
//! What is stored is our own encoding of the decoded envelope (API-211). Every bytes field of the payload and every
//! number of an enum comes back as received. Protobuf fields this schema does not know are dropped, so that two inputs
//! that decode to the same value hash alike.

use bytes::Bytes;
use conclave_proto::xmtp::{
    backend::v1::{
        ClientEnvelope, CommitLogEntry, GroupMessage, WelcomeMessage, client_envelope::Payload,
        publish_error::Reason, welcome_message::Version,
    },
    identity::associations::{self, IdentityUpdate, identity_action::Kind},
    mls::message_contents::PlaintextCommitLogEntry,
};
use prost::Message as _;
use sha2::{Digest as _, Sha256};

use crate::{
    key_package::{MalformedKeyPackage, ParsedKeyPackage},
    mls::{ContentType, Framing, Malformed},
    topic::{Topic, TopicError, TopicKind},
};

/// The hash of stored bytes: SHA-256 (API-211).
pub type MessageHash = [u8; 32];

/// Which retention an envelope has (OPS-001).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retention {
    /// Kept for ever: commits, proposals, identity updates, commit-log entries.
    Exempt,
    /// Group messages that are neither commit nor proposal.
    GroupMessage,
    /// Welcomes.
    Welcome,
    /// Key packages.
    KeyPackage,
}

/// An envelope that may be stored, and everything the backend derives from it before it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    topic: Topic,
    stored: Bytes,
    message_hash: MessageHash,
    is_commit_or_proposal: bool,
    retention: Retention,
    unchecked: Option<Unchecked>,
}

/// What the admission table has checked of an envelope that is no duplicate.
#[derive(Clone, Debug, PartialEq)]
pub enum Unchecked {
    /// A serialised key package that parses: lifetime, credential and signatures, by
    /// [`ParsedKeyPackage::validate`].
    KeyPackage(Bytes),
    /// An identity update: everything but its topic, against the history of its inbox.
    IdentityUpdate(IdentityUpdate),
}

/// A row of the admission table that an envelope fails when it is parsed: INVALID_ARGUMENT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No payload is set, or one this schema does not know.
    #[error("the envelope has no payload")]
    NoPayload,
    /// A Welcome without a version.
    #[error("the Welcome has no version")]
    NoWelcomeVersion,
    /// The identifier of the payload gives no topic (TOPIC-002).
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// The data of a group message is not a PublicMessage or a PrivateMessage.
    #[error(transparent)]
    GroupMessage(#[from] Malformed),
    /// The serialised entry is not a PlaintextCommitLogEntry.
    #[error("the serialised commit-log entry does not decode")]
    CommitLogEntry,
    /// The serialised key package is none, or gives no topic.
    #[error(transparent)]
    KeyPackage(#[from] MalformedKeyPackage),
}

impl Refused {
    /// The reason the admission table names.
    #[must_use]
    pub const fn reason(self) -> Reason {
        Reason::MalformedPayload
    }
}

/// What parsing a payload yields.
struct Derived {
    topic: Topic,
    is_commit_or_proposal: bool,
    retention: Retention,
    unchecked: Option<Unchecked>,
}

impl Admitted {
    /// Admits an envelope, but for what is left [`unchecked`](Admitted::unchecked).
    ///
    /// # Errors
    /// [`Refused`] when it does not parse as the admission table has it.
    pub fn from_client_envelope(envelope: &ClientEnvelope) -> Result<Admitted, Refused> {
        let derived = match envelope.payload.as_ref().ok_or(Refused::NoPayload)? {
            Payload::GroupMessage(message) => derive_group_message(message)?,
            Payload::WelcomeMessage(welcome) => derive_welcome(welcome)?,
            Payload::CommitLogEntry(entry) => derive_commit_log_entry(entry)?,
            Payload::IdentityUpdate(update) => derive_identity_update(update)?,
            Payload::KeyPackage(package) => derive_key_package(&package.key_package_tls_serialized)?,
        };
        let stored = Bytes::from(envelope.encode_to_vec());
        Ok(Admitted {
            topic: derived.topic,
            message_hash: Sha256::digest(&stored).into(),
            stored,
            is_commit_or_proposal: derived.is_commit_or_proposal,
            retention: derived.retention,
            unchecked: derived.unchecked,
        })
    }

    /// The topic it is stored on.
    #[must_use]
    pub const fn topic(&self) -> &Topic {
        &self.topic
    }

    /// The bytes to store: our encoding of the decoded envelope.
    #[must_use]
    pub const fn stored_bytes(&self) -> &Bytes {
        &self.stored
    }

    /// The SHA-256 of the stored bytes; with the topic, the idempotency key.
    #[must_use]
    pub const fn message_hash(&self) -> &MessageHash {
        &self.message_hash
    }

    /// Whether it is a group message that carries a commit or a proposal.
    #[must_use]
    pub const fn is_commit_or_proposal(&self) -> bool {
        self.is_commit_or_proposal
    }

    /// Which retention it has.
    #[must_use]
    pub const fn retention(&self) -> Retention {
        self.retention
    }

    /// What is left to check unless it is a duplicate.
    #[must_use]
    pub const fn unchecked(&self) -> Option<&Unchecked> {
        self.unchecked.as_ref()
    }

    /// How long it is when encoded by us, in bytes: the length of the stored bytes.
    #[must_use]
    pub fn reencoded_bytes(&self) -> usize {
        self.stored.len()
    }
}

fn derive_group_message(message: &GroupMessage) -> Result<Derived, Refused> {
    let framing = Framing::parse(&message.data)?;
    let is_commit_or_proposal = match framing.content_type {
        ContentType::Application => false,
        ContentType::Proposal | ContentType::Commit => true,
    };
    Ok(Derived {
        topic: Topic::from_identifier(TopicKind::GroupMessage, framing.group_id)?,
        is_commit_or_proposal,
        retention: if is_commit_or_proposal {
            Retention::Exempt
        } else {
            Retention::GroupMessage
        },
        unchecked: None,
    })
}

fn derive_welcome(welcome: &WelcomeMessage) -> Result<Derived, Refused> {
    let installation_key = match welcome.version.as_ref().ok_or(Refused::NoWelcomeVersion)? {
        Version::V1(welcome) => &welcome.installation_key,
        Version::WelcomePointer(pointer) => &pointer.installation_key,
    };
    Ok(Derived {
        topic: Topic::from_identifier(TopicKind::Welcome, installation_key)?,
        is_commit_or_proposal: false,
        retention: Retention::Welcome,
        unchecked: None,
    })
}

fn derive_commit_log_entry(entry: &CommitLogEntry) -> Result<Derived, Refused> {
    let plaintext = PlaintextCommitLogEntry::decode(entry.serialized_commit_log_entry.clone())
        .map_err(|_| Refused::CommitLogEntry)?;
    Ok(Derived {
        topic: Topic::from_identifier(TopicKind::CommitLog, &plaintext.group_id)?,
        is_commit_or_proposal: false,
        retention: Retention::Exempt,
        unchecked: None,
    })
}

fn derive_key_package(serialized: &Bytes) -> Result<Derived, Refused> {
    Ok(Derived {
        topic: *ParsedKeyPackage::parse(serialized)?.topic(),
        is_commit_or_proposal: false,
        retention: Retention::KeyPackage,
        unchecked: Some(Unchecked::KeyPackage(serialized.clone())),
    })
}

fn derive_identity_update(update: &IdentityUpdate) -> Result<Derived, Refused> {
    Ok(Derived {
        topic: Topic::from_inbox_id(&update.inbox_id)?,
        is_commit_or_proposal: false,
        retention: Retention::Exempt,
        unchecked: Some(Unchecked::IdentityUpdate(update.clone())),
    })
}

/// The ERC-6492 signatures of an identity update, in every position that takes a signature, repetitions included.
#[must_use]
pub fn count_wallet_signatures(update: &IdentityUpdate) -> usize {
    let of_action = |kind: &Kind| match kind {
        Kind::CreateInbox(create) => [is_wallet(&create.initial_identifier_signature), false],
        Kind::Add(add) => [
            is_wallet(&add.existing_member_signature),
            is_wallet(&add.new_member_signature),
        ],
        Kind::Revoke(revoke) => [is_wallet(&revoke.recovery_identifier_signature), false],
        Kind::ChangeRecoveryAddress(change) => {
            [is_wallet(&change.existing_recovery_identifier_signature), false]
        }
        Kind::ClaimHandle(claim) => [is_wallet(&claim.existing_member_signature), false],
    };
    let kinds = update.actions.iter().filter_map(|action| action.kind.as_ref());
    kinds.flat_map(of_action).filter(|is_wallet| *is_wallet).count()
}

fn is_wallet(signature: &Option<associations::Signature>) -> bool {
    let kind = signature
        .as_ref()
        .and_then(|signature| signature.signature.as_ref());
    matches!(kind, Some(associations::signature::Signature::Erc6492(_)))
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;

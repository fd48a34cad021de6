//! The nonempty, bounded array of evidence that a certificate holds.

use conclave_harness::signed_message::EncodedSignedMessage;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::MEMBERS_MAX;

/// 1 to 32 complete signed messages. That they ascend by signer is checked when the certificate is verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct EvidenceMessages(Vec<EncodedSignedMessage>);

impl EvidenceMessages {
    /// Takes 1 to [`MEMBERS_MAX`] messages; none otherwise.
    pub fn new(messages: Vec<EncodedSignedMessage>) -> Option<Self> {
        (1..=MEMBERS_MAX)
            .contains(&messages.len())
            .then_some(Self(messages))
    }

    /// The messages in their stated order.
    pub fn as_slice(&self) -> &[EncodedSignedMessage] {
        &self.0
    }

    /// The messages in their stated order.
    pub fn iter(&self) -> std::slice::Iter<'_, EncodedSignedMessage> {
        self.0.iter()
    }

    /// How many there are, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'de> Deserialize<'de> for EvidenceMessages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let messages = Vec::<EncodedSignedMessage>::deserialize(deserializer)?;
        let count = messages.len();
        Self::new(messages).ok_or_else(|| {
            D::Error::custom(format_args!(
                "{count} evidence messages, expected 1 to {MEMBERS_MAX}"
            ))
        })
    }
}

//! What an operator sets. Built from `CONCLAVE_*` variables, checked as a whole, and never half applied.
use conclave_envelope::{Limits, RetentionSeconds};

/// The configuration of a deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The deployment's name; clients bind their databases to it, so it never changes.
    pub identifier: String,
    /// Shards topics are spread over, 1 to 1024. Fixed at birth.
    pub shard_count: u32,
    /// The published limits.
    pub limits: Limits,
    /// How long envelopes are kept at least, in seconds by kind.
    pub retention: RetentionSeconds,
    /// Silence on a stream after which a keepalive is sent, in milliseconds.
    pub keepalive_interval_ms: u32,
    /// The lowest client version that may connect, SemVer, or empty.
    pub min_libxmtp_version: String,
}

/// A variable that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct ConfigurationError {
    /// The variable.
    pub key: String,
    /// What is wrong with it, for the operator's log.
    pub reason: String,
}

impl Configuration {
    /// The configuration the variables of an environment describe. Variables that do not begin with `CONCLAVE_` are
    /// ignored.
    ///
    /// # Errors
    /// The first variable that is unknown, malformed or out of range.
    pub fn from_variables<K: AsRef<str>, V: AsRef<str>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, ConfigurationError> {
        drop(variables.into_iter());
        Err(ConfigurationError {
            key: String::new(),
            reason: "not served yet".to_owned(),
        })
    }
}

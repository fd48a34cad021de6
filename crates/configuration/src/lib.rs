#![forbid(unsafe_code)]
//! What an operator sets: every variable of a deployment, read once, checked as a whole, and never half applied.
//!
//! Variables come in as names and texts, however the platform keeps them; [`Settings`] come out, or the name of the
//! variable that cannot be used. Depends on the crates whose configuration it fills in, and on nothing of a platform.
//!
//! - [`variables`]: which variables there are, and what each of them sets;
//! - `parse`: the forms values have.
//!
//! `docs/configuration.md` is the operator's page of them all; a test of this crate holds it against the code.

mod parse;
pub mod variables;

use std::rc::Rc;

use conclave_credentials::{
    CredentialConfiguration,
    algorithm::Algorithm,
    api_key::ApiKeys,
    configuration::SigningKeys,
    key_set::{KEY_COUNT_MAX, KID_BYTES_MAX},
};
use conclave_proto::xmtp::backend::v1::{GetConfigurationResponse, auth_configuration::SigningKey};
use conclave_registry::RegistryConfiguration;
use conclave_topiclog::Configuration;
use prost::Message as _;

use variables::Draft;

/// What the name of every variable of ours begins with.
pub const PREFIX: &str = "CONCLAVE_";

/// The longest answer to GetConfiguration, in bytes (CONF-009).
pub const PUBLISHED_BYTES_MAX: usize = 65_536;

/// What the variables of a deployment say.
#[derive(Debug)]
pub struct Settings {
    /// The backend's part; what is published and what is enforced are the same values (CONF-069).
    pub backend: Rc<Configuration>,
    /// The Registry's part.
    pub registry: RegistryConfiguration,
    /// Which credentials callers must present, where any are asked for.
    pub credentials: CredentialConfiguration,
    /// What the operator looks at.
    pub operations: Operations,
}

/// What an operator looks at, and who is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Operations {
    /// Whether a line is written to the log for each request (OPS-018).
    pub request_logger: bool,
    /// What must be presented to read the counters, an API key called [`OPERATOR`]. Nobody reads them without one.
    pub token: Option<ApiKeys>,
}

impl Default for Operations {
    fn default() -> Self {
        Self {
            request_logger: true,
            token: None,
        }
    }
}

/// The name of the operator's token in logs. No API key may have it.
pub const OPERATOR: &str = "operator";

/// Why a deployment cannot be served as it is configured (CONF-065).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// One variable cannot be used. No secret shows in the reason.
    #[error("{name}: {reason}")]
    Variable {
        /// The variable's name.
        name: String,
        /// What is wrong with it, for the operator's log.
        reason: String,
    },
    /// What GetConfiguration would answer is too long.
    #[error("the public configuration would have {bytes} bytes, more than {PUBLISHED_BYTES_MAX}")]
    TooLarge {
        /// Its length, in bytes.
        bytes: usize,
    },
}

/// The value of a variable as the platform has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// Something else, such as a list.
    Other,
}

impl Settings {
    /// What the variables say, defaults where they say nothing. Names that do not begin with [`PREFIX`] are not ours and
    /// are passed over. `now_ns` is the time in nanoseconds since the Unix epoch: an envelope stored now must have an
    /// expiry (OPS-020).
    ///
    /// # Errors
    /// A variable of ours that is unknown, malformed, out of range or at odds with another, and an identifier that is not
    /// set (CONF-002).
    pub fn from_variables<N: AsRef<str>>(
        variables: impl IntoIterator<Item = (N, Value)>,
        now_ns: u64,
    ) -> Result<Settings, ConfigurationError> {
        let mut draft = Draft::default();
        for (name, value) in variables {
            let name = name.as_ref();
            if let Some(own_name) = name.strip_prefix(PREFIX) {
                draft
                    .set(own_name, &value)
                    .map_err(|reason| ConfigurationError::Variable {
                        name: name.to_owned(),
                        reason,
                    })?;
            }
        }
        let settings = draft.finish(now_ns)?;
        let bytes = settings.longest_published().encoded_len();
        if bytes > PUBLISHED_BYTES_MAX {
            return Err(ConfigurationError::TooLarge { bytes });
        }
        Ok(settings)
    }

    /// What is published, with the longest keys that a key set may bring where one is to be fetched.
    fn longest_published(&self) -> GetConfigurationResponse {
        let mut published = self.backend.to_wire();
        let is_fetched = self
            .credentials
            .as_ref()
            .is_some_and(|credentials| matches!(credentials.signing_keys, SigningKeys::Fetched { .. }));
        if is_fetched && let Some(auth) = &mut published.auth {
            let longest = SigningKey {
                kid: "k".repeat(KID_BYTES_MAX),
                alg: Algorithm::Rs256.name().to_owned(),
            };
            auth.keys = vec![longest; KEY_COUNT_MAX];
        }
        published
    }
}

#[cfg(test)]
mod tests;

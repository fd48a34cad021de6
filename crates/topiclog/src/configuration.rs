//! What an operator sets. Built from `CONCLAVE_*` variables, checked as a whole, and never half applied. Depends on
//! `envelope` for the limits and retention, which are published as they are enforced (CONF-069).

use conclave_envelope::{Limits, RetentionSeconds};
use conclave_identity::{
    HandlePolicy,
    handle::{DEFAULT_MIN_NAME_LENGTH, DEFAULT_RESERVED_NAMES, Handle, MAX_NAME_LENGTH},
};
use conclave_proto::xmtp::backend::v1 as wire;

use crate::{chain_routes::ChainRoutes, routing::SHARD_COUNT_MAX};

/// How many shards a deployment is born with when `CONCLAVE_SHARDS` does not say.
const DEFAULT_SHARD_COUNT: u32 = 16;

/// The identifier of a deployment whose operator names none.
pub const DEFAULT_IDENTIFIER: &str = "conclave-local";
/// The longest identifier, in bytes (CONF-002).
pub const IDENTIFIER_BYTES_MAX: usize = 256;
/// The silence after which a stream sends a keepalive unless configured otherwise, in milliseconds.
pub const DEFAULT_KEEPALIVE_INTERVAL_MS: u32 = 30_000;
/// The shortest configurable silence, in milliseconds: below it a stream is mostly keepalives.
pub const KEEPALIVE_INTERVAL_MS_MIN: u32 = 100;

/// `CONCLAVE_` variables that other parts of a deployment read; they are no mistake here.
pub const FOREIGN_VARIABLES: [&str; 2] = ["CONCLAVE_REGISTRY_SEED", "CONCLAVE_REGISTRY_ADMISSION_TOKEN"];

/// The shortest name part of a handle.
const HANDLES_MIN_NAME_LENGTH: &str = "CONCLAVE_HANDLES_MIN_NAME_LENGTH";
/// Name parts that no handle may have.
const HANDLES_RESERVED_NAMES: &str = "CONCLAVE_HANDLES_RESERVED_NAMES";

/// What every variable of ours begins with.
const PREFIX: &str = "CONCLAVE_";

/// The configuration of a deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The deployment's name; clients bind their databases to it, so it never changes. 1 to 256 bytes without
    /// whitespace or control characters.
    pub identifier: String,
    /// Shards topics are spread over, 1 to 1024. Fixed at birth.
    pub shard_count: u32,
    /// The published limits.
    pub limits: Limits,
    /// How long envelopes are kept at least, in seconds by kind.
    pub retention: RetentionSeconds,
    /// Silence on a stream after which a keepalive is sent, in milliseconds.
    pub keepalive_interval_ms: u32,
    /// Which handles may be claimed. Its shortest name is published, its reserved names are not.
    pub handles: HandlePolicy,
    /// The lowest client version that may connect, SemVer 2.0.0, or empty.
    pub min_libxmtp_version: String,
    /// The chains whose wallets can sign, and their nodes.
    pub chains: ChainRoutes,
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

impl ConfigurationError {
    fn new(key: &str, reason: impl Into<String>) -> Self {
        Self {
            key: key.to_owned(),
            reason: reason.into(),
        }
    }
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            identifier: DEFAULT_IDENTIFIER.to_owned(),
            shard_count: DEFAULT_SHARD_COUNT,
            limits: Limits::default(),
            retention: RetentionSeconds::default(),
            keepalive_interval_ms: DEFAULT_KEEPALIVE_INTERVAL_MS,
            handles: HandlePolicy::default(),
            min_libxmtp_version: String::new(),
            chains: ChainRoutes::default(),
        }
    }
}

impl Configuration {
    /// The configuration the variables of an environment describe, defaults where they say nothing.
    ///
    /// | Variable | Value |
    /// |---|---|
    /// | `CONCLAVE_IDENTIFIER` | see [`Configuration::identifier`] |
    /// | `CONCLAVE_SHARDS` | 1 to 1024 |
    /// | `CONCLAVE_MIN_LIBXMTP_VERSION` | SemVer 2.0.0, or empty |
    /// | `CONCLAVE_KEEPALIVE_INTERVAL_MS` | 100 to 4294967295 |
    /// | `CONCLAVE_HANDLES_MIN_NAME_LENGTH` | the shortest name part of a handle that may be claimed, 1 to 32 |
    /// | `CONCLAVE_HANDLES_RESERVED_NAMES` | name parts that may not be claimed, joined by commas, in place of the built-in ones |
    /// | `CONCLAVE_RETENTION_GROUP_MESSAGE_SECONDS`, `…_WELCOME_SECONDS`, `…_KEY_PACKAGE_SECONDS` | 1 to 9223372036 |
    /// | `CONCLAVE_CHAIN_<number>_RPC_URL` | the JSON-RPC of a node of that EIP-155 chain, an `https` or `http` URL; a secret |
    /// | `CONCLAVE_` and the name of a published limit in capitals | see [`Limits`] |
    ///
    /// Variables that do not begin with `CONCLAVE_`, and [`FOREIGN_VARIABLES`], are ignored.
    ///
    /// # Errors
    /// A variable that is unknown, malformed or out of range, or breaks a relation between limits.
    pub fn from_variables<K: AsRef<str>, V: AsRef<str>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, ConfigurationError> {
        let mut configuration = Self::default();
        let mut min_name_length = DEFAULT_MIN_NAME_LENGTH;
        let mut reserved_names = DEFAULT_RESERVED_NAMES.map(str::to_owned).to_vec();
        for (key, value) in variables {
            let (key, value) = (key.as_ref(), value.as_ref());
            match key {
                HANDLES_MIN_NAME_LENGTH => {
                    let max = u32::try_from(MAX_NAME_LENGTH).unwrap_or(u32::MAX);
                    min_name_length = parse_number(key, value, 1, max)?;
                }
                HANDLES_RESERVED_NAMES => reserved_names = parse_names(key, value)?,
                _ if key.starts_with(PREFIX) && !FOREIGN_VARIABLES.contains(&key) => {
                    configuration.set(key, value)?;
                }
                _ => {}
            }
        }
        configuration.handles = HandlePolicy::new(min_name_length, reserved_names);
        configuration.limits.validate().map_err(|error| {
            ConfigurationError::new(&format!("{PREFIX}{}", error.key.to_uppercase()), error.problem)
        })?;
        configuration.validate_at(0)?;
        Ok(configuration)
    }

    /// Checks that every envelope stored now, at `now_ns` (nanoseconds since the Unix epoch), has an expiry (OPS-020).
    ///
    /// # Errors
    /// Names the retention variable that is too long.
    pub fn validate_at(&self, now_ns: u64) -> Result<(), ConfigurationError> {
        self.retention.validate(now_ns).map_err(|error| {
            ConfigurationError::new(
                &format!("{PREFIX}RETENTION_{}", error.key.to_uppercase()),
                error.problem,
            )
        })
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigurationError> {
        match &key[PREFIX.len()..] {
            "IDENTIFIER" => self.identifier = parse_identifier(key, value)?,
            "SHARDS" => self.shard_count = parse_number(key, value, 1, SHARD_COUNT_MAX)?,
            "MIN_LIBXMTP_VERSION" => self.min_libxmtp_version = parse_version(key, value)?,
            "KEEPALIVE_INTERVAL_MS" => {
                self.keepalive_interval_ms = parse_number(key, value, KEEPALIVE_INTERVAL_MS_MIN, u32::MAX)?;
            }
            "RETENTION_GROUP_MESSAGE_SECONDS" => self.retention.group_message = parse_integer(key, value)?,
            "RETENTION_WELCOME_SECONDS" => self.retention.welcome = parse_integer(key, value)?,
            "RETENTION_KEY_PACKAGE_SECONDS" => self.retention.key_package = parse_integer(key, value)?,
            name => match ChainRoutes::chain_of_key(name) {
                Some(chain_id) => self
                    .chains
                    .set(chain_id, value)
                    .map_err(|problem| ConfigurationError::new(key, problem))?,
                None => self.set_limit(key, name, value)?,
            },
        }
        Ok(())
    }

    fn set_limit(&mut self, key: &str, name: &str, value: &str) -> Result<(), ConfigurationError> {
        let name = Limits::KEYS
            .iter()
            .find(|limit| limit.to_uppercase() == name)
            .ok_or_else(|| ConfigurationError::new(key, "is not a variable of this service"))?;
        let value = parse_integer(key, value)?;
        match self.limits.set(name, value) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(ConfigurationError::new(key, error.problem)),
            None => Err(ConfigurationError::new(key, "is not a variable of this service")),
        }
    }

    /// What is published (CONF-017): the same for the whole life of a process (CONF-012).
    #[must_use]
    pub fn to_wire(&self) -> wire::GetConfigurationResponse {
        wire::GetConfigurationResponse {
            identifier: self.identifier.clone(),
            server_version: crate::SERVER_VERSION.to_owned(),
            min_libxmtp_version: self.min_libxmtp_version.clone(),
            auth: Some(wire::AuthConfiguration::default()),
            retention: Some(self.retention.to_wire()),
            limits: Some(self.limits.to_wire()),
            mls: Some(wire::MlsConfiguration {
                max_group_members: MLS_GROUP_MEMBERS,
                max_installations_per_inbox: MLS_INSTALLATIONS_PER_INBOX,
                commit_log_enabled: Some(true),
            }),
            smart_contract_wallet_chains: self.chains.names(),
            attachments: None,
            handles: Some(wire::HandlesConfiguration {
                min_name_length: self.handles.min_name_length(),
            }),
        }
    }
}

/// Advisory: members of a group.
const MLS_GROUP_MEMBERS: u32 = 250;
/// Advisory: installations of an inbox.
const MLS_INSTALLATIONS_PER_INBOX: u32 = 10;

fn parse_identifier(key: &str, value: &str) -> Result<String, ConfigurationError> {
    if value.is_empty() || value.len() > IDENTIFIER_BYTES_MAX {
        return Err(ConfigurationError::new(
            key,
            format!("has {} bytes, not 1 to {IDENTIFIER_BYTES_MAX}", value.len()),
        ));
    }
    if value
        .chars()
        .any(|letter| letter.is_whitespace() || letter.is_control())
    {
        return Err(ConfigurationError::new(
            key,
            "contains whitespace or a control character",
        ));
    }
    Ok(value.to_owned())
}

fn parse_integer(key: &str, value: &str) -> Result<u64, ConfigurationError> {
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ConfigurationError::new(key, format!("{value:?} is not a number")));
    }
    value
        .parse()
        .map_err(|_| ConfigurationError::new(key, format!("{value} is more than {}", u64::MAX)))
}

fn parse_number(key: &str, value: &str, min: u32, max: u32) -> Result<u32, ConfigurationError> {
    let number = parse_integer(key, value)?;
    u32::try_from(number)
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| ConfigurationError::new(key, format!("{number} is not {min} to {max}")))
}

/// Names joined by commas, each the name part of some handle; none of them when the value is empty.
fn parse_names(key: &str, value: &str) -> Result<Vec<String>, ConfigurationError> {
    let names = value.split(',').map(str::trim).filter(|_| !value.is_empty());
    names
        .map(|name| match Handle::parse(name) {
            Some(handle) if handle.name() == name => Ok(name.to_owned()),
            _ => Err(ConfigurationError::new(
                key,
                format!("{name:?} is not the name part of a handle"),
            )),
        })
        .collect()
}

fn parse_version(key: &str, value: &str) -> Result<String, ConfigurationError> {
    if value.is_empty() || is_semver(value) {
        return Ok(value.to_owned());
    }
    Err(ConfigurationError::new(
        key,
        format!("{value:?} is not a SemVer 2.0.0 version"),
    ))
}

/// Whether a string is a version by the grammar of SemVer 2.0.0.
fn is_semver(value: &str) -> bool {
    let (rest, build) = split_optional(value, '+');
    let (core, pre_release) = split_optional(rest, '-');
    let numbers: Vec<&str> = core.split('.').collect();
    numbers.len() == 3
        && numbers.iter().all(|number| is_numeric(number))
        && pre_release.is_none_or(|dotted| {
            dotted.split('.').all(|part| {
                is_alphanumeric(part) && (!part.bytes().all(|b| b.is_ascii_digit()) || is_numeric(part))
            })
        })
        && build.is_none_or(|dotted| dotted.split('.').all(is_alphanumeric))
}

fn split_optional(value: &str, separator: char) -> (&str, Option<&str>) {
    value
        .split_once(separator)
        .map_or((value, None), |(head, tail)| (head, Some(tail)))
}

fn is_numeric(value: &str) -> bool {
    !value.is_empty()
        && value.bytes().all(|byte| byte.is_ascii_digit())
        && (value == "0" || !value.starts_with('0'))
}

fn is_alphanumeric(value: &str) -> bool {
    !value.is_empty()
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing_key(key: &str, value: &str) -> Option<String> {
        Configuration::from_variables([(key, value)])
            .err()
            .map(|error| error.key)
    }

    #[test]
    fn an_empty_environment_gives_the_defaults() {
        let none: [(&str, &str); 0] = [];
        assert_eq!(Configuration::from_variables(none), Ok(Configuration::default()));
    }

    #[test]
    fn every_variable_sets_its_value() {
        let configuration = Configuration::from_variables([
            ("CONCLAVE_IDENTIFIER", "talk.example"),
            ("CONCLAVE_SHARDS", "16"),
            ("CONCLAVE_MIN_LIBXMTP_VERSION", "1.2.3-rc.1+b"),
            ("CONCLAVE_KEEPALIVE_INTERVAL_MS", "5000"),
            ("CONCLAVE_RETENTION_WELCOME_SECONDS", "60"),
            ("CONCLAVE_HANDLES_MIN_NAME_LENGTH", "5"),
            ("CONCLAVE_HANDLES_RESERVED_NAMES", "operator, the-office"),
            ("CONCLAVE_MAX_QUERY_LIMIT", "200"),
            ("CONCLAVE_CHAIN_10_RPC_URL", "https://node.example/key"),
            ("CONCLAVE_REGISTRY_SEED", "another part's"),
            ("PATH", "/bin"),
        ])
        .expect("a usable environment");
        assert_eq!(configuration.identifier, "talk.example");
        assert_eq!(configuration.shard_count, 16);
        assert_eq!(configuration.min_libxmtp_version, "1.2.3-rc.1+b");
        assert_eq!(configuration.keepalive_interval_ms, 5000);
        assert_eq!(configuration.retention.welcome, 60);
        let handles = HandlePolicy::new(5, ["operator", "the-office"]);
        assert_eq!(configuration.handles, handles);
        let published = configuration.to_wire();
        assert_eq!(published.handles.map(|handles| handles.min_name_length), Some(5));
        assert_eq!(published.smart_contract_wallet_chains, ["eip155:10"]);
        assert_eq!(published.limits.map(|limits| limits.max_query_limit), Some(200));
        assert_eq!(
            published.retention.map(|retention| retention.welcome_seconds),
            Some(60)
        );
    }

    #[test]
    fn a_bad_value_is_refused_by_the_name_of_its_key() {
        let long = "x".repeat(257);
        for (key, value) in [
            ("CONCLAVE_IDENTIFIER", ""),
            ("CONCLAVE_IDENTIFIER", "two words"),
            ("CONCLAVE_IDENTIFIER", "bell\u{7}"),
            ("CONCLAVE_IDENTIFIER", &long),
            ("CONCLAVE_SHARDS", "0"),
            ("CONCLAVE_SHARDS", "1025"),
            ("CONCLAVE_SHARDS", "-1"),
            ("CONCLAVE_SHARDS", "+1"),
            ("CONCLAVE_SHARDS", "four"),
            ("CONCLAVE_MIN_LIBXMTP_VERSION", "1.2"),
            ("CONCLAVE_MIN_LIBXMTP_VERSION", "01.2.3"),
            ("CONCLAVE_MIN_LIBXMTP_VERSION", "1.2.3-"),
            ("CONCLAVE_MIN_LIBXMTP_VERSION", "1.2.3-01"),
            ("CONCLAVE_KEEPALIVE_INTERVAL_MS", "1"),
            ("CONCLAVE_HANDLES_MIN_NAME_LENGTH", "0"),
            ("CONCLAVE_HANDLES_MIN_NAME_LENGTH", "33"),
            ("CONCLAVE_HANDLES_RESERVED_NAMES", "fine,Not"),
            ("CONCLAVE_HANDLES_RESERVED_NAMES", "alice.42"),
            ("CONCLAVE_HANDLES_RESERVED_NAMES", "fine,"),
            ("CONCLAVE_RETENTION_GROUP_MESSAGE_SECONDS", "0"),
            ("CONCLAVE_RETENTION_KEY_PACKAGE_SECONDS", "9223372037"),
            ("CONCLAVE_MAX_ENVELOPE_BYTES", "26214400"),
            ("CONCLAVE_MAX_PUBLISH_TOPICS", "0"),
            ("CONCLAVE_MAX_PUBLISH_TOPICS", "4294967296"),
            ("CONCLAVE_MAX_PUBLISH_TOPIC", "1"),
            ("CONCLAVE_CHAIN_1_RPC_URL", "node.example"),
            ("CONCLAVE_CHAIN_01_RPC_URL", "https://node.example"),
            ("CONCLAVE_CHAIN_ONE_RPC_URL", "https://node.example"),
            ("CONCLAVE_", "1"),
        ] {
            assert_eq!(failing_key(key, value).as_deref(), Some(key), "{key}={value}");
        }
    }

    #[test]
    fn no_name_needs_to_be_reserved() {
        let configuration = Configuration::from_variables([("CONCLAVE_HANDLES_RESERVED_NAMES", "")]);
        let none: [&str; 0] = [];
        let expected = HandlePolicy::new(DEFAULT_MIN_NAME_LENGTH, none);
        assert_eq!(configuration.map(|usable| usable.handles), Ok(expected));
    }

    #[test]
    fn a_retention_that_the_clock_overtook_is_refused() {
        let configuration =
            Configuration::from_variables([("CONCLAVE_RETENTION_WELCOME_SECONDS", "9223372036")])
                .expect("fits at the epoch");
        let error = configuration
            .validate_at(1_800_000_000_000_000_000)
            .expect_err("does not fit today");
        assert_eq!(error.key, "CONCLAVE_RETENTION_WELCOME_SECONDS");
    }
}

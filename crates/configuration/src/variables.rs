//! Which variables there are, and what each of them sets. Depends on `parse`.

use std::rc::Rc;

use conclave_credentials::{
    Credentials,
    api_key::ApiKeys,
    configuration::{self as credentials, SigningKeys},
    key_set::KeySet,
};
use conclave_envelope::Limits;
use conclave_harness::base64url;
use conclave_identity::{
    HandlePolicy,
    handle::{DEFAULT_MIN_NAME_LENGTH, DEFAULT_RESERVED_NAMES, MAX_NAME_LENGTH},
};
use conclave_proto::xmtp::backend::v1::{AuthConfiguration, auth_configuration::SigningKey};
use conclave_registry::{AdmissionToken, RegistryConfiguration};
use conclave_topiclog::{
    Configuration,
    chain_routes::ChainRoutes,
    configuration::{KEEPALIVE_INTERVAL_MS_MIN, MAX_CALL_DURATION_MS_MIN},
    routing::SHARD_COUNT_MAX,
};

use crate::{ConfigurationError, OPERATOR, Operations, PREFIX, Settings, Value, parse};

/// The most members and installations a client can be advised of.
const MLS_ADVICE_MAX: u32 = 65_535;

/// The one variable that has no default: clients bind their databases to what it says (CONF-002).
const IDENTIFIER: &str = "IDENTIFIER";

/// Longer than the silence that a Ping breaks, or a stream would end before its second one.
const MAX_PONG_WAIT_MS: &str = "MAX_PONG_WAIT_MS";

/// What must be presented to read the counters. A secret.
const OPERATOR_TOKEN: &str = "OPERATOR_TOKEN";

/// What is wrong with a variable that holds a list or an object.
const NOT_A_TEXT: &str = "is neither a text nor a number nor true or false";

/// What a variable does with its value; the error says what is wrong with that.
type Set = fn(&mut Draft, &str) -> Result<(), String>;

/// The variables with a name of their own, without [`PREFIX`].
const NAMED: &[(&str, Set)] = &[
    (IDENTIFIER, |draft, value| {
        draft.is_named = true;
        set(&mut draft.backend.identifier, parse::identifier(value))
    }),
    ("SHARDS", |draft, value| {
        set(
            &mut draft.backend.shard_count,
            parse::number(value, 1, SHARD_COUNT_MAX),
        )
    }),
    ("MIN_LIBXMTP_VERSION", |draft, value| {
        set(&mut draft.backend.min_libxmtp_version, parse::version(value))
    }),
    ("KEEPALIVE_INTERVAL_MS", |draft, value| {
        set(
            &mut draft.backend.keepalive_interval_ms,
            parse::number(value, KEEPALIVE_INTERVAL_MS_MIN, u32::MAX - 1),
        )
    }),
    (MAX_PONG_WAIT_MS, |draft, value| {
        set(
            &mut draft.backend.max_pong_wait_ms,
            parse::number(value, KEEPALIVE_INTERVAL_MS_MIN + 1, u32::MAX),
        )
    }),
    ("MAX_CALL_DURATION_MS", |draft, value| {
        set(
            &mut draft.backend.max_call_duration_ms,
            parse::number(value, MAX_CALL_DURATION_MS_MIN, u32::MAX),
        )
    }),
    ("RETENTION_GROUP_MESSAGE_SECONDS", |draft, value| {
        set(&mut draft.backend.retention.group_message, parse::integer(value))
    }),
    ("RETENTION_WELCOME_SECONDS", |draft, value| {
        set(&mut draft.backend.retention.welcome, parse::integer(value))
    }),
    ("RETENTION_KEY_PACKAGE_SECONDS", |draft, value| {
        set(&mut draft.backend.retention.key_package, parse::integer(value))
    }),
    ("HANDLES_MIN_NAME_LENGTH", |draft, value| {
        let max = u32::try_from(MAX_NAME_LENGTH).unwrap_or(u32::MAX);
        set(&mut draft.min_name_length, parse::number(value, 1, max))
    }),
    ("HANDLES_RESERVED_NAMES", |draft, value| {
        set(&mut draft.reserved_names, parse::names(value))
    }),
    ("MLS_MAX_GROUP_MEMBERS", |draft, value| {
        set(
            &mut draft.backend.mls.max_group_members,
            parse::number(value, 1, MLS_ADVICE_MAX),
        )
    }),
    ("MLS_MAX_INSTALLATIONS_PER_INBOX", |draft, value| {
        set(
            &mut draft.backend.mls.max_installations_per_inbox,
            parse::number(value, 1, MLS_ADVICE_MAX),
        )
    }),
    ("MLS_COMMIT_LOG_ENABLED", |draft, value| {
        set(&mut draft.backend.mls.commit_log_enabled, parse::boolean(value))
    }),
    ("REGISTRY_SEED", |draft, value| {
        // The error of the decoder names a character, and this is a secret.
        let seed = base64url::decode_array(value)
            .map(Some)
            .map_err(|_| "is not 32 bytes as unpadded base64url".to_owned());
        set(&mut draft.registry.signing_seed, seed)
    }),
    ("REGISTRY_ADMISSION_TOKEN", |draft, value| {
        let token = AdmissionToken::parse(value)
            .map(Some)
            .map_err(|error| error.to_string());
        set(&mut draft.registry.admission_token, token)
    }),
    ("RESTORED", |draft, value| {
        set(&mut draft.backend.restored, parse::word(value))
    }),
    ("REQUEST_LOGGER", |draft, value| {
        set(&mut draft.operations.request_logger, parse::boolean(value))
    }),
    (OPERATOR_TOKEN, |draft, value| {
        let mut token = ApiKeys::default();
        let added = token.add(OPERATOR, value).map_err(|error| error.to_string());
        draft.operator_token = Some(value.to_owned());
        set(&mut draft.operations.token, added.map(|()| Some(token)))
    }),
];

fn set<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    *field = value?;
    Ok(())
}

/// How the variables of chains are written in the operator's page: one for each chain.
pub const CHAIN_VARIABLES: &str = "CONCLAVE_CHAIN_<number>_RPC_URL";

/// The names of all variables, [`CHAIN_VARIABLES`] once for all chains.
#[must_use]
pub fn all_names() -> Vec<String> {
    let named = NAMED.iter().map(|(name, _)| format!("{PREFIX}{name}"));
    let limits = Limits::KEYS.iter().map(|key| of_limit(key));
    let of_credentials = credentials::ALL_NAMES.map(str::to_owned);
    named
        .chain(limits)
        .chain(of_credentials)
        .chain([CHAIN_VARIABLES.to_owned()])
        .collect()
}

/// The variable of a published limit.
fn of_limit(key: &str) -> String {
    format!("{PREFIX}{}", key.to_ascii_uppercase())
}

/// Settings that are being read.
pub(crate) struct Draft {
    is_named: bool,
    backend: Configuration,
    registry: RegistryConfiguration,
    /// Those about credentials, which mean something together only.
    credentials: Vec<(String, String)>,
    /// One of them that is no text. While credentials are switched off it does not matter.
    unreadable_credential: Option<String>,
    operations: Operations,
    operator_token: Option<String>,
    min_name_length: u32,
    reserved_names: Vec<String>,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            is_named: false,
            backend: Configuration::default(),
            registry: RegistryConfiguration::default(),
            credentials: Vec::new(),
            unreadable_credential: None,
            operations: Operations::default(),
            operator_token: None,
            min_name_length: DEFAULT_MIN_NAME_LENGTH,
            reserved_names: DEFAULT_RESERVED_NAMES.map(str::to_owned).to_vec(),
        }
    }
}

impl Draft {
    /// Takes a variable in, by its name without [`PREFIX`].
    pub(crate) fn set(&mut self, own_name: &str, value: &Value) -> Result<(), String> {
        let Value::Text(value) = value else {
            let name = format!("{PREFIX}{own_name}");
            if !name.starts_with(credentials::PREFIX) || name == credentials::ENABLED {
                return Err(NOT_A_TEXT.to_owned());
            }
            self.credentials.push((name.clone(), String::new()));
            self.unreadable_credential = Some(name);
            return Ok(());
        };
        if let Some((_, set)) = NAMED.iter().find(|(name, _)| *name == own_name) {
            return set(self, value);
        }
        let name = format!("{PREFIX}{own_name}");
        if name.starts_with(credentials::PREFIX) {
            self.credentials.push((name, value.clone()));
            return Ok(());
        }
        if let Some(chain_id) = ChainRoutes::chain_of_key(own_name) {
            return self.backend.chains.set(chain_id, value).map_err(str::to_owned);
        }
        self.set_limit(own_name, value)
    }

    fn set_limit(&mut self, own_name: &str, value: &str) -> Result<(), String> {
        let unknown = || "is not a variable of this service".to_owned();
        let key = Limits::KEYS
            .iter()
            .find(|key| key.to_ascii_uppercase() == own_name)
            .ok_or_else(unknown)?;
        let value = parse::integer(value)?;
        let set = self.backend.limits.set(key, value);
        set.ok_or_else(unknown)?.map_err(|error| error.problem)
    }

    /// Checks what no variable says alone.
    pub(crate) fn finish(mut self, now_ns: u64) -> Result<Settings, ConfigurationError> {
        self.backend.handles = HandlePolicy::new(self.min_name_length, self.reserved_names);
        let limits = self.backend.limits.validate();
        limits.map_err(|error| ConfigurationError::Variable {
            name: of_limit(error.key),
            reason: error.problem,
        })?;
        if self.backend.max_pong_wait_ms <= self.backend.keepalive_interval_ms {
            return Err(ConfigurationError::Variable {
                name: format!("{PREFIX}{MAX_PONG_WAIT_MS}"),
                reason: "is not longer than the keepalive interval".to_owned(),
            });
        }
        let retention = self.backend.retention.validate(now_ns);
        retention.map_err(|error| ConfigurationError::Variable {
            name: of_limit(&format!("retention_{}", error.key)),
            reason: error.problem,
        })?;
        if !self.is_named {
            return Err(ConfigurationError::Variable {
                name: format!("{PREFIX}{IDENTIFIER}"),
                reason: "is not set, and a deployment has no name without it".to_owned(),
            });
        }
        let credentials = Credentials::from_variables(self.credentials);
        if let (Some(name), Ok(Some(_)) | Err(_)) = (self.unreadable_credential, &credentials) {
            return Err(ConfigurationError::Variable {
                name,
                reason: NOT_A_TEXT.to_owned(),
            });
        }
        let mut credentials = credentials.map_err(|error| ConfigurationError::Variable {
            name: error.key,
            reason: error.reason,
        })?;
        if let Some(credentials) = &mut credentials {
            self.backend.auth = published(credentials);
            if credentials.api_keys.names().any(|name| name == OPERATOR) {
                return Err(ConfigurationError::Variable {
                    name: format!("{}{OPERATOR}", credentials::API_KEY_PREFIX),
                    reason: "has the name that the operator's token has in the log".to_owned(),
                });
            }
            // Who operates the deployment may also call it.
            if let Some(token) = &self.operator_token {
                let added = credentials.api_keys.add(OPERATOR, token);
                added.map_err(|error| ConfigurationError::Variable {
                    name: format!("{PREFIX}{OPERATOR_TOKEN}"),
                    reason: error.to_string(),
                })?;
            }
        }
        Ok(Settings {
            backend: Rc::new(self.backend),
            registry: self.registry,
            credentials,
            operations: self.operations,
        })
    }
}

/// What is published about credentials (CONF-068). The keys of a key set that is fetched come later.
fn published(credentials: &Credentials) -> AuthConfiguration {
    let expectations = &credentials.expectations;
    AuthConfiguration {
        enabled: true,
        keys: match &credentials.signing_keys {
            SigningKeys::Inline(keys) => published_keys(keys),
            SigningKeys::None | SigningKeys::Fetched { .. } => Vec::new(),
        },
        audiences: expectations.audiences.clone(),
        issuers: expectations.issuers.clone(),
        required_scopes: expectations.required_scopes.clone(),
    }
}

/// What is published of keys that sign tokens: never the keys themselves (CONF-011).
#[must_use]
pub fn published_keys(keys: &KeySet) -> Vec<SigningKey> {
    let published = keys.keys().iter().map(|key| SigningKey {
        kid: key.kid.clone().unwrap_or_default(),
        alg: key.algorithm.name().to_owned(),
    });
    published.collect()
}

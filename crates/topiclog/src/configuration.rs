//! What an operator decides of the backend, and what of it is published. Read from variables by the crate
//! `configuration`. Depends on `envelope` for the limits and retention, which are published as they are enforced
//! (CONF-069).

use conclave_envelope::{Limits, RetentionSeconds};
use conclave_identity::HandlePolicy;
use conclave_proto::xmtp::backend::v1 as wire;

use crate::{chain_routes::ChainRoutes, session::output::OUTPUT_BYTES_MAX};

/// How many shards a deployment is born with when `CONCLAVE_SHARDS` does not say.
const DEFAULT_SHARD_COUNT: u32 = 16;

/// The identifier of a deployment whose operator names none.
pub const DEFAULT_IDENTIFIER: &str = "conclave-local";
/// The silence after which a stream sends a keepalive unless configured otherwise, in milliseconds.
pub const DEFAULT_KEEPALIVE_INTERVAL_MS: u32 = 30_000;
/// How long a Ping may go unanswered unless configured otherwise, in milliseconds.
pub const DEFAULT_MAX_PONG_WAIT_MS: u32 = 90_000;
/// The shortest configurable silence, in milliseconds: below it a stream is mostly keepalives.
pub const KEEPALIVE_INTERVAL_MS_MIN: u32 = 100;

/// How long a call to an object or a chain may take unless configured otherwise, in milliseconds.
pub const DEFAULT_MAX_CALL_DURATION_MS: u32 = 10_000;
/// The shortest configurable duration of a call, in milliseconds: below it no publish of several shards succeeds.
pub const MAX_CALL_DURATION_MS_MIN: u32 = 100;

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
    /// How long a Ping to a client may go unanswered, in milliseconds (API-257). Longer than the interval above.
    pub max_pong_wait_ms: u32,
    /// The most bytes that wait in a stream for a client that does not read. No variable sets it.
    pub stream_output_bytes_max: usize,
    /// How long a call to an object or a chain may take unless the client allows less, in milliseconds.
    pub max_call_duration_ms: u32,
    /// Which handles may be claimed. Its shortest name is published, its reserved names are not.
    pub handles: HandlePolicy,
    /// The lowest client version that may connect, SemVer 2.0.0, or empty.
    pub min_libxmtp_version: String,
    /// The chains whose wallets can sign, and their nodes.
    pub chains: ChainRoutes,
    /// What clients are advised of; the backend does not enforce it.
    pub mls: MlsAdvice,
    /// The name of the last time storage was put back to an earlier state, or empty. Each has a Router instance of its own.
    pub restored: String,
    /// What is published about credentials. They are checked before a request gets here (CONF-068).
    pub auth: wire::AuthConfiguration,
}

/// The shapes of groups that clients are advised to keep to (CONF section 2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MlsAdvice {
    /// Members of a group.
    pub max_group_members: u32,
    /// Installations of an inbox.
    pub max_installations_per_inbox: u32,
    /// Whether clients write a commit log.
    pub commit_log_enabled: bool,
}

impl Default for MlsAdvice {
    fn default() -> Self {
        Self {
            max_group_members: 250,
            max_installations_per_inbox: 10,
            commit_log_enabled: true,
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
            max_pong_wait_ms: DEFAULT_MAX_PONG_WAIT_MS,
            stream_output_bytes_max: OUTPUT_BYTES_MAX,
            max_call_duration_ms: DEFAULT_MAX_CALL_DURATION_MS,
            handles: HandlePolicy::default(),
            min_libxmtp_version: String::new(),
            chains: ChainRoutes::default(),
            mls: MlsAdvice::default(),
            restored: String::new(),
            auth: wire::AuthConfiguration::default(),
        }
    }
}

impl Configuration {
    /// What is published (CONF-017): the same for the whole life of a process (CONF-012).
    #[must_use]
    pub fn to_wire(&self) -> wire::GetConfigurationResponse {
        wire::GetConfigurationResponse {
            identifier: self.identifier.clone(),
            server_version: crate::SERVER_VERSION.to_owned(),
            min_libxmtp_version: self.min_libxmtp_version.clone(),
            auth: Some(self.auth.clone()),
            retention: Some(self.retention.to_wire()),
            limits: Some(self.limits.to_wire()),
            mls: Some(wire::MlsConfiguration {
                max_group_members: self.mls.max_group_members,
                max_installations_per_inbox: self.mls.max_installations_per_inbox,
                commit_log_enabled: Some(self.mls.commit_log_enabled),
            }),
            smart_contract_wallet_chains: self.chains.names(),
            attachments: None,
            handles: Some(wire::HandlesConfiguration {
                min_name_length: self.handles.min_name_length(),
            }),
        }
    }
}

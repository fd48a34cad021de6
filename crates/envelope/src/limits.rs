//! The published limits and retention of a deployment (contract section 7; companion CONF, sections 2.3 and 2.4).
//! Depends on nothing but the wire types.
//!
//! What is published is what is enforced (CONF-069): the same value is turned into the wire message and used by
//! [`crate::request`].

use conclave_proto::xmtp::backend::v1::{LimitsConfiguration, RetentionConfiguration};

use crate::admission::Retention;

/// The largest request or response the transport carries, in bytes: 25 MiB (API-282, CONF-008).
pub const TRANSPORT_CEILING_BYTES: u64 = 26_214_400;
/// The budget of one stream frame, in bytes.
pub const STREAM_FRAME_BYTES: u64 = 2_097_152;
/// What metadata, nesting and framing may add to an envelope on its way out, in bytes (OPS-021).
pub const ENVELOPE_OVERHEAD_BYTES: u64 = 256;
/// The largest sequence id and cursor (API-286).
pub const MAX_SEQUENCE_ID: u64 = i64::MAX as u64;
/// The longest retention, in seconds: the most whole seconds whose nanoseconds fit a signed 64-bit number.
pub const MAX_RETENTION_SECONDS: u64 = 9_223_372_036;
/// The retention of each kind unless configured otherwise, in seconds: 90 days.
pub const DEFAULT_RETENTION_SECONDS: u64 = 7_776_000;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A configured value that cannot be served. Names its key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct InvalidConfiguration {
    /// The key as it is published.
    pub key: &'static str,
    /// What is wrong with its value.
    pub problem: String,
}

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $default:expr,)*) => {
        /// Every published limit. Byte counts are of encoded messages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Limits {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Default for Limits {
            fn default() -> Limits {
                Limits { $($name: $default,)* }
            }
        }

        impl Limits {
            /// The keys of all limits, in the order of their field numbers.
            pub const KEYS: &'static [&'static str] = &[$(stringify!($name),)*];

            /// Sets the limit of a key. The relations between limits are checked by [`Limits::validate`].
            ///
            /// # Errors
            /// [`InvalidConfiguration`] when the value does not fit the published field. `None` for an unknown key.
            pub fn set(&mut self, key: &str, value: u64) -> Option<Result<(), InvalidConfiguration>> {
                match key {
                    $(stringify!($name) => Some(<$type>::try_from(value).map(|value| self.$name = value).map_err(|_| {
                        InvalidConfiguration {
                            key: stringify!($name),
                            problem: format!("{value} is more than {}", <$type>::MAX),
                        }
                    })),)*
                    _ => None,
                }
            }

            /// The published message.
            #[must_use]
            pub fn to_wire(&self) -> LimitsConfiguration {
                LimitsConfiguration { $($name: self.$name,)* }
            }

            fn find_zero(&self) -> Option<&'static str> {
                $(if self.$name == 0 { return Some(stringify!($name)); })*
                None
            }
        }
    };
}

limits! {
    /// The longest re-encoded envelope, in bytes.
    max_envelope_bytes: u64 = 1_048_576,
    /// The longest request, on the wire and re-encoded, in bytes.
    max_request_bytes: u64 = TRANSPORT_CEILING_BYTES,
    /// The longest encoded unary response or Messages frame, in bytes.
    max_response_bytes: u64 = TRANSPORT_CEILING_BYTES,
    /// Distinct topics of one publish.
    max_publish_topics: u32 = 1000,
    /// Entries of one Query.
    max_query_topics: u32 = 1000,
    /// The most envelopes in a page, whatever a client asks for.
    max_query_limit: u32 = 1000,
    /// Envelopes in a page when a client names no limit.
    default_query_limit: u32 = 100,
    /// Topics of a QueryNewest for metadata.
    max_newest_metadata_topics: u32 = 1000,
    /// Topics of a QueryNewest for envelopes.
    max_newest_full_topics: u32 = 100,
    /// Topics added by one Update of a stream.
    max_update_adds: u32 = 100_000,
    /// Topics removed by one Update of a stream.
    max_update_removes: u32 = 100_000,
    /// Topics registered on one stream.
    max_stream_topics: u32 = 100_000,
    /// Topics of one SubscribeStatic.
    max_static_topics: u32 = 10_000,
    /// Entries of one GetInboxIds.
    max_lookup_identifiers: u32 = 250,
    /// Wallet signatures of one verification request, and of one identity update.
    max_scw_signatures: u32 = 100,
    /// Envelopes on one identity topic.
    max_identity_entries: u32 = 256,
    /// Update frames a second on one stream.
    max_update_frames_per_second: u32 = 10,
    /// Update frames at once on one stream.
    max_update_burst: u32 = 100,
    /// Ping frames a second on one stream.
    max_ping_frames_per_second: u32 = 10,
    /// Ping frames at once on one stream.
    max_ping_burst: u32 = 100,
}

impl Limits {
    /// Checks what must hold before anything is served (CONF-008, CONF-069, OPS-021).
    ///
    /// # Errors
    /// [`InvalidConfiguration`] naming the first key whose value is zero or breaks a relation.
    pub fn validate(&self) -> Result<(), InvalidConfiguration> {
        if let Some(key) = self.find_zero() {
            return Err(InvalidConfiguration {
                key,
                problem: "must not be 0".to_owned(),
            });
        }
        let longest_entry = self
            .max_envelope_bytes
            .saturating_add(entry_overhead(self.max_envelope_bytes));
        let longest_delivery = self.max_envelope_bytes.saturating_add(ENVELOPE_OVERHEAD_BYTES);
        at_most(
            "max_request_bytes",
            self.max_request_bytes,
            TRANSPORT_CEILING_BYTES,
            "the transport ceiling",
        )?;
        at_most(
            "max_response_bytes",
            self.max_response_bytes,
            TRANSPORT_CEILING_BYTES,
            "the transport ceiling",
        )?;
        at_most(
            "max_envelope_bytes",
            longest_entry,
            self.max_request_bytes,
            "max_request_bytes",
        )?;
        at_most(
            "max_envelope_bytes",
            longest_delivery,
            self.max_response_bytes,
            "max_response_bytes",
        )?;
        at_most(
            "max_envelope_bytes",
            longest_delivery,
            STREAM_FRAME_BYTES,
            "a stream frame",
        )?;
        let (default_limit, max_limit) = (self.default_query_limit.into(), self.max_query_limit.into());
        at_most("default_query_limit", default_limit, max_limit, "max_query_limit")?;
        at_most(
            "max_update_adds",
            self.max_update_adds.into(),
            self.max_stream_topics.into(),
            "max_stream_topics",
        )
    }
}

fn at_most(key: &'static str, value: u64, max: u64, max_name: &str) -> Result<(), InvalidConfiguration> {
    if value <= max {
        return Ok(());
    }
    Err(InvalidConfiguration {
        key,
        problem: format!("needs {value}, and {max_name} is {max}"),
    })
}

/// Tag and length before an envelope of a publish request, in bytes.
#[must_use]
pub(crate) fn entry_overhead(envelope_bytes: u64) -> u64 {
    1 + prost::length_delimiter_len(usize::try_from(envelope_bytes).unwrap_or(usize::MAX)) as u64
}

/// How long each kind of envelope is kept, in seconds. Commits, proposals, identity updates and commit-log entries
/// are kept for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionSeconds {
    /// Group messages that are neither commit nor proposal.
    pub group_message: u64,
    /// Welcomes.
    pub welcome: u64,
    /// Key packages.
    pub key_package: u64,
}

impl Default for RetentionSeconds {
    fn default() -> RetentionSeconds {
        RetentionSeconds {
            group_message: DEFAULT_RETENTION_SECONDS,
            welcome: DEFAULT_RETENTION_SECONDS,
            key_package: DEFAULT_RETENTION_SECONDS,
        }
    }
}

/// An expiry that does not fit a signed 64-bit number of nanoseconds: INTERNAL, and nothing is stored (OPS-020).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the expiry of an envelope lies beyond the range of the clock")]
pub struct ExpiryOverflow;

impl RetentionSeconds {
    /// The published message.
    #[must_use]
    pub fn to_wire(&self) -> RetentionConfiguration {
        RetentionConfiguration {
            group_message_seconds: self.group_message,
            welcome_seconds: self.welcome,
            key_package_seconds: self.key_package,
        }
    }

    /// Checks the range of each value, 1 to [`MAX_RETENTION_SECONDS`], and that an envelope stored at `now_ns`
    /// (nanoseconds since the Unix epoch) has an expiry (OPS-020).
    ///
    /// # Errors
    /// [`InvalidConfiguration`] naming the first key that fails.
    pub fn validate(&self, now_ns: u64) -> Result<(), InvalidConfiguration> {
        let values = [
            (
                "group_message_seconds",
                self.group_message,
                Retention::GroupMessage,
            ),
            ("welcome_seconds", self.welcome, Retention::Welcome),
            ("key_package_seconds", self.key_package, Retention::KeyPackage),
        ];
        for (key, seconds, class) in values {
            if seconds == 0 {
                return Err(InvalidConfiguration {
                    key,
                    problem: "must not be 0".to_owned(),
                });
            }
            at_most(key, seconds, MAX_RETENTION_SECONDS, "the longest retention")?;
            self.expiry_ns(class, now_ns)
                .map_err(|error| InvalidConfiguration {
                    key,
                    problem: error.to_string(),
                })?;
        }
        Ok(())
    }

    /// When an envelope stored at `server_ns` (nanoseconds since the Unix epoch) may be deleted, in the same unit; 0 is
    /// never (OPS-001).
    ///
    /// # Errors
    /// [`ExpiryOverflow`] when that moment cannot be written.
    pub fn expiry_ns(&self, class: Retention, server_ns: u64) -> Result<u64, ExpiryOverflow> {
        let seconds = match class {
            Retention::Exempt => return Ok(0),
            Retention::GroupMessage => self.group_message,
            Retention::Welcome => self.welcome,
            Retention::KeyPackage => self.key_package,
        };
        seconds
            .checked_mul(NANOS_PER_SECOND)
            .and_then(|nanos| server_ns.checked_add(nanos))
            .filter(|expiry| *expiry <= i64::MAX as u64)
            .ok_or(ExpiryOverflow)
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;

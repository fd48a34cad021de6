//! What an operator sets about credentials, checked as a whole (AUTH-003, AUTH-029 to AUTH-034, CONF-005, CONF-066).
//! Depends on the parts of this crate.

use std::{fmt, rc::Rc};

use crate::{
    api_key::ApiKeys,
    claims::{Expectations, LEEWAY_SECONDS_MAX},
    inline_key,
    key_set::KeySet,
    key_source::{DEFAULT_REFRESH_SECONDS, DEFAULT_STALE_SECONDS_MAX, Timing, TimingError},
};

/// What every variable about credentials begins with.
pub const PREFIX: &str = "CONCLAVE_AUTH_";
/// Whether credentials are asked for: `true` or `false`.
pub const ENABLED: &str = "CONCLAVE_AUTH_ENABLED";
/// What the variable of an API key begins with; its name follows.
pub const API_KEY_PREFIX: &str = "CONCLAVE_AUTH_API_KEY_";
/// Where the key set is.
pub const JWKS_URL: &str = "CONCLAVE_AUTH_JWKS_URL";
/// The keys themselves.
pub const KEYS: &str = "CONCLAVE_AUTH_KEYS";
const AUDIENCES: &str = "CONCLAVE_AUTH_AUDIENCES";
const ISSUERS: &str = "CONCLAVE_AUTH_ISSUERS";
const REQUIRED_SCOPES: &str = "CONCLAVE_AUTH_REQUIRED_SCOPES";
const LEEWAY_SECONDS: &str = "CONCLAVE_AUTH_LEEWAY_SECONDS";
const REFRESH_SECONDS: &str = "CONCLAVE_AUTH_JWKS_REFRESH_SECONDS";
const STALE_SECONDS_MAX: &str = "CONCLAVE_AUTH_JWKS_MAX_STALE_SECONDS";

/// Every variable about credentials; `<name>` stands for what the operator chooses.
pub const ALL_NAMES: [&str; 10] = [
    ENABLED,
    "CONCLAVE_AUTH_API_KEY_<name>",
    JWKS_URL,
    KEYS,
    AUDIENCES,
    ISSUERS,
    REQUIRED_SCOPES,
    LEEWAY_SECONDS,
    REFRESH_SECONDS,
    STALE_SECONDS_MAX,
];

/// How many audiences, issuers or scopes may be configured.
pub const LIST_ENTRIES_MAX: usize = 32;
/// The longest audience, issuer or scope, in bytes. With the number above, what is published stays below 64 KiB (CONF-009).
pub const LIST_ENTRY_BYTES_MAX: usize = 256;
/// The longest URL of a key set, in bytes.
pub const JWKS_URL_BYTES_MAX: usize = 2048;

/// A variable that cannot be used. Says nothing of a secret's value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct ConfigurationError {
    /// The variable.
    pub key: String,
    /// What is wrong with it.
    pub reason: String,
}

fn error(key: &str, reason: impl fmt::Display) -> ConfigurationError {
    ConfigurationError {
        key: key.to_owned(),
        reason: reason.to_string(),
    }
}

/// Where a key set is fetched from. May hold a secret, so only its host shows.
#[derive(Clone, PartialEq, Eq)]
pub struct JwksUrl {
    url: String,
    authority_end: usize,
    authority_begin: usize,
}

impl JwksUrl {
    /// Reads an `https` URL, or a `http` URL of this very machine (AUTH-015).
    ///
    /// # Errors
    /// What is wrong with it, without a word of it.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        if url.len() > JWKS_URL_BYTES_MAX {
            return Err("is longer than 2048 bytes");
        }
        if !url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err("has characters that no URL has");
        }
        let (scheme, rest) = url.split_once("://").ok_or("is not a URL with a host")?;
        let authority_begin = url.len() - rest.len();
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') || rest.contains('#') {
            return Err("has credentials before its host or a fragment, which are not sent");
        }
        let (host, port) = host_and_port(authority);
        match scheme {
            _ if host.is_empty() => Err("has no host"),
            _ if !is_host(host) || !is_port(port) => Err("has a host or a port that nothing can have"),
            "https" => Ok(()),
            "http" if is_loopback(host) => Ok(()),
            _ => Err("is neither https, nor http to localhost or a loopback address"),
        }?;
        Ok(Self {
            url: url.to_owned(),
            authority_begin,
            authority_end: authority_begin + authority.len(),
        })
    }

    /// The URL, to be fetched and never shown.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.url
    }

    /// Its host and port: all that may stand in a log (AUTH-027).
    #[must_use]
    pub fn host(&self) -> &str {
        &self.url[self.authority_begin..self.authority_end]
    }
}

impl fmt::Debug for JwksUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "JwksUrl({}, …)", self.host())
    }
}

/// The two parts of an authority; the second is empty where there is none.
fn host_and_port(authority: &str) -> (&str, &str) {
    if authority.ends_with(']') {
        return (authority, "");
    }
    authority.rsplit_once(':').unwrap_or((authority, ""))
}

/// Whether this is an address or a name. A name of other letters is written in those of IDNA.
fn is_host(host: &str) -> bool {
    let in_brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match in_brackets {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
    }
}

fn is_port(port: &str) -> bool {
    port.is_empty() || (port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok())
}

fn is_loopback(host: &str) -> bool {
    let address: Option<std::net::Ipv4Addr> = host.parse().ok();
    host.eq_ignore_ascii_case("localhost")
        || host == "[::1]"
        || address.is_some_and(|address| address.is_loopback())
}

/// The keys that sign tokens.
#[derive(Clone, Debug, PartialEq)]
pub enum SigningKeys {
    /// None: only API keys are admitted.
    None,
    /// Those of the configuration.
    Inline(Rc<KeySet>),
    /// Those of a key set that is fetched.
    Fetched {
        /// From where.
        url: JwksUrl,
        /// How often.
        timing: Timing,
    },
}

/// The credentials a deployment asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Credentials {
    /// Tokens that are compared.
    pub api_keys: ApiKeys,
    /// Keys of tokens that are signed. There is at least one of the two.
    pub signing_keys: SigningKeys,
    /// What a signed token must say.
    pub expectations: Expectations,
}

/// Whether credentials are asked for, and which.
pub type CredentialConfiguration = Option<Credentials>;

impl Credentials {
    pub(crate) fn has_signing_keys(&self) -> bool {
        self.signing_keys != SigningKeys::None
    }

    /// The credentials the variables of an environment describe. `None` when nothing is asked for: without any variable of
    /// these, or while `CONCLAVE_AUTH_ENABLED` is `false`, when the others are not even looked at.
    ///
    /// | Variable | Value |
    /// |---|---|
    /// | `CONCLAVE_AUTH_ENABLED` | `true` or `false`; must be there when any of the others is |
    /// | `CONCLAVE_AUTH_API_KEY_<name>` | 32 to 8192 visible ASCII characters; a secret |
    /// | `CONCLAVE_AUTH_JWKS_URL` | an `https` URL, or `http` to this machine |
    /// | `CONCLAVE_AUTH_KEYS` | a JSON list of `{"kid", "alg", "public_key"}` with PEM public keys, in place of the URL |
    /// | `CONCLAVE_AUTH_AUDIENCES`, `…_ISSUERS` | one of which a token must name, joined by commas |
    /// | `CONCLAVE_AUTH_REQUIRED_SCOPES` | all of which a token must have, joined by commas |
    /// | `CONCLAVE_AUTH_LEEWAY_SECONDS` | 0 to 300, by default 60 |
    /// | `CONCLAVE_AUTH_JWKS_REFRESH_SECONDS` | at least 1, by default 300 |
    /// | `CONCLAVE_AUTH_JWKS_MAX_STALE_SECONDS` | at least the refresh, a tenth of it and 10, by default 3600 |
    ///
    /// # Errors
    /// A variable that is unknown, malformed, out of range or missing.
    pub fn from_variables<K: AsRef<str>, V: AsRef<str>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Result<CredentialConfiguration, ConfigurationError> {
        let ours: Vec<(K, V)> = variables
            .into_iter()
            .filter(|(key, _)| key.as_ref().starts_with(PREFIX))
            .collect();
        if ours.is_empty() {
            return Ok(None);
        }
        let enabled = ours.iter().find(|(key, _)| key.as_ref() == ENABLED);
        match enabled.map(|(_, value)| value.as_ref()) {
            Some("true") => {}
            Some("false") => return Ok(None),
            Some(_) => return Err(error(ENABLED, "is neither true nor false")),
            None => {
                return Err(error(
                    ENABLED,
                    "is missing beside other variables about credentials",
                ));
            }
        }
        let mut parts = Parts::default();
        for (key, value) in &ours {
            parts.set(key.as_ref(), value.as_ref())?;
        }
        parts.join().map(Some)
    }
}

/// Variables that were read one by one.
#[derive(Default)]
struct Parts {
    api_keys: ApiKeys,
    url: Option<JwksUrl>,
    inline: Option<KeySet>,
    expectations: Expectations,
    refresh_seconds: Option<u32>,
    stale_seconds_max: Option<u32>,
}

impl Parts {
    fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigurationError> {
        let refuse = |reason: &dyn fmt::Display| error(key, reason);
        match key {
            ENABLED => {}
            JWKS_URL => self.url = Some(JwksUrl::parse(value).map_err(|reason| refuse(&reason))?),
            KEYS => self.inline = Some(inline_key::parse(value).map_err(|reason| refuse(&reason))?),
            AUDIENCES => self.expectations.audiences = parse_list(key, value)?,
            ISSUERS => self.expectations.issuers = parse_list(key, value)?,
            REQUIRED_SCOPES => {
                let scopes = parse_list(key, value)?;
                // RFC 6749 section 3.3. Tokens have them with spaces between, so nobody could be granted such a one.
                if scopes.iter().any(|scope| scope.contains(' ')) {
                    return Err(refuse(&"has a space within a scope: they are joined by commas"));
                }
                self.expectations.required_scopes = scopes;
            }
            LEEWAY_SECONDS => {
                self.expectations.leeway_seconds = parse_number(key, value, LEEWAY_SECONDS_MAX)?;
            }
            REFRESH_SECONDS => self.refresh_seconds = Some(parse_number(key, value, u32::MAX)?),
            STALE_SECONDS_MAX => self.stale_seconds_max = Some(parse_number(key, value, u32::MAX)?),
            _ => match key.strip_prefix(API_KEY_PREFIX) {
                Some(name) => self.api_keys.add(name, value).map_err(|reason| refuse(&reason))?,
                None => return Err(error(key, "is not a variable of this service")),
            },
        }
        Ok(())
    }

    fn join(self) -> Result<Credentials, ConfigurationError> {
        let timing = Timing::new(
            self.refresh_seconds.unwrap_or(DEFAULT_REFRESH_SECONDS),
            self.stale_seconds_max.unwrap_or(DEFAULT_STALE_SECONDS_MAX),
        );
        let timing = timing.map_err(|problem| match problem {
            TimingError::Refresh => error(REFRESH_SECONDS, problem),
            TimingError::Stale { .. } => error(STALE_SECONDS_MAX, problem),
        })?;
        let signing_keys = match (self.url, self.inline) {
            (Some(_), Some(_)) => {
                return Err(error(
                    KEYS,
                    "is set beside the URL of a key set: one of them is enough",
                ));
            }
            (Some(url), None) => SigningKeys::Fetched { url, timing },
            (None, Some(keys)) => SigningKeys::Inline(Rc::new(keys)),
            (None, None) if self.api_keys.is_empty() => {
                return Err(error(
                    ENABLED,
                    "is true without any API key, key set or key: nobody could be admitted",
                ));
            }
            (None, None) => SigningKeys::None,
        };
        Ok(Credentials {
            api_keys: self.api_keys,
            signing_keys,
            expectations: self.expectations,
        })
    }
}

fn parse_number(key: &str, value: &str, max: u32) -> Result<u32, ConfigurationError> {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| value.parse().ok()).flatten();
    number
        .filter(|number| *number <= max)
        .ok_or_else(|| error(key, format_args!("{value:?} is not a number up to {max}")))
}

/// Entries joined by commas, at least one.
fn parse_list(key: &str, value: &str) -> Result<Vec<String>, ConfigurationError> {
    let entries: Vec<String> = value.split(',').map(|entry| entry.trim().to_owned()).collect();
    let fits = |entry: &String| (1..=LIST_ENTRY_BYTES_MAX).contains(&entry.len());
    if entries.len() > LIST_ENTRIES_MAX || !entries.iter().all(fits) {
        return Err(error(
            key,
            format_args!(
                "is not 1 to {LIST_ENTRIES_MAX} entries of 1 to {LIST_ENTRY_BYTES_MAX} bytes, joined by commas"
            ),
        ));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: (&str, &str) = ("CONCLAVE_AUTH_API_KEY_ops", "0123456789abcdef0123456789abcdef");
    const URL: (&str, &str) = (JWKS_URL, "https://issuer.example/jwks?secret=1");
    const ON: (&str, &str) = (ENABLED, "true");
    const INLINE: (&str, &str) = (
        KEYS,
        r#"[{"kid":"a","alg":"EdDSA","public_key":"-----BEGIN PUBLIC KEY-----MCowBQYDK2VwAyEA0jyI/PoJlfir8J87CZaD9Ia+sIuKTaESt/DzBFc7IWk=-----END PUBLIC KEY-----"}]"#,
    );

    fn read(variables: &[(&str, &str)]) -> Result<CredentialConfiguration, ConfigurationError> {
        Credentials::from_variables(variables.iter().copied())
    }

    fn failing_key(variables: &[(&str, &str)]) -> String {
        read(variables).expect_err("unusable").key
    }

    // AUTH-003, CONF-066
    #[test]
    fn nothing_is_asked_for_unless_it_is_switched_on() {
        assert_eq!(read(&[("CONCLAVE_SHARDS", "1"), ("PATH", "/bin")]), Ok(None));
        let off = [
            (ENABLED, "false"),
            (JWKS_URL, "junk"),
            ("CONCLAVE_AUTH_WHAT", "?"),
        ];
        assert_eq!(read(&off), Ok(None));
    }

    // CONF-005
    #[test]
    fn other_variables_without_the_switch_are_refused() {
        assert_eq!(failing_key(&[KEY]), ENABLED);
        assert_eq!(failing_key(&[(ENABLED, "yes"), KEY]), ENABLED);
        assert_eq!(failing_key(&[(ENABLED, ""), KEY]), ENABLED);
    }

    // AUTH-029
    #[test]
    fn there_is_a_way_in_and_one_source_of_keys() {
        assert_eq!(failing_key(&[ON]), ENABLED);
        assert_eq!(failing_key(&[ON, URL, INLINE]), KEYS);
        let only_keys = read(&[ON, KEY]).expect("usable").expect("on");
        assert_eq!(only_keys.signing_keys, SigningKeys::None);
        let fetched = read(&[ON, URL]).expect("usable").expect("on");
        assert!(matches!(fetched.signing_keys, SigningKeys::Fetched { .. }));
        let inline = read(&[ON, INLINE, KEY]).expect("usable").expect("on");
        assert!(matches!(inline.signing_keys, SigningKeys::Inline(_)));
    }

    #[test]
    fn every_variable_sets_its_value() {
        let credentials = read(&[
            ON,
            KEY,
            URL,
            ("CONCLAVE_AUTH_AUDIENCES", "a, b"),
            ("CONCLAVE_AUTH_ISSUERS", "https://issuer.example"),
            ("CONCLAVE_AUTH_REQUIRED_SCOPES", "chat"),
            ("CONCLAVE_AUTH_LEEWAY_SECONDS", "0"),
            ("CONCLAVE_AUTH_JWKS_REFRESH_SECONDS", "60"),
            ("CONCLAVE_AUTH_JWKS_MAX_STALE_SECONDS", "76"),
        ])
        .expect("usable")
        .expect("on");
        let expectations = Expectations {
            audiences: vec!["a".to_owned(), "b".to_owned()],
            issuers: vec!["https://issuer.example".to_owned()],
            required_scopes: vec!["chat".to_owned()],
            leeway_seconds: 0,
        };
        assert_eq!(credentials.expectations, expectations);
        assert_eq!(credentials.api_keys.name_of(KEY.1), Some("ops"));
        let SigningKeys::Fetched { url, timing } = &credentials.signing_keys else {
            panic!("a key set is fetched");
        };
        assert_eq!((url.expose(), url.host()), (URL.1, "issuer.example"));
        assert_eq!(*timing, Timing::new(60, 76).expect("times"));
        let shown = format!("{credentials:?}");
        assert!(!shown.contains("secret") && !shown.contains(KEY.1), "{shown}");
    }

    // AUTH-032, AUTH-034, CONF-065
    #[test]
    fn a_value_that_cannot_be_used_is_refused_with_the_name_of_its_variable() {
        let long = "x".repeat(LIST_ENTRY_BYTES_MAX + 1);
        let many = vec!["x"; LIST_ENTRIES_MAX + 1].join(",");
        for (key, value) in [
            ("CONCLAVE_AUTH_API_KEY_", KEY.1),
            ("CONCLAVE_AUTH_API_KEY_a b", KEY.1),
            ("CONCLAVE_AUTH_API_KEY_short", "short"),
            ("CONCLAVE_AUTH_API_KEY_again", KEY.1),
            ("CONCLAVE_AUTH_AUDIENCES", ""),
            ("CONCLAVE_AUTH_ISSUERS", "a,,b"),
            ("CONCLAVE_AUTH_REQUIRED_SCOPES", &long),
            ("CONCLAVE_AUTH_REQUIRED_SCOPES", &many),
            ("CONCLAVE_AUTH_REQUIRED_SCOPES", "read write"),
            ("CONCLAVE_AUTH_LEEWAY_SECONDS", "301"),
            ("CONCLAVE_AUTH_LEEWAY_SECONDS", "-1"),
            ("CONCLAVE_AUTH_LEEWAY_SECONDS", "+1"),
            ("CONCLAVE_AUTH_JWKS_REFRESH_SECONDS", "0"),
            ("CONCLAVE_AUTH_JWKS_MAX_STALE_SECONDS", "339"),
            ("CONCLAVE_AUTH_KEYS", "[]"),
            ("CONCLAVE_AUTH_ENABLE", "true"),
        ] {
            assert_eq!(failing_key(&[ON, KEY, (key, value)]), key, "{value}");
        }
    }

    // AUTH-015
    #[test]
    fn a_key_set_comes_over_https_or_from_this_machine() {
        for url in [
            "https://issuer.example/.well-known/jwks.json",
            "https://issuer.example:8443/x?y=z",
            "https://xn--bcher-kva.example./jwks",
            "https://[2001:db8::1]/jwks",
            "http://localhost:8080/jwks",
            "http://LOCALHOST",
            "http://127.0.0.1/jwks",
            "http://127.8.9.10:1/jwks",
            "http://[::1]:80/jwks",
        ] {
            assert!(JwksUrl::parse(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "issuer.example/jwks",
            "https://",
            "https:///jwks",
            "https://:443/jwks",
            "http://issuer.example/jwks",
            "http://localhost.issuer.example/jwks",
            "http://127.0.0.1.issuer.example/jwks",
            "http://127.1/jwks",
            "http://10.0.0.1/jwks",
            "http://[::2]/jwks",
            "http://localhost@issuer.example/jwks",
            "https://user:pass@issuer.example/jwks",
            "https://issuer.example/jwks#x",
            "http://localhost\\@issuer.example/",
            "ftp://localhost/jwks",
            "https://issuer.example/ jwks",
            "https://issuer.example:port/jwks",
            "https://issuer.example:65536/jwks",
            "https://issuer.example:+1/jwks",
            "https://issuer.example:1:2/jwks",
            "https://issuer%2eexample/jwks",
            "https://<issuer>/jwks",
            "https://[::1/jwks",
            "https://[issuer.example]/jwks",
            "https://[::1]x/jwks",
        ] {
            assert!(JwksUrl::parse(url).is_err(), "{url}");
        }
        assert!(JwksUrl::parse(&format!("https://h/{}", "x".repeat(2048))).is_err());
    }
}

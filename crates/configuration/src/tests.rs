//! What variables make of a deployment.

use conclave_identity::HandlePolicy;
use conclave_identity::handle::DEFAULT_MIN_NAME_LENGTH;
use conclave_proto::xmtp::backend::v1::{AuthConfiguration, auth_configuration::SigningKey};
use conclave_topiclog::Configuration;

use super::*;

/// 2026, in nanoseconds since the Unix epoch.
const NOW_NS: u64 = 1_790_000_000_000_000_000;

fn read(variables: &[(&str, &str)]) -> Result<Settings, ConfigurationError> {
    let named = [("CONCLAVE_IDENTIFIER", "talk.example")];
    let variables = named.iter().chain(variables);
    let texts = variables.map(|(name, value)| (*name, Value::Text((*value).to_owned())));
    Settings::from_variables(texts, NOW_NS)
}

fn refused_name(name: &str, value: &str) -> Option<String> {
    match read(&[(name, value)]) {
        Err(ConfigurationError::Variable { name, .. }) => Some(name),
        _ => None,
    }
}

#[test]
fn a_name_alone_gives_the_defaults() {
    let settings = read(&[]).expect("usable");
    let expected = Configuration {
        identifier: "talk.example".to_owned(),
        ..Configuration::default()
    };
    assert_eq!(*settings.backend, expected);
    assert!(settings.registry.signing_seed.is_none() && settings.registry.admission_token.is_none());
}

#[test]
fn a_deployment_without_a_name_is_refused() {
    let none: [(&str, Value); 0] = [];
    let error = Settings::from_variables(none, NOW_NS).expect_err("no name");
    assert!(
        matches!(&error, ConfigurationError::Variable { name, .. } if name == "CONCLAVE_IDENTIFIER"),
        "{error}"
    );
}

#[test]
fn every_variable_sets_its_value() {
    let settings = read(&[
        ("CONCLAVE_SHARDS", "3"),
        ("CONCLAVE_MIN_LIBXMTP_VERSION", "1.2.3-rc.1+b"),
        ("CONCLAVE_KEEPALIVE_INTERVAL_MS", "5000"),
        ("CONCLAVE_MAX_PONG_WAIT_MS", "6000"),
        ("CONCLAVE_RETENTION_GROUP_MESSAGE_SECONDS", "61"),
        ("CONCLAVE_RETENTION_WELCOME_SECONDS", "62"),
        ("CONCLAVE_RETENTION_KEY_PACKAGE_SECONDS", "63"),
        ("CONCLAVE_HANDLES_MIN_NAME_LENGTH", "5"),
        ("CONCLAVE_HANDLES_RESERVED_NAMES", "operator, the-office"),
        ("CONCLAVE_MAX_QUERY_LIMIT", "200"),
        ("CONCLAVE_MLS_MAX_GROUP_MEMBERS", "33"),
        ("CONCLAVE_MLS_MAX_INSTALLATIONS_PER_INBOX", "4"),
        ("CONCLAVE_MLS_COMMIT_LOG_ENABLED", "false"),
        ("CONCLAVE_CHAIN_10_RPC_URL", "https://node.example/key"),
        (
            "CONCLAVE_REGISTRY_SEED",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        ),
        ("CONCLAVE_REGISTRY_ADMISSION_TOKEN", "let-me-in"),
        ("PATH", "/bin"),
    ])
    .expect("usable");
    let backend = &settings.backend;
    assert_eq!(backend.shard_count, 3);
    assert_eq!(backend.keepalive_interval_ms, 5000);
    assert_eq!(backend.max_pong_wait_ms, 6000);
    assert_eq!(backend.handles, HandlePolicy::new(5, ["operator", "the-office"]));
    assert_eq!(settings.registry.signing_seed, Some([0; 32]));
    assert!(settings.registry.admission_token.is_some());
    let published = backend.to_wire();
    assert_eq!(published.identifier, "talk.example");
    assert_eq!(published.min_libxmtp_version, "1.2.3-rc.1+b");
    assert_eq!(published.handles.map(|handles| handles.min_name_length), Some(5));
    assert_eq!(published.smart_contract_wallet_chains, ["eip155:10"]);
    assert_eq!(published.limits.map(|limits| limits.max_query_limit), Some(200));
    let retention = published.retention.expect("published");
    assert_eq!(
        (
            retention.group_message_seconds,
            retention.welcome_seconds,
            retention.key_package_seconds
        ),
        (61, 62, 63)
    );
    let mls = published.mls.expect("published");
    assert_eq!((mls.max_group_members, mls.max_installations_per_inbox), (33, 4));
    assert_eq!(mls.commit_log_enabled, Some(false));
}

#[test]
fn a_value_that_is_no_value_is_refused_by_the_name_of_its_variable() {
    let long = "x".repeat(257);
    for (name, value) in [
        ("CONCLAVE_IDENTIFIER", ""),
        ("CONCLAVE_IDENTIFIER", "two words"),
        ("CONCLAVE_IDENTIFIER", "bell\u{7}"),
        ("CONCLAVE_IDENTIFIER", &long),
        ("CONCLAVE_SHARDS", "-1"),
        ("CONCLAVE_SHARDS", "+1"),
        ("CONCLAVE_SHARDS", "four"),
        ("CONCLAVE_MIN_LIBXMTP_VERSION", "1.2"),
        ("CONCLAVE_MIN_LIBXMTP_VERSION", "01.2.3"),
        ("CONCLAVE_MIN_LIBXMTP_VERSION", "1.2.3-"),
        ("CONCLAVE_MIN_LIBXMTP_VERSION", "1.2.3-01"),
        ("CONCLAVE_HANDLES_RESERVED_NAMES", "fine,Not"),
        ("CONCLAVE_HANDLES_RESERVED_NAMES", "alice.42"),
        ("CONCLAVE_HANDLES_RESERVED_NAMES", "fine,"),
        ("CONCLAVE_MLS_COMMIT_LOG_ENABLED", "yes"),
        ("CONCLAVE_CHAIN_1_RPC_URL", "node.example"),
        ("CONCLAVE_RESTORED", "in two words"),
        ("CONCLAVE_REGISTRY_SEED", "short"),
        (
            "CONCLAVE_REGISTRY_SEED",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        ),
        ("CONCLAVE_REGISTRY_ADMISSION_TOKEN", "short"),
    ] {
        assert_eq!(refused_name(name, value).as_deref(), Some(name), "{name}={value}");
    }
}

#[test]
fn a_name_of_ours_that_nothing_reads_is_refused() {
    for name in [
        "CONCLAVE_",
        "CONCLAVE_MAX_PUBLISH_TOPIC",
        "CONCLAVE_max_publish_topics",
        "CONCLAVE_CHAIN_01_RPC_URL",
        "CONCLAVE_CHAIN_ONE_RPC_URL",
        "CONCLAVE_REGISTRY_SEEDS",
    ] {
        assert_eq!(refused_name(name, "1").as_deref(), Some(name), "{name}");
    }
}

#[test]
fn what_is_no_text_is_refused_under_a_name_of_ours_and_passed_over_under_another() {
    let named = ("CONCLAVE_IDENTIFIER", Value::Text("talk.example".to_owned()));
    let ours = [named.clone(), ("CONCLAVE_SHARDS", Value::Other)];
    let error = Settings::from_variables(ours, NOW_NS).expect_err("a list is no number");
    assert!(error.to_string().starts_with("CONCLAVE_SHARDS: "), "{error}");
    assert!(Settings::from_variables([named, ("SHARD", Value::Other)], NOW_NS).is_ok());
}

#[test]
fn no_secret_shows_in_an_error_or_in_debug_output() {
    let secret = "s3cret s3cret";
    for name in [
        "CONCLAVE_REGISTRY_SEED",
        "CONCLAVE_REGISTRY_ADMISSION_TOKEN",
        "CONCLAVE_CHAIN_1_RPC_URL",
    ] {
        let error = read(&[(name, secret)]).expect_err("not usable");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
    let settings = read(&[
        ("CONCLAVE_REGISTRY_ADMISSION_TOKEN", "s3cret-s3cret"),
        ("CONCLAVE_CHAIN_1_RPC_URL", "https://node.example/s3cret"),
    ]);
    assert!(!format!("{settings:?}").contains("s3cret"));
}

#[test]
fn no_name_needs_to_be_reserved() {
    let settings = read(&[("CONCLAVE_HANDLES_RESERVED_NAMES", "")]).expect("usable");
    let none: [&str; 0] = [];
    assert_eq!(
        settings.backend.handles,
        HandlePolicy::new(DEFAULT_MIN_NAME_LENGTH, none)
    );
}

#[test]
fn a_retention_that_the_clock_overtook_is_refused() {
    let name = "CONCLAVE_RETENTION_WELCOME_SECONDS";
    assert_eq!(refused_name(name, "9223372036").as_deref(), Some(name));
    assert!(read(&[(name, "7000000000")]).is_ok());
}

#[test]
fn what_would_be_too_long_to_publish_is_refused_as_such() {
    let version = format!("1.0.0-{}", "x".repeat(PUBLISHED_BYTES_MAX));
    let error = read(&[("CONCLAVE_MIN_LIBXMTP_VERSION", &version)]).expect_err("too long");
    assert!(matches!(error, ConfigurationError::TooLarge { bytes } if bytes > PUBLISHED_BYTES_MAX));
}

const OPERATOR_TOKEN: &str = "an-operators-token-of-32-bytes-and-more";
const API_KEY: &str = "an-api-key-of-32-bytes-and-more-than-that";

#[test]
fn an_operators_token_reads_the_counters_and_may_call() {
    let settings = read(&[
        ("CONCLAVE_AUTH_ENABLED", "true"),
        ("CONCLAVE_AUTH_API_KEY_app", API_KEY),
        ("CONCLAVE_OPERATOR_TOKEN", OPERATOR_TOKEN),
        ("CONCLAVE_REQUEST_LOGGER", "false"),
    ])
    .expect("usable");
    let credentials = settings.credentials.as_ref().expect("asked for");
    assert_eq!(credentials.api_keys.name_of(OPERATOR_TOKEN), Some(OPERATOR));
    let operators = settings.operations.token.as_ref().expect("set");
    assert_eq!(operators.name_of(OPERATOR_TOKEN), Some(OPERATOR));
    assert_eq!(
        operators.name_of(API_KEY),
        None,
        "who may call is not an operator for it"
    );
    assert!(!settings.operations.request_logger);
    assert!(!format!("{settings:?}").contains(OPERATOR_TOKEN));
    assert_eq!(read(&[]).expect("usable").operations, Operations::default());
}

#[test]
fn an_operators_token_that_is_weak_or_an_api_key_is_refused_by_the_name_of_its_variable() {
    let name = "CONCLAVE_OPERATOR_TOKEN";
    assert_eq!(refused_name(name, "short").as_deref(), Some(name));
    let twice = read(&[
        ("CONCLAVE_AUTH_ENABLED", "true"),
        ("CONCLAVE_AUTH_API_KEY_app", API_KEY),
        (name, API_KEY),
    ]);
    let named = matches!(twice, Err(ConfigurationError::Variable { name: refused, .. }) if refused == name);
    assert!(named);
    let posing = "CONCLAVE_AUTH_API_KEY_operator";
    for more in [&[][..], &[(name, OPERATOR_TOKEN)]] {
        let variables = [&[("CONCLAVE_AUTH_ENABLED", "true"), (posing, API_KEY)], more].concat();
        let refused = read(&variables);
        assert!(
            matches!(&refused, Err(ConfigurationError::Variable { name, .. }) if name == posing),
            "{refused:?}"
        );
    }
}

// CONF-068
#[test]
fn what_is_published_about_credentials_is_what_is_asked_for_and_no_key() {
    assert_eq!(
        read(&[]).expect("usable").backend.to_wire().auth,
        Some(AuthConfiguration::default())
    );
    let key = "MCowBQYDK2VwAyEA0jyI/PoJlfir8J87CZaD9Ia+sIuKTaESt/DzBFc7IWk=";
    let pem = format!("-----BEGIN PUBLIC KEY-----{key}-----END PUBLIC KEY-----");
    let keys = format!(r#"[{{"kid":"one","alg":"EdDSA","public_key":"{pem}"}}]"#);
    let settings = read(&[
        ("CONCLAVE_AUTH_ENABLED", "true"),
        ("CONCLAVE_AUTH_KEYS", &keys),
        ("CONCLAVE_AUTH_AUDIENCES", "a,b"),
        ("CONCLAVE_AUTH_ISSUERS", "c"),
        ("CONCLAVE_AUTH_REQUIRED_SCOPES", "d"),
        ("CONCLAVE_AUTH_API_KEY_app", API_KEY),
    ])
    .expect("usable");
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let expected = AuthConfiguration {
        enabled: true,
        keys: vec![SigningKey {
            kid: "one".to_owned(),
            alg: "EdDSA".to_owned(),
        }],
        audiences: texts(&["a", "b"]),
        issuers: texts(&["c"]),
        required_scopes: texts(&["d"]),
    };
    assert_eq!(settings.backend.to_wire().auth, Some(expected));
}

// CONF-005, CONF-066
#[test]
fn a_variable_about_credentials_that_is_a_list_counts_only_while_they_are_switched_on() {
    let keys = "CONCLAVE_AUTH_KEYS";
    let read = |enabled: Option<Value>| {
        let identifier = ("CONCLAVE_IDENTIFIER", Value::Text("talk.example".to_owned()));
        let enabled = enabled.map(|value| ("CONCLAVE_AUTH_ENABLED", value));
        let variables = [identifier, (keys, Value::Other)].into_iter().chain(enabled);
        Settings::from_variables(variables, NOW_NS)
    };
    let text = |value: &str| Some(Value::Text(value.to_owned()));
    assert!(read(text("false")).expect("not looked at").credentials.is_none());
    for (enabled, expected) in [
        (text("true"), keys),
        (None, keys),
        (Some(Value::Other), "CONCLAVE_AUTH_ENABLED"),
    ] {
        let error = read(enabled).expect_err("never open to anybody");
        assert!(
            matches!(&error, ConfigurationError::Variable { name, .. } if name == expected),
            "{error}"
        );
    }
}

// CONF-009
#[test]
fn what_is_published_leaves_room_for_the_keys_of_a_key_set() {
    let version = format!("1.2.3-{}", "a".repeat(50_000));
    let long = ("CONCLAVE_MIN_LIBXMTP_VERSION", version.as_str());
    assert!(read(&[long]).is_ok());
    let fetched = read(&[
        long,
        ("CONCLAVE_AUTH_ENABLED", "true"),
        ("CONCLAVE_AUTH_JWKS_URL", "https://issuer.example/keys"),
    ]);
    assert!(matches!(fetched, Err(ConfigurationError::TooLarge { .. })));
}

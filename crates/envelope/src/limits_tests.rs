//! The defaults, the relations between limits, and expiries.

use super::*;

#[test]
fn the_defaults_are_valid_and_published_as_they_are() {
    let limits = Limits::default();
    assert_eq!(limits.validate(), Ok(()));
    let wire = limits.to_wire();
    assert_eq!(wire.max_envelope_bytes, 1_048_576);
    assert_eq!((wire.max_query_limit, wire.default_query_limit), (1000, 100));
    assert_eq!((wire.max_static_topics, wire.max_ping_burst), (10_000, 100));
    assert_eq!(Limits::KEYS.len(), 20);
}

#[test]
fn no_limit_is_zero() {
    for key in Limits::KEYS {
        let mut limits = Limits::default();
        assert_eq!(limits.set(key, 0), Some(Ok(())));
        assert_eq!(limits.validate().expect_err("zero").key, *key);
    }
}

#[test]
fn a_key_is_set_by_its_published_name() {
    let mut limits = Limits::default();
    assert_eq!(limits.set("max_query_topics", 7), Some(Ok(())));
    assert_eq!(limits.max_query_topics, 7);
    assert!(
        matches!(limits.set("max_query_topics", 1 << 32), Some(Err(error)) if error.key == "max_query_topics")
    );
    assert_eq!(limits.set("max_envelopes", 1), None);
}

// API-282
#[test]
fn byte_budgets_stay_under_the_transport_ceiling() {
    for key in ["max_request_bytes", "max_response_bytes"] {
        let mut limits = Limits::default();
        assert_eq!(limits.set(key, TRANSPORT_CEILING_BYTES), Some(Ok(())));
        assert_eq!(limits.validate(), Ok(()), "the ceiling itself is carried");
        assert_eq!(limits.set(key, TRANSPORT_CEILING_BYTES + 1), Some(Ok(())));
        assert_eq!(limits.validate().expect_err("over the ceiling").key, key);
    }
}

#[test]
fn an_envelope_fits_its_request_its_response_and_a_stream_frame() {
    let check = |limits: Limits| limits.validate().map_err(|error| error.key);
    let base = Limits {
        max_envelope_bytes: 127,
        max_request_bytes: 129,
        ..Limits::default()
    };
    assert_eq!(check(base), Ok(()));
    assert_eq!(
        check(Limits {
            max_envelope_bytes: 128,
            ..base
        }),
        Err("max_envelope_bytes")
    );
    assert_eq!(
        check(Limits {
            max_envelope_bytes: 128,
            max_request_bytes: 131,
            ..base
        }),
        Ok(())
    );
    let base = Limits {
        max_envelope_bytes: 1000,
        max_response_bytes: 1256,
        ..Limits::default()
    };
    assert_eq!(check(base), Ok(()));
    assert_eq!(
        check(Limits {
            max_envelope_bytes: 1001,
            ..base
        }),
        Err("max_envelope_bytes")
    );
    let largest = Limits {
        max_envelope_bytes: 2_096_896,
        ..Limits::default()
    };
    assert_eq!(check(largest), Ok(()));
    assert_eq!(
        check(Limits {
            max_envelope_bytes: 2_096_897,
            ..largest
        }),
        Err("max_envelope_bytes")
    );
    assert_eq!(
        check(Limits {
            max_envelope_bytes: u64::MAX,
            ..largest
        }),
        Err("max_envelope_bytes")
    );
}

#[test]
fn counts_that_bound_each_other_agree() {
    let limits = Limits {
        default_query_limit: 1001,
        ..Limits::default()
    };
    assert_eq!(
        limits.validate().expect_err("above the maximum").key,
        "default_query_limit"
    );
    let limits = Limits {
        max_stream_topics: 99_999,
        ..Limits::default()
    };
    assert_eq!(
        limits.validate().expect_err("more than a stream holds").key,
        "max_update_adds"
    );
}

// API-212
#[test]
fn an_expiry_is_the_time_of_storing_and_the_retention_of_the_class() {
    let retention = RetentionSeconds {
        group_message: 1,
        welcome: 2,
        key_package: 3,
    };
    for (class, expiry) in [
        (Retention::Exempt, 0),
        (Retention::GroupMessage, 1_000_000_005),
        (Retention::Welcome, 2_000_000_005),
        (Retention::KeyPackage, 3_000_000_005),
    ] {
        assert_eq!(retention.expiry_ns(class, 5), Ok(expiry), "{class:?}");
    }
}

#[test]
fn an_expiry_beyond_the_clock_is_an_error() {
    let retention = RetentionSeconds {
        group_message: MAX_RETENTION_SECONDS,
        ..RetentionSeconds::default()
    };
    let spare = i64::MAX as u64 - MAX_RETENTION_SECONDS * NANOS_PER_SECOND;
    assert_eq!(
        retention.expiry_ns(Retention::GroupMessage, spare),
        Ok(i64::MAX as u64)
    );
    assert_eq!(
        retention.expiry_ns(Retention::GroupMessage, spare + 1),
        Err(ExpiryOverflow)
    );
    assert_eq!(retention.expiry_ns(Retention::Exempt, u64::MAX), Ok(0));
    assert_eq!(retention.validate(spare), Ok(()));
    assert_eq!(
        retention.validate(spare + 1).expect_err("overflows").key,
        "group_message_seconds"
    );
}

#[test]
fn a_retention_has_a_range() {
    for (seconds, valid) in [
        (0, false),
        (1, true),
        (MAX_RETENTION_SECONDS, true),
        (MAX_RETENTION_SECONDS + 1, false),
    ] {
        let retention = RetentionSeconds {
            welcome: seconds,
            ..RetentionSeconds::default()
        };
        assert_eq!(retention.validate(0).is_ok(), valid, "{seconds}");
    }
}

use super::*;

fn failed(code: Code, is_stated: bool) -> CallError {
    CallError {
        status: Status::new(code, "as the test wants it"),
        is_stated,
        router_instance: None,
    }
}

// CONV-H15
#[test]
fn a_dropped_connection_and_a_server_that_is_busy_are_tried_again_before_anyone_is_told() {
    let mut back_off = BackOff::default();
    for _ in 0..BLIPS_MAX {
        // A dropped connection, 503 and 429, as the transport names them.
        for (code, is_stated) in [
            (Code::Unavailable, false),
            (Code::Unavailable, true),
            (Code::ResourceExhausted, true),
        ] {
            assert_eq!(judge(&failed(code, is_stated), &back_off), Verdict::Blip);
        }
        back_off.next_delay(0.5);
    }
    assert_eq!(
        judge(&failed(Code::Unavailable, false), &back_off),
        Verdict::Outage
    );
    back_off.begun(false);
    assert_eq!(judge(&failed(Code::Unavailable, false), &back_off), Verdict::Blip);
}

// CONV-H13
#[test]
fn reading_goes_on_through_every_passing_failure_and_ends_where_it_is_refused() {
    let mut back_off = BackOff::default();
    back_off.failures = 100;
    for code in [
        Code::Unavailable,
        Code::DeadlineExceeded,
        Code::Internal,
        Code::Unknown,
        Code::FailedPrecondition,
    ] {
        assert_eq!(judge(&failed(code, true), &back_off), Verdict::Outage, "{code:?}");
    }
    for code in [Code::Unauthenticated, Code::PermissionDenied, Code::Unimplemented] {
        assert_eq!(
            judge(&failed(code, true), &back_off),
            Verdict::Refusal,
            "{code:?}"
        );
        // What something on the way says, and not the deployment, is no refusal.
        assert_eq!(
            judge(&failed(code, false), &back_off),
            Verdict::Outage,
            "{code:?}"
        );
    }
}

//! The grammar of handles and the three checks of a claim.

use proptest::prelude::*;

use super::*;

fn handle(text: &str) -> Handle {
    Handle::parse(text).expect("a handle")
}

// API-299
#[test]
fn a_handle_is_a_name_and_perhaps_digits() {
    let longest = "a".repeat(MAX_NAME_LENGTH);
    for (text, name) in [
        ("alice", "alice"),
        ("a", "a"),
        ("al-ice_2", "al-ice_2"),
        ("alice.01", "alice"),
        ("alice.123456789", "alice"),
        (&longest, &longest),
    ] {
        assert_eq!(handle(text).name(), name);
        assert_eq!(handle(text).to_string(), text);
    }
    for text in [
        "",
        ".",
        ".12",
        "alice.",
        "alice.1",
        "alice.00",
        "alice.000000000",
        "alice.1234567890",
        "alice.1a",
        "alice.12.34",
        "1alice",
        "-alice",
        "_alice",
        "alice-",
        "alice_",
        "Alice",
        "al ice",
        "alice ",
        "älice",
        "alice.١٢",
        "alice@x",
        &"a".repeat(MAX_NAME_LENGTH + 1),
    ] {
        assert_eq!(Handle::parse(text), None, "{text}");
    }
}

// API-299
#[test]
fn a_typed_handle_may_have_ascii_capitals_and_no_others() {
    assert_eq!(Handle::parse_any_case("ALice.42"), Some(handle("alice.42")));
    for text in ["ALICE.0", "\u{212a}im", "İpek"] {
        assert_eq!(Handle::parse_any_case(text), None, "{text}");
    }
}

// API-296
#[test]
fn a_handle_of_another_inbox_is_taken() {
    let policy = HandlePolicy::default();
    let check = |owner| policy.check(&handle("alice"), owner, None, 0);
    assert_eq!(check(HandleOwner::OtherInbox), Err(HandleRefusal::Taken));
    assert_eq!(
        (check(HandleOwner::SameInbox), check(HandleOwner::Nobody)),
        (Ok(()), Ok(()))
    );
}

// API-297
#[test]
fn short_and_reserved_name_parts_are_not_allowed() {
    let policy = HandlePolicy::new(5, ["Operator"]);
    let check = |text: &str, owner| policy.check(&handle(text), owner, None, 0);
    for owner in [HandleOwner::Nobody, HandleOwner::SameInbox] {
        assert_eq!(check("operator", owner), Err(HandleRefusal::Reserved));
        assert_eq!(check("operator.42", owner), Err(HandleRefusal::Reserved));
        assert_eq!(check("abcd", owner), Err(HandleRefusal::TooShort { min: 5 }));
        // The digits are no part of the name.
        assert_eq!(check("abcd.1234", owner), Err(HandleRefusal::TooShort { min: 5 }));
        assert_eq!(check("abcde", owner), Ok(()));
        assert_eq!(check("operators", owner), Ok(()));
    }
    let default = HandlePolicy::default();
    for name in ["admin", "support"] {
        assert_eq!(
            default.check(&handle(name), HandleOwner::Nobody, None, 0),
            Err(HandleRefusal::Reserved)
        );
    }
    assert_eq!(default.min_name_length(), DEFAULT_MIN_NAME_LENGTH);
}

// API-298
#[test]
fn seven_days_lie_between_claims() {
    let policy = HandlePolicy::default();
    let now = 2_000_000_000_000_000_000;
    let check = |claimed| policy.check(&handle("alice"), HandleOwner::SameInbox, claimed, now);
    assert_eq!(check(None), Ok(()));
    assert_eq!(check(Some(now - CLAIM_INTERVAL_NS)), Ok(()));
    assert_eq!(
        check(Some(now - CLAIM_INTERVAL_NS + 1)),
        Err(HandleRefusal::TooSoon)
    );
    assert_eq!(check(Some(now)), Err(HandleRefusal::TooSoon));
    // A clock that went back.
    assert_eq!(check(Some(u64::MAX)), Err(HandleRefusal::TooSoon));
    assert_eq!(CLAIM_INTERVAL_NS, 7 * 24 * 60 * 60 * 1_000_000_000);
}

// API-296, API-297, API-298
#[test]
fn a_claim_that_breaks_several_checks_is_refused_for_the_first() {
    let policy = HandlePolicy::default();
    let check = |text, owner, claimed| policy.check(&handle(text), owner, claimed, 1);
    assert_eq!(
        check("admin", HandleOwner::OtherInbox, Some(1)),
        Err(HandleRefusal::Taken)
    );
    assert_eq!(
        check("admin", HandleOwner::SameInbox, Some(1)),
        Err(HandleRefusal::Reserved)
    );
}

proptest! {
    #[test]
    fn any_text_is_a_handle_or_not(text in "[a-zA-Z0-9._é-]{0,45}") {
        if let Some(read) = Handle::parse(&text) {
            prop_assert_eq!(read.as_str(), &text[..]);
            prop_assert_eq!(Handle::parse_any_case(&text.to_ascii_uppercase()), Some(read));
        }
    }
}

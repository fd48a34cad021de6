//! Who gets which name and key, and what a repeated attempt gets.

use crate::support::*;
use conclave_grpc_web::Code;
use conclave_harness::{Randomness, randomness::SeededRandomness, registration::PRINCIPAL_ID_DEFAULT};
use conclave_proto::conclave::registry::v1::{register_response::Refusal, registry_service::Register};
use conclave_registry::{AdmissionToken, MINT_ATTEMPTS_MAX, Registry, RegistryConfiguration};
use conclave_sql::native::Database;
use proptest::prelude::*;

#[test]
fn a_registered_agent_has_the_card_it_asked_for() {
    let registry = registry();
    let mut request = asking(1, 1, "alice-agent");
    request.principal_id = conclave_harness::PrincipalId::from_bytes([7; 16]);
    let Registered::Card(card) = register(&registry, &request, 1) else {
        panic!("refused")
    };
    assert_eq!(card.agent_name().as_str(), "alice-agent");
    assert_eq!(card.public_key(), key(1).public_key());
    assert_eq!(card.principal_id(), request.principal_id);
    // The fraction of the second is cut off.
    assert_eq!(card.issued_at().to_string(), "2026-10-21T12:00:00Z");
    assert_eq!(card.version(), conclave_harness::WIRE_VERSION);
}

#[test]
fn an_absent_principal_is_the_default_one() {
    let registry = registry();
    let mut request = proven(&asking(1, 1, "alice-agent"), 1);
    request.principal_id = None;
    let Registered::Card(card) = outcome(&registry, call::<Register>(&registry, &request).unwrap()) else {
        panic!("refused")
    };
    assert_eq!(card.principal_id(), PRINCIPAL_ID_DEFAULT);
}

#[test]
fn a_repeated_attempt_gets_the_card_it_got() {
    let registry = registry();
    let first = registered(&registry, 1, "alice-agent");
    registered(&registry, 2, "bob-agent");
    let again = register(&registry, &asking(1, 1, "alice-agent"), 1);
    assert_eq!(again, Registered::Card(Box::new(first)));
}

#[test]
fn a_changed_attempt_under_the_same_operation_is_a_conflict_and_is_not_kept() {
    let registry = registry();
    let first = registered(&registry, 1, "alice-agent");
    let conflict = Registered::Refused(Refusal::IdempotencyConflict);
    assert_eq!(register(&registry, &asking(1, 1, "alice-other"), 1), conflict);
    let mut other_principal = asking(1, 1, "alice-agent");
    other_principal.principal_id = conclave_harness::PrincipalId::from_bytes([1; 16]);
    assert_eq!(register(&registry, &other_principal, 1), conflict);
    assert_eq!(
        register(&registry, &asking(1, 1, "alice-agent"), 1),
        Registered::Card(Box::new(first))
    );
}

#[test]
fn one_operation_id_of_two_keys_is_two_operations() {
    let registry = registry();
    let Registered::Card(alice) = register(&registry, &asking(1, 5, "alice-agent"), 1) else {
        panic!()
    };
    let Registered::Card(bob) = register(&registry, &asking(2, 5, "bob-agent"), 2) else {
        panic!()
    };
    assert_ne!(alice.agent_id(), bob.agent_id());
}

#[test]
fn a_stored_operation_comes_before_the_key_and_the_key_before_the_name() {
    let registry = registry();
    let alice = registered(&registry, 1, "alice-agent");
    registered(&registry, 2, "bob-agent");
    // A new operation of a registered key, for a taken name and for a free one.
    for (operation, name) in [(10, "bob-agent"), (11, "free-name"), (12, "alice-agent")] {
        let refused = register(&registry, &asking(1, operation, name), 1);
        assert_eq!(
            refused,
            Registered::Refused(Refusal::KeyAlreadyRegistered),
            "{name}"
        );
    }
    // A new key for a taken name.
    assert_eq!(
        register(&registry, &asking(3, 1, "bob-agent"), 3),
        Registered::Refused(Refusal::NameTaken)
    );
    // The stored operation of a registered key for its own, now taken, name.
    assert_eq!(
        register(&registry, &asking(1, 1, "alice-agent"), 1),
        Registered::Card(Box::new(alice))
    );
}

#[test]
fn a_stored_refusal_is_replayed_and_a_new_operation_decided_anew() {
    let registry = registry();
    registered(&registry, 1, "alice-agent");
    let taken = Registered::Refused(Refusal::NameTaken);
    assert_eq!(register(&registry, &asking(2, 1, "alice-agent"), 2), taken);
    // The same key gets another name under another operation, and the refusal stays what it was.
    assert!(matches!(
        register(&registry, &asking(2, 2, "bob-agent"), 2),
        Registered::Card(_)
    ));
    assert_eq!(register(&registry, &asking(2, 1, "alice-agent"), 2), taken);
    let known = Registered::Refused(Refusal::KeyAlreadyRegistered);
    assert_eq!(register(&registry, &asking(2, 3, "carol-agent"), 2), known);
    assert_eq!(register(&registry, &asking(2, 3, "carol-agent"), 2), known);
    assert_eq!(
        register(&registry, &asking(2, 3, "dave-agent"), 2),
        Registered::Refused(Refusal::IdempotencyConflict)
    );
}

#[test]
fn a_proof_of_another_key_or_request_changes_nothing() {
    let registry = registry();
    let request = asking(1, 1, "alice-agent");
    let written = registry.rows_written();
    let mut other_name = proven(&request, 1);
    other_name.agent_name = "other-name".to_owned();
    let mut other_operation = proven(&request, 1);
    other_operation.operation_id = asking(1, 2, "alice-agent").operation_id.to_string();
    let mut no_principal = proven(&request, 1);
    no_principal.principal_id = Some(conclave_harness::PrincipalId::from_bytes([3; 16]).to_string());
    for wrong in [proven(&request, 2), other_name, other_operation, no_principal] {
        let status = call::<Register>(&registry, &wrong).unwrap_err();
        assert_eq!(status.code, Code::Unauthenticated);
    }
    assert_eq!(registry.rows_written(), written);
    assert!(matches!(register(&registry, &request, 1), Registered::Card(_)));
}

#[test]
fn a_guarded_registry_admits_only_with_its_token() {
    let configuration = RegistryConfiguration {
        admission_token: AdmissionToken::parse("let-me-in").ok(),
        ..configured()
    };
    let registry = Registry::open(
        Database::in_memory().unwrap(),
        configuration,
        &mut SeededRandomness::new(1),
    )
    .unwrap();
    let mut request = proven(&asking(1, 1, "alice-agent"), 1);
    let mut refusals = Vec::new();
    for token in [None, Some(""), Some("let-me-on"), Some("let-me-in-")] {
        request.admission_token = token.map(str::to_owned);
        refusals.push(call::<Register>(&registry, &request).unwrap_err());
    }
    // A wrong token and a wrong proof look the same.
    let mut unproven = proven(&asking(1, 1, "alice-agent"), 2);
    unproven.admission_token = Some("let-me-in".to_owned());
    refusals.push(call::<Register>(&registry, &unproven).unwrap_err());
    assert_eq!(refusals[0].code, Code::Unauthenticated);
    assert!(refusals.iter().all(|refusal| *refusal == refusals[0]));
    request.admission_token = Some("let-me-in".to_owned());
    assert!(call::<Register>(&registry, &request).is_ok());
}

/// Draws the same 16 bytes so many times, and fresh ones then.
struct Stuck {
    draws: usize,
    then: SeededRandomness,
}

impl Randomness for Stuck {
    fn fill(&mut self, bytes: &mut [u8]) {
        if self.draws == 0 {
            self.then.fill(bytes);
        } else {
            self.draws -= 1;
            bytes.fill(0xaa);
        }
    }
}

#[test]
fn a_taken_agent_id_is_drawn_again_a_bounded_number_of_times() {
    let registry = registry();
    let stuck = |draws| Stuck {
        draws,
        then: SeededRandomness::new(77),
    };
    let attempt = |number: u8, name: &str, draws: usize| {
        call_with::<Register>(
            &registry,
            &proven(&asking(number, 1, name), number),
            &mut stuck(draws),
        )
    };
    assert!(attempt(1, "alice-agent", 1).is_ok());
    assert!(attempt(2, "bob-agent", MINT_ATTEMPTS_MAX - 1).is_ok());
    let written = registry.rows_written();
    let status = attempt(3, "carol-agent", MINT_ATTEMPTS_MAX).unwrap_err();
    assert_eq!(status.code, Code::ResourceExhausted);
    assert_eq!(registry.rows_written(), written);
    // Nothing was kept of the failure, so the same operation can succeed.
    assert!(matches!(
        register(&registry, &asking(3, 1, "carol-agent"), 3),
        Registered::Card(_)
    ));
}

#[test]
fn a_registration_writes_four_rows() {
    let registry = registry();
    let written = registry.rows_written();
    registered(&registry, 1, "alice-agent");
    assert!(registry.rows_written() - written <= 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever agents ask for, in whatever order and however often: a name has one card, a key has one card, and an
    /// operation one answer.
    #[test]
    fn names_keys_and_operations_are_each_given_once(
        attempts in proptest::collection::vec((1_u8..5, 1_u8..4, 0_usize..4), 1..30),
    ) {
        let names = ["alice-agent", "bob-agent", "carol-agent", "dave-agent"];
        let registry = registry();
        let mut by_name = std::collections::BTreeMap::new();
        let mut by_key = std::collections::BTreeMap::new();
        let mut by_operation = std::collections::BTreeMap::new();
        for (number, operation, name) in attempts {
            let answer = register(&registry, &asking(number, operation, names[name]), number);
            if let Registered::Card(card) = &answer {
                let id = card.agent_id();
                prop_assert_eq!(*by_name.entry(names[name]).or_insert(id), id);
                prop_assert_eq!(*by_key.entry(number).or_insert(id), id);
            }
            if answer == Registered::Refused(Refusal::IdempotencyConflict) {
                let (asked, _) = &by_operation[&(number, operation)];
                prop_assert_ne!(*asked, name);
            } else {
                let (asked, first) = by_operation.entry((number, operation)).or_insert_with(|| (name, format!("{answer:?}")));
                prop_assert_eq!(*asked, name);
                prop_assert_eq!(first, &format!("{answer:?}"));
            }
        }
    }
}

//! Whatever is not a request is refused, says why, and changes nothing.

use crate::support::*;
use conclave_grpc_web::Code;
use conclave_harness::randomness::SeededRandomness;
use conclave_proto::{
    Rpc,
    conclave::registry::v1::{
        ListRequest, LookupRequest, RegisterRequest,
        lookup_request::By,
        registry_service::{GetSigner, List, Lookup, Register},
    },
};
use conclave_registry::REQUEST_BYTES_MAX;
use proptest::prelude::*;

/// Makes a right request wrong in one field.
type Damage = fn(&mut RegisterRequest);

#[test]
fn a_registration_names_the_field_that_is_wrong() {
    let registry = registry();
    let right = proven(&asking(1, 1, "alice-agent"), 1);
    let cases: [(&str, Damage); 12] = [
        ("operation_id", |request| request.operation_id = String::new()),
        ("operation_id", |request| {
            request.operation_id = request.operation_id.replace("opn_", "agt_")
        }),
        ("agent_name", |request| request.agent_name = "Alice".to_owned()),
        ("agent_name", |request| request.agent_name = "a".repeat(33)),
        ("public_jwk", |request| request.public_jwk = Vec::new().into()),
        ("public_jwk", |request| {
            let text = String::from_utf8(request.public_jwk.to_vec()).unwrap();
            request.public_jwk = text.replace(r#"","kty"#, r#"", "kty"#).into_bytes().into();
        }),
        ("public_jwk", |request| {
            // A point of order two.
            let x = "7P_______________________________________38";
            request.public_jwk = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#)
                .into_bytes()
                .into();
        }),
        ("principal_id", |request| {
            request.principal_id = Some("me".to_owned())
        }),
        ("principal_id", |request| {
            request.principal_id = Some(String::new())
        }),
        ("proof", |request| request.proof = Vec::new().into()),
        ("proof", |request| request.proof = vec![0; 65].into()),
        ("proof", |request| request.proof = vec![0xff; 64].into()),
    ];
    let written = registry.rows_written();
    for (field, damage) in cases {
        let mut wrong = right.clone();
        damage(&mut wrong);
        let status = call::<Register>(&registry, &wrong).unwrap_err();
        assert_eq!(status.code, Code::InvalidArgument, "{status}");
        assert!(status.message.starts_with(field), "{status}");
    }
    assert_eq!(registry.rows_written(), written);
    assert!(call::<Register>(&registry, &right).is_ok());
}

#[test]
fn a_lookup_has_exactly_one_well_formed_key() {
    let registry = registry();
    for by in [
        None,
        Some(By::AgentId("alice-agent".to_owned())),
        Some(By::AgentId(String::new())),
        Some(By::AgentName("agt_AQEBAQEBAQEBAQEBAQEBAQ".to_owned())),
        Some(By::AgentName(String::new())),
    ] {
        let status = call::<Lookup>(&registry, &LookupRequest { by }).unwrap_err();
        assert_eq!(status.code, Code::InvalidArgument, "{status}");
    }
}

#[test]
fn a_lists_bound_is_an_agent_id() {
    let request = ListRequest {
        after_agent_id: Some("opn_AQEBAQEBAQEBAQEBAQEBAQ".to_owned()),
    };
    let status = call::<List>(&registry(), &request).unwrap_err();
    assert_eq!(status.code, Code::InvalidArgument);
    assert!(status.message.starts_with("after_agent_id"), "{status}");
}

#[test]
fn another_path_is_not_served() {
    for path in [
        "",
        "/",
        "/conclave.registry.v1.RegistryService/Forget",
        "/grpc.health.v1.Health/Check",
    ] {
        let status = registry()
            .handle(path, &[], NOW_NS, &mut SeededRandomness::new(1))
            .unwrap_err();
        assert_eq!(status.code, Code::Unimplemented);
    }
}

#[test]
fn a_request_beyond_its_bound_is_not_read() {
    let long = vec![0; REQUEST_BYTES_MAX + 1];
    for path in [GetSigner::PATH, Register::PATH, Lookup::PATH, List::PATH] {
        let status = registry()
            .handle(path, &long, NOW_NS, &mut SeededRandomness::new(1))
            .unwrap_err();
        assert_eq!(status.code, Code::InvalidArgument);
    }
}

#[test]
fn the_greatest_time_is_a_date_a_card_can_say() {
    let registry = registry();
    let request = prost::Message::encode_to_vec(&proven(&asking(1, 1, "alice-agent"), 1));
    let response = registry
        .handle(Register::PATH, &request, u64::MAX, &mut SeededRandomness::new(1))
        .unwrap();
    let response = <<Register as Rpc>::Response as prost::Message>::decode(&*response).unwrap();
    let Registered::Card(card) = outcome(&registry, response) else {
        panic!("refused")
    };
    assert!(card.issued_at().to_string().starts_with("2554-07-21T"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_bytes_give_an_answer_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200), path in 0_usize..4) {
        let registry = registry();
        let path = [GetSigner::PATH, Register::PATH, Lookup::PATH, List::PATH][path];
        let written = registry.rows_written();
        drop(registry.handle(path, &bytes, NOW_NS, &mut SeededRandomness::new(1)));
        prop_assert_eq!(registry.rows_written(), written);
    }
}

//! The proof of possession with which an agent registers.

use crate::support::*;
use conclave_harness::OperationId;
use conclave_harness::registration::{PRINCIPAL_ID_DEFAULT, RegistrationRequest, registration_preimage};

fn request() -> RegistrationRequest {
    RegistrationRequest {
        operation_id: OperationId::from_bytes([5; 16]),
        agent_name: "alice-agent".parse().unwrap(),
        principal_id: PRINCIPAL_ID_DEFAULT,
        public_key: key_a().public_key(),
    }
}

#[test]
fn the_preimage_is_the_domain_and_the_canonical_request() {
    let wanted = concat!(
        "org.social-harness/edge/v1/register\0",
        r#"{"agentName":"alice-agent","operationId":"opn_BQUFBQUFBQUFBQUFBQUFBQ","#,
        r#""principalId":"prn_AAAAAAAAAAAAAAAAAAAAAA","#,
        r#""publicKey":{"crv":"Ed25519","kty":"OKP","x":"PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw"}}"#,
    );
    assert_eq!(registration_preimage(&request()), wanted.as_bytes());
}

#[test]
fn a_proof_holds_for_its_key_and_its_request_alone() {
    let proof = request().prove(&key_a());
    assert!(request().is_proven_by(&proof));
    assert!(!request().is_proven_by(&request().prove(&key_b())));
    for change in [
        |request: &mut RegistrationRequest| request.operation_id = OperationId::from_bytes([6; 16]),
        |request: &mut RegistrationRequest| request.agent_name = "alice-other".parse().unwrap(),
        |request: &mut RegistrationRequest| request.principal_id = claims_a().principal_id,
        |request: &mut RegistrationRequest| request.public_key = key_b().public_key(),
    ] {
        let mut changed = request();
        change(&mut changed);
        assert!(!changed.is_proven_by(&proof));
    }
}

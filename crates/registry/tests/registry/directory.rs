//! Looking cards up, and listing them.

use crate::support::*;
use conclave_harness::{AgentId, PublicJwk, randomness::SeededRandomness};
use conclave_proto::conclave::registry::v1::{
    GetSignerRequest, ListRequest, LookupRequest,
    lookup_request::By,
    registry_service::{GetSigner, List, Lookup, Register},
};
use conclave_registry::LIST_PAGE_LENGTH;

fn lookup(registry: &TestRegistry, by: By) -> Option<Vec<u8>> {
    let response = call::<Lookup>(registry, &LookupRequest { by: Some(by) }).unwrap();
    response.agent_card.map(|card| card.to_vec())
}

#[test]
fn the_signer_is_the_key_cards_verify_under() {
    let registry = registry();
    let signer = call::<GetSigner>(&registry, &GetSignerRequest {}).unwrap();
    let jwk = PublicJwk::from_canonical_bytes(&signer.public_jwk).unwrap();
    assert_eq!(jwk.public_key(), registry.signer());
    assert_eq!(signer.thumbprint_uri, jwk.thumbprint_uri());
    assert_eq!(jwk.public_key(), key(9).public_key());
}

#[test]
fn a_card_is_found_by_id_and_by_name() {
    let registry = registry();
    let card = registered(&registry, 1, "alice-agent");
    let bytes = card.encoded().to_canonical_bytes();
    assert_eq!(
        lookup(&registry, By::AgentId(card.agent_id().to_string())),
        Some(bytes.clone())
    );
    assert_eq!(
        lookup(&registry, By::AgentName("alice-agent".to_owned())),
        Some(bytes)
    );
}

#[test]
fn an_unknown_agent_is_an_answer_and_not_an_error() {
    let registry = registry();
    registered(&registry, 1, "alice-agent");
    assert_eq!(lookup(&registry, By::AgentName("alice-agen".to_owned())), None);
    assert_eq!(
        lookup(&registry, By::AgentId(AgentId::from_bytes([0; 16]).to_string())),
        None
    );
}

#[test]
fn a_list_pages_through_every_card_in_the_order_of_decoded_ids() {
    let registry = registry();
    let count = LIST_PAGE_LENGTH * 2 + 1;
    let mut randomness = SeededRandomness::new(5);
    let mut wanted: Vec<AgentId> = (0..count)
        .map(|index| {
            let number = u8::try_from(index + 1).unwrap();
            let request = proven(&asking(number, 1, &format!("agent-{index}")), number);
            let response = call_with::<Register>(&registry, &request, &mut randomness).unwrap();
            match outcome(&registry, response) {
                Registered::Card(card) => card.agent_id(),
                Registered::Refused(refusal) => panic!("{refusal:?}"),
            }
        })
        .collect();
    wanted.sort_unstable();
    let (mut met, mut pages, mut after_agent_id) = (Vec::new(), Vec::new(), None);
    loop {
        let page = call::<List>(&registry, &ListRequest { after_agent_id }).unwrap();
        met.extend(
            page.agent_cards
                .iter()
                .map(|card| verified(&registry, card).agent_id()),
        );
        pages.push(page.agent_cards.len());
        after_agent_id = met.last().map(ToString::to_string);
        if !page.has_more {
            break;
        }
    }
    assert_eq!(met, wanted);
    assert_eq!(pages, [LIST_PAGE_LENGTH, LIST_PAGE_LENGTH, 1]);
}

#[test]
fn a_list_says_that_there_is_more_exactly_when_there_is() {
    let registry = registry();
    let all = |after_agent_id| call::<List>(&registry, &ListRequest { after_agent_id }).unwrap();
    assert_eq!((all(None).agent_cards.len(), all(None).has_more), (0, false));
    let card = registered(&registry, 1, "alice-agent");
    assert_eq!((all(None).agent_cards.len(), all(None).has_more), (1, false));
    // The bound is exclusive, and need not be the id of any agent.
    assert_eq!(all(Some(card.agent_id().to_string())).agent_cards.len(), 0);
    assert_eq!(
        all(Some(AgentId::from_bytes([0; 16]).to_string()))
            .agent_cards
            .len(),
        1
    );
    assert_eq!(
        all(Some(AgentId::from_bytes([0xff; 16]).to_string()))
            .agent_cards
            .len(),
        0
    );
}

use std::collections::BTreeMap;

use conclave_conversation::address::{AddressError, AddressRefusal, Destination, canonical_address};
use conclave_conversation::membership::Membership;
use conclave_conversation::test_support::{Agent, history};
use conclave_harness::agent_name::AgentName;
use proptest::prelude::*;

fn name(text: &str) -> AgentName {
    text.parse().expect("a name")
}

fn parse(address: &str) -> Result<Destination, AddressError> {
    Destination::parse(address, &name("agent-0"))
}

fn refusal(address: &str) -> &'static str {
    parse(address).expect_err("refused").refusal().code()
}

/// The membership an address means to agent 0 when agents 0 to 39 are registered.
fn resolve(address: &str) -> Result<Membership, AddressError> {
    let registry: BTreeMap<AgentName, _> = (0..40)
        .map(Agent::new)
        .map(|agent| (agent.card.agent_name().clone(), agent.card))
        .collect();
    parse(address)?.resolve(&Agent::new(0).card, &history(), |name| {
        registry.get(name).cloned()
    })
}

fn group(numbers: impl IntoIterator<Item = usize>) -> String {
    let names: Vec<String> = numbers
        .into_iter()
        .map(|number| format!("agent-{number}"))
        .collect();
    format!("group:{}", names.join(","))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    // CONV-A01, CONV-A02
    #[test]
    fn any_order_with_or_without_the_local_name_is_one_conversation(
        order in Just((1..12).collect::<Vec<usize>>()).prop_shuffle(),
        place in proptest::option::of(0..11_usize),
    ) {
        let expected = resolve(&group(0..12)).unwrap();
        let mut order = order;
        if let Some(place) = place {
            order.insert(place, 0);
        }
        let address = group(order);
        let membership = resolve(&address).unwrap();
        prop_assert_eq!(membership.conversation_id(), expected.conversation_id());
        prop_assert_eq!(membership.hash(), expected.hash());
        let canonical = parse(&address).unwrap().canonical();
        prop_assert_eq!(&canonical, "group:agent-0,agent-1,agent-10,agent-11,agent-2,agent-3,agent-4,agent-5,agent-6,agent-7,agent-8,agent-9");
        prop_assert_eq!(canonical_address(&membership, &Agent::new(7).id()), Some(canonical));
    }

    #[test]
    fn any_text_is_parsed_or_refused(address in "(agent:|group:)?[a-c0,:-]{0,40}|.{0,40}") {
        if let Ok(destination) = parse(&address) {
            let canonical = destination.canonical();
            prop_assert_eq!(parse(&canonical).unwrap(), destination);
        }
    }
}

// CONV-A03
#[test]
fn a_name_given_twice_is_refused() {
    for address in [
        "group:agent-1,agent-2,agent-1",
        "group:agent-1,agent-1",
        "group:agent-0,agent-0,agent-1",
    ] {
        assert!(
            matches!(parse(address), Err(AddressError::RepeatedName(_))),
            "{address}"
        );
        assert_eq!(refusal(address), "membership-invalid");
    }
}

// CONV-A04
#[test]
fn an_agent_does_not_address_itself() {
    assert_eq!(parse("agent:agent-0"), Err(AddressError::OwnAddress));
    assert_eq!(refusal("agent:agent-0"), "invalid-address");
    assert_eq!(refusal("group:agent-0"), "membership-invalid");
}

// CONV-A05, CONV-A06
#[test]
fn a_group_of_one_other_agent_is_its_direct_conversation() {
    let direct = resolve("agent:agent-1").unwrap();
    for address in ["group:agent-1", "group:agent-0,agent-1", "group:agent-1,agent-0"] {
        assert_eq!(resolve(address).unwrap(), direct);
        assert_eq!(parse(address).unwrap().canonical(), "agent:agent-1");
    }
    assert_eq!(
        canonical_address(&direct, &Agent::new(0).id()).as_deref(),
        Some("agent:agent-1")
    );
    assert_eq!(
        canonical_address(&direct, &Agent::new(1).id()).as_deref(),
        Some("agent:agent-0")
    );
    assert_eq!(canonical_address(&direct, &Agent::new(2).id()), None);
}

// CONV-A06
#[test]
fn a_group_has_three_to_thirty_two_members() {
    for members in [3, 32] {
        assert_eq!(resolve(&group(1..members)).unwrap().len(), members);
        assert_eq!(resolve(&group(0..members)).unwrap().len(), members);
    }
    for address in [group(1..33), group(0..33), group(1..40)] {
        assert!(matches!(parse(&address), Err(AddressError::Size(_))));
        assert_eq!(refusal(&address), "membership-invalid");
    }
}

// CONV-A07
#[test]
fn a_name_without_a_card_is_an_unknown_agent() {
    for address in ["agent:nobody", "group:agent-1,nobody"] {
        let error = resolve(address).expect_err("unknown");
        assert_eq!(error, AddressError::UnknownAgent(name("nobody")));
        assert_eq!(error.refusal(), AddressRefusal::UnknownAgent);
        assert_eq!(error.refusal().code(), "unknown-agent");
    }
}

#[test]
fn a_card_of_another_name_is_no_card() {
    let other = Agent::new(2).card;
    let error = parse("agent:agent-1")
        .unwrap()
        .resolve(&Agent::new(0).card, &history(), |_| Some(other.clone()));
    assert_eq!(error, Err(AddressError::UnknownAgent(name("agent-1"))));
}

#[test]
fn a_misspelled_address_is_invalid() {
    for address in [
        "",
        "agent",
        "agent-1",
        "agent:",
        "agent:Agent-1",
        "agent: agent-1",
        "agent:agent-1,agent-2",
        "group:",
        "group:agent-1,",
        "group:,agent-1",
        "group:agent-1, agent-2",
        "GROUP:agent-1",
        "agent:agent-1:x",
        "group:agent-1;agent-2",
    ] {
        assert_eq!(refusal(address), "invalid-address", "{address}");
    }
}

use conclave_conversation::membership::{Membership, MembershipError};
use conclave_conversation::test_support::{
    Agent, Conversation, SECOND_VERSION, history, registry, router_instance,
};
use conclave_conversation::values::{CertifiedRecord, ClosedValue, ConversationId, MembershipDescriptor};
use conclave_conversation::verification::VerifiedCertifiedRecord;
use conclave_harness::agent_card::{AgentCard, AgentCardClaims};
use conclave_harness::key::AgentKey;
use conclave_harness::wire_version::WIRE_VERSION;

fn verify(descriptor: MembershipDescriptor) -> Result<Membership, MembershipError> {
    Membership::verify(descriptor, &registry(), &history())
}

fn descriptor(members: usize) -> MembershipDescriptor {
    Conversation::new(members).membership.descriptor().clone()
}

// CONV-A08
#[test]
fn every_member_derives_the_same_identity_hash_and_descriptor() {
    let expected = Conversation::new(5).membership;
    for rotation in 0..5 {
        let mut cards: Vec<_> = (0..5).map(|number| Agent::new(number).card).collect();
        cards.rotate_left(rotation);
        let membership = Membership::from_cards(cards, &history()).unwrap();
        assert_eq!(membership, expected);
    }
    let decoded = Membership::decode(&expected.descriptor().encode(), &registry(), &history()).unwrap();
    assert_eq!(decoded, expected);
}

// CONV-A09
#[test]
fn arrays_follow_decoded_bytes_and_not_their_text() {
    let conversation = Conversation::new(10);
    let ids = conversation.membership.agent_ids();
    let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
    assert!(
        ids.is_sorted() && !texts.is_sorted(),
        "the example tells the two orders apart"
    );

    let certified = conversation.certified_genesis(3, "hello");
    let stored = certified.to_value().encode();
    let signers: Vec<_> = certified.votes().iter().map(|vote| *vote.signer()).collect();
    assert_eq!(signers, ids);
    let read = CertifiedRecord::decode_over(&history(), &stored).unwrap();
    let again =
        VerifiedCertifiedRecord::verify(read, &conversation.membership, &mut Default::default()).unwrap();
    assert_eq!(again, certified);
}

// CONV-A10
#[test]
fn a_descriptor_with_a_repeated_agent_is_refused() {
    let mut wrong = descriptor(3);
    wrong.members[1] = wrong.members[0].clone();
    assert_eq!(verify(wrong), Err(MembershipError::Order { index: 1 }));
}

// CONV-A10
#[test]
fn a_descriptor_with_a_repeated_name_is_refused() {
    let mut agents = vec![Agent::new(0), Agent::named(1, "agent-0", WIRE_VERSION)];
    agents.sort_by_key(Agent::id);
    let cards: Vec<AgentCard> = agents.into_iter().map(|agent| agent.card).collect();
    let repeated = Err(MembershipError::RepeatedName("agent-0".parse().unwrap()));
    assert_eq!(Membership::from_cards(cards.clone(), &history()), repeated);
    let mut wrong = descriptor(2);
    wrong.members = cards.iter().map(|card| card.encoded().clone()).collect();
    assert_eq!(verify(wrong), repeated);
}

// CONV-A10
#[test]
fn a_descriptor_out_of_order_is_refused() {
    let mut wrong = descriptor(3);
    wrong.members.swap(1, 2);
    assert_eq!(verify(wrong), Err(MembershipError::Order { index: 2 }));
}

// CONV-A10
#[test]
fn a_descriptor_with_a_card_of_another_registry_is_refused() {
    let conversation = Conversation::new(3);
    let card = &conversation.agent(1).card;
    let claims = AgentCardClaims {
        agent_id: card.agent_id(),
        principal_id: card.principal_id(),
        agent_name: card.agent_name().clone(),
        public_key: card.public_key(),
        issued_at: card.issued_at(),
        version: card.version(),
    };
    let mut wrong = conversation.membership.descriptor().clone();
    wrong.members[1] = AgentCard::issue(&AgentKey::from_seed([9; 32]), claims)
        .encoded()
        .clone();
    assert_eq!(verify(wrong), Err(MembershipError::Card { index: 1 }));
}

// CONV-A10
#[test]
fn a_descriptor_of_another_conversation_is_refused() {
    let mut wrong = descriptor(3);
    wrong.conversation_id = ConversationId::from_bytes([1; 32]);
    assert_eq!(verify(wrong), Err(MembershipError::ForeignConversation));
}

#[test]
fn a_descriptor_with_another_version_than_its_first_card_is_refused() {
    let mut wrong = descriptor(3);
    wrong.sharness_version = SECOND_VERSION;
    assert_eq!(verify(wrong), Err(MembershipError::ForeignVersion));
}

#[test]
fn one_card_or_thirty_three_are_no_membership() {
    for members in [0, 1, 33] {
        let cards = (0..members).map(|number| Agent::new(number).card).collect();
        assert_eq!(
            Membership::from_cards(cards, &history()),
            Err(MembershipError::Size(members))
        );
    }
}

// CONV-A11
#[test]
fn members_of_adjacent_versions_found_one_conversation() {
    for first_is_older in [true, false] {
        let versions = if first_is_older {
            [WIRE_VERSION, SECOND_VERSION]
        } else {
            [SECOND_VERSION, WIRE_VERSION]
        };
        let order: Vec<usize> = Conversation::new(4)
            .agents
            .iter()
            .map(|agent| {
                (0..4)
                    .find(|number| Agent::new(*number).id() == agent.id())
                    .unwrap()
            })
            .collect();
        let agents = order
            .iter()
            .enumerate()
            .map(|(place, number)| Agent::of_version(*number, versions[place % 2]))
            .collect();
        let conversation = Conversation::of(agents);
        let membership = &conversation.membership;
        assert_eq!(
            membership.descriptor().sharness_version,
            versions[0],
            "the first card's version"
        );

        // Two members post first at once, each with the version its own binary emits.
        let actions: Vec<_> = versions
            .into_iter()
            .enumerate()
            .map(|(author, version)| {
                let mut intent = conversation.intent(author, "first");
                intent.sharness_version = version;
                conversation.genesis(intent)
            })
            .collect();
        assert_ne!(actions[0].hash(), actions[1].hash());
        assert_eq!(actions[0].anchor_hash(), actions[1].anchor_hash());
        let anchor = membership.genesis_anchor(router_instance(0));
        assert_eq!(anchor.sharness_version, versions[0]);
        assert_eq!(anchor.hash(), *actions[0].anchor_hash());
    }
}

#[test]
fn a_version_outside_the_history_is_refused_wherever_it_is_nested() {
    let conversation = Conversation::of(
        (0..2)
            .map(|number| Agent::of_version(number, SECOND_VERSION))
            .collect(),
    );
    let bytes = conversation.membership.descriptor().encode();
    assert!(MembershipDescriptor::decode_over(&history(), &bytes).is_ok());
    assert!(MembershipDescriptor::decode(&bytes).is_err());
}

use conclave_conversation::membership::Membership;
use conclave_conversation::test_support::Conversation;
use conclave_conversation::values::*;
use conclave_conversation::verification::{
    VerifiedActionCertifiedRecord, VerifiedCertifiedRecord, VerifiedRecordCore, VerifiedRouterAnchor,
};
use conclave_harness::agent_card::EncodedAgentCard;
use conclave_harness::key::AgentKey;
use conclave_harness::wire_version::{WIRE_VERSION, WireVersions};
use proptest::prelude::*;

use crate::vectors::*;

/// The Registry of the reference vectors: RFC 8032, test 1.
fn reference_registry() -> conclave_harness::key::PublicKey {
    let seed = hex::decode("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").unwrap();
    AgentKey::from_seed(seed.try_into().unwrap()).public_key()
}

fn reference_membership() -> Membership {
    let cards = [CARD_B, CARD_A].map(|card| {
        let card = EncodedAgentCard::from_canonical_bytes(card.as_bytes()).unwrap();
        card.verify(&reference_registry(), &WireVersions::history())
            .unwrap()
    });
    Membership::from_cards(cards.into(), &WireVersions::history()).unwrap()
}

fn decode<V: ClosedValue>(text: &str) -> V {
    let value = V::decode(text.as_bytes()).unwrap();
    assert_eq!(value.encode(), text.as_bytes());
    value
}

fn genesis() -> GenesisActionCore {
    GenesisActionCore {
        sharness_version: WIRE_VERSION,
        kind: GenesisActionKind,
        conversation_id: CONVERSATION_ID.parse().unwrap(),
        membership: reference_membership().descriptor().clone(),
        anchor: decode(GENESIS_ANCHOR),
        previous_record_hash: Null,
        post_intent: decode(INTENT),
        post_intent_hash: INTENT_HASH.parse().unwrap(),
    }
}

// CONV-B03
#[test]
fn conversation_and_membership_hash_as_computed_elsewhere() {
    assert_eq!(
        decode::<ConversationIdentityInput>(IDENTITY).hash().to_string(),
        CONVERSATION_ID
    );
    let membership = reference_membership();
    assert_eq!(membership.conversation_id().to_string(), CONVERSATION_ID);
    assert_eq!(membership.hash().to_string(), MEMBERSHIP_HASH);
}

// CONV-B03
#[test]
fn intents_and_anchors_hash_as_computed_elsewhere() {
    assert_eq!(decode::<PostIntent>(INTENT).hash().to_string(), INTENT_HASH);
    assert_eq!(
        decode::<GenesisAnchorBody>(GENESIS_ANCHOR).hash().to_string(),
        GENESIS_ANCHOR_HASH
    );
    assert_eq!(decode::<ReanchorBody>(REANCHOR).hash().to_string(), REANCHOR_HASH);
    assert_eq!(
        decode::<AnchorBody>(GENESIS_ANCHOR).hash().to_string(),
        GENESIS_ANCHOR_HASH
    );
    assert_eq!(decode::<AnchorBody>(REANCHOR).hash().to_string(), REANCHOR_HASH);
}

// CONV-B03
#[test]
fn actions_and_records_hash_as_computed_elsewhere() {
    let genesis = ActionCore::from(genesis());
    assert_eq!(genesis.hash().to_string(), GENESIS_ACTION_HASH);
    let anchor = GENESIS_ANCHOR_HASH.parse().unwrap();
    assert_eq!(
        RecordCore::of_action(genesis, anchor).hash().to_string(),
        GENESIS_RECORD_HASH
    );

    let post = decode::<ActionCore>(POST_ACTION);
    assert_eq!(post.hash().to_string(), POST_ACTION_HASH);
    assert_eq!(
        decode::<PostActionCore>(POST_ACTION).hash().to_string(),
        POST_ACTION_HASH
    );
    let anchor = REANCHOR_HASH.parse().unwrap();
    assert_eq!(
        RecordCore::of_action(post, anchor).hash().to_string(),
        POST_RECORD_HASH
    );
}

// CONV-B03
#[test]
fn evidence_message_ids_are_as_computed_elsewhere() {
    for (statement, message_id) in [
        (ACTION_STATEMENT, ACTION_MESSAGE_ID),
        (DURABILITY_STATEMENT, DURABILITY_MESSAGE_ID),
        (REANCHOR_STATEMENT, REANCHOR_MESSAGE_ID),
        (ATTESTATION_STATEMENT, ATTESTATION_MESSAGE_ID),
    ] {
        assert_eq!(
            decode::<EvidenceStatement>(statement)
                .evidence_message_id()
                .to_string(),
            message_id
        );
    }
}

// CONV-B04
#[test]
fn growing_certificates_change_neither_action_nor_record_hash() {
    let conversation = Conversation::new(4);
    let genesis = conversation.certified_genesis(0, "hello");
    let anchor = *genesis.record().anchor_hash();
    let action = conversation.post(conversation.intent(1, "again"), *genesis.record().hash(), anchor);
    let verified_anchor = conversation_anchor(&conversation);
    let mut hashes = Vec::new();
    for signers in 3..=4 {
        let record = VerifiedRecordCore::of_action(action.clone());
        let signatures = conversation.action_signatures(0..signers, *action.hash());
        let record = VerifiedActionCertifiedRecord::assemble(
            record,
            &verified_anchor,
            signatures,
            &conversation.membership,
        )
        .unwrap();
        for voters in 3..=4 {
            let votes = conversation.durability_votes(0..voters, *record.record().hash());
            let certified =
                VerifiedCertifiedRecord::assemble(record.clone(), votes, &conversation.membership).unwrap();
            let value = certified.to_value();
            assert_eq!(
                value.action_certified_record.action_certificate.signatures.len(),
                signers
            );
            assert_eq!(value.durability_certificate.votes.len(), voters);
            let value = value.action_certified_record;
            hashes.push((
                value.record_hash,
                *value.record_core.action_hash(),
                value.record_core.to_action().hash(),
            ));
        }
    }
    hashes.dedup();
    assert_eq!(hashes.len(), 1);
}

fn conversation_anchor(conversation: &Conversation) -> VerifiedRouterAnchor {
    let mut memory = Default::default();
    VerifiedRouterAnchor::verify(
        conversation.genesis_anchor().into(),
        &conversation.membership,
        &mut memory,
    )
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    // CONV-B05
    #[test]
    fn predecessor_and_anchor_change_the_action_hash_but_not_the_intent_hash(
        places in proptest::collection::btree_set((any::<[u8; 32]>(), any::<[u8; 32]>()), 2..5),
    ) {
        let conversation = Conversation::new(2);
        let intent = conversation.intent(0, "hello");
        let mut actions = Vec::new();
        for (record, anchor) in &places {
            let action =
                conversation.post(intent.clone(), RecordHash::from_bytes(*record), AnchorHash::from_bytes(*anchor));
            prop_assert_eq!(*action.core().post_intent_hash(), intent.hash());
            actions.push(*action.hash());
        }
        actions.sort_unstable();
        actions.dedup();
        prop_assert_eq!(actions.len(), places.len());
    }
}

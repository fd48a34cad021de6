//! Sealed bodies: they open for their recipients, in their message, as they were sealed, or not at all.

use crate::support::hand_sealed::{HandSealed, entry_with_key, wrap};
use crate::support::{gcm_collision::collision, sealing::*, *};
use aes_gcm::{AeadInPlace, Aes256Gcm, KeyInit};
use conclave_harness::{
    AgentCard, AgentId, AgentKey, PublicKey, SignedMessage, WIRE_VERSION,
    randomness::SeededRandomness,
    sealed_body::{
        SealedBodyOpeningError, SealedBodySealingError, open, plaintext_length_max, seal, sealed_length,
    },
};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn the_naive_construction_makes_the_known_bodies() {
    assert_eq!(honest(vec![card_a()]).seal(), SEALED_BODY_A);
    assert_eq!(honest(vec![card_a(), card_b()]).seal(), SEALED_BODY_A_B);
}

#[test]
fn a_change_of_what_both_read_stops_both() {
    assert!(opens_for_a(&to_a_and_b(SEALED_BODY_A_B)) && opens_for_b(&to_a_and_b(SEALED_BODY_A_B)));
    for member in ["ciphertext", "iv", "tag"] {
        let message = to_a_and_b(&edited(|body| body[member] = damaged(&body[member])));
        assert!(!opens_for_a(&message) && !opens_for_b(&message), "{member}");
    }
}

#[test]
fn a_change_of_ones_own_entry_stops_one_and_not_the_other() {
    let key = to_a_and_b(&edited(|body| {
        body["recipients"][0]["encrypted_key"] = damaged(&body["recipients"][0]["encrypted_key"]);
    }));
    assert!(!opens_for_a(&key) && opens_for_b(&key));
    let ephemeral = to_a_and_b(&edited(|body| {
        let x = &mut body["recipients"][0]["header"]["epk"]["x"];
        *x = damaged(x);
    }));
    assert!(!opens_for_a(&ephemeral) && opens_for_b(&ephemeral));
}

// CONV-B10
#[test]
fn a_body_opens_under_its_own_sender_and_message_id_alone() {
    let recipients = [card_a().agent_id(), card_b().agent_id()];
    // Re-signed by another member, unchanged.
    let resigned = SignedMessage::sign(
        &card_b(),
        &key_b(),
        &recipients,
        message_id(3),
        SEALED_BODY_A_B,
        WIRE_VERSION,
    )
    .unwrap();
    assert!(!opens_for_a(&resigned) && !opens_for_b(&resigned));
    // Under another MessageId.
    let moved = message_of_a(&recipients, 5, SEALED_BODY_A_B);
    assert!(!opens_for_a(&moved) && !opens_for_b(&moved));
    // Re-signed by another member with the protected sender rewritten to match.
    let rewritten = edited(|body| {
        let header = conclave_harness::base64url::decode(body["protected"].as_str().unwrap()).unwrap();
        let header = String::from_utf8(header).unwrap();
        let header = header.replace(&recipients[0].to_string(), &recipients[1].to_string());
        body["protected"] = conclave_harness::base64url::encode(header.as_bytes()).into();
    });
    assert_ne!(rewritten, SEALED_BODY_A_B);
    let rewritten = SignedMessage::sign(
        &card_b(),
        &key_b(),
        &recipients,
        message_id(3),
        &rewritten,
        WIRE_VERSION,
    )
    .unwrap();
    assert!(!opens_for_a(&rewritten) && !opens_for_b(&rewritten));
}

#[test]
fn entries_stand_in_the_order_of_the_recipients() {
    let swapped = to_a_and_b(&edited(|body| {
        body["recipients"].as_array_mut().unwrap().swap(0, 1)
    }));
    assert!(!opens_for_a(&swapped) && !opens_for_b(&swapped));
}

#[test]
fn there_are_as_many_entries_as_recipients() {
    let (third_key, third) = agent(3);
    let three = [card_a().agent_id(), card_b().agent_id(), third.agent_id()];
    let fewer = message_of_a(&three, 3, SEALED_BODY_A_B);
    assert!(!opens_for_a(&fewer) && open(&third, &third_key, &fewer).is_err());
    let more = honest(vec![card_a(), card_b(), third]).seal();
    assert!(!opens_for_a(&to_a_and_b(&more)));
    assert!(opens_for_a(&message_of_a(&three, 3, &more)));
}

#[test]
fn an_outsider_opens_nothing() {
    let (key, card) = agent(3);
    assert_eq!(
        open(&card, &key, &to_a_and_b(SEALED_BODY_A_B)),
        Err(SealedBodyOpeningError)
    );
    // Not even as a recipient of the message, when the body was sealed to others.
    let recipients = [card_a().agent_id(), card.agent_id()];
    assert!(open(&card, &key, &message_of_a(&recipients, 3, SEALED_BODY_A_B)).is_err());
}

#[test]
fn there_are_1_to_128_entries() {
    let cards: Vec<AgentCard> = (1..=129).map(|id| agent(id).1).collect();
    let sealed = |cards: &[AgentCard]| {
        seal(
            b"",
            cards,
            card_a().agent_id(),
            message_id(3),
            &mut SeededRandomness::new(1),
        )
    };
    assert_eq!(sealed(&[]), Err(SealedBodySealingError));
    assert_eq!(sealed(&cards), Err(SealedBodySealingError));
    let body = sealed(&cards[..128]).unwrap();
    assert_eq!(body.len(), sealed_length(0, 128));
    let ids: Vec<AgentId> = cards[..128].iter().map(AgentCard::agent_id).collect();
    let (key, card) = agent(128);
    assert_eq!(open(&card, &key, &message_of_a(&ids, 3, &body)), Ok(Vec::new()));

    let none = edited(|body| body["recipients"] = json!([]));
    assert!(!opens_for_a(&to_a_and_b(&none)));
    let mut hand = honest(cards);
    hand.ephemeral_secrets = (0..129).map(|entry| [entry; 32]).collect();
    assert!(!opens_for_a(&message_of_a(&ids, 3, &hand.seal())));
}

#[test]
fn recipients_are_distinct_and_their_keys_are_points() {
    let sealed = |cards: &[AgentCard]| {
        seal(
            b"",
            cards,
            card_a().agent_id(),
            message_id(3),
            &mut SeededRandomness::new(1),
        )
    };
    assert_eq!(
        sealed(&[card_a(), card_b(), card_a()]),
        Err(SealedBodySealingError)
    );
    let no_point = (2..)
        .map(|y| {
            let mut bytes = [0; 32];
            bytes[0] = y;
            PublicKey::from_bytes(bytes).unwrap()
        })
        .find(|key| key.x25519().is_none())
        .unwrap();
    let card = AgentCard::issue(&registry_key(), claims(3, 3, "no-point", no_point));
    assert_eq!(sealed(&[card]), Err(SealedBodySealingError));
}

#[test]
fn a_plaintext_has_the_bound_its_recipients_leave() {
    let cards = [card_a(), card_b()];
    let sealed = |length: usize| {
        seal(
            &vec![7; length],
            &cards,
            card_a().agent_id(),
            message_id(3),
            &mut SeededRandomness::new(1),
        )
    };
    let longest = plaintext_length_max(2);
    let body = sealed(longest).unwrap();
    assert_eq!(body.len(), sealed_length(longest, 2));
    assert_eq!(
        open(&card_b(), &key_b(), &to_a_and_b(&body)),
        Ok(vec![7; longest])
    );
    assert_eq!(sealed(longest + 1), Err(SealedBodySealingError));
}

#[test]
fn a_plaintext_that_is_not_the_committed_one_is_refused() {
    let hand = HandSealed {
        commitment: [0; 32],
        ..honest(vec![card_a()])
    };
    assert!(!opens_for_a(&to_a(&hand.seal())));
}

#[test]
fn a_salted_plaintext_shorter_than_its_salt_is_refused() {
    use sha2::{Digest, Sha256};
    for (length, opened) in [(0, false), (31, false), (32, true)] {
        let salted = vec![0x5a; length];
        let commitment = Sha256::digest(&salted).into();
        let hand = HandSealed {
            salted,
            commitment,
            ..honest(vec![card_a()])
        };
        assert_eq!(opens_for_a(&to_a(&hand.seal())), opened, "{length}");
    }
}

#[test]
fn a_card_of_the_negated_key_opens_nothing() {
    let mut negated = *key_a().public_key().as_bytes();
    negated[31] ^= 0x80;
    let negated = PublicKey::from_bytes(negated).unwrap();
    let card = AgentCard::issue(&registry_key(), claims(1, 0x11, "alice-agent", negated));
    let body = seal(
        PLAINTEXT,
        &[&card],
        card_a().agent_id(),
        message_id(3),
        &mut SeededRandomness::new(1),
    )
    .unwrap();
    // A's secret is the right one, and the entry could be unwrapped.
    assert!(opens_for_a(&to_a(&body)));
    assert_eq!(open(&card, &key_a(), &to_a(&body)), Err(SealedBodyOpeningError));
}

#[test]
fn an_ephemeral_key_of_small_order_is_refused() {
    // What everyone would compute with it is all zero, so anyone can wrap a key that would unwrap.
    let wrapped =
        conclave_harness::base64url::encode(&wrap(&[0; 32], &honest(vec![card_a()]).content_keys[0]));
    let mut order_four = [0; 32];
    order_four[0] = 1;
    for small in [[0; 32], order_four] {
        let entry: Value = serde_json::from_str(&entry_with_key(&wrapped, &small)).unwrap();
        let body = edited(|body| body["recipients"][0] = entry.clone());
        assert!(!opens_for_a(&to_a_and_b(&body)));
        assert!(opens_for_b(&to_a_and_b(&body)));
    }
}

// CONV-B10
#[test]
fn a_body_that_is_not_sealed_is_refused() {
    let signed = message_of_a(&[card_a().agent_id()], 4, b"{}")
        .encoded()
        .to_canonical_bytes();
    for body in [
        b"".as_slice(),
        PLAINTEXT,
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        &signed,
        CARD_A,
    ] {
        assert!(!opens_for_a(&to_a(body)));
    }
    let text = String::from_utf8(SEALED_BODY_A.to_vec()).unwrap();
    for body in [
        format!("{text} "),
        format!("\u{feff}{text}"),
        text.replacen(r#","iv""#, r#", "iv""#, 1),
    ] {
        assert!(!opens_for_a(&to_a(body.as_bytes())));
    }
}

/// Two keys under which one ciphertext authenticates. GCM alone would let a sender show two members two plaintexts.
#[test]
fn one_ciphertext_for_two_content_keys_opens_for_neither() {
    let keys = [[0x11; 32], [0x22; 32]];
    let hand = HandSealed {
        content_keys: keys.to_vec(),
        ..honest(vec![card_a(), card_b()])
    };
    let header = hand.protected();
    let (ciphertext, tag) = collision(&keys, &hand.iv, header.as_bytes());
    let mut plaintexts = Vec::new();
    for key in &keys {
        let mut plaintext = ciphertext.clone();
        Aes256Gcm::new(key.into())
            .decrypt_in_place_detached(&hand.iv.into(), header.as_bytes(), &mut plaintext, &tag.into())
            .expect("the ciphertext authenticates under both keys");
        plaintexts.push(plaintext);
    }
    assert_ne!(plaintexts[0], plaintexts[1]);
    let message = to_a_and_b(&hand.around(&ciphertext, &tag));
    assert!(!opens_for_a(&message) && !opens_for_b(&message));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_recipient_opens_what_was_sealed(
        plaintext in proptest::collection::vec(any::<u8>(), 0..400), recipients in 1_u8..8, seed: u64, id: u8,
    ) {
        let agents: Vec<(AgentKey, AgentCard)> = (1..=recipients).map(agent).collect();
        let cards: Vec<&AgentCard> = agents.iter().map(|(_, card)| card).rev().collect();
        let body =
            seal(&plaintext, &cards, card_a().agent_id(), message_id(id), &mut SeededRandomness::new(seed)).unwrap();
        prop_assert_eq!(body.len(), sealed_length(plaintext.len(), agents.len()));
        let ids: Vec<AgentId> = cards.iter().map(|card| card.agent_id()).collect();
        let message = message_of_a(&ids, id, &body);
        for (key, card) in &agents {
            let opened = open(card, key, &message);
            prop_assert_eq!(opened.as_ref(), Ok(&plaintext));
        }
    }

    #[test]
    fn any_bytes_open_or_give_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        prop_assert!(!opens_for_a(&to_a(&bytes)));
    }
}

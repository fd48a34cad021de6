//! Sealed bodies have exactly one form; whatever else a sender spells and authenticates is refused.

use crate::support::hand_sealed::{HandSealed, Layout};
use crate::support::{sealing::*, *};
use conclave_harness::{
    AgentCard, AgentId,
    sealed_body::{SealedBodyOpeningError, open},
};
use serde_json::{Value, json};

/// The right spelling is authenticated and another one sent. What opens must not depend on reading the sender's mind.
#[test]
fn the_header_that_is_sent_is_the_one_that_is_authenticated() {
    let respellings: [fn(&str) -> String; 4] = [
        |header| header.replace("\":\"A256GCM", "\": \"A256GCM"),
        |header| header.replace("A256GCM", "A256\\u0047CM"),
        |header| header.replace(r#""enc":"A256GCM""#, r#""enc":"A256GCM","enc":"A256GCM""#),
        |header| format!("{header} "),
    ];
    for respell in respellings {
        let body = edited(|body| {
            let header = conclave_harness::base64url::decode(body["protected"].as_str().unwrap()).unwrap();
            let header = String::from_utf8(header).unwrap();
            let respelled = respell(&header);
            assert_ne!(respelled, header);
            body["protected"] = conclave_harness::base64url::encode(respelled.as_bytes()).into();
        });
        assert!(!opens_for_a(&to_a_and_b(&body)) && !opens_for_b(&to_a_and_b(&body)));
    }
}

/// The sender spells its header otherwise and authenticates that very spelling, so only the spelling is wrong.
#[test]
fn the_header_has_exactly_one_spelling() {
    let spellings: [fn(&str) -> Vec<u8>; 12] = [
        |header| {
            header
                .replace(
                    r#""alg":"ECDH-ES+A256KW","enc":"A256GCM""#,
                    r#""enc":"A256GCM","alg":"ECDH-ES+A256KW""#,
                )
                .into()
        },
        |header| header.replace("\":\"A256GCM", "\": \"A256GCM").into(),
        |header| format!("{header} ").into(),
        |header| header.replace("A256GCM", "A256\\u0047CM").into(),
        |header| {
            header
                .replace("xyz.moltzap/sender", "xyz.moltzap\\/sender")
                .into()
        },
        |header| {
            header
                .replace(r#""enc":"A256GCM""#, r#""enc":"A256GCM","enc":"A256GCM""#)
                .into()
        },
        |header| format!("\u{feff}{header}").into(),
        |header| header.replace(r#""enc""#, r#""kid":"x","enc""#).into(),
        |header| header.replace("A256GCM", "A128GCM").into(),
        |header| header.replace("ECDH-ES+A256KW", "ECDH-ES").into(),
        |header| header.replace(r#""enc":"A256GCM","#, "").into(),
        |_| b"\xff{}".to_vec(),
    ];
    for (index, spell_header) in spellings.into_iter().enumerate() {
        for recipients in [vec![card_a()], vec![card_a(), card_b()]] {
            let ids: Vec<AgentId> = recipients.iter().map(AgentCard::agent_id).collect();
            let body = HandSealed {
                spell_header,
                ..honest(recipients)
            }
            .seal();
            assert!(!opens_for_a(&message_of_a(&ids, 3, &body)), "spelling {index}");
        }
    }
}

#[test]
fn the_ephemeral_key_of_a_sole_recipient_has_its_own_member_order() {
    let spell_header: fn(&str) -> Vec<u8> = |header| {
        let (head, x) = header.split_once(r#""epk":{"#).unwrap();
        let x = x.split_once(',').unwrap().0;
        format!(r#"{head}"epk":{{"crv":"X25519","kty":"OKP",{x}}}}}"#).into()
    };
    assert!(!opens_for_a(&to_a(
        &HandSealed {
            spell_header,
            ..honest(vec![card_a()])
        }
        .seal()
    )));
}

#[test]
fn members_beside_the_five_are_refused() {
    for member in ["aad", "unprotected", "header", "encrypted_key"] {
        let body = edited(|body| body[member] = json!("AAAA"));
        assert!(!opens_for_a(&to_a_and_b(&body)), "{member}");
    }
    for member in ["ciphertext", "iv", "protected", "recipients", "tag"] {
        let body = edited(|body| {
            body.as_object_mut().unwrap().remove(member);
        });
        assert!(!opens_for_a(&to_a_and_b(&body)), "{member}");
    }
    for edit in [
        |body: &mut Value| body["recipients"][0]["header"]["kid"] = json!("x"),
        |body: &mut Value| body["recipients"][0]["kid"] = json!("x"),
        |body: &mut Value| body["recipients"][0]["header"]["epk"]["alg"] = json!("x"),
        |body: &mut Value| body["recipients"][0]["header"]["epk"]["crv"] = json!("X448"),
        |body: &mut Value| body["recipients"][0] = json!(null),
        // Of the other's entry just as of one's own: everything is read before anything is tried.
        |body: &mut Value| body["recipients"][1]["encrypted_key"] = json!("AAAA"),
        |body: &mut Value| body["iv"] = json!("AAAA"),
        |body: &mut Value| body["tag"] = json!("AAAA"),
        |body: &mut Value| body["ciphertext"] = json!("A"),
        |body: &mut Value| body["recipients"] = json!({}),
    ] {
        assert!(!opens_for_a(&to_a_and_b(&edited(edit))));
    }
}

#[test]
fn the_ephemeral_key_stands_where_the_number_of_recipients_puts_it() {
    let shared = HandSealed {
        layout: Layout::InHeader,
        ..honest(vec![card_a(), card_b()])
    }
    .seal();
    assert!(!opens_for_a(&to_a_and_b(&shared)) && !opens_for_b(&to_a_and_b(&shared)));
    let own = HandSealed {
        layout: Layout::InEntries,
        ..honest(vec![card_a()])
    }
    .seal();
    assert!(!opens_for_a(&to_a(&own)));
}

#[test]
fn every_single_byte_corruption_of_a_body_to_one_is_refused() {
    for position in 0..SEALED_BODY_A.len() {
        for flip in [0x01, 0x20, 0x80] {
            let mut damaged = SEALED_BODY_A.to_vec();
            damaged[position] ^= flip;
            assert!(
                !opens_for_a(&to_a(&damaged)),
                "byte {position} flipped by {flip:#x}"
            );
        }
    }
}

/// A recipient cannot check another's entry, and the top bit of an X25519 coordinate is nobody's (RFC 7748). Nothing
/// else may change, and no change may change what is read.
#[test]
fn a_corruption_of_a_body_to_two_is_refused_or_leaves_the_plaintext_alone() {
    let text = std::str::from_utf8(SEALED_BODY_A_B).unwrap();
    let second_entry = text.find(r#"},{"encrypted_key""#).unwrap();
    let unchecked = second_entry..text.find(r#"],"tag""#).unwrap();
    let own_coordinate = text.find(r#""x":""#).unwrap() + 5;
    let top_bit = own_coordinate + 41..=own_coordinate + 42;
    for position in 0..text.len() {
        for flip in [0x01, 0x02, 0x20, 0x80] {
            let mut damaged = SEALED_BODY_A_B.to_vec();
            damaged[position] ^= flip;
            match open(&card_a(), &key_a(), &to_a_and_b(&damaged)) {
                Err(SealedBodyOpeningError) => {}
                Ok(plaintext) => {
                    assert_eq!(plaintext, PLAINTEXT);
                    assert!(
                        unchecked.contains(&position) || top_bit.contains(&position),
                        "byte {position}"
                    );
                }
            }
        }
    }
}

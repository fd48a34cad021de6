//! The largest artifacts really fit. Every certificate is full, every name and the content as long as they may be.

use conclave_conversation::outer_message::{open_outer_message, seal_outer_message};
use conclave_conversation::test_support::{Agent, Conversation};
use conclave_conversation::values::*;
use conclave_conversation::verification::VerifiedCatchUpPage;
use conclave_harness::randomness::SeededRandomness;
use conclave_harness::sealed_body;
use conclave_harness::signed_message::BODY_BYTES_MAX;
use conclave_harness::wire_version::{WIRE_VERSION, WireVersions};

fn largest_conversation() -> Conversation {
    let agents =
        (0..MEMBERS_MAX).map(|number| Agent::named(number, &format!("agent-{number:0>26}"), WIRE_VERSION));
    Conversation::of(agents.collect())
}

fn largest_content() -> Content {
    let overhead = Content::text("").unwrap().encode().len();
    let content = Content::text("x".repeat(CONTENT_BYTES_MAX - overhead)).unwrap();
    assert_eq!(content.encode().len(), CONTENT_BYTES_MAX);
    content
}

/// Seals a plaintext to all 32, and opens and decodes it as the last of them.
fn travels(conversation: &Conversation, plaintext: &Plaintext) {
    let bytes = plaintext.encode();
    assert!(
        bytes.len() <= PLAINTEXT_BYTES_MAX_AT_32_MEMBERS,
        "{} bytes",
        bytes.len()
    );
    let (sender, reader) = (conversation.agent(0), conversation.agent(31));
    let mut randomness = SeededRandomness::new(1);
    let message = seal_outer_message(
        &bytes,
        &conversation.membership,
        &sender.card,
        &sender.key,
        WIRE_VERSION,
        &mut randomness,
    )
    .unwrap();
    assert!(message.body().len() <= BODY_BYTES_MAX);
    let opened = open_outer_message(
        message.encoded(),
        &conversation.membership,
        &reader.card,
        &reader.key,
        &WireVersions::live(),
    );
    assert_eq!(opened.unwrap().plaintext, *plaintext);
}

fn verifies(conversation: &Conversation, page: &CatchUpPage) {
    let responder = conversation.agent(0).id();
    let verified = VerifiedCatchUpPage::verify(
        page.clone(),
        &responder,
        &conversation.membership,
        &mut Default::default(),
    );
    assert!(verified.is_ok(), "{verified:?}");
}

#[test]
fn the_plaintext_bounds_are_those_of_the_seal() {
    assert_eq!(
        sealed_body::plaintext_length_max(MEMBERS_MIN),
        PLAINTEXT_BYTES_MAX
    );
    assert_eq!(
        sealed_body::plaintext_length_max(MEMBERS_MAX),
        PLAINTEXT_BYTES_MAX_AT_32_MEMBERS
    );
}

// CONV-B08
#[test]
fn the_largest_page_with_a_reanchored_post_verifies_and_fits() {
    let conversation = largest_conversation();
    let genesis = conversation.certified_genesis(0, "hello");
    let (record, anchor) = (*genesis.record().hash(), *genesis.record().anchor_hash());
    let reanchor = conversation.completed_reanchor(conversation.reanchor(anchor, record, 1));
    let intent = conversation.intent_of_content(1, largest_content());
    let post = conversation.post(intent, record, *reanchor.anchor_hash());
    let post = conversation.certified(post, reanchor.value().clone());
    let request = conversation.catch_up_request(1, Some((record, *reanchor.anchor_hash())));
    let page = conversation.catch_up_page(0, request, post.to_value().into());
    verifies(&conversation, &page);
    travels(&conversation, &Plaintext::Packet(page.into()));
}

// CONV-B08
#[test]
fn the_largest_page_with_genesis_verifies_and_fits() {
    let conversation = largest_conversation();
    let genesis = conversation.genesis(conversation.intent_of_content(0, largest_content()));
    let genesis = conversation.certified(genesis, conversation.genesis_anchor());
    let request = conversation.catch_up_request(1, None);
    let page = conversation.catch_up_page(0, request, genesis.to_value().into());
    verifies(&conversation, &page);
    travels(&conversation, &Plaintext::Packet(page.into()));
}

// CONV-B09
#[test]
fn the_largest_attestation_fits_as_evidence() {
    let conversation = largest_conversation();
    let genesis = conversation.certified_genesis(0, "hello");
    let (record, anchor) = (*genesis.record().hash(), *genesis.record().anchor_hash());
    let completed = conversation.completed_reanchor(conversation.reanchor(anchor, record, 1));
    let request = conversation.catch_up_request(1, Some((record, anchor)));
    let item = completed.value().clone().into();
    let attestation = conversation.attestation(0, &request, Some(&item), false);
    travels(
        &conversation,
        &Plaintext::Evidence(Box::new(attestation.encoded().clone())),
    );
}

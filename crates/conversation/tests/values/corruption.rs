//! No single byte of verified evidence can change.

use std::sync::LazyLock;

use conclave_conversation::test_support::{Conversation, history};
use conclave_conversation::values::*;
use conclave_conversation::verification::{
    VerifiedCatchUpPage, VerifiedCertifiedRecord, VerifiedCompletedReanchor,
};
use conclave_conversation::{certificates::verify_evidence, membership::Membership, test_support::registry};
use conclave_harness::signed_message::EncodedSignedMessage;
use proptest::prelude::*;

struct Artifacts {
    conversation: Conversation,
    descriptor: Vec<u8>,
    page: Vec<u8>,
    genesis: Vec<u8>,
    reanchor: Vec<u8>,
    evidence: Vec<u8>,
}

static ARTIFACTS: LazyLock<Artifacts> = LazyLock::new(|| {
    let conversation = Conversation::new(2);
    let genesis = conversation.certified_genesis(0, "hello");
    let (record, anchor) = (*genesis.record().hash(), *genesis.record().anchor_hash());
    let reanchor = conversation.completed_reanchor(conversation.reanchor(anchor, record, 1));
    let post = conversation.post(conversation.intent(1, "again"), record, *reanchor.anchor_hash());
    let post = conversation.certified(post, reanchor.value().clone());
    let request = conversation.catch_up_request(1, Some((record, *reanchor.anchor_hash())));
    Artifacts {
        descriptor: conversation.membership.descriptor().encode(),
        page: conversation
            .catch_up_page(0, request, post.to_value().into())
            .encode(),
        genesis: genesis.to_value().encode(),
        reanchor: reanchor.value().encode(),
        evidence: conversation
            .durability_vote(0, record)
            .encoded()
            .to_canonical_bytes(),
        conversation,
    }
});

fn verifies(artifacts: &Artifacts, which: usize, bytes: &[u8]) -> bool {
    let membership = &artifacts.conversation.membership;
    let mut memory = Default::default();
    match which {
        0 => Membership::decode(bytes, &registry(), &history()).is_ok(),
        1 => CatchUpPage::decode_over(&history(), bytes).is_ok_and(|page| {
            let responder = artifacts.conversation.agent(0).id();
            VerifiedCatchUpPage::verify(page, &responder, membership, &mut memory).is_ok()
        }),
        2 => CertifiedRecord::decode_over(&history(), bytes)
            .is_ok_and(|record| VerifiedCertifiedRecord::verify(record, membership, &mut memory).is_ok()),
        3 => CompletedReanchor::decode_over(&history(), bytes).is_ok_and(|completed| {
            VerifiedCompletedReanchor::verify(completed, membership, &mut memory).is_ok()
        }),
        _ => EncodedSignedMessage::from_canonical_bytes(bytes)
            .is_ok_and(|message| verify_evidence(&message, membership, &mut memory).is_ok()),
    }
}

fn artifact(artifacts: &Artifacts, which: usize) -> &[u8] {
    match which {
        0 => &artifacts.descriptor,
        1 => &artifacts.page,
        2 => &artifacts.genesis,
        3 => &artifacts.reanchor,
        _ => &artifacts.evidence,
    }
}

#[test]
fn the_artifacts_verify_before_they_are_corrupted() {
    for which in 0..5 {
        assert!(
            verifies(&ARTIFACTS, which, artifact(&ARTIFACTS, which)),
            "artifact {which}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_byte_of_an_artifact_can_change(which in 0..5_usize, place: prop::sample::Index, other in 1..=255_u8) {
        let mut bytes = artifact(&ARTIFACTS, which).to_vec();
        let place = place.index(bytes.len());
        bytes[place] ^= other;
        prop_assert!(!verifies(&ARTIFACTS, which, &bytes), "artifact {} at byte {}", which, place);
    }

    #[test]
    fn no_artifact_can_end_early(which in 0..5_usize, place: prop::sample::Index) {
        let bytes = artifact(&ARTIFACTS, which);
        prop_assert!(!verifies(&ARTIFACTS, which, &bytes[..place.index(bytes.len())]));
    }
}

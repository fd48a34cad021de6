use conclave_conversation::test_support::Conversation;
use conclave_conversation::values::*;
use conclave_conversation::verification::{
    VerificationError, VerifiedCatchUpIncomplete, VerifiedCatchUpItem, VerifiedCatchUpPage,
    VerifiedCatchUpRequest, VerifiedCertifiedRecord, VerifiedCompletedReanchor,
};
use serde_json::json;

use crate::tamper;

/// Four members: GENESIS, a POST under the same anchor, a re-anchor at it, a POST under that. Agent 1 asks, agent 0
/// answers.
struct History {
    conversation: Conversation,
    genesis: VerifiedCertifiedRecord,
    second: VerifiedCertifiedRecord,
    reanchor: VerifiedCompletedReanchor,
    third: VerifiedCertifiedRecord,
}

fn story() -> History {
    let conversation = Conversation::new(4);
    let genesis = conversation.certified_genesis(0, "one");
    let anchor = *genesis.record().anchor_hash();
    let second = conversation.post(conversation.intent(1, "two"), *genesis.record().hash(), anchor);
    let second = conversation.certified(second, conversation.genesis_anchor());
    let reanchor = conversation.completed_reanchor(conversation.reanchor(anchor, *second.record().hash(), 1));
    let third = conversation.post(
        conversation.intent(2, "three"),
        *second.record().hash(),
        *reanchor.anchor_hash(),
    );
    let third = conversation.certified(third, reanchor.value().clone());
    History {
        conversation,
        genesis,
        second,
        reanchor,
        third,
    }
}

impl History {
    fn after(&self, record: &VerifiedCertifiedRecord) -> CatchUpRequest {
        self.conversation
            .catch_up_request(1, Some((*record.record().hash(), *record.record().anchor_hash())))
    }

    fn page(&self, request: CatchUpRequest, item: impl Into<CatchUpItem>) -> CatchUpPage {
        self.conversation.catch_up_page(0, request, item.into())
    }

    fn verify(&self, page: CatchUpPage) -> Result<VerifiedCatchUpPage, VerificationError> {
        self.verify_from(0, page)
    }

    fn verify_from(
        &self,
        sender: usize,
        page: CatchUpPage,
    ) -> Result<VerifiedCatchUpPage, VerificationError> {
        let sender = self.conversation.agent(sender).id();
        VerifiedCatchUpPage::verify(
            page,
            &sender,
            &self.conversation.membership,
            &mut Default::default(),
        )
    }
}

// CONV-I01
#[test]
fn before_genesis_only_genesis_comes_next() {
    let history = story();
    let nothing = history.conversation.catch_up_request(1, None);
    let page = history
        .verify(history.page(nothing.clone(), history.genesis.to_value()))
        .unwrap();
    assert_eq!(
        *page.item(),
        VerifiedCatchUpItem::CertifiedRecord(Box::new(history.genesis.clone()))
    );
    for item in [
        history.second.to_value().into(),
        CatchUpItem::from(history.reanchor.value().clone()),
    ] {
        let refused = history.verify(history.page(nothing.clone(), item));
        assert!(matches!(refused, Err(VerificationError::WrongPosition(_))));
    }
    let other = Conversation::new(3);
    let foreign = history.verify(history.page(nothing, other.certified_genesis(0, "one").to_value()));
    assert!(matches!(foreign, Err(VerificationError::ForeignMembership(_))));
    let again = history.verify(history.page(history.after(&history.genesis), history.genesis.to_value()));
    assert!(matches!(again, Err(VerificationError::WrongPosition(_))));
}

#[test]
fn each_item_of_a_history_follows_its_own_position_only() {
    let history = story();
    let at_anchor = history.conversation.catch_up_request(
        1,
        Some((*history.second.record().hash(), *history.reanchor.anchor_hash())),
    );
    let items: Vec<(CatchUpRequest, CatchUpItem)> = vec![
        (history.after(&history.genesis), history.second.to_value().into()),
        (
            history.after(&history.second),
            history.reanchor.value().clone().into(),
        ),
        (at_anchor, history.third.to_value().into()),
    ];
    for (place, (request, _)) in items.iter().enumerate() {
        for (other, (_, item)) in items.iter().enumerate() {
            let page = history.verify(history.page(request.clone(), item.clone()));
            assert_eq!(page.is_ok(), place == other, "item {other} at position {place}");
        }
    }
}

// CONV-F15
#[test]
fn a_page_is_attested_by_its_sender() {
    let history = story();
    let page = history.page(history.after(&history.genesis), history.second.to_value());
    let refused = history.verify_from(2, page);
    assert!(matches!(refused, Err(VerificationError::ForeignAttestation(_))));
}

#[test]
fn an_attestation_is_about_this_request_item_and_hint() {
    let history = story();
    let page = history.page(history.after(&history.genesis), history.second.to_value());
    assert!(history.verify(page.clone()).is_ok());

    let mut other_hint = page.clone();
    other_hint.has_more = true;
    assert!(matches!(
        history.verify(other_hint),
        Err(VerificationError::ForeignAttestation(_))
    ));

    let mut other_request = page.clone();
    other_request.request.requester_agent_id = history.conversation.agent(2).id();
    assert!(matches!(
        history.verify(other_request),
        Err(VerificationError::ForeignAttestation(_))
    ));

    let other_item = history
        .page(history.after(&history.genesis), history.third.to_value())
        .attestation;
    let mut wrong = page.clone();
    wrong.attestation = other_item;
    assert!(matches!(
        history.verify(wrong),
        Err(VerificationError::ForeignAttestation(_))
    ));

    let mut no_attestation = page;
    no_attestation.attestation = history
        .conversation
        .durability_vote(0, *history.second.record().hash())
        .encoded()
        .clone();
    assert!(matches!(
        history.verify(no_attestation),
        Err(VerificationError::ForeignAttestation(_))
    ));
}

#[test]
fn an_incomplete_answer_attests_that_nothing_is_there() {
    let history = story();
    let conversation = &history.conversation;
    let request = history.after(&history.third);
    let incomplete = |attestation: conclave_conversation::certificates::VerifiedEvidence| CatchUpIncomplete {
        sharness_version: request.sharness_version,
        kind: CatchUpIncompleteKind,
        request: request.clone(),
        attestation: attestation.encoded().clone(),
    };
    let verify = |value, sender: usize| {
        let sender = conversation.agent(sender).id();
        VerifiedCatchUpIncomplete::verify(value, &sender, &conversation.membership, &mut Default::default())
    };
    let proper = incomplete(conversation.attestation(0, &request, None, false));
    assert!(verify(proper.clone(), 0).is_ok());
    assert!(verify(proper, 2).is_err());
    assert!(verify(incomplete(conversation.attestation(0, &request, None, true)), 0).is_err());
    let item = history.third.to_value().into();
    assert!(
        verify(
            incomplete(conversation.attestation(0, &request, Some(&item), false)),
            0
        )
        .is_err()
    );
}

#[test]
fn a_request_is_its_senders_own_and_about_this_membership() {
    let history = story();
    let membership = &history.conversation.membership;
    let request = history.after(&history.genesis);
    let (asker, other) = (
        history.conversation.agent(1).id(),
        history.conversation.agent(2).id(),
    );
    assert!(VerifiedCatchUpRequest::verify(request.clone(), &asker, membership).is_ok());
    assert!(VerifiedCatchUpRequest::verify(request.clone(), &other, membership).is_err());
    let of_another = tamper(&request, |json| {
        json["membershipHash"] = json!(MembershipHash::from_bytes([1; 32]))
    });
    assert!(VerifiedCatchUpRequest::verify(of_another, &asker, membership).is_err());
    for member in ["knownRecordHash", "knownAnchorHash"] {
        let half = tamper(&request, |json| json[member] = json!(null));
        let refused = VerifiedCatchUpRequest::verify(half, &asker, membership);
        assert_eq!(refused, Err(VerificationError::HalfPosition));
    }
}

use conclave_conversation::membership::Membership;
use conclave_conversation::test_support::{Conversation, SECOND_VERSION};
use conclave_conversation::values::*;
use conclave_conversation::verification::{
    Position, VerificationError, VerifiedAction, VerifiedActionCertifiedRecord, VerifiedCertifiedRecord,
    VerifiedCompletedReanchor, VerifiedRecordCore,
};
use serde_json::json;

use crate::{at, tamper};

/// Four members, a certified GENESIS, a re-anchor at it and a certified POST under that.
struct History {
    conversation: Conversation,
    genesis: VerifiedCertifiedRecord,
    reanchor: VerifiedCompletedReanchor,
    post: VerifiedCertifiedRecord,
}

fn story() -> History {
    let conversation = Conversation::new(4);
    let genesis = conversation.certified_genesis(0, "hello");
    let (record, anchor) = (*genesis.record().hash(), *genesis.record().anchor_hash());
    let reanchor = conversation.completed_reanchor(conversation.reanchor(anchor, record, 1));
    let post = conversation.post(conversation.intent(1, "again"), record, *reanchor.anchor_hash());
    let post = conversation.certified(post, reanchor.value().clone());
    History {
        conversation,
        genesis,
        reanchor,
        post,
    }
}

fn verify_record(
    value: CertifiedRecord,
    membership: &Membership,
) -> Result<VerifiedCertifiedRecord, VerificationError> {
    VerifiedCertifiedRecord::verify(value, membership, &mut Default::default())
}

#[test]
fn what_honest_members_make_verifies_as_what_they_made() {
    let History {
        conversation,
        genesis,
        reanchor,
        post,
    } = story();
    for record in [&genesis, &post] {
        assert_eq!(
            verify_record(record.to_value(), &conversation.membership).as_ref(),
            Ok(record)
        );
    }
    let verified = VerifiedCompletedReanchor::verify(
        reanchor.value().clone(),
        &conversation.membership,
        &mut Default::default(),
    );
    assert_eq!(verified, Ok(reanchor.clone()));
    let position = Position {
        record_hash: Some(*genesis.record().hash()),
        anchor_hash: *reanchor.anchor_hash(),
    };
    assert_eq!(post.record().position(), position);
    assert_eq!(genesis.record().position().record_hash, None);
}

#[test]
fn an_action_is_bound_to_conversation_membership_author_and_intent() {
    let History {
        conversation,
        genesis,
        post,
        ..
    } = story();
    let other = Conversation::new(3);
    let stranger = json!(conclave_conversation::test_support::Agent::new(9).id());
    let foreign_id = json!(other.membership.conversation_id());
    let foreign_hash = json!(other.membership.hash());
    let version = json!(SECOND_VERSION);
    let cases = [
        ("/conversationId", &foreign_id),
        ("/postIntent/conversationId", &foreign_id),
        ("/postIntent/membershipHash", &foreign_hash),
        ("/postIntent/authorAgentId", &stranger),
        ("/postIntent/sharnessVersion", &version),
        ("/sharnessVersion", &version),
        ("/postIntent/content/0/text", &json!("changed")),
        ("/postIntentHash", &json!(PostIntentHash::from_bytes([1; 32]))),
    ];
    for action in [genesis.record_core().to_action(), post.record_core().to_action()] {
        assert!(VerifiedAction::verify(action.clone(), &conversation.membership).is_ok());
        assert!(VerifiedAction::verify(action.clone(), &other.membership).is_err());
        for (pointer, wrong) in &cases {
            let changed = tamper(&action, |json| *at(json, pointer) = (*wrong).clone());
            assert!(
                VerifiedAction::verify(changed, &conversation.membership).is_err(),
                "{pointer}"
            );
        }
    }
    for (pointer, wrong) in [
        ("/anchor/conversationId", foreign_id.clone()),
        ("/anchor/membershipHash", foreign_hash.clone()),
        ("/anchor/sharnessVersion", version.clone()),
        ("/membership", json!(other.membership.descriptor())),
    ] {
        let action = genesis.record_core().to_action();
        let changed = tamper(&action, |json| *at(json, pointer) = wrong);
        assert!(
            VerifiedAction::verify(changed, &conversation.membership).is_err(),
            "{pointer}"
        );
    }
}

#[test]
fn a_post_of_another_membership_than_the_held_one_is_refused() {
    let History {
        conversation, post, ..
    } = story();
    let wrong = tamper(post.record_core(), |json| {
        json["membershipHash"] = json!(MembershipHash::from_bytes([1; 32]))
    });
    let refused = VerifiedRecordCore::verify(wrong, &conversation.membership);
    assert_eq!(
        refused,
        Err(VerificationError::ForeignMembership("the record core"))
    );
    let wrong = tamper(post.record_core(), |json| {
        json["action"]["membershipHash"] = json!(MembershipHash::from_bytes([1; 32]))
    });
    let refused = VerifiedRecordCore::verify(wrong, &conversation.membership);
    assert_eq!(refused, Err(VerificationError::ForeignMembership("POST")));
}

#[test]
fn a_record_is_refused_when_a_hash_or_version_in_it_is_not_the_one_that_follows() {
    let History {
        conversation,
        genesis,
        reanchor,
        post,
    } = story();
    let version = json!(SECOND_VERSION);
    let anchor = json!(AnchorHash::from_bytes([1; 32]));
    let action = json!(ActionHash::from_bytes([1; 32]));
    let record = json!(RecordHash::from_bytes([1; 32]));
    let inner = "/actionCertifiedRecord";
    for certified in [&genesis, &post] {
        for (pointer, wrong) in [
            ("/sharnessVersion".to_owned(), &version),
            (format!("{inner}/sharnessVersion"), &version),
            (format!("{inner}/recordCore/sharnessVersion"), &version),
            (format!("{inner}/actionCertificate/sharnessVersion"), &version),
            ("/durabilityCertificate/sharnessVersion".to_owned(), &version),
            (format!("{inner}/recordHash"), &record),
            (format!("{inner}/recordCore/anchorHash"), &anchor),
            (format!("{inner}/recordCore/actionHash"), &action),
            (format!("{inner}/actionCertificate/actionHash"), &action),
            ("/durabilityCertificate/recordHash".to_owned(), &record),
        ] {
            let changed = tamper(&certified.to_value(), |json| *at(json, &pointer) = wrong.clone());
            assert!(
                verify_record(changed, &conversation.membership).is_err(),
                "{pointer}"
            );
        }
    }
    for (pointer, wrong) in [
        ("/anchorHash", &anchor),
        ("/certificate/anchorHash", &anchor),
        ("/reanchor/previousAnchorHash", &anchor),
        ("/reanchor/selectedRecordHash", &record),
        ("/sharnessVersion", &version),
        ("/certificate/sharnessVersion", &version),
        ("/reanchor/sharnessVersion", &version),
    ] {
        let changed = tamper(reanchor.value(), |json| *at(json, pointer) = wrong.clone());
        let refused =
            VerifiedCompletedReanchor::verify(changed, &conversation.membership, &mut Default::default());
        assert!(refused.is_err(), "{pointer}");
    }
}

#[test]
fn a_record_is_shown_with_the_anchor_it_was_made_under() {
    let History {
        conversation,
        genesis,
        reanchor,
        post,
    } = story();
    let other_genesis = conversation
        .membership
        .genesis_anchor(conclave_conversation::test_support::router_instance(5));
    for (record, anchors) in [
        (&genesis, [json!(reanchor.value()), json!(other_genesis)]),
        (
            &post,
            [json!(conversation.genesis_anchor()), json!(other_genesis)],
        ),
    ] {
        for anchor in anchors {
            let changed = tamper(&record.to_value(), |json| {
                *at(json, "/actionCertifiedRecord/routerAnchor") = anchor
            });
            let refused = verify_record(changed, &conversation.membership);
            assert_eq!(refused, Err(VerificationError::WrongAnchor));
        }
    }
}

// CONV-C03, CONV-C04
#[test]
fn each_certificate_of_a_record_stands_on_its_own() {
    let History {
        conversation,
        genesis,
        post,
        ..
    } = story();
    for (certified, pointer, fewest) in [
        (&genesis, "/actionCertifiedRecord/actionCertificate/signatures", 4),
        (&genesis, "/durabilityCertificate/votes", 3),
        (&post, "/actionCertifiedRecord/actionCertificate/signatures", 3),
        (&post, "/durabilityCertificate/votes", 3),
        (&post, "/actionCertifiedRecord/routerAnchor/certificate/votes", 3),
    ] {
        for left in 1..=4 {
            let changed = tamper(&certified.to_value(), |json| {
                at(json, pointer).as_array_mut().unwrap().truncate(left)
            });
            let verified = verify_record(changed, &conversation.membership);
            assert_eq!(verified.is_ok(), left >= fewest, "{left} at {pointer}");
        }
    }
    // Without the author's own signature, three others are not enough.
    let without_author = tamper(&post.to_value(), |json| {
        at(json, "/actionCertifiedRecord/actionCertificate/signatures")
            .as_array_mut()
            .unwrap()
            .remove(1);
    });
    assert!(verify_record(without_author, &conversation.membership).is_err());
}

// CONV-C05
#[test]
fn votes_and_signatures_in_each_others_place_are_refused() {
    let History {
        conversation, post, ..
    } = story();
    let swapped = tamper(&post.to_value(), |json| {
        let votes = at(json, "/durabilityCertificate/votes").take();
        let signatures = at(json, "/actionCertifiedRecord/actionCertificate/signatures").take();
        *at(json, "/durabilityCertificate/votes") = signatures;
        *at(json, "/actionCertifiedRecord/actionCertificate/signatures") = votes;
    });
    assert!(verify_record(swapped, &conversation.membership).is_err());
}

#[test]
fn incomplete_maps_assemble_nothing() {
    let History {
        conversation, post, ..
    } = story();
    let membership = &conversation.membership;
    let record = post.action_certified().clone();
    let hash = *record.record().hash();
    assert!(
        VerifiedCertifiedRecord::assemble(
            record.clone(),
            conversation.durability_votes(0..2, hash),
            membership
        )
        .is_none()
    );
    let other = RecordHash::from_bytes([1; 32]);
    assert!(
        VerifiedCertifiedRecord::assemble(
            record.clone(),
            conversation.durability_votes(0..4, other),
            membership
        )
        .is_none()
    );
    let mut memory = Default::default();
    let anchor = conclave_conversation::verification::VerifiedRouterAnchor::verify(
        record.anchor().clone(),
        membership,
        &mut memory,
    )
    .unwrap();
    let signatures = conversation.action_signatures([0, 2, 3], *record.record().action_hash());
    let without_author =
        VerifiedActionCertifiedRecord::assemble(record.record().clone(), &anchor, signatures, membership);
    assert!(without_author.is_none());
    let body = conversation.reanchor(AnchorHash::from_bytes([1; 32]), hash, 2);
    let votes = conversation.reanchor_votes(0..2, &body);
    assert!(VerifiedCompletedReanchor::assemble(body, votes, membership).is_none());
}

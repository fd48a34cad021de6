//! Votes to re-anchor, judged: which count, which are held, which change nothing.

use conclave_conversation::engine::{Ignored, WaitingFor};
use conclave_conversation::store::rows::{EvidenceKind, EvidenceRow, ReanchorRow, StagedRecordRow};
use conclave_conversation::store::{CommitError, MemoryStore, Row};
use conclave_conversation::test_support::{SECOND_VERSION, router_instance};
use conclave_conversation::values::{
    AnchorHash, ClosedValue, ReanchorBody, ReanchorBodyKind, ReanchorVoteKind, ReanchorVoteStatement,
    RecordHash,
};
use conclave_harness::WIRE_VERSION;

use crate::byhand::{answer, certified, completed, post, proposal, signature};
use crate::scenario::{
    alone, anchor, anchor_in, body, follows, founded, inject, inject_plaintext, inject_vote, nothing_follows,
    plaintexts, question, recovered, rows, settled,
};
use crate::world::{CrashPoint, World};

// CONV-J10
#[test]
fn a_vote_after_recovery_or_in_a_run_of_another_kind_is_ignored() {
    let (mut world, everyone) = founded(4);
    let body = body(&world, 0, &everyone, router_instance(0));
    world.crash(3);
    inject_vote(&mut world, &everyone, 3, &body);
    world.settle();
    assert!(world.members[0].ignored.contains(&Ignored::NotRecovering));
    world.crash(2);
    world.lose_unread(0, &everyone);
    inject_vote(&mut world, &everyone, 3, &body);
    world.settle();
    assert!(world.members[0].ignored.contains(&Ignored::NotReanchoring));
    assert_eq!(rows::<ReanchorRow>(&world, 0), []);
}

// CONV-F06, CONV-F08, CONV-L07
#[test]
fn votes_for_what_cannot_be_resolved_neither_count_nor_stop_the_run() {
    let (mut world, everyone) = alone();
    let honest = body(&world, 0, &everyone, router_instance(1));
    let unknown_anchor = ReanchorBody {
        previous_anchor_hash: AnchorHash::from_bytes([9; 32]),
        ..honest.clone()
    };
    let unknown_head = ReanchorBody {
        selected_record_hash: RecordHash::from_bytes([9; 32]),
        ..honest.clone()
    };
    inject_vote(&mut world, &everyone, 3, &unknown_anchor);
    inject_vote(&mut world, &everyone, 3, &unknown_head);
    world.settle();
    assert!(world.members[0].ignored.contains(&Ignored::NotGapFree));
    assert_eq!(rows::<ReanchorRow>(&world, 0), []);
    // The head it names is never supplied: the others settle at their own.
    for member in [1, 2] {
        world.open(member);
        world.attach(member);
    }
    world.run_out();
    assert!(recovered(&world, &[0, 1, 2], &everyone));
    world.check(&everyone);
}

// CONV-F13
#[test]
fn a_vote_with_a_foreign_hash_changes_nothing() {
    let (mut world, everyone) = alone();
    let honest = body(&world, 0, &everyone, router_instance(1));
    let statement = ReanchorVoteStatement {
        sharness_version: WIRE_VERSION,
        kind: ReanchorVoteKind,
        signer_agent_id: world.members[3].id(),
        anchor_hash: AnchorHash::from_bytes([5; 32]),
        reanchor: honest.clone(),
    };
    let forged = world.members[3].agent.sign(statement);
    inject_plaintext(&mut world, &everyone, 3, &forged.encoded().to_canonical_bytes());
    world.settle();
    assert!(
        world.members[0]
            .ignored
            .iter()
            .any(|reason| matches!(reason, Ignored::InvalidEvidence(_)))
    );
    for _ in 0..2 {
        inject_vote(&mut world, &everyone, 3, &honest);
    }
    world.settle();
    assert!(world.members[0].fatal.is_none());
    assert_eq!(
        rows::<ReanchorRow>(&world, 0),
        [],
        "it is held until the position is ready"
    );
}

// CONV-F07
#[test]
fn after_a_candidate_a_vote_for_a_head_that_is_unknown_is_ignored() {
    let (mut world, everyone) = settled();
    let honest = body(&world, 0, &everyone, router_instance(1));
    let elsewhere = ReanchorBody {
        selected_record_hash: RecordHash::from_bytes([9; 32]),
        ..honest.clone()
    };
    inject_vote(&mut world, &everyone, 3, &elsewhere);
    world.settle();
    assert!(world.members[0].ignored.contains(&Ignored::CandidateStaged));
    assert!(!recovered(&world, &[0], &everyone));
    for voter in [1, 2] {
        inject_vote(&mut world, &everyone, voter, &honest);
    }
    world.settle();
    assert!(recovered(&world, &[0], &everyone));
}

// CONV-F09
#[test]
fn neither_a_vote_nor_a_completion_moves_a_conversation_that_began_again_empty() {
    let mut world = World::new(3);
    let everyone = world.everyone();
    world.crash(2);
    let post = world.send(0, &everyone, "first");
    world.settle();
    world.restart_router(1);
    world.run_out();
    assert!(recovered(&world, &[0, 1], &everyone));
    let before = anchor(&world, 0);
    let invented = ReanchorBody {
        sharness_version: WIRE_VERSION,
        kind: ReanchorBodyKind,
        conversation_id: *everyone.conversation_id(),
        membership_hash: *everyone.hash(),
        previous_anchor_hash: before.parse().unwrap(),
        selected_record_hash: RecordHash::from_bytes([9; 32]),
        router_instance_id: router_instance(1),
    };
    inject_vote(&mut world, &everyone, 2, &invented);
    let finished = completed(&world, &everyone, &invented, &[0, 1, 2]);
    inject(&mut world, &everyone, 2, finished);
    world.run_out();
    for member in [0, 1] {
        assert_eq!(anchor(&world, member), before);
        assert_eq!(rows::<ReanchorRow>(&world, member), []);
        assert!(world.members[member].fatal.is_none());
    }
    world.open(2);
    world.attach(2);
    world.run_out();
    assert!(
        recovered(&world, &[0, 1, 2], &everyone),
        "and it holds nobody's fence up"
    );
    assert_eq!(world.chain(2, &everyone).len(), 1);
    assert!(world.members[0].sent.contains_key(&post));
    world.check(&everyone);
}

// CONV-F12
#[test]
fn a_differently_signed_copy_of_a_kept_vote_is_ignored_and_the_run_goes_on() {
    let (mut world, everyone) = settled();
    let honest = body(&world, 0, &everyone, router_instance(1));
    inject_vote(&mut world, &everyone, 3, &honest);
    world.settle();
    let kept: Vec<EvidenceRow> = rows(&world, 0);
    // The same vote under another version of the statement: another signature over the same subject.
    let again = world.members[3].agent.sign(ReanchorVoteStatement {
        sharness_version: SECOND_VERSION,
        kind: ReanchorVoteKind,
        signer_agent_id: world.members[3].id(),
        anchor_hash: honest.hash(),
        reanchor: honest.clone(),
    });
    inject_plaintext(&mut world, &everyone, 3, &again.encoded().to_canonical_bytes());
    world.settle();
    assert!(world.members[0].ignored.contains(&Ignored::DifferentCopy));
    assert_eq!(rows::<EvidenceRow>(&world, 0), kept);
    inject_vote(&mut world, &everyone, 2, &honest);
    world.settle();
    assert!(recovered(&world, &[0], &everyone));
}

// CONV-I13, CONV-J08, CONV-J09
#[test]
fn a_head_that_moves_past_the_own_candidate_gets_no_second_one_and_takes_what_others_complete() {
    let (mut world, everyone) = settled();
    let candidates: Vec<ReanchorRow> = rows(&world, 0);
    // A page that comes after the position was settled.
    let action = post(&world, &everyone, 1, "certified elsewhere");
    let record = certified(&world, &everyone, &action, &[1, 2, 3]);
    follows(&mut world, &everyone, 3, record.to_value(), false);
    assert_eq!(world.chain(0, &everyone).len(), 2);
    nothing_follows(&mut world, &everyone, &[1, 2]);
    assert_eq!(rows::<ReanchorRow>(&world, 0), candidates, "one vote a scope");
    assert_eq!(plaintexts(&world, &everyone, 0, "reanchor").len(), 1);
    assert!(!recovered(&world, &[0], &everyone));
    // Another conversation of the same agent is not held.
    let pair = world.membership(&[0, 3]);
    world.open(3);
    world.attach(3);
    let elsewhere = world.send(0, &pair, "elsewhere");
    world.settle();
    assert!(world.members[0].sent[&elsewhere].is_ok());
    world.crash(3);
    // What the others complete at the new head is taken, and the own candidate goes.
    let at_head = body(&world, 0, &everyone, router_instance(1));
    let finished = completed(&world, &everyone, &at_head, &[1, 2, 3]);
    inject(&mut world, &everyone, 1, finished);
    world.settle();
    assert_eq!(anchor_in(&world, 0, &everyone), at_head.hash().to_string());
    assert_eq!(rows::<ReanchorRow>(&world, 0), []);
    nothing_follows(&mut world, &everyone, &[1, 2]);
    assert!(recovered(&world, &[0], &everyone));
}

// CONV-J11
#[test]
fn a_vote_for_a_head_that_is_lacking_makes_it_be_asked_for_and_counts_once_it_is_there() {
    let (mut world, everyone) = alone();
    world.run_out();
    let action = post(&world, &everyone, 1, "certified elsewhere");
    let record = certified(&world, &everyone, &action, &[1, 2, 3]);
    let at_head = ReanchorBody {
        selected_record_hash: *record.record().hash(),
        ..body(&world, 0, &everyone, router_instance(1))
    };
    let asked = world.count(&everyone, "request");
    inject_vote(&mut world, &everyone, 3, &at_head);
    world.settle();
    assert_eq!(world.count(&everyone, "request"), asked + 1);
    assert!(!kept_votes(&world).contains(&world.members[3].id().to_string()));
    follows(&mut world, &everyone, 3, record.to_value(), false);
    nothing_follows(&mut world, &everyone, &[1, 2]);
    assert!(kept_votes(&world).contains(&world.members[3].id().to_string()));
    inject_vote(&mut world, &everyone, 2, &at_head);
    world.settle();
    assert!(recovered(&world, &[0], &everyone));
}

/// Whose votes to re-anchor member 0 keeps.
fn kept_votes(world: &World) -> Vec<String> {
    let evidence: Vec<EvidenceRow> = rows(world, 0);
    evidence
        .into_iter()
        .filter(|row| row.evidence_kind == EvidenceKind::Reanchor)
        .map(|row| row.evidence_key)
        .collect()
}

// CONV-J13
#[test]
fn a_completion_that_does_not_fit_yet_makes_its_head_be_asked_for_and_is_taken_when_it_comes_again() {
    let (mut world, everyone) = alone();
    world.run_out();
    let action = post(&world, &everyone, 1, "certified elsewhere");
    let record = certified(&world, &everyone, &action, &[1, 2, 3]);
    let at_head = ReanchorBody {
        selected_record_hash: *record.record().hash(),
        ..body(&world, 0, &everyone, router_instance(1))
    };
    let finished = completed(&world, &everyone, &at_head, &[1, 2, 3]);
    let (asked, before) = (world.count(&everyone, "request"), anchor(&world, 0));
    inject(&mut world, &everyone, 1, finished.clone());
    world.settle();
    assert_eq!(world.count(&everyone, "request"), asked + 1);
    assert_eq!(anchor(&world, 0), before);
    follows(&mut world, &everyone, 3, record.to_value(), false);
    inject(&mut world, &everyone, 1, finished);
    world.settle();
    assert_eq!(anchor(&world, 0), at_head.hash().to_string());
    nothing_follows(&mut world, &everyone, &[1, 2]);
    assert!(recovered(&world, &[0], &everyone));
}

// CONV-J15
#[test]
fn a_store_that_fails_is_a_local_failure_and_no_member_is_blamed_for_it() {
    // The store fails while a member's vote is kept: the step is dropped with its engine, and nothing of it was sent.
    let (mut world, everyone) = settled();
    let honest = body(&world, 0, &everyone, router_instance(1));
    for voter in [1, 2] {
        inject_vote(&mut world, &everyone, voter, &honest);
    }
    world.crash_at.insert(0, CrashPoint::BeforeCommit);
    while world.members[0].engine.is_some() {
        assert!(world.deliver_one(0));
    }
    let before = world.router.log.len();
    assert_eq!(kept_votes(&world).len(), 1, "the own one");
    world.open(0);
    world.attach(0);
    while world.deliver_one(0) {}
    world.settle();
    assert!(world.router.log.len() > before, "it asks again");
    nothing_follows(&mut world, &everyone, &[1, 2]);
    assert!(recovered(&world, &[0], &everyone));

    // The store refuses the own fresh vote, because another candidate stands in its scope: that is no ignored message.
    let (mut world, everyone) = alone();
    let other = ReanchorBody {
        selected_record_hash: RecordHash::from_bytes([9; 32]),
        ..body(&world, 0, &everyone, router_instance(1))
    };
    let mut spoilt = world.members[0].store.snapshot();
    let row = ReanchorRow {
        conversation_id: everyone.conversation_id().to_string(),
        anchor_hash: other.hash().to_string(),
        previous_anchor_hash: other.previous_anchor_hash.to_string(),
        router_instance_id: other.router_instance_id.to_string(),
        selected_record_hash: other.selected_record_hash.to_string(),
        canonical_body: String::from_utf8(other.encode()).unwrap(),
        canonical_completed_reanchor: None,
    };
    spoilt.insert(ReanchorRow::TABLE, row.key(), row.encode());
    let question = question(&world, &everyone);
    for responder in [1, 2] {
        let answer = answer(&world, responder, &question, None, false);
        inject(&mut world, &everyone, responder, answer);
    }
    assert!(world.deliver_one(0), "the first answer");
    world.members[0].store = MemoryStore::from_snapshot(spoilt);
    let last = world.router.log.last().unwrap().clone();
    let input = world.input(&last);
    let step = world.step(0, input);
    assert_eq!(step.ignored, None);
    assert!(matches!(
        world.members[0].store.apply(&step.transitions),
        Err(CommitError::Refused { .. })
    ));
}

// Whoever voted to leave an anchor stages nothing under it, whatever instance is reached afterwards.
#[test]
pub(crate) fn after_a_vote_to_leave_an_anchor_nothing_is_staged_under_it_even_when_its_instance_is_reached_again()
 {
    let (mut world, everyone) = settled();
    world.restart_router(0);
    world.settle();
    // With a candidate for another instance here, everyone is waited for.
    nothing_follows(&mut world, &everyone, &[1, 2, 3]);
    assert!(recovered(&world, &[0], &everyone));
    assert_eq!(
        rows::<ReanchorRow>(&world, 0).len(),
        1,
        "the vote is not forgotten"
    );
    let action = post(&world, &everyone, 1, "under the anchor that was left");
    inject_plaintext(&mut world, &everyone, 1, &proposal(&action));
    for signer in [1, 2] {
        let signature = signature(&world, signer, action.hash());
        inject_plaintext(
            &mut world,
            &everyone,
            signer,
            &signature.encoded().to_canonical_bytes(),
        );
    }
    world.settle();
    let signed: Vec<EvidenceRow> = rows(&world, 0);
    let signed = signed
        .iter()
        .filter(|row| row.subject_id == action.hash().to_string());
    assert_eq!(signed.count(), 3, "its action certificate is complete");
    assert_eq!(rows::<StagedRecordRow>(&world, 0).len(), 1, "the GENESIS alone");
    assert!(plaintexts(&world, &everyone, 0, "vote").len() <= 1);
    // What a quorum certified is taken none the less.
    let whole = certified(&world, &everyone, &action, &[1, 2, 3]);
    inject(&mut world, &everyone, 1, whole.to_value());
    world.settle();
    assert_eq!(world.chain(0, &everyone).len(), 2);
}

// Two re-anchors of one anchor can both be complete, for two instances. The histories do not differ.
#[test]
fn whoever_adopted_a_reanchor_that_nobody_else_saw_keeps_the_common_history_and_says_that_it_waits() {
    let (mut world, everyone) = settled();
    let seen_here = body(&world, 0, &everyone, router_instance(1));
    let seen_there = ReanchorBody {
        router_instance_id: router_instance(2),
        ..seen_here.clone()
    };
    let here = completed(&world, &everyone, &seen_here, &[0, 2, 3]);
    inject(&mut world, &everyone, 3, here);
    world.settle();
    assert_eq!(anchor(&world, 0), seen_here.hash().to_string());
    world.restart_router(2);
    world.settle();
    nothing_follows(&mut world, &everyone, &[1, 2]);
    let before = world.chain(0, &everyone);
    let there = completed(&world, &everyone, &seen_there, &[1, 2, 3]);
    inject(&mut world, &everyone, 1, there);
    world.settle();
    nothing_follows(&mut world, &everyone, &[1, 2]);
    world.run_out();
    assert_eq!(anchor(&world, 0), seen_here.hash().to_string());
    assert_eq!(world.chain(0, &everyone), before);
    let stall = world.members[0].stall(&everyone).expect("a stall");
    assert_eq!(stall.waiting_for, WaitingFor::ReanchorVotes);
    assert!(world.members[0].fatal.is_none());
}

//! The Router came back as another instance: conversations leave their anchor together, or wait visibly.

use conclave_conversation::engine::{ConversationStatus, RecoveryReason, WaitingFor};
use conclave_conversation::membership::Membership;
use conclave_conversation::store::rows::{
    AnchorRow, EvidenceKind, EvidenceRow, ProposalLockRow, ReanchorRow,
};
use conclave_conversation::test_support::router_instance;
use conclave_conversation::values::{DirectPacket, Plaintext};

use crate::scenario::{alone, anchor, founded, plaintexts, recovered, rows, status};
use crate::world::World;

// CONV-J01, CONV-J14, CONV-J18
#[test]
fn after_a_restart_members_vote_complete_and_post_under_one_new_anchor() {
    for members in [2, 3, 4, 7] {
        let (mut world, everyone) = founded(members);
        world.restart_router(1);
        world.settle();
        let all: Vec<usize> = (0..members).collect();
        assert!(recovered(&world, &all, &everyone), "among {members}");
        let anchors: Vec<String> = all.iter().map(|member| anchor(&world, *member)).collect();
        assert!(
            anchors.iter().all(|found| *found == anchors[0]),
            "among {members}"
        );
        assert!(world.count(&everyone, "completed") >= 1);
        let stored: Vec<AnchorRow> = rows(&world, 0);
        let current = stored.iter().find(|row| row.anchor_hash == anchors[0]).unwrap();
        let head = world.history(0, &everyone).pop().unwrap();
        let version = head.record_core.sharness_version().to_string();
        assert!(
            current
                .canonical_anchor
                .contains(&format!("\"sharnessVersion\":\"{version}\""))
        );
        let post = world.send(1, &everyone, "under the new anchor");
        world.settle();
        assert!(world.members[1].sent[&post].is_ok());
        for member in all {
            assert_eq!(rows::<ReanchorRow>(&world, member), []);
            world.restart(member);
        }
        world.settle();
        assert_eq!(world.chain(0, &everyone).len(), 2);
        world.check(&everyone);
    }
}

// CONV-J02
#[test]
fn a_cold_start_at_the_same_instance_stages_no_candidate_and_keeps_its_envelopes() {
    let (mut world, everyone) = founded(3);
    world.members[1].online = false;
    world.send(1, &everyone, "pending");
    while world.transmit_one(1) {}
    let before: Vec<conclave_conversation::store::rows::OutboundRow> = rows(&world, 1);
    world.restart(1);
    let after: Vec<conclave_conversation::store::rows::OutboundRow> = rows(&world, 1);
    let ids = |rows: &[conclave_conversation::store::rows::OutboundRow]| -> Vec<String> {
        rows.iter()
            .map(|row| row.canonical_signed_message.clone())
            .collect()
    };
    assert_eq!(ids(&before), ids(&after));
    assert_eq!(rows::<ReanchorRow>(&world, 1), []);
    assert_eq!(status(&world, 1, &everyone), ConversationStatus::Recovered);
}

// CONV-J04, CONV-J05, CONV-G07, CONV-D15
#[test]
fn a_proposal_of_the_old_instance_goes_with_its_lock_and_its_post_is_proposed_again() {
    let (mut world, everyone) = founded(3);
    world.crash(2);
    let post = world.send(0, &everyone, "again");
    world.settle();
    let locked = |world: &World| -> Vec<ProposalLockRow> { rows(world, 1) };
    let before = locked(&world).last().unwrap().action_hash.clone();
    assert_eq!(locked(&world).len(), 2);
    world.open(2);
    world.restart_router(1);
    world.run_out();
    assert!(world.members[0].sent[&post].is_ok());
    assert!(locked(&world).iter().all(|row| row.action_hash != before));
    let proposals = plaintexts(&world, &everyone, 0, "proposal");
    assert_ne!(proposals[proposals.len() - 1], proposals[1]);
    for member in 0..3 {
        world.restart(member);
    }
    world.settle();
    world.check(&everyone);
}

// CONV-J06
#[test]
fn an_own_vote_that_was_not_sent_is_sent_again_and_not_signed_again() {
    let (mut world, everyone) = founded(4);
    for silent in [2, 3] {
        world.crash(silent);
    }
    world.restart_router(1);
    world.settle();
    for member in [0, 1] {
        // Two of four have answered: with the endpoint that is not yet a quorum.
        assert_ne!(status(&world, member, &everyone), ConversationStatus::Recovered);
    }
    world.open(2);
    world.attach(2);
    while world.deliver_one(0) || world.deliver_one(1) || world.deliver_one(2) || world.transmit_one(2) {}
    while rows::<ReanchorRow>(&world, 0).is_empty() {
        if !(world.transmit_one(1) || world.transmit_one(2) || world.deliver_one(0)) {
            assert!(world.transmit_one(0) || world.deliver_one(1) || world.deliver_one(2));
        }
    }
    let vote: Vec<EvidenceRow> = rows(&world, 0);
    let vote = vote
        .iter()
        .find(|row| row.evidence_kind == EvidenceKind::Reanchor)
        .unwrap()
        .canonical_evidence
        .clone();
    world.restart(0);
    world.run_out();
    let sent = plaintexts(&world, &everyone, 0, "reanchor");
    assert!(!sent.is_empty() && sent.iter().all(|sent| *sent == vote.as_bytes()));
    assert!(recovered(&world, &[0, 1, 2], &everyone));
    world.check(&everyone);
}

// CONV-J07, CONV-J12
#[test]
fn a_member_that_was_down_adopts_what_the_others_completed_and_catches_up_from_it() {
    let (mut world, everyone) = founded(4);
    world.send(0, &everyone, "before");
    world.crash(3);
    world.settle();
    world.restart_router(1);
    world.settle();
    world.send(1, &everyone, "under the new anchor");
    world.settle();
    assert_eq!(world.chain(0, &everyone).len(), 3);
    world.open(3);
    world.attach(3);
    world.settle();
    assert_eq!(world.chain(3, &everyone), world.chain(0, &everyone));
    assert_eq!(anchor(&world, 3), anchor(&world, 0));
    assert!(recovered(&world, &[3], &everyone));
    assert_eq!(rows::<AnchorRow>(&world, 3).len(), 2);
    world.check(&everyone);
}

// CONV-K12
#[test]
fn an_earlier_instances_candidate_makes_everyone_be_waited_for() {
    let (mut world, everyone) = founded(4);
    // Three of four vote for the re-anchor of instance 1, which is gone before it is completed.
    world.crash(3);
    world.restart_router(1);
    while rows::<ReanchorRow>(&world, 0).is_empty() {
        for member in 0..3 {
            world.transmit_one(member);
            world.deliver_one(member);
        }
    }
    let earlier = rows::<ReanchorRow>(&world, 0)[0].anchor_hash.clone();
    world.restart_router(2);
    while world.transmit_one(0) {}
    world.settle();
    // Member 3 is silent: the others wait for it while their retries last.
    assert!(!recovered(&world, &[0], &everyone));
    world.run_out();
    assert!(recovered(&world, &[0, 1, 2], &everyone));
    assert_ne!(anchor(&world, 0), earlier);
    let votes = plaintexts(&world, &everyone, 0, "reanchor");
    assert!(votes.len() >= 2, "the earlier vote and the new one");
    world.open(3);
    world.attach(3);
    world.run_out();
    assert_eq!(anchor(&world, 3), anchor(&world, 0));
    world.check(&everyone);
}

// CONV-J03
#[test]
fn only_a_conversation_of_another_instance_is_anchored_again() {
    let (mut world, everyone) = founded(3);
    let pair = world.membership(&[0, 1]);
    world.router.restart(1);
    for member in [0, 1] {
        world.attach(member);
    }
    world.send(0, &pair, "young");
    world.settle();
    world.attach(2);
    world.settle();
    let anchors: Vec<AnchorRow> = rows(&world, 0);
    let of = |membership: &Membership| {
        let id = membership.conversation_id().to_string();
        anchors.iter().filter(|row| row.conversation_id == id).count()
    };
    assert_eq!((of(&everyone), of(&pair)), (2, 1));
    world.check(&everyone);
    world.check(&pair);
}

// CONV-J17
#[test]
fn a_conversation_without_a_record_begins_again_with_its_posts() {
    let mut world = World::new(3);
    let everyone = world.everyone();
    world.crash(2);
    let post = world.send(0, &everyone, "first");
    world.settle();
    assert_eq!(rows::<ProposalLockRow>(&world, 1).len(), 1);
    world.open(2);
    world.restart_router(1);
    world.run_out();
    assert!(world.members[0].sent[&post].is_ok());
    assert_eq!(rows::<AnchorRow>(&world, 1).len(), 1);
    assert_eq!(world.chain(0, &everyone).len(), 1);
    world.check(&everyone);
}

// A conversation without a quorum says so, and says for whom it waits.
#[test]
fn a_conversation_that_lacks_a_quorum_names_the_members_it_waits_for() {
    let (mut world, everyone) = alone();
    world.run_out();
    let stall = world.members[0].stall(&everyone).expect("a stall");
    assert_eq!(stall.waiting_for, WaitingFor::Answers);
    let others: Vec<_> = everyone
        .agent_ids()
        .into_iter()
        .filter(|member| *member != world.members[0].id())
        .collect();
    assert_eq!(stall.members, others);
    let (anchored, current) = (router_instance(0), router_instance(1));
    let reason = RecoveryReason::RouterInstanceChanged { anchored, current };
    assert_eq!(
        status(&world, 0, &everyone),
        ConversationStatus::Recovering { reason }
    );
}

// CONV-J16
#[test]
fn a_run_that_another_instance_replaced_votes_for_the_last_one_alone() {
    let (mut world, everyone) = founded(3);
    world.restart_router(1);
    world.restart_router(2);
    world.run_out();
    assert!(recovered(&world, &[0, 1, 2], &everyone));
    for (_, plaintext) in world.opened(&everyone) {
        if let Plaintext::Packet(DirectPacket::CompletedReanchor(completed)) = plaintext {
            assert_eq!(completed.reanchor.router_instance_id, router_instance(2));
        }
    }
    world.check(&everyone);
}

// CONV-H16
#[test]
fn an_instance_that_changed_during_an_outage_is_found_by_the_first_answer_after_it() {
    let (mut world, everyone) = founded(3);
    world.members[1].online = false;
    world.restart_router(1);
    world.crash(1);
    world.open(1);
    world.settle();
    assert_eq!(status(&world, 0, &everyone), status(&world, 2, &everyone));
    assert!(!recovered(&world, &[0], &everyone), "two of three do not settle");
    // Back, and told of another instance than its anchor's.
    world.members[1].online = true;
    world.attach(1);
    assert!(!recovered(&world, &[1], &everyone));
    world.run_out();
    assert!(recovered(&world, &[0, 1, 2], &everyone));
    assert_eq!(anchor(&world, 1), anchor(&world, 0));
    world.check(&everyone);
}

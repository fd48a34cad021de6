//! The Router came back as another instance: conversations leave their anchor together, or wait visibly.

use conclave_conversation::certificates::VerifiedEvidence;
use conclave_conversation::engine::{ConversationStatus, Ignored, RecoveryReason, WaitingFor};
use conclave_conversation::membership::Membership;
use conclave_conversation::store::rows::{
    AnchorRow, ConversationStateRow, EvidenceKind, EvidenceRow, ProposalLockRow, ReanchorRow, StagedRecordRow,
};
use conclave_conversation::test_support::router_instance;
use conclave_conversation::values::{
    AnchorHash, DirectPacket, Plaintext, ReanchorBody, ReanchorBodyKind, ReanchorVoteKind,
    ReanchorVoteStatement, RecordHash,
};
use conclave_harness::{RouterInstanceId, WIRE_VERSION};

use crate::world::{World, kind_of};

fn founded(members: usize) -> (World, Membership) {
    let mut world = World::new(members);
    let everyone = world.everyone();
    world.send(0, &everyone, "genesis");
    world.settle();
    (world, everyone)
}

fn status(world: &World, member: usize, membership: &Membership) -> ConversationStatus {
    world.members[member].status[membership.conversation_id()]
}

fn recovered(world: &World, members: &[usize], membership: &Membership) -> bool {
    members
        .iter()
        .all(|member| status(world, *member, membership) == ConversationStatus::Recovered)
}

fn rows<R: conclave_conversation::store::Row>(world: &World, member: usize) -> Vec<R> {
    world.members[member].store.snapshot().rows().unwrap()
}

fn anchor(world: &World, member: usize) -> String {
    rows::<ConversationStateRow>(world, member)[0]
        .current_anchor_hash
        .clone()
}

/// A body at a member's head, as an honest member builds it.
fn body(world: &World, member: usize, membership: &Membership, instance: RouterInstanceId) -> ReanchorBody {
    let head = world.history(member, membership).pop().expect("a head");
    ReanchorBody {
        sharness_version: WIRE_VERSION,
        kind: ReanchorBodyKind,
        conversation_id: *membership.conversation_id(),
        membership_hash: *membership.hash(),
        previous_anchor_hash: anchor(world, member).parse().unwrap(),
        selected_record_hash: head.record_hash,
        router_instance_id: instance,
    }
}

fn vote(world: &World, signer: usize, body: &ReanchorBody) -> VerifiedEvidence {
    world.members[signer].agent.sign(ReanchorVoteStatement {
        sharness_version: body.sharness_version,
        kind: ReanchorVoteKind,
        signer_agent_id: world.members[signer].id(),
        anchor_hash: body.hash(),
        reanchor: body.clone(),
    })
}

fn inject(world: &mut World, membership: &Membership, sender: usize, plaintext: &[u8]) {
    let message = world.outer(sender, membership, plaintext);
    world.inject(membership, message);
}

fn inject_vote(world: &mut World, membership: &Membership, signer: usize, body: &ReanchorBody) {
    let vote = vote(world, signer, body);
    inject(world, membership, signer, &vote.encoded().to_canonical_bytes());
}

fn plaintexts(world: &World, membership: &Membership, sender: usize, kind: &str) -> Vec<Vec<u8>> {
    world
        .opened(membership)
        .into_iter()
        .filter(|(from, plaintext)| *from == sender && kind_of(plaintext) == kind)
        .map(|(_, plaintext): (_, Plaintext)| plaintext.encode())
        .collect()
}

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

/// Four members after a restart, of which 0 alone is up; the others' votes are made by hand.
fn alone() -> (World, Membership) {
    let (mut world, everyone) = founded(4);
    for silent in 1..4 {
        world.crash(silent);
    }
    world.restart_router(1);
    world.settle();
    (world, everyone)
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
    inject(&mut world, &everyone, 3, &forged.encoded().to_canonical_bytes());
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

/// Member `holders` stage a post that nobody can certify, then the Router restarts.
fn with_holders(members: usize, holders: &[usize]) -> (World, Membership) {
    let (mut world, everyone) = founded(members);
    world.send(0, &everyone, "staged");
    // Everyone signs and sees the signatures; only holders see enough to stage, and no vote is ordered.
    loop {
        let mut moved = false;
        for member in 0..members {
            let votes = rows::<StagedRecordRow>(&world, member).len() > 1;
            if !votes {
                moved |= world.transmit_one(member);
            }
            if !votes && (holders.contains(&member) || rows::<ProposalLockRow>(&world, member).len() < 2) {
                moved |= world.deliver_one(member);
            }
        }
        if !moved {
            break;
        }
    }
    for member in 0..members {
        let staged = rows::<StagedRecordRow>(&world, member).len() > 1;
        assert_eq!(staged, holders.contains(&member), "member {member}");
    }
    world.restart_router(1);
    (world, everyone)
}

// CONV-K01
#[test]
fn a_holder_of_a_pair_shows_its_successor_and_both_certify_it_before_they_leave_the_anchor() {
    let (mut world, pair) = with_holders(2, &[0]);
    world.run_out();
    assert!(recovered(&world, &[0, 1], &pair));
    assert_eq!(world.chain(0, &pair).len(), 2);
    assert_eq!(world.chain(1, &pair), world.chain(0, &pair));
    let anchors: Vec<AnchorRow> = rows(&world, 0);
    let head = world.history(0, &pair).pop().unwrap();
    assert_eq!(
        anchors.iter().find_map(|row| row.selected_record_hash.clone()),
        Some(head.record_hash.to_string())
    );
    world.check(&pair);
}

// CONV-K02
#[test]
fn members_that_all_staged_certify_from_what_is_sent_again() {
    let (mut world, everyone) = with_holders(3, &[0, 1, 2]);
    world.run_out();
    assert!(recovered(&world, &[0, 1, 2], &everyone));
    assert_eq!(world.chain(2, &everyone).len(), 2);
    world.check(&everyone);
}

// CONV-K04
#[test]
fn a_successor_is_staged_by_others_only_with_enough_votes() {
    for (members, holders) in [(3, 1), (4, 2), (7, 3)] {
        let holding: Vec<usize> = (0..holders).collect();
        let (mut world, everyone) = with_holders(members, &holding);
        world.run_out();
        let all: Vec<usize> = (0..members).collect();
        assert!(recovered(&world, &all, &everyone), "among {members}");
        assert_eq!(world.chain(members - 1, &everyone).len(), 2, "among {members}");
        world.check(&everyone);
    }
}

// CONV-K05, CONV-K09
#[test]
fn fewer_holders_do_not_convert_the_others_and_adopt_what_those_complete() {
    let (mut world, everyone) = with_holders(4, &[0]);
    world.run_out();
    assert!(recovered(&world, &[0, 1, 2, 3], &everyone));
    // The post is proposed again under the new anchor.
    assert_eq!(world.chain(0, &everyone).len(), 2);
    let records: Vec<StagedRecordRow> = rows(&world, 0);
    assert_eq!(records.len(), 2);
    assert!(
        records
            .iter()
            .all(|row| row.previous_record_hash.is_none() || row.anchor_hash == anchor(&world, 0))
    );
    world.check(&everyone);
}

// A conversation without a quorum says so, and says for whom it waits.
#[test]
fn a_conversation_that_lacks_a_quorum_names_the_members_it_waits_for() {
    let (mut world, everyone) = alone();
    world.run_out();
    let stall = &world.members[0].stalls[everyone.conversation_id()];
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

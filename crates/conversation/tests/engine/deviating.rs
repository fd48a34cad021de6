//! Members that deviate: they sign twice, seal selectively, withhold, or say what is not true. Member 3 of four runs no
//! engine here; what it sends is made by hand.

use conclave_conversation::engine::{Ignored, Stage, WaitingFor};
use conclave_conversation::membership::Membership;
use conclave_conversation::store::Transition;
use conclave_conversation::store::rows::{EvidenceKind, EvidenceRow, ProposalLockRow, StagedRecordRow};
use conclave_conversation::values::{
    ActionCore, ClosedValue, ConversationId, DirectPacket, DurabilityVoteStatement, GenesisActionCore,
    GenesisActionKind, Null, Plaintext,
};
use conclave_harness::{MessageId, SignedMessage, WIRE_VERSION};

use crate::byhand::{copy_of, intent, post, proposal, record_of, signature, vote_statement};
use crate::world::World;

const DEVIANT: usize = 3;

/// Four members with one certified post; the fourth runs no engine from here on.
fn four() -> (World, Membership) {
    let mut world = World::new(4);
    let everyone = world.everyone();
    world.send(0, &everyone, "genesis");
    world.settle();
    world.crash(DEVIANT);
    (world, everyone)
}

/// The deviant sends a plaintext that `away` cannot open.
fn sends(world: &mut World, everyone: &Membership, plaintext: &[u8], away: &[usize]) {
    let message = world.outer_sealed_away(DEVIANT, everyone, plaintext, away);
    world.inject(everyone, message);
}

fn locked(world: &World, everyone: &Membership, member: usize) -> Option<String> {
    let head = world.history(member, everyone).pop()?.record_hash.to_string();
    let locks: Vec<ProposalLockRow> = world.members[member].store.snapshot().rows().unwrap();
    locks
        .into_iter()
        .find(|row| row.predecessor_key == head)
        .map(|row| row.action_hash)
}

fn own(world: &World, member: usize, kind: EvidenceKind) -> Vec<String> {
    let id = world.members[member].id().to_string();
    let rows: Vec<EvidenceRow> = world.members[member].store.snapshot().rows().unwrap();
    rows.into_iter()
        .filter(|row| row.evidence_kind == kind && row.evidence_key == id)
        .map(|row| row.subject_id)
        .collect()
}

// CONV-D18, CONV-F02
#[test]
pub(crate) fn a_lock_moves_to_a_record_that_a_quorum_signed_and_its_action_is_never_signed_by_the_mover() {
    let (mut world, everyone) = four();
    let (a, b) = (
        post(&world, &everyone, DEVIANT, "A"),
        post(&world, &everyone, 0, "B"),
    );
    // The deviant shows its own proposal to member 2 alone, and then signs member 0's as well.
    sends(&mut world, &everyone, &proposal(&a), &[0, 1]);
    while world.deliver_one(2) {}
    assert_eq!(locked(&world, &everyone, 2), Some(a.hash().to_string()));
    assert_eq!(own(&world, 2, EvidenceKind::Action).len(), 2);
    let request = world.send(0, &everyone, "B itself");
    while world.transmit_one(0) {}
    let b_sent = match world.opened(&everyone).pop() {
        Some((0, Plaintext::Packet(DirectPacket::ActionProposal(proposal)))) => proposal.action,
        other => panic!("{other:?}"),
    };
    assert_ne!(b_sent, b);
    for signed in [a.hash(), b_sent.hash()] {
        let signature = signature(&world, DEVIANT, signed).encoded().to_canonical_bytes();
        sends(&mut world, &everyone, &signature, &[]);
    }
    world.settle();
    assert!(world.members[0].sent[&request].is_ok());
    let chain = world.chain(0, &everyone);
    assert_eq!(chain.len(), 2, "at most one of the two is certified");
    for member in 0..3 {
        assert_eq!(world.chain(member, &everyone), chain);
    }
    let snapshot = world.members[2].store.snapshot();
    let evidence: Vec<EvidenceRow> = snapshot.rows().unwrap();
    assert!(
        evidence.iter().all(|row| row.subject_id != a.hash().to_string()),
        "the signature on A is gone"
    );
    assert!(
        !own(&world, 2, EvidenceKind::Action).contains(&b_sent.hash().to_string()),
        "B is not signed"
    );
    assert!(
        own(&world, 2, EvidenceKind::Durability).contains(&chain[1].to_string()),
        "but voted for"
    );
    // Neither now nor after a restart.
    world.restart(2);
    world.settle();
    assert!(!own(&world, 2, EvidenceKind::Action).contains(&b_sent.hash().to_string()));
}

// CONV-D21
#[test]
fn a_crash_right_after_a_lock_moved_does_not_make_the_mover_sign_the_second_action() {
    let (mut world, everyone) = four();
    let (a, b) = (
        post(&world, &everyone, DEVIANT, "A"),
        post(&world, &everyone, DEVIANT, "B"),
    );
    sends(&mut world, &everyone, &proposal(&a), &[0, 1]);
    while world.deliver_one(2) {}
    let copy = copy_of(&world, &everyone, &b, &[0, 1, DEVIANT]);
    let copy = world.outer(DEVIANT, &everyone, &copy.encode());
    world.inject(&everyone, copy);
    let ordered = world.router.log.last().unwrap().clone();
    let input = world.input(&ordered);
    let step = world.step(2, input);
    // A store that tore the step apart would keep the moved lock alone. Even then the second action is not signed.
    let moved = step
        .transitions
        .iter()
        .position(|step| matches!(step, Transition::SupersedeLock(_)))
        .unwrap();
    world.members[2].store.apply(&step.transitions[..=moved]).unwrap();
    world.restart(2);
    world.settle();
    assert_eq!(world.chain(2, &everyone)[1], record_of(&everyone, &b));
    assert!(!own(&world, 2, EvidenceKind::Action).contains(&b.hash().to_string()));
    assert!(own(&world, 2, EvidenceKind::Durability).contains(&record_of(&everyone, &b).to_string()));
}

/// Member 2 locked the deviant's "A", then received "B" with a certificate of three.
fn superseded() -> (World, Membership, ActionCore, ActionCore) {
    let (mut world, everyone) = four();
    let (a, b) = (
        post(&world, &everyone, DEVIANT, "A"),
        post(&world, &everyone, DEVIANT, "B"),
    );
    sends(&mut world, &everyone, &proposal(&a), &[0, 1]);
    while world.deliver_one(2) {}
    let copy = copy_of(&world, &everyone, &b, &[0, 1, DEVIANT]);
    sends(&mut world, &everyone, &copy.encode(), &[0, 1]);
    while world.deliver_one(2) {}
    assert_eq!(locked(&world, &everyone, 2), Some(b.hash().to_string()));
    (world, everyone, a, b)
}

// Pitfall 3: nothing of the action that lost its lock is left, not even to merge another's signature into.
#[test]
pub(crate) fn a_late_signature_on_an_action_that_lost_its_lock_has_no_subject() {
    let (mut world, everyone, a, b) = superseded();
    let late = signature(&world, DEVIANT, a.hash())
        .encoded()
        .to_canonical_bytes();
    sends(&mut world, &everyone, &late, &[0, 1]);
    while world.deliver_one(2) {}
    assert_eq!(world.members[2].ignored.last(), Some(&Ignored::NoSubject));
    assert!(world.members[2].fatal.is_none());
    let held = own(&world, 2, EvidenceKind::Durability);
    assert!(held.contains(&record_of(&everyone, &b).to_string()));
}

// Pitfall 5: a lock moves with the whole certificate, so that whoever restarts after it has what it staged by.
#[test]
pub(crate) fn a_member_whose_lock_moved_restarts_with_the_whole_certificate() {
    let (mut world, everyone, _, b) = superseded();
    world.restart(2);
    let signers = |world: &World| {
        let rows: Vec<EvidenceRow> = world.members[2].store.snapshot().rows().unwrap();
        rows.into_iter()
            .filter(|row| row.subject_id == b.hash().to_string())
            .count()
    };
    assert_eq!(signers(&world), 3);
    world.settle();
    assert!(own(&world, 2, EvidenceKind::Durability).contains(&record_of(&everyone, &b).to_string()));
}

// CONV-D19, CONV-F19
#[test]
pub(crate) fn an_endpoint_that_staged_its_locked_action_refuses_a_conflicting_record_whoever_signed_it() {
    let (mut world, everyone) = four();
    let (a, b) = (
        post(&world, &everyone, DEVIANT, "A"),
        post(&world, &everyone, 0, "B"),
    );
    // More than f members are faulty here: 0, 1 and 3 sign A and B.
    let for_a = copy_of(&world, &everyone, &a, &[0, 1, 3]);
    sends(&mut world, &everyone, &for_a.encode(), &[0, 1]);
    world.deliver_one(2);
    assert_eq!(
        world.members[2]
            .store
            .snapshot()
            .rows::<StagedRecordRow>()
            .unwrap()
            .len(),
        2
    );
    while world.transmit_one(2) {}
    let votes = own(&world, 2, EvidenceKind::Durability);
    let before = (locked(&world, &everyone, 2), votes.clone());
    let for_b = copy_of(&world, &everyone, &b, &[0, 1, 3]);
    sends(&mut world, &everyone, &for_b.encode(), &[]);
    while world.deliver_one(2) {}
    assert_eq!(
        world.members[2]
            .ignored
            .iter()
            .filter(|reason| **reason == Ignored::LockedAndStaged)
            .count(),
        1
    );
    assert_eq!(
        (
            locked(&world, &everyone, 2),
            own(&world, 2, EvidenceKind::Durability)
        ),
        before
    );
    assert_eq!(
        world.members[2]
            .store
            .snapshot()
            .rows::<StagedRecordRow>()
            .unwrap()
            .len(),
        2
    );
}

// CONV-D22
#[test]
fn a_genesis_lock_is_never_superseded() {
    let mut world = World::new(4);
    let everyone = world.everyone();
    world.send(0, &everyone, "the first");
    while world.transmit_one(0) {}
    while world.deliver_one(1) {}
    let locks: Vec<ProposalLockRow> = world.members[1].store.snapshot().rows().unwrap();
    assert_eq!(locks.len(), 1);
    let post_intent = intent(&world, &everyone, DEVIANT, "another first");
    let other: ActionCore = GenesisActionCore {
        sharness_version: WIRE_VERSION,
        kind: GenesisActionKind,
        conversation_id: *everyone.conversation_id(),
        membership: everyone.descriptor().clone(),
        anchor: everyone.genesis_anchor(world.router.instance),
        previous_record_hash: Null,
        post_intent_hash: post_intent.hash(),
        post_intent,
    }
    .into();
    let whole = copy_of(&world, &everyone, &other, &[0, 1, 2, 3]);
    sends(&mut world, &everyone, &whole.encode(), &[]);
    while world.deliver_one(1) {}
    assert_eq!(world.members[1].ignored, [Ignored::Locked]);
    assert_eq!(
        world.members[1]
            .store
            .snapshot()
            .rows::<ProposalLockRow>()
            .unwrap(),
        locks
    );
}

// CONV-F01
#[test]
fn a_vote_that_names_another_conversation_or_membership_is_not_kept() {
    let (mut world, everyone) = four();
    world.crash(2);
    world.send(0, &everyone, "two of four");
    let head = world.router.log.len();
    world.settle();
    let action = world
        .opened(&everyone)
        .into_iter()
        .find_map(|(_, plaintext)| match plaintext {
            Plaintext::Packet(DirectPacket::ActionProposal(proposal))
                if proposal.action.previous_record_hash().is_some() =>
            {
                Some(proposal.action)
            }
            _ => None,
        })
        .expect("a POST");
    let signature = signature(&world, DEVIANT, action.hash())
        .encoded()
        .to_canonical_bytes();
    sends(&mut world, &everyone, &signature, &[]);
    world.settle();
    assert!(world.router.log.len() > head);
    let record = record_of(&everyone, &action);
    let truthful = vote_statement(&world, &everyone, DEVIANT, record);
    let elsewhere = DurabilityVoteStatement {
        conversation_id: ConversationId::from_bytes([1; 32]),
        ..truthful.clone()
    };
    let otherwise = DurabilityVoteStatement {
        membership_hash: conclave_conversation::values::MembershipHash::from_bytes([1; 32]),
        ..truthful.clone()
    };
    for statement in [elsewhere, otherwise] {
        let vote = world.members[DEVIANT].agent.sign(statement);
        let before: Vec<EvidenceRow> = world.members[0].store.snapshot().rows().unwrap();
        sends(&mut world, &everyone, &vote.encoded().to_canonical_bytes(), &[]);
        world.settle();
        assert!(matches!(
            world.members[0].ignored.last(),
            Some(Ignored::WrongSubject(_))
        ));
        assert_eq!(
            world.members[0].store.snapshot().rows::<EvidenceRow>().unwrap(),
            before
        );
        assert_eq!(world.chain(0, &everyone).len(), 1);
    }
    let vote = world.members[DEVIANT].agent.sign(truthful);
    sends(&mut world, &everyone, &vote.encoded().to_canonical_bytes(), &[]);
    world.settle();
    assert_eq!(
        world.chain(0, &everyone).len(),
        2,
        "the truthful vote is the third"
    );
}

// CONV-F03
#[test]
fn an_author_that_splits_the_locks_stalls_its_head_and_nothing_else() {
    let (mut world, everyone) = four();
    let trio = world.membership(&[0, 1, 2]);
    for (member, text) in ["for 0", "for 1", "for 2"].into_iter().enumerate() {
        let away: Vec<usize> = (0..3).filter(|other| *other != member).collect();
        let action = post(&world, &everyone, DEVIANT, text);
        sends(&mut world, &everyone, &proposal(&action), &away);
    }
    let stalled = world.send(0, &everyone, "stalled");
    world.run_out();
    let locks: std::collections::BTreeSet<_> = (0..3)
        .map(|member| locked(&world, &everyone, member).expect("a lock"))
        .collect();
    assert_eq!(locks.len(), 3, "the locks are split");
    // Who posts behind a split lock is told whose signatures are missing, and that the proposal is another's.
    let stall = |world: &World| {
        let engine = world.members[0].engine.as_ref().expect("an engine");
        engine.stall(everyone.conversation_id())
    };
    let told = stall(&world).expect("a stall");
    assert_eq!(
        (told.waiting_for, told.behind_another),
        (WaitingFor::Signatures, true)
    );
    let others: Vec<_> = [1, 2, DEVIANT].map(|member| world.members[member].id()).into();
    assert!(told.members.len() == 3 && others.iter().all(|other| told.members.contains(other)));
    assert!(!world.members[0].sent.contains_key(&stalled));
    assert_eq!(world.chain(0, &everyone).len(), 1);
    let elsewhere = world.send(0, &trio, "elsewhere");
    world.settle();
    assert!(world.members[0].sent[&elsewhere].is_ok());
    assert_eq!(world.chain(2, &trio).len(), 1);
}

// CONV-F04
#[test]
fn evidence_sealed_away_from_a_member_does_not_stall_the_head() {
    let (mut world, everyone) = four();
    let request = world.send(0, &everyone, "goes on");
    while world.transmit_one(0) {}
    let action = match world.opened(&everyone).pop() {
        Some((0, Plaintext::Packet(DirectPacket::ActionProposal(proposal)))) => proposal.action,
        other => panic!("{other:?}"),
    };
    // Members 0 and 1 can complete the certificate with the deviant's signature before member 2's is there.
    let secret = signature(&world, DEVIANT, action.hash())
        .encoded()
        .to_canonical_bytes();
    sends(&mut world, &everyone, &secret, &[2]);
    for member in [0, 1] {
        while world.deliver_one(member) {}
        while world.transmit_one(member) {}
    }
    for member in [0, 1] {
        while world.deliver_one(member) {}
    }
    let record = record_of(&everyone, &action);
    let vote = world.members[DEVIANT]
        .agent
        .sign(vote_statement(&world, &everyone, DEVIANT, record));
    sends(&mut world, &everyone, &vote.encoded().to_canonical_bytes(), &[2]);
    world.settle();
    assert!(world.members[0].sent[&request].is_ok());
    for member in 0..3 {
        assert_eq!(
            world.chain(member, &everyone),
            [world.chain(0, &everyone)[0], record]
        );
    }
    let signers: Vec<_> = world.history(2, &everyone)[1]
        .action_signatures
        .keys()
        .copied()
        .collect();
    assert!(
        signers.contains(&world.members[DEVIANT].id()),
        "member 2 took it from an honest copy"
    );
}

// CONV-F05
#[test]
fn a_silent_member_stops_a_genesis_and_no_post() {
    let (mut world, everyone) = four();
    world.send(0, &everyone, "without the fourth");
    world.settle();
    assert_eq!(world.chain(0, &everyone).len(), 2);

    let mut world = World::new(4);
    world.crash(DEVIANT);
    let request = world.send(0, &everyone, "needs all");
    world.run_out();
    assert!(!world.members[0].sent.contains_key(&request));
    assert!(world.chain(0, &everyone).is_empty());
    let stall = world.members[0].stall(&everyone).expect("a stall");
    assert_eq!(stall.waiting_for, WaitingFor::Signatures);
    assert_eq!(stall.members, [world.members[DEVIANT].id()]);
    let signed = world.members[0]
        .progress
        .iter()
        .filter(|(_, stage)| matches!(stage, Stage::ActionSigned { .. }));
    assert_eq!(signed.count(), 3, "the others' signatures are visible");
}

// CONV-B10
#[test]
fn what_is_no_members_message_is_ignored_and_the_next_one_taken() {
    let (mut world, everyone) = four();
    let agent_key = |world: &World, member: usize| world.members[member].agent.key.clone();
    let (card, key) = (
        world.members[DEVIANT].agent.card.clone(),
        agent_key(&world, DEVIANT),
    );
    let ids = everyone.agent_ids();
    let sign = |recipients: &[conclave_harness::AgentId], body: &[u8], number: u8| {
        let id = MessageId::from_bytes([number; 16]);
        SignedMessage::sign(&card, &key, recipients, id, body, WIRE_VERSION)
            .unwrap()
            .into_encoded()
    };
    let action = post(&world, &everyone, DEVIANT, "good");
    let good = world.outer(DEVIANT, &everyone, &proposal(&action));
    let body = good
        .verify(&card, &conclave_harness::WireVersions::live())
        .unwrap()
        .body()
        .to_vec();
    let nonsense = world.outer(DEVIANT, &everyone, b"{}");
    let bad = [
        sign(&ids, &proposal(&action), 1),
        sign(&ids, &body, 2),
        sign(&ids[..2], &body, 3),
        nonsense,
        world.outer_sealed_away(DEVIANT, &everyone, &proposal(&action), &[0]),
    ];
    let count = bad.len();
    for message in bad {
        world.inject(&everyone, message);
    }
    world.inject(&everyone, good);
    for number in 1..=count {
        assert!(world.deliver_one(0));
        let outer = world.members[0]
            .ignored
            .iter()
            .filter(|reason| matches!(reason, Ignored::Outer(_)));
        assert_eq!(outer.count(), number);
    }
    assert!(world.deliver_one(0));
    assert_eq!(locked(&world, &everyone, 0), Some(action.hash().to_string()));
}

#[test]
fn a_post_in_our_name_that_we_never_bound_is_refused_whoever_signed_it() {
    let (mut world, everyone) = four();
    let forged = post(&world, &everyone, 0, "not said by 0");
    let copy = copy_of(&world, &everyone, &forged, &[0, 1, DEVIANT]);
    sends(&mut world, &everyone, &copy.encode(), &[1, 2]);
    while world.deliver_one(0) {}
    assert_eq!(world.members[0].ignored.last(), Some(&Ignored::NotOurPost));
    assert_eq!(locked(&world, &everyone, 0), None);
    let request = world.send(0, &everyone, "said by 0");
    world.settle();
    assert!(world.members[0].sent[&request].is_ok());
}

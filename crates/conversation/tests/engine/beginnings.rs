//! The first record of a conversation, when the Router's instance changes before it is certified everywhere: whatever
//! instances come and whoever shows what late, honest members end with one GENESIS.
//!
//! Member 3 of four runs no engine where it deviates; what it sends is made by hand.

use conclave_conversation::certificates::SignerMap;
use conclave_conversation::engine::Ignored;
use conclave_conversation::membership::Membership;
use conclave_conversation::store::rows::{EvidenceKind, EvidenceRow, StagedRecordRow};
use conclave_conversation::values::{ActionCore, ClosedValue, DirectPacket, RecordHash, RouterAnchor};
use conclave_conversation::verification::{VerifiedActionCertifiedRecord, VerifiedCertifiedRecord};

use crate::byhand::{action_certified, answer, record_of, signature, vote_for};
use crate::scenario::{inject, inject_plaintext, packets, recovered, rows};
use crate::world::World;

const DEVIANT: usize = 3;

/// The last action that a member proposed.
fn proposed(world: &World, everyone: &Membership, author: usize) -> ActionCore {
    match packets(world, everyone, author, "proposal").pop() {
        Some(DirectPacket::ActionProposal(proposal)) => proposal.action,
        other => panic!("{other:?}"),
    }
}

/// A GENESIS that every member signed.
fn signed_by_all(
    world: &World,
    everyone: &Membership,
    genesis: &ActionCore,
) -> VerifiedActionCertifiedRecord {
    let ActionCore::Genesis(core) = genesis else {
        panic!("{genesis:?}");
    };
    let anchor = RouterAnchor::from(core.anchor.clone());
    let all: Vec<usize> = (0..everyone.len()).collect();
    action_certified(world, everyone, genesis, &all, anchor)
}

/// The same with votes.
fn certified_by(
    world: &World,
    everyone: &Membership,
    genesis: &ActionCore,
    voters: &[usize],
) -> VerifiedCertifiedRecord {
    let record = signed_by_all(world, everyone, genesis);
    let mut votes = SignerMap::new(record.record().durability_subject());
    for voter in voters {
        let vote = vote_for(world, everyone, *voter, *record.record().hash());
        votes.merge(vote).unwrap();
    }
    VerifiedCertifiedRecord::assemble(record, votes, everyone).unwrap()
}

/// The deviant sends a plaintext that `away` cannot open.
fn sends(world: &mut World, everyone: &Membership, plaintext: &[u8], away: &[usize]) {
    let message = world.outer_sealed_away(DEVIANT, everyone, plaintext, away);
    world.inject(everyone, message);
}

fn signs(world: &mut World, everyone: &Membership, genesis: &ActionCore, away: &[usize]) {
    let signature = signature(world, DEVIANT, genesis.hash());
    sends(world, everyone, &signature.encoded().to_canonical_bytes(), away);
}

fn votes(world: &mut World, everyone: &Membership, record: RecordHash, away: &[usize]) {
    let vote = vote_for(world, everyone, DEVIANT, record);
    sends(world, everyone, &vote.encoded().to_canonical_bytes(), away);
}

fn deliver_all(world: &mut World, members: &[usize]) {
    for member in members {
        while world.deliver_one(*member) {}
    }
}

fn transmit_all(world: &mut World, members: &[usize]) {
    for member in members {
        while world.transmit_one(*member) {}
    }
}

/// The deviant answers every open question of honest members that nothing follows.
fn denies(world: &mut World, everyone: &Membership) {
    for requester in 0..DEVIANT {
        if let Some(DirectPacket::CatchUpRequest(request)) =
            packets(world, everyone, requester, "request").pop()
        {
            let answer = answer(world, DEVIANT, &request, None, false);
            inject(world, everyone, DEVIANT, answer);
        }
    }
}

/// Four members of which `holders` staged a GENESIS and sent their votes, which only the deviant read before the Router
/// came back as another instance. The others began again while the holders were gone, and now all are back.
fn hidden(holders: &[usize]) -> (World, Membership, ActionCore) {
    let (mut world, everyone) = deviating();
    world.send(0, &everyone, "first");
    world.settle();
    let genesis = proposed(&world, &everyone, 0);
    let away: Vec<usize> = (0..DEVIANT).filter(|member| !holders.contains(member)).collect();
    signs(&mut world, &everyone, &genesis, &away);
    deliver_all(&mut world, holders);
    transmit_all(&mut world, holders);
    for member in 0..DEVIANT {
        let staged = rows::<StagedRecordRow>(&world, member).len();
        assert_eq!(staged, usize::from(holders.contains(&member)), "member {member}");
    }
    for holder in holders {
        world.crash(*holder);
    }
    world.restart_router(1);
    world.run_out();
    for holder in holders {
        world.open(*holder);
        world.attach(*holder);
    }
    transmit_all(&mut world, holders);
    denies(&mut world, &everyone);
    (world, everyone, genesis)
}

/// Four members of which the last deviates.
fn deviating() -> (World, Membership) {
    let mut world = World::new(4);
    let everyone = world.everyone();
    world.crash(DEVIANT);
    world.deviants.push(DEVIANT);
    (world, everyone)
}

/// The records that a member ever voted for, as everything it sent shows.
fn voted(world: &World, everyone: &Membership, member: usize) -> Vec<RecordHash> {
    let copies = packets(world, everyone, member, "copy");
    let mut records: Vec<RecordHash> = copies
        .into_iter()
        .map(|packet| match packet {
            DirectPacket::ActionCertifiedRecord(record) => record.record_hash,
            other => panic!("{other:?}"),
        })
        .collect();
    records.sort();
    records.dedup();
    records
}

fn require_one_genesis(world: &World, everyone: &Membership, genesis: &ActionCore) {
    for member in 0..DEVIANT {
        let chain = world.chain(member, everyone);
        assert_eq!(
            chain.first(),
            Some(&record_of(everyone, genesis)),
            "member {member}"
        );
        assert!(
            voted(world, everyone, member).len() <= chain.len(),
            "member {member}"
        );
    }
    world.check(everyone);
}

#[test]
fn a_certified_genesis_that_was_hidden_over_a_restart_of_the_router_is_the_only_one() {
    let (mut world, everyone, genesis) = hidden(&[0, 1]);
    // Whatever member 2 does before it hears of the others' record: the deviant shows it the certificate.
    let shown = certified_by(&world, &everyone, &genesis, &[0, 1, DEVIANT]);
    for _ in 0..3 {
        world.settle();
        let latest = proposed(&world, &everyone, 0);
        if latest.hash() != genesis.hash() {
            let packet: DirectPacket = shown.to_value().into();
            sends(&mut world, &everyone, &packet.encode(), &[0, 1]);
            deliver_all(&mut world, &[2]);
            signs(&mut world, &everyone, &latest, &[]);
            votes(&mut world, &everyone, record_of(&everyone, &latest), &[]);
        }
        world.settle();
    }
    require_one_genesis(&world, &everyone, &genesis);
}

#[test]
pub(crate) fn whoever_staged_a_genesis_signs_no_other_even_when_a_quorum_says_that_it_has_none() {
    let (mut world, everyone, genesis) = hidden(&[0]);
    // Member 1 and 2 never hear from 0 what it staged before they answer; the deviant denies it.
    world.run_out();
    let proposals = packets(&world, &everyone, 0, "proposal").len();
    assert_eq!(proposals, 1, "0 proposes no other");
    require_one_genesis(&world, &everyone, &genesis);
    let own = |member: usize| -> Vec<String> {
        let id = world.members[member].id().to_string();
        rows::<EvidenceRow>(&world, member)
            .into_iter()
            .filter(|row| row.evidence_kind == EvidenceKind::Action && row.evidence_key == id)
            .map(|row| row.subject_id)
            .collect()
    };
    assert!(own(0).contains(&genesis.hash().to_string()));
}

/// Honest members of which `holder` alone staged the GENESIS of member 0, and missed everything that came after it.
fn held_by_one(members: usize, holder: usize) -> (World, Membership, ActionCore) {
    let mut world = World::new(members);
    let everyone = world.everyone();
    world.send(0, &everyone, "first");
    // The last signature reaches the holder alone.
    loop {
        let mut moved = false;
        for member in 0..members {
            moved |= world.transmit_one(member);
            let signed = !rows::<EvidenceRow>(&world, member).is_empty();
            if member == holder || !signed {
                moved |= world.deliver_one(member);
            }
        }
        if !rows::<StagedRecordRow>(&world, holder).is_empty() {
            break;
        }
        assert!(moved);
    }
    for member in 0..members {
        let staged = rows::<StagedRecordRow>(&world, member).len();
        assert_eq!(staged, usize::from(member == holder), "member {member}");
    }
    let genesis = proposed(&world, &everyone, 0);
    world.crash(holder);
    world.restart_router(1);
    (world, everyone, genesis)
}

#[test]
fn members_that_began_again_come_back_to_a_genesis_that_one_of_them_staged() {
    for (members, holder) in [(2, 0), (2, 1), (3, 1), (4, 0), (4, 2), (7, 3)] {
        let (mut world, everyone, genesis) = held_by_one(members, holder);
        // Without the holder the others begin again, and another post of theirs waits for it.
        world.run_out();
        let other = usize::from(holder == 1) ^ 1;
        let later = world.send(other, &everyone, "later");
        world.run_out();
        world.open(holder);
        world.attach(holder);
        world.run_out();
        let chain = world.chain(holder, &everyone);
        assert_eq!(chain[0], record_of(&everyone, &genesis), "{members}/{holder}");
        for member in 0..members {
            assert_eq!(
                world.chain(member, &everyone),
                chain,
                "{members}/{holder}: {member}"
            );
        }
        assert!(recovered(&world, &(0..members).collect::<Vec<_>>(), &everyone));
        assert!(world.members[other].sent[&later].is_ok(), "{members}/{holder}");
        world.check(&everyone);
        for member in 0..members {
            world.restart(member);
        }
        world.run_out();
        world.check(&everyone);
    }
}

#[test]
fn a_holder_that_restarts_over_two_more_instances_of_the_router_still_shows_its_genesis() {
    let (mut world, everyone, genesis) = held_by_one(4, 1);
    world.run_out();
    world.restart_router(2);
    world.run_out();
    world.open(1);
    world.attach(1);
    world.run_out();
    world.restart_router(3);
    world.restart(1);
    world.run_out();
    for member in 0..4 {
        assert_eq!(world.chain(member, &everyone)[0], record_of(&everyone, &genesis));
    }
    world.check(&everyone);
}

#[test]
fn a_certified_genesis_takes_the_place_of_another_one_that_is_staged() {
    let (mut world, everyone) = deviating();
    world.send(0, &everyone, "first");
    world.settle();
    let first = proposed(&world, &everyone, 0);
    world.restart_router(1);
    transmit_all(&mut world, &[0, 1, 2]);
    denies(&mut world, &everyone);
    world.settle();
    let second = proposed(&world, &everyone, 0);
    assert_ne!(first.hash(), second.hash());
    // The deviant completes the second for member 2 and the first, which nobody could finish, for the others.
    signs(&mut world, &everyone, &second, &[0, 1]);
    deliver_all(&mut world, &[2]);
    assert_eq!(rows::<StagedRecordRow>(&world, 2).len(), 1);
    let shown: DirectPacket = signed_by_all(&world, &everyone, &first).to_value().into();
    sends(&mut world, &everyone, &shown.encode(), &[2]);
    deliver_all(&mut world, &[0, 1]);
    let copies = |world: &World, member| voted(world, &everyone, member);
    transmit_all(&mut world, &[0, 1, 2]);
    assert_eq!(copies(&world, 0), [record_of(&everyone, &first)]);
    assert_eq!(copies(&world, 2), [record_of(&everyone, &second)]);
    votes(&mut world, &everyone, record_of(&everyone, &first), &[]);
    votes(&mut world, &everyone, record_of(&everyone, &second), &[]);
    world.run_out();
    // Two honest votes and the deviant's are a quorum for the first; the second never gets one.
    for member in 0..DEVIANT {
        assert_eq!(
            world.chain(member, &everyone).first(),
            Some(&record_of(&everyone, &first)),
            "member {member}"
        );
    }
    assert_eq!(
        copies(&world, 2),
        [record_of(&everyone, &second)],
        "and 2 voted once"
    );
    world.check(&everyone);
    world.restart(2);
    world.run_out();
    world.check(&everyone);
}

#[test]
fn a_genesis_that_all_signed_is_refused_by_whoever_staged_another() {
    let (mut world, everyone) = deviating();
    world.send(0, &everyone, "first");
    world.settle();
    let first = proposed(&world, &everyone, 0);
    world.restart_router(1);
    transmit_all(&mut world, &[0, 1, 2]);
    denies(&mut world, &everyone);
    world.settle();
    let second = proposed(&world, &everyone, 0);
    signs(&mut world, &everyone, &second, &[0, 1]);
    deliver_all(&mut world, &[2]);
    let before = rows::<StagedRecordRow>(&world, 2);
    let shown: DirectPacket = signed_by_all(&world, &everyone, &first).to_value().into();
    inject_plaintext(&mut world, &everyone, DEVIANT, &shown.encode());
    deliver_all(&mut world, &[2]);
    assert_eq!(rows::<StagedRecordRow>(&world, 2), before);
    assert!(world.members[2].ignored.contains(&Ignored::LockedAndStaged));
}

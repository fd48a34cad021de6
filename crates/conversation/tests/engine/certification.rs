//! From a proposal to a certified record.

use conclave_conversation::engine::{Ignored, Input};
use conclave_conversation::membership::Membership;
use conclave_conversation::store::Failpoint;
use conclave_conversation::store::rows::{
    CertifiedRecordRow, EvidenceKind, EvidenceRow, PostIntentRow, StagedRecordRow,
};
use conclave_conversation::values::{
    ActionCertifiedRecord, ClosedValue, DirectPacket, MembershipHash, Plaintext, RecordCore,
};

use crate::world::{Ordered, World, kind_of};

fn founded(members: usize) -> World {
    let mut world = World::new(members);
    let everyone = world.everyone();
    world.send(0, &everyone, "genesis");
    world.settle();
    world
}

fn evidence(world: &World, member: usize, kind: EvidenceKind, subject: &str) -> Vec<EvidenceRow> {
    let rows: Vec<EvidenceRow> = world.members[member].store.snapshot().rows().unwrap();
    rows.into_iter()
        .filter(|row| row.evidence_kind == kind && row.subject_id == subject)
        .collect()
}

/// The first ordered message of a kind from a sender.
fn find(world: &World, membership: &Membership, sender: usize, kind: &str) -> Ordered {
    let opened = world.opened(membership);
    let place = opened
        .iter()
        .rposition(|(from, plaintext)| *from == sender && kind_of(plaintext) == kind)
        .expect("such a message");
    let conversation = crate::world::OrderedFeed::Conversation(*membership.conversation_id());
    let of_it: Vec<_> = world
        .router
        .log
        .iter()
        .filter(|ordered| ordered.feed == conversation)
        .collect();
    of_it[place].clone()
}

// CONV-E13, CONV-E03, CONV-E12, CONV-E06
#[test]
fn a_post_is_certified_among_two_three_four_and_ten() {
    for members in [2, 3, 4, 10] {
        let mut world = World::new(members);
        let everyone = world.everyone();
        let first = world.send(0, &everyone, "first");
        world.settle();
        assert_eq!(
            world.kinds(&everyone).len(),
            1 + 3 * members,
            "messages of a GENESIS"
        );
        let second = world.send(1, &everyone, "second");
        world.settle();
        assert_eq!(world.kinds(&everyone).len(), 3 + 6 * members, "and of a POST");
        let chain = world.chain(0, &everyone);
        assert_eq!(chain.len(), 2, "among {members}");
        for member in 0..members {
            assert_eq!(
                world.chain(member, &everyone),
                chain,
                "member {member} of {members}"
            );
            for entry in world.history(member, &everyone) {
                assert_eq!(entry.action_signatures.len(), members, "late signatures merge");
                assert_eq!(entry.durability_votes.len(), members, "late votes merge");
            }
        }
        for (member, request, record) in [(0, first, chain[0]), (1, second, chain[1])] {
            let sent = world.members[member].sent[&request].clone().unwrap();
            assert_eq!(sent.record_hash, record);
            let intents: Vec<PostIntentRow> = world.members[member].store.snapshot().rows().unwrap();
            let intent = intents
                .iter()
                .find(|row| row.post_id == sent.post_id.to_string())
                .unwrap();
            assert_eq!(intent.completed_record_hash, Some(record.to_string()));
        }
        world.check(&everyone);
    }
}

// Every copy and every certificate carries the same statements.
#[test]
fn a_statement_is_verified_once_however_often_it_arrives() {
    for members in [2, 4, 10] {
        let mut world = founded(members);
        let everyone = world.everyone();
        let before = world.kinds(&everyone).len();
        world.send(0, &everyone, "second");
        let last = members - 1;
        let mut verified = 0;
        loop {
            let mut moved = false;
            for member in 0..members {
                moved |= world.transmit_one(member);
                let begun = conclave_harness::key::verifications();
                moved |= world.deliver_one(member);
                if member == last {
                    verified += conclave_harness::key::verifications() - begun;
                }
            }
            if !moved {
                break;
            }
        }
        let messages = world.kinds(&everyone).len() - before;
        assert_eq!(messages, 2 + 3 * members);
        // The messages around them are shared by the members of a test, and the others read them first.
        let statements = 2 * members as u64;
        assert!(verified <= statements, "{verified} among {members}");
    }
}

// CONV-E13
#[test]
fn among_ten_three_may_be_silent_and_four_may_not() {
    let mut world = founded(10);
    let everyone = world.everyone();
    for silent in 7..10 {
        world.crash(silent);
    }
    world.send(0, &everyone, "with three silent");
    world.settle();
    assert_eq!(world.chain(0, &everyone).len(), 2);
    world.crash(6);
    world.send(0, &everyone, "with four silent");
    world.run_out();
    assert_eq!(world.chain(0, &everyone).len(), 2);
    world.check(&everyone);
}

// CONV-E01, CONV-E02
#[test]
fn three_of_four_signatures_stage_a_record_and_two_remote_votes_certify_it() {
    let mut world = founded(4);
    let everyone = world.everyone();
    world.crash(3);
    let request = world.send(0, &everyone, "traced");
    while world.transmit_one(0) {}
    for member in 0..3 {
        while world.deliver_one(member) {}
    }
    // Every member has signed; nothing of it is ordered yet.
    let staged = |world: &World| {
        world.members[1]
            .store
            .snapshot()
            .rows::<StagedRecordRow>()
            .unwrap()
            .len()
    };
    let certified = |world: &World| {
        world.members[1]
            .store
            .snapshot()
            .rows::<CertifiedRecordRow>()
            .unwrap()
            .len()
    };
    world.transmit_one(0);
    while world.deliver_one(1) {}
    assert_eq!(staged(&world), 1, "two of three signatures");
    world.transmit_one(2);
    while world.deliver_one(1) {}
    assert_eq!(
        (staged(&world), certified(&world)),
        (2, 1),
        "staged, not certified"
    );
    let rows: Vec<StagedRecordRow> = world.members[1].store.snapshot().rows().unwrap();
    let row = rows
        .into_iter()
        .find(|row| row.previous_record_hash.is_some())
        .unwrap();
    let votes = evidence(&world, 1, EvidenceKind::Durability, &row.record_hash);
    assert_eq!(votes.len(), 1, "its own vote alone");
    assert_eq!(votes[0].evidence_key, world.members[1].id().to_string());

    // Member 1 sends its signature, one copy and one vote, in this order.
    let before = world.kinds(&everyone).len();
    while world.transmit_one(1) {}
    assert_eq!(
        world.kinds(&everyone)[before..],
        [(1, "signature"), (1, "copy"), (1, "vote")]
    );

    for member in [0, 2] {
        while world.deliver_one(member) {}
        while world.transmit_one(member) {}
    }
    let mut at = Vec::new();
    while world.deliver_one(1) {
        at.push((
            evidence(&world, 1, EvidenceKind::Durability, &row.record_hash).len(),
            certified(&world),
        ));
    }
    assert!(at.contains(&(2, 1)), "two of three votes do not certify");
    assert_eq!(at.last(), Some(&(3, 2)), "the third does");
    assert_eq!(
        evidence(&world, 1, EvidenceKind::Action, &row.action_hash).len(),
        3
    );
    world.settle();
    assert!(world.members[0].sent[&request].is_ok());
    world.check(&everyone);
}

// CONV-E04
#[test]
fn a_member_that_stages_from_a_copy_sends_its_own_copy_before_its_vote() {
    let mut world = founded(4);
    let everyone = world.everyone();
    world.members[3].online = false;
    world.send(0, &everyone, "seen late");
    world.settle();
    // Member 3 reads only the copy of member 1, not the proposal nor the signatures.
    world.members[3].online = true;
    let copy = find(&world, &everyone, 1, "copy");
    world.deliver(3, &copy);
    let before = world.kinds(&everyone).len();
    while world.transmit_one(3) {}
    assert_eq!(
        world.kinds(&everyone)[before..],
        [(3, "copy"), (3, "vote")],
        "and signs nothing"
    );
    world.settle();
    world.check(&everyone);
}

// CONV-E05, CONV-E10
#[test]
fn a_step_whose_commit_fails_leaves_nothing_on_the_wire_and_nothing_in_the_store() {
    let mut world = founded(2);
    let everyone = world.everyone();
    world.send(0, &everyone, "a post");
    // Every step of member 1 fails once before it succeeds.
    for _ in 0..40 {
        world.transmit_one(0);
        world.deliver_one(0);
        world.transmit_one(1);
        let next = world.router.log.iter().find(|ordered| {
            let feed = conclave_conversation::engine::Feed::Conversation(*everyone.conversation_id());
            matches!(ordered.feed, crate::world::OrderedFeed::Conversation(_))
                && world.members[1]
                    .feeds
                    .get(&feed)
                    .is_some_and(|read| ordered.position > *read)
        });
        let Some(ordered) = next.cloned() else { continue };
        let (before, on_the_wire) = (world.members[1].store.snapshot(), world.router.log.len());
        let input: Input = world.input(&ordered);
        let step = world.step(1, input);
        world.members[1].store.fail(Failpoint::NextCommit);
        assert!(world.members[1].store.apply(&step.transitions).is_err());
        assert_eq!(world.members[1].store.snapshot(), before);
        assert_eq!(world.router.log.len(), on_the_wire);
        world.restart(1);
        let records = world.chain(1, &everyone).len() as u64;
        let view = world.members[1]
            .engine
            .as_ref()
            .unwrap()
            .conversations()
            .next()
            .unwrap()
            .records;
        assert_eq!(view, records, "memory and store agree");
        world.deliver_one(1);
    }
    world.settle();
    assert_eq!(world.chain(0, &everyone).len(), 2);
    assert_eq!(world.chain(1, &everyone).len(), 2);
    world.check(&everyone);
}

// CONV-E07
#[test]
fn an_exchange_delivered_twice_is_one_record_and_one_delivery_each() {
    let mut world = World::new(4);
    let everyone = world.everyone();
    world.send(0, &everyone, "once");
    // The proposal arrives twice in the middle of the exchange.
    while world.transmit_one(0) {}
    let proposal = find(&world, &everyone, 0, "proposal");
    world.inject(&everyone, proposal.message);
    world.settle();
    let messages: Vec<_> = world
        .router
        .log
        .iter()
        .map(|ordered| (ordered.feed, ordered.message.clone()))
        .collect();
    for (feed, message) in messages {
        world.router.append(feed, message);
    }
    let before = world.router.log.len();
    world.settle();
    assert_eq!(
        world.router.log.len(),
        before,
        "repetitions are answered with nothing"
    );
    for member in 0..4 {
        assert_eq!(world.chain(member, &everyone).len(), 1);
        assert_eq!(world.members[member].delivered.len(), usize::from(member != 0));
    }
    world.check(&everyone);
}

// CONV-E08
#[test]
fn an_author_that_receives_its_own_post_whole_finishes_it_without_a_delivery() {
    let mut world = founded(4);
    let everyone = world.everyone();
    let request = world.send(0, &everyone, "mine");
    // The author signs, stages and votes, and then reads nothing more until another member proposes.
    for _ in 0..64 {
        for member in 0..4 {
            world.transmit_one(member);
            if member != 0
                || world.members[0]
                    .store
                    .snapshot()
                    .rows::<StagedRecordRow>()
                    .unwrap()
                    .len()
                    < 2
            {
                world.deliver_one(member);
            }
        }
    }
    assert_eq!(world.chain(1, &everyone).len(), 2);
    assert_eq!(world.chain(0, &everyone).len(), 1);
    world.send(1, &everyone, "next");
    while world.transmit_one(1) {}
    let head = find(&world, &everyone, 1, "head");
    world.deliver(0, &head);
    assert_eq!(world.chain(0, &everyone).len(), 2);
    assert!(world.members[0].sent[&request].is_ok());
    assert!(
        world.members[0].delivered.is_empty(),
        "authors get no delivery of their own posts"
    );
    world.settle();
    assert_eq!(world.members[0].texts(), ["next"]);
    world.check(&everyone);
}

// CONV-E09
#[test]
pub(crate) fn a_record_received_whole_is_not_voted_for_now_or_after_a_restart() {
    let mut world = founded(4);
    let everyone = world.everyone();
    world.members[3].online = false;
    world.send(0, &everyone, "missed");
    world.settle();
    world.send(1, &everyone, "next");
    while world.transmit_one(1) {}
    world.members[3].online = true;
    let head = find(&world, &everyone, 1, "head");
    world.deliver(3, &head);
    assert_eq!(world.chain(3, &everyone).len(), 2);
    assert!(world.members[3].transmits.is_empty());
    assert_eq!(world.members[3].texts(), ["genesis", "missed"]);
    world.restart(3);
    assert!(world.members[3].transmits.is_empty());
    world.settle();
    let record = world.chain(0, &everyone)[1].to_string();
    let voted = evidence(&world, 0, EvidenceKind::Durability, &record);
    assert!(
        voted
            .iter()
            .all(|row| row.evidence_key != world.members[3].id().to_string())
    );
    world.check(&everyone);
}

// CONV-E11
#[test]
fn a_record_of_another_membership_is_refused_and_one_of_no_held_conversation_ignored() {
    let mut world = founded(3);
    let everyone = world.everyone();
    world.send(0, &everyone, "a post");
    while world.transmit_one(0) {}
    for member in 0..3 {
        while world.deliver_one(member) {}
    }
    for member in 1..3 {
        while world.transmit_one(member) {}
    }
    while world.transmit_one(0) {}
    for _ in 0..3 {
        world.deliver_one(0);
    }
    while world.transmit_one(0) {}
    let copy = find(&world, &everyone, 0, "copy");
    let opened = world.opened(&everyone);
    let Some((_, Plaintext::Packet(DirectPacket::ActionCertifiedRecord(record)))) = opened
        .into_iter()
        .rfind(|(_, plaintext)| kind_of(plaintext) == "copy")
    else {
        panic!("a copy");
    };
    let RecordCore::Post(mut core) = record.record_core.clone() else {
        panic!("a POST")
    };
    core.membership_hash = MembershipHash::from_bytes([7; 32]);
    let forged = ActionCertifiedRecord {
        record_core: RecordCore::Post(core),
        ..*record
    };
    let packet: DirectPacket = forged.into();
    let message = world.outer(0, &everyone, &packet.encode());
    let forged = Ordered {
        instance: world.router.instance,
        message,
        position: copy.position,
        ..copy.clone()
    };
    let before = world.members[1]
        .store
        .snapshot()
        .rows::<StagedRecordRow>()
        .unwrap();
    world.deliver(1, &forged);
    assert!(matches!(
        world.members[1].ignored.last(),
        Some(Ignored::Invalid(_))
    ));
    assert_eq!(
        world.members[1]
            .store
            .snapshot()
            .rows::<StagedRecordRow>()
            .unwrap(),
        before
    );

    let pair = world.membership(&[0, 1]);
    let message = world.outer(0, &pair, &packet.encode());
    let feed = crate::world::OrderedFeed::Conversation(*pair.conversation_id());
    world.router.append(feed, message);
    let ordered = world.router.log.last().unwrap().clone();
    world.deliver(1, &ordered);
    assert_eq!(
        world.members[1].ignored.last(),
        Some(&Ignored::UnknownConversation)
    );
}

//! How posts are bound, proposed, resent and proposed again.

use conclave_conversation::engine::limits::UNFINISHED_SENDS_MAX;
use conclave_conversation::engine::timing::{RESEND_BASE_MS, RESENDS_MAX};
use conclave_conversation::engine::{Ignored, SendError, Stage, TimerId};
use conclave_conversation::store::rows::{EvidenceRow, PostIntentRow, ProposalLockRow};
use conclave_conversation::values::{ActionProposal, ClosedValue, DirectPacket, Plaintext, PostActionCore};

use crate::world::World;

/// Every proposal of a conversation with its author, in the Router's order.
fn proposals(
    world: &World,
    membership: &conclave_conversation::membership::Membership,
) -> Vec<(usize, ActionProposal)> {
    let opened = world.opened(membership).into_iter();
    opened
        .filter_map(|(sender, plaintext)| match plaintext {
            Plaintext::Packet(DirectPacket::ActionProposal(proposal)) => Some((sender, *proposal)),
            _ => None,
        })
        .collect()
}

/// A world whose members have certified one post.
fn founded(members: usize) -> World {
    let mut world = World::new(members);
    let everyone = world.everyone();
    world.send(0, &everyone, "genesis");
    world.settle();
    world
}

fn locks(world: &World, member: usize) -> Vec<ProposalLockRow> {
    world.members[member].store.snapshot().rows().unwrap()
}

// CONV-D01, CONV-D05
#[test]
fn of_two_proposals_at_one_head_every_member_signs_the_first_and_the_loser_proposes_its_post_again() {
    let mut world = founded(4);
    let everyone = world.everyone();
    let sent = [
        world.send(1, &everyone, "from 1"),
        world.send(2, &everyone, "from 2"),
    ];
    world.settle();

    let chain = world.chain(0, &everyone);
    assert_eq!(chain.len(), 3);
    assert_eq!(
        world.members[1].sent[&sent[0]].as_ref().unwrap().record_hash,
        chain[1]
    );
    assert_eq!(
        world.members[2].sent[&sent[1]].as_ref().unwrap().record_hash,
        chain[2]
    );
    for member in 0..4 {
        assert_eq!(locks(&world, member).len(), 3, "one lock at each predecessor");
    }
    let again: Vec<_> = proposals(&world, &everyone)
        .into_iter()
        .filter(|(author, _)| *author == 2)
        .collect();
    assert_eq!(again.len(), 2);
    let (before, after) = (&again[0].1.action, &again[1].1.action);
    assert_eq!(before.post_intent(), after.post_intent());
    assert_eq!(before.post_intent_hash(), after.post_intent_hash());
    assert_eq!(before.previous_record_hash(), Some(&chain[0]));
    assert_eq!(after.previous_record_hash(), Some(&chain[1]));
    assert_ne!(before.hash(), after.hash());
    // The first candidate in the Router's order was signed by all, the other by none.
    assert_eq!(world.count(&everyone, "signature"), 3 * 4);
    world.check(&everyone);
}

// CONV-D02, CONV-D09
#[test]
fn equal_posts_of_one_author_are_two_posts_and_the_second_waits_for_the_first() {
    let mut world = founded(3);
    let everyone = world.everyone();
    let first = world.send(0, &everyone, "same");
    let second = world.send(0, &everyone, "same");
    assert_ne!(world.members[0].bound[&first], world.members[0].bound[&second]);
    world.settle();
    let chain = world.chain(1, &everyone);
    assert_eq!(
        world.members[0].sent[&first].as_ref().unwrap().record_hash,
        chain[1]
    );
    assert_eq!(
        world.members[0].sent[&second].as_ref().unwrap().record_hash,
        chain[2]
    );
    assert_eq!(world.members[1].texts(), ["genesis", "same", "same"]);
}

// CONV-D03
#[test]
fn nobody_signs_before_the_router_returns_the_proposal_the_author_included() {
    let mut world = founded(3);
    let everyone = world.everyone();
    let before = world.count(&everyone, "signature");
    world.send(0, &everyone, "a post");
    while world.transmit_one(0) {}
    assert_eq!(world.count(&everyone, "proposal"), 2);
    assert_eq!(world.count(&everyone, "signature"), before);
    assert!(locks(&world, 0).len() == 1, "only GENESIS is locked");
    while world.deliver_one(0) {}
    while world.transmit_one(0) {}
    assert_eq!(world.count(&everyone, "signature"), before + 1);
}

// CONV-D04
#[test]
fn a_lock_outlives_a_restart() {
    let mut world = founded(4);
    let everyone = world.everyone();
    world.send(0, &everyone, "first");
    world.send(1, &everyone, "second");
    while world.transmit_one(0) {}
    while world.transmit_one(1) {}
    let heads_and_proposals = world.router.log.len();
    assert!(
        world.deliver_one(2) && world.deliver_one(2),
        "the head and the first proposal"
    );
    let locked = locks(&world, 2);
    world.restart(2);
    while world.deliver_one(2) {}
    assert_eq!(locks(&world, 2), locked);
    assert!(world.members[2].ignored.contains(&Ignored::Locked));
    while world.transmit_one(2) {}
    let signatures = world.kinds(&everyone).into_iter().skip(heads_and_proposals - 3);
    assert!(
        signatures
            .filter(|(sender, kind)| *sender == 2 && *kind == "signature")
            .count()
            >= 1
    );
    world.settle();
    world.check(&everyone);
}

/// A POST of a member at the head of another member's history, as nobody's engine made it.
fn post_at_head(
    world: &World,
    of: usize,
    author: usize,
    change: impl FnOnce(&mut PostActionCore),
) -> Vec<u8> {
    let everyone = world.everyone();
    let template = proposals(world, &everyone).pop().expect("a proposal").1.action;
    let head = world.history(of, &everyone).pop().expect("a head");
    let mut intent = template.post_intent().clone();
    intent.author_agent_id = world.members[author].id();
    intent.post_id = conclave_conversation::values::PostId::from_bytes([author as u8; 32]);
    let mut core = PostActionCore {
        sharness_version: intent.sharness_version,
        kind: conclave_conversation::values::PostActionKind,
        conversation_id: *everyone.conversation_id(),
        membership_hash: *everyone.hash(),
        anchor_hash: head.anchor_hash,
        previous_record_hash: head.record_hash,
        post_intent_hash: intent.hash(),
        post_intent: intent,
    };
    change(&mut core);
    core.post_intent_hash = core.post_intent.hash();
    let packet: DirectPacket = ActionProposal {
        sharness_version: core.sharness_version,
        kind: conclave_conversation::values::ActionProposalKind,
        action: core.into(),
    }
    .into();
    packet.encode()
}

/// Sends a plaintext as `sender` to a settled world and says how member 0 took it.
fn taken(world: &mut World, sender: usize, plaintext: &[u8]) -> Option<Ignored> {
    let everyone = world.everyone();
    let (locked, ignored) = (locks(world, 0), world.members[0].ignored.len());
    let message = world.outer(sender, &everyone, plaintext);
    world.inject(&everyone, message);
    assert!(world.deliver_one(0));
    let reason = world.members[0].ignored.get(ignored).cloned();
    if reason.is_some() {
        assert_eq!(locks(world, 0), locked, "what is ignored locks nothing");
        assert!(world.members[0].transmits.is_empty());
    }
    reason
}

// CONV-D06
#[test]
fn a_proposal_from_another_sender_than_its_author_is_ignored() {
    let mut world = founded(3);
    let plaintext = post_at_head(&world, 0, 1, |_| {});
    assert_eq!(taken(&mut world, 2, &plaintext), Some(Ignored::ForeignProposal));
    assert_eq!(taken(&mut world, 1, &plaintext), None);
}

// CONV-D07
#[test]
fn a_proposal_elsewhere_than_at_the_head_is_ignored() {
    let mut world = founded(3);
    let everyone = world.everyone();
    let stale = post_at_head(&world, 0, 1, |_| {});
    let foreign_anchor = post_at_head(&world, 0, 1, |core| {
        core.anchor_hash = conclave_conversation::values::AnchorHash::from_bytes([1; 32]);
    });
    assert_eq!(taken(&mut world, 1, &foreign_anchor), Some(Ignored::NotGapFree));
    world.send(0, &everyone, "the head moves");
    world.settle();
    assert_eq!(taken(&mut world, 1, &stale), Some(Ignored::NotGapFree));

    let pair = world.membership(&[0, 1]);
    let message = world.outer(1, &pair, &stale);
    let before = world.members[0].store.snapshot();
    world.router.append(
        crate::world::OrderedFeed::Conversation(*pair.conversation_id()),
        message,
    );
    let ordered = world.router.log.last().unwrap().clone();
    world.deliver(0, &ordered);
    assert_eq!(
        world.members[0].ignored.last(),
        Some(&Ignored::UnknownConversation)
    );
    assert_eq!(
        world.members[0].store.snapshot(),
        before,
        "an unknown conversation leaves no state"
    );
}

// CONV-D08
#[test]
fn a_post_that_exists_is_not_made_again_with_another_content() {
    let mut world = founded(3);
    let everyone = world.everyone();
    world.send(1, &everyone, "said once");
    world.settle();
    let said = proposals(&world, &everyone)
        .pop()
        .unwrap()
        .1
        .action
        .post_intent()
        .clone();
    let changed = post_at_head(&world, 0, 1, |core| {
        core.post_intent.post_id = said.post_id;
        core.post_intent.content = conclave_conversation::values::Content::text("said otherwise").unwrap();
    });
    assert_eq!(taken(&mut world, 1, &changed), Some(Ignored::PostExists));
    let repeated = post_at_head(&world, 0, 1, |core| core.post_intent = said.clone());
    assert_eq!(taken(&mut world, 1, &repeated), Some(Ignored::PostExists));
}

// CONV-D10, CONV-D11
#[test]
fn a_bound_post_is_made_whatever_becomes_of_its_caller() {
    let mut world = founded(3);
    let everyone = world.everyone();
    let request = world.send(0, &everyone, "survives");
    let post_id = world.members[0].bound[&request];
    assert_eq!(world.count(&everyone, "proposal"), 1, "nothing has travelled");
    world.restart(0);
    world.settle();
    let history = world.history(1, &everyone);
    assert_eq!(history.len(), 2);
    assert_eq!(history[1].record_core.post_intent().post_id, post_id);
    assert_eq!(world.members[1].texts(), ["genesis", "survives"]);
    let intents: Vec<PostIntentRow> = world.members[0].store.snapshot().rows().unwrap();
    assert!(intents.iter().all(|row| row.completed_record_hash.is_some()));
    world.check(&everyone);
}

// CONV-D12
#[test]
fn a_proposal_that_too_few_sign_stalls_its_head_and_nothing_replaces_it() {
    let mut world = founded(4);
    let everyone = world.everyone();
    world.crash(2);
    world.crash(3);
    world.send(0, &everyone, "stalls");
    world.settle();
    world.send(1, &everyone, "does not replace it");
    world.run_out();
    assert_eq!(world.chain(0, &everyone).len(), 1);
    assert_eq!(world.chain(1, &everyone).len(), 1);
    assert!(
        world.members[1]
            .progress
            .iter()
            .all(|(_, stage)| !matches!(stage, Stage::Certified { ordinal: 1 }))
    );
    world.open(2);
    world.attach(2);
    world.settle();
    assert_eq!(
        world.chain(1, &everyone).len(),
        3,
        "both are certified once a quorum is there"
    );
    world.check(&everyone);
}

// CONV-D13, CONV-D14, CONV-D17, CONV-E12
#[test]
fn an_incomplete_proposal_is_resent_eight_times_with_its_head_and_nobody_signs_twice() {
    let mut world = founded(4);
    let everyone = world.everyone();
    world.crash(2);
    world.crash(3);
    world.send(0, &everyone, "who is there?");
    world.settle();
    assert_eq!(world.count(&everyone, "signature"), 4 + 2);
    let before = world.kinds(&everyone).len();
    let mut delays = Vec::new();
    let conversation = *everyone.conversation_id();
    for member in &mut world.members {
        member
            .timers
            .retain(|timer, _| matches!(timer, TimerId::Resend(_)));
    }
    while let Some(at_ms) = world.members[0].timers.get(&TimerId::Resend(conversation)) {
        delays.push(at_ms - world.now_ms);
        assert!(world.next_timer());
        world.settle();
    }
    assert_eq!(delays.len(), RESENDS_MAX as usize);
    for (doublings, delay) in (0..).zip(&delays) {
        let nominal = RESEND_BASE_MS << doublings;
        assert!(
            (nominal * 4 / 5..=nominal * 6 / 5).contains(delay),
            "{delay} of {nominal}"
        );
    }
    let resent: Vec<_> = world.kinds(&everyone).split_off(before);
    assert_eq!(
        resent,
        [(0, "head"), (0, "proposal")].repeat(RESENDS_MAX as usize),
        "two messages a resend"
    );
    let sent: Vec<_> = proposals(&world, &everyone).split_off(1);
    assert_eq!(sent.len(), 1 + RESENDS_MAX as usize);
    assert!(
        sent.iter().all(|proposal| *proposal == sent[0]),
        "each carries the identical proposal"
    );
    let ids: std::collections::BTreeSet<_> = world
        .router
        .log
        .iter()
        .map(|ordered| ordered.message.message_id())
        .collect();
    assert_eq!(ids.len(), world.router.log.len(), "each in a new outer message");

    // The head stays stalled until the author restarts and proposes the post again.
    assert!(!world.next_timer());
    world.open(2);
    world.attach(2);
    world.restart(0);
    world.settle();
    assert_eq!(world.chain(0, &everyone).len(), 2);
    world.check(&everyone);
}

// CONV-D15
#[test]
fn resends_stop_when_the_certificate_completes_or_another_candidate_commits() {
    let mut world = founded(3);
    let everyone = world.everyone();
    let resend = TimerId::Resend(*everyone.conversation_id());
    world.send(0, &everyone, "mine");
    world.send(1, &everyone, "the other's");
    assert!(world.members[0].timers.contains_key(&resend) && world.members[1].timers.contains_key(&resend));
    // Everyone signs the first of the two, and the signatures reach the author.
    while world.transmit_one(0) || world.transmit_one(1) {}
    for _ in 0..64 {
        for member in 0..3 {
            world.deliver_one(member);
            world.transmit_one(member);
        }
        if world.chain(1, &everyone).len() == 2 {
            break;
        }
    }
    let losing: Vec<_> = proposals(&world, &everyone)
        .into_iter()
        .filter(|(author, _)| *author == 1)
        .collect();
    assert_eq!(
        losing[0].1.action.previous_record_hash(),
        Some(&world.chain(1, &everyone)[0])
    );
    world.settle();
    assert!(
        world
            .members
            .iter()
            .all(|member| !member.timers.contains_key(&resend))
    );
    let settled = world.router.log.len();
    world.run_out();
    assert_eq!(world.router.log.len(), settled, "nothing is resent");
    assert_eq!(world.chain(0, &everyone).len(), 3);
}

#[test]
fn a_send_beyond_the_bound_is_refused_by_name() {
    let mut world = World::detached(2);
    let everyone = world.everyone();
    for _ in 0..UNFINISHED_SENDS_MAX {
        world.send(0, &everyone, "waits");
    }
    let refused = world.send(0, &everyone, "one too many");
    assert_eq!(world.members[0].sent[&refused], Err(SendError::TooManyUnfinished));
}

#[test]
fn a_membership_without_the_local_agent_is_refused() {
    let mut world = World::new(3);
    let others = world.membership(&[1, 2]);
    let refused = world.send(0, &others, "not mine");
    assert_eq!(world.members[0].sent[&refused], Err(SendError::NotAMember));
    assert!(
        world.members[0]
            .store
            .snapshot()
            .rows::<EvidenceRow>()
            .unwrap()
            .is_empty()
    );
    assert!(
        world.members[0]
            .store
            .snapshot()
            .rows::<PostIntentRow>()
            .unwrap()
            .is_empty()
    );
}

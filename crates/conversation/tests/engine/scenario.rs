//! Situations that several tests begin with, and what a member would say by hand in them.

use conclave_conversation::certificates::VerifiedEvidence;
use conclave_conversation::engine::{ConversationStatus, RecoveryReason};
use conclave_conversation::membership::Membership;
use conclave_conversation::store::rows::{
    ConversationStateRow, OutboundRow, ProposalLockRow, ReanchorRow, StagedRecordRow,
};
use conclave_conversation::values::{
    CatchUpItem, CatchUpPage, CatchUpRequest, CatchUpRequestKind, ClosedValue, DirectPacket, Plaintext,
    ReanchorBody, ReanchorBodyKind, ReanchorVoteKind, ReanchorVoteStatement,
};
use conclave_conversation::verification::VerifiedActionCertifiedRecord;
use conclave_harness::{RouterInstanceId, WIRE_VERSION};

use crate::byhand;
use crate::world::{World, kind_of};

pub(crate) const MISSING: ConversationStatus = ConversationStatus::Recovering {
    reason: RecoveryReason::HistoryMissing,
};

/// The Router's instance in the beginning.
pub(crate) const FIRST_INSTANCE: RouterInstanceId = RouterInstanceId::from_bytes([0; 16]);

pub(crate) fn founded(members: usize) -> (World, Membership) {
    let mut world = World::new(members);
    let everyone = world.everyone();
    world.send(0, &everyone, "genesis");
    world.settle();
    (world, everyone)
}

/// Members with `posts` certified posts, of which the last member has seen only the first.
pub(crate) fn behind(members: usize, posts: usize) -> (World, Membership) {
    let mut world = World::new(members);
    let everyone = world.everyone();
    world.send(0, &everyone, "post 0");
    world.settle();
    let last = members - 1;
    world.members[last].online = false;
    for number in 1..posts {
        world.send(number % last, &everyone, &format!("post {number}"));
        world.settle();
    }
    world.members[last].online = true;
    (world, everyone)
}

/// Members of which 0 alone is up; what the others say is made by hand.
fn founded_alone(members: usize) -> (World, Membership) {
    let (mut world, everyone) = founded(members);
    for silent in 1..members {
        world.crash(silent);
    }
    (world, everyone)
}

/// Four members after a restart of the Router, of which 0 alone is up.
pub(crate) fn alone() -> (World, Membership) {
    alone_of(4)
}

/// As [`alone`], of more members.
pub(crate) fn alone_of(members: usize) -> (World, Membership) {
    let (mut world, everyone) = founded_alone(members);
    world.restart_router(1);
    world.settle();
    (world, everyone)
}

/// Members of which 0 alone is up, behind a gap of its feed.
pub(crate) fn behind_a_gap(members: usize) -> (World, Membership) {
    let (mut world, everyone) = founded_alone(members);
    world.lose_unread(0, &everyone);
    world.settle();
    (world, everyone)
}

/// As [`alone`], where 0 was answered, settled its position and voted for a candidate there.
pub(crate) fn settled() -> (World, Membership) {
    let (mut world, everyone) = alone();
    nothing_follows(&mut world, &everyone, &[1, 2]);
    assert_eq!(rows::<ReanchorRow>(&world, 0).len(), 1);
    (world, everyone)
}

/// Members answer the last question of member 0 that they cannot say what follows.
pub(crate) fn nothing_follows(world: &mut World, everyone: &Membership, responders: &[usize]) {
    let question = question(world, everyone);
    for responder in responders {
        let answer = byhand::answer(world, *responder, &question, None, false);
        inject(world, everyone, *responder, answer);
    }
    world.settle();
}

/// A member answers the last question of member 0 with what follows.
pub(crate) fn follows(
    world: &mut World,
    everyone: &Membership,
    responder: usize,
    item: impl Into<CatchUpItem>,
    has_more: bool,
) {
    let question = question(world, everyone);
    let answer = byhand::answer(world, responder, &question, Some(item.into()), has_more);
    inject(world, everyone, responder, answer);
    world.settle();
}

/// What member 0 asked last.
pub(crate) fn question(world: &World, everyone: &Membership) -> CatchUpRequest {
    match packets(world, everyone, 0, "request").pop() {
        Some(DirectPacket::CatchUpRequest(request)) => *request,
        other => panic!("{other:?}"),
    }
}

/// A member sends a record and some members' votes for it.
pub(crate) fn show(
    world: &mut World,
    everyone: &Membership,
    sender: usize,
    record: &VerifiedActionCertifiedRecord,
    voters: &[usize],
) {
    inject(world, everyone, sender, record.to_value());
    for voter in voters {
        let vote = byhand::vote_for(world, everyone, *voter, *record.record().hash());
        inject_plaintext(world, everyone, *voter, &vote.encoded().to_canonical_bytes());
    }
    world.settle();
}

/// Member `holders` stage a post that nobody can certify, then the Router restarts.
pub(crate) fn with_holders(members: usize, holders: &[usize]) -> (World, Membership) {
    let (mut world, everyone) = staged_at(members, holders);
    world.restart_router(1);
    (world, everyone)
}

/// Member `holders` stage a post of member 0, and no vote for it is ordered.
pub(crate) fn staged_at(members: usize, holders: &[usize]) -> (World, Membership) {
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
    (world, everyone)
}

pub(crate) fn status(world: &World, member: usize, membership: &Membership) -> ConversationStatus {
    world.members[member].status[membership.conversation_id()]
}

pub(crate) fn recovered(world: &World, members: &[usize], membership: &Membership) -> bool {
    members
        .iter()
        .all(|member| status(world, *member, membership) == ConversationStatus::Recovered)
}

pub(crate) fn rows<R: conclave_conversation::store::Row>(world: &World, member: usize) -> Vec<R> {
    world.members[member].store.snapshot().rows().unwrap()
}

pub(crate) fn outbound(world: &World, member: usize) -> Vec<OutboundRow> {
    world.members[member].store.snapshot().rows().unwrap()
}

/// The current anchor of a member's only conversation.
pub(crate) fn anchor(world: &World, member: usize) -> String {
    let mut states: Vec<ConversationStateRow> = rows(world, member);
    assert_eq!(states.len(), 1);
    states.remove(0).current_anchor_hash
}

/// A member's current anchor of a conversation.
pub(crate) fn anchor_in(world: &World, member: usize, membership: &Membership) -> String {
    let id = membership.conversation_id().to_string();
    let states: Vec<ConversationStateRow> = rows(world, member);
    let state = states.into_iter().find(|row| row.conversation_id == id);
    state.expect("a held conversation").current_anchor_hash
}

pub(crate) fn packets(
    world: &World,
    membership: &Membership,
    sender: usize,
    kind: &str,
) -> Vec<DirectPacket> {
    let of_kind = |(from, plaintext): (usize, Plaintext)| match plaintext {
        plaintext if from != sender || kind_of(&plaintext) != kind => None,
        Plaintext::Packet(packet) => Some(packet),
        Plaintext::Evidence(_) => None,
    };
    world.opened(membership).into_iter().filter_map(of_kind).collect()
}

pub(crate) fn pages(world: &World, membership: &Membership, sender: usize) -> Vec<CatchUpPage> {
    let page = |packet| match packet {
        DirectPacket::CatchUpPage(page) => Some(*page),
        _ => None,
    };
    packets(world, membership, sender, "page")
        .into_iter()
        .filter_map(page)
        .collect()
}

pub(crate) fn plaintexts(world: &World, membership: &Membership, sender: usize, kind: &str) -> Vec<Vec<u8>> {
    world
        .opened(membership)
        .into_iter()
        .filter(|(from, plaintext)| *from == sender && kind_of(plaintext) == kind)
        .map(|(_, plaintext): (_, Plaintext)| plaintext.encode())
        .collect()
}

pub(crate) fn request(
    world: &World,
    membership: &Membership,
    requester: usize,
    known: bool,
) -> CatchUpRequest {
    let head = world.history(requester, membership).pop().filter(|_| known);
    CatchUpRequest {
        sharness_version: WIRE_VERSION,
        kind: CatchUpRequestKind,
        conversation_id: *membership.conversation_id(),
        membership_hash: *membership.hash(),
        requester_agent_id: world.members[requester].id(),
        known_record_hash: head.as_ref().map(|head| head.record_hash),
        known_anchor_hash: head.as_ref().map(|head| head.anchor_hash),
    }
}

/// A body at a member's head, as an honest member builds it.
pub(crate) fn body(
    world: &World,
    member: usize,
    membership: &Membership,
    instance: RouterInstanceId,
) -> ReanchorBody {
    let head = world.history(member, membership).pop().expect("a head");
    ReanchorBody {
        sharness_version: WIRE_VERSION,
        kind: ReanchorBodyKind,
        conversation_id: *membership.conversation_id(),
        membership_hash: *membership.hash(),
        previous_anchor_hash: anchor_in(world, member, membership).parse().unwrap(),
        selected_record_hash: head.record_hash,
        router_instance_id: instance,
    }
}

pub(crate) fn vote(world: &World, signer: usize, body: &ReanchorBody) -> VerifiedEvidence {
    world.members[signer].agent.sign(ReanchorVoteStatement {
        sharness_version: body.sharness_version,
        kind: ReanchorVoteKind,
        signer_agent_id: world.members[signer].id(),
        anchor_hash: body.hash(),
        reanchor: body.clone(),
    })
}

/// A member sends a plaintext.
pub(crate) fn inject_plaintext(world: &mut World, membership: &Membership, sender: usize, plaintext: &[u8]) {
    let message = world.outer(sender, membership, plaintext);
    world.inject(membership, message);
}

/// A member sends a packet.
pub(crate) fn inject(
    world: &mut World,
    membership: &Membership,
    sender: usize,
    packet: impl Into<DirectPacket>,
) {
    let packet: DirectPacket = packet.into();
    let message = world.outer(sender, membership, &packet.encode());
    world.inject(membership, message);
}

pub(crate) fn inject_vote(world: &mut World, membership: &Membership, signer: usize, body: &ReanchorBody) {
    let vote = vote(world, signer, body);
    inject_plaintext(world, membership, signer, &vote.encoded().to_canonical_bytes());
}

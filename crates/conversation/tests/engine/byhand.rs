//! What members say that run no engine here: every value made and signed by hand.

use conclave_conversation::certificates::{SignerMap, Subject, VerifiedEvidence};
use conclave_conversation::membership::Membership;
use conclave_conversation::values::{
    ActionCore, ActionHash, ActionProposal, ActionProposalKind, ActionSignatureKind,
    ActionSignatureStatement, AnchorHash, CatchUpAttestationKind, CatchUpAttestationStatement,
    CatchUpIncomplete, CatchUpIncompleteKind, CatchUpItem, CatchUpItemHash, CatchUpItemKind, CatchUpPage,
    CatchUpPageKind, CatchUpRequest, ClosedValue, CompletedReanchor, Content, DirectPacket,
    DurabilityVoteKind, DurabilityVoteStatement, PostActionCore, PostActionKind, PostId, PostIntent,
    PostIntentKind, ReanchorBody, RecordHash, RouterAnchor,
};
use conclave_conversation::verification::{
    VerifiedAction, VerifiedActionCertifiedRecord, VerifiedCertifiedRecord, VerifiedCompletedReanchor,
    VerifiedRecordCore, VerifiedRouterAnchor,
};
use conclave_harness::WIRE_VERSION;

use crate::scenario;
use crate::world::World;

/// A POST of `author` at the head of member 0's history.
pub(crate) fn post(world: &World, everyone: &Membership, author: usize, text: &str) -> ActionCore {
    let head = world.history(0, everyone).pop().expect("a head");
    post_at(
        world,
        everyone,
        author,
        text,
        (head.record_hash, head.anchor_hash),
    )
}

/// A POST of `author` after a record under an anchor.
pub(crate) fn post_at(
    world: &World,
    everyone: &Membership,
    author: usize,
    text: &str,
    (record_hash, anchor_hash): (RecordHash, AnchorHash),
) -> ActionCore {
    let post_intent = intent(world, everyone, author, text);
    PostActionCore {
        sharness_version: WIRE_VERSION,
        kind: PostActionKind,
        conversation_id: *everyone.conversation_id(),
        membership_hash: *everyone.hash(),
        anchor_hash,
        previous_record_hash: record_hash,
        post_intent_hash: post_intent.hash(),
        post_intent,
    }
    .into()
}

pub(crate) fn intent(world: &World, everyone: &Membership, author: usize, text: &str) -> PostIntent {
    let mut post_id = [author as u8; 32];
    post_id[..text.len().min(32)].copy_from_slice(&text.as_bytes()[..text.len().min(32)]);
    PostIntent {
        sharness_version: WIRE_VERSION,
        kind: PostIntentKind,
        conversation_id: *everyone.conversation_id(),
        membership_hash: *everyone.hash(),
        author_agent_id: world.members[author].id(),
        post_id: PostId::from_bytes(post_id),
        content: Content::text(text).unwrap(),
    }
}

pub(crate) fn proposal(action: &ActionCore) -> Vec<u8> {
    let packet: DirectPacket = ActionProposal {
        sharness_version: WIRE_VERSION,
        kind: ActionProposalKind,
        action: action.clone(),
    }
    .into();
    packet.encode()
}

pub(crate) fn signature(world: &World, signer: usize, action_hash: ActionHash) -> VerifiedEvidence {
    world.members[signer].agent.sign(ActionSignatureStatement {
        sharness_version: WIRE_VERSION,
        kind: ActionSignatureKind,
        signer_agent_id: world.members[signer].id(),
        action_hash,
    })
}

pub(crate) fn vote_statement(
    world: &World,
    everyone: &Membership,
    signer: usize,
    record_hash: RecordHash,
) -> DurabilityVoteStatement {
    DurabilityVoteStatement {
        sharness_version: WIRE_VERSION,
        kind: DurabilityVoteKind,
        signer_agent_id: world.members[signer].id(),
        conversation_id: *everyone.conversation_id(),
        membership_hash: *everyone.hash(),
        record_hash,
    }
}

/// A record whose action these members signed.
pub(crate) fn copy_of(
    world: &World,
    everyone: &Membership,
    action: &ActionCore,
    signers: &[usize],
) -> DirectPacket {
    let anchor = everyone.genesis_anchor(scenario::FIRST_INSTANCE);
    action_certified(world, everyone, action, signers, anchor.into())
        .to_value()
        .into()
}

/// A record whose action these members signed, under an anchor.
pub(crate) fn action_certified(
    world: &World,
    everyone: &Membership,
    action: &ActionCore,
    signers: &[usize],
    anchor: RouterAnchor,
) -> VerifiedActionCertifiedRecord {
    let action = VerifiedAction::verify(action.clone(), everyone).unwrap();
    let mut signatures = SignerMap::new(Subject::Action(*action.hash()));
    for signer in signers {
        signatures
            .merge(signature(world, *signer, *action.hash()))
            .unwrap();
    }
    let anchor = VerifiedRouterAnchor::verify(anchor, everyone, &mut Default::default()).unwrap();
    let record = VerifiedRecordCore::of_action(action);
    VerifiedActionCertifiedRecord::assemble(record, &anchor, signatures, everyone).unwrap()
}

/// A record under the first anchor that these members signed and stored.
pub(crate) fn certified(
    world: &World,
    everyone: &Membership,
    action: &ActionCore,
    signers: &[usize],
) -> VerifiedCertifiedRecord {
    let anchor = everyone.genesis_anchor(scenario::FIRST_INSTANCE);
    let record = action_certified(world, everyone, action, signers, anchor.into());
    let mut votes = SignerMap::new(record.record().durability_subject());
    for signer in signers {
        votes
            .merge(vote_for(world, everyone, *signer, *record.record().hash()))
            .unwrap();
    }
    VerifiedCertifiedRecord::assemble(record, votes, everyone).unwrap()
}

/// A re-anchor that these members voted for.
pub(crate) fn completed(
    world: &World,
    everyone: &Membership,
    body: &ReanchorBody,
    signers: &[usize],
) -> CompletedReanchor {
    let mut votes = SignerMap::new(Subject::Reanchor(body.hash()));
    for signer in signers {
        votes.merge(scenario::vote(world, *signer, body)).unwrap();
    }
    VerifiedCompletedReanchor::assemble(body.clone(), votes, everyone)
        .unwrap()
        .value()
        .clone()
}

/// A member's vote for a record.
pub(crate) fn vote_for(
    world: &World,
    everyone: &Membership,
    signer: usize,
    record_hash: RecordHash,
) -> VerifiedEvidence {
    let statement = vote_statement(world, everyone, signer, record_hash);
    world.members[signer].agent.sign(statement)
}

/// A member's answer to a question: what follows, or that it cannot say.
pub(crate) fn answer(
    world: &World,
    responder: usize,
    request: &CatchUpRequest,
    item: Option<CatchUpItem>,
    has_more: bool,
) -> DirectPacket {
    let (item_kind, item_hash) = match &item {
        Some(CatchUpItem::CertifiedRecord(record)) => (
            CatchUpItemKind::CertifiedRecord,
            Some(CatchUpItemHash::Record(
                record.action_certified_record.record_hash,
            )),
        ),
        Some(CatchUpItem::CompletedReanchor(completed)) => (
            CatchUpItemKind::CompletedReanchor,
            Some(CatchUpItemHash::Anchor(completed.anchor_hash)),
        ),
        None => (CatchUpItemKind::Incomplete, None),
    };
    let attestation = world.members[responder].agent.sign(CatchUpAttestationStatement {
        sharness_version: WIRE_VERSION,
        kind: CatchUpAttestationKind,
        signer_agent_id: world.members[responder].id(),
        request: request.clone(),
        item_kind,
        item_hash,
        has_more,
    });
    let (request, attestation) = (request.clone(), attestation.encoded().clone());
    match item {
        None => CatchUpIncomplete {
            sharness_version: WIRE_VERSION,
            kind: CatchUpIncompleteKind,
            request,
            attestation,
        }
        .into(),
        Some(item) => CatchUpPage {
            sharness_version: WIRE_VERSION,
            kind: CatchUpPageKind,
            request,
            item,
            has_more,
            attestation,
        }
        .into(),
    }
}

pub(crate) fn record_of(everyone: &Membership, action: &ActionCore) -> RecordHash {
    let action = VerifiedAction::verify(action.clone(), everyone).unwrap();
    *VerifiedRecordCore::of_action(action).hash()
}

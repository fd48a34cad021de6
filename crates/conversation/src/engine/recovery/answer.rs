//! Answering: what a member that asks about a position is given. An answer never waits for the own recovery.
//!
//! An item is read from the store and verified again before it is sent, so an answer takes two steps: [`Effect::Read`], and
//! the input that brings the rows. At most one answer to each member is under way, with one question behind it, and a
//! member's answers that the Router has not ordered yet are bounded.

use conclave_harness::AgentId;

use crate::certificates::VerifiedEvidence;
use crate::engine::chain::Next;
use crate::engine::conversation::Conversation;
use crate::engine::draft::Draft;
use crate::engine::effect::Effect;
use crate::engine::error::{Corruption, Fatal};
use crate::engine::ignored::Ignored;
use crate::engine::input::ReadId;
use crate::engine::limits::{
    ANSWERS_PENDING_PER_MEMBER_MAX, REPEATED_ANSWER_INTERVAL_MS, REPEATED_ANSWERS_MAX,
};
use crate::engine::shared::Shared;
use crate::engine::stored::{Trust, load_anchor_at, load_certified};
use crate::engine::text::message_text;
use crate::planted::{Bug, has};
use crate::store::rows::{AnchorRow, CertifiedRecordRow, EvidenceKind, EvidenceRow, StagedRecordRow};
use crate::store::{Key, Read, Row, Snapshot};
use crate::values::{
    CatchUpAttestationKind, CatchUpAttestationStatement, CatchUpIncomplete, CatchUpIncompleteKind,
    CatchUpItem, CatchUpItemHash, CatchUpItemKind, CatchUpPage, CatchUpPageKind, CatchUpRequest, ClosedValue,
    DirectPacket, RouterAnchor,
};
use crate::verification::{Position, VerifiedCatchUpRequest};

/// One answer that waits for its rows.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Answering {
    request: CatchUpRequest,
    item: Next,
    /// What the member asked meanwhile.
    next: Option<CatchUpRequest>,
}

/// What a member was answered: the furthest position it asked about, and how often it may still repeat itself.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Asked {
    /// Number of the items before the furthest position asked about, and one.
    furthest: u64,
    repeats_left: u32,
    /// The time up to which `repeats_left` was filled up.
    filled_at_ms: u64,
}

impl Asked {
    fn new(now_ms: u64) -> Self {
        Asked {
            furthest: 0,
            repeats_left: REPEATED_ANSWERS_MAX,
            filled_at_ms: now_ms,
        }
    }

    /// Whether a question is answered. Going further always is, so that whoever catches up is never held back.
    fn admits(&mut self, place: Option<u64>, now_ms: u64) -> bool {
        if let Some(place) = place.filter(|place| *place >= self.furthest) {
            self.furthest = place + 1;
            return true;
        }
        let earned = now_ms.saturating_sub(self.filled_at_ms) / REPEATED_ANSWER_INTERVAL_MS;
        self.filled_at_ms += earned * REPEATED_ANSWER_INTERVAL_MS;
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        self.repeats_left = self.repeats_left.saturating_add(earned).min(REPEATED_ANSWERS_MAX);
        let admitted = self.repeats_left > 0;
        self.repeats_left = self.repeats_left.saturating_sub(1);
        admitted
    }
}

impl Conversation {
    /// A member asks what follows its position.
    pub(in crate::engine) fn on_catch_up_request(
        &mut self,
        sender: AgentId,
        request: CatchUpRequest,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        if sender == shared.local_id {
            return Err(Ignored::OwnRequest);
        }
        if has(Bug::AnswersWaitForRecovery) && !self.is_recovered() {
            return Err(Ignored::NotRecovered);
        }
        let verified = VerifiedCatchUpRequest::verify(request, &sender, &self.membership)?;
        let conversation_id = *self.membership.conversation_id();
        if shared.outbox.answers_pending(&conversation_id, &sender) >= ANSWERS_PENDING_PER_MEMBER_MAX {
            return Err(Ignored::TooManyAnswers);
        }
        let (position, request) = (verified.position(), verified.value().clone());
        if let Some(answering) = self.answering.get_mut(&sender) {
            if answering.request == request {
                return Err(Ignored::Duplicate);
            }
            answering.next = Some(request);
            return Ok(());
        }
        let place = self.chain.items_before(position.as_ref());
        if !self.asked_by(sender, draft.now_ms).admits(place, draft.now_ms) {
            return Err(Ignored::RepeatedTooOften);
        }
        match self.chain.next(position.as_ref()) {
            Some(item) => self.begin_answer(sender, request, item, draft),
            None if self.is_at(position.as_ref())
                && self.staged_successor().is_some()
                && !has(Bug::HolderSaysIncomplete) =>
            {
                self.show_successor(Some(sender), shared, draft);
            }
            None => self.answer_incomplete(sender, request, position, shared, draft),
        }
        Ok(())
    }

    fn asked_by(&mut self, member: AgentId, now_ms: u64) -> &mut Asked {
        let known = self.asked.iter().position(|(known, _)| *known == member);
        let place = known.unwrap_or_else(|| {
            self.asked.push((member, Asked::new(now_ms)));
            self.asked.len() - 1
        });
        &mut self.asked[place].1
    }

    /// Whether a requested position is the own one.
    fn is_at(&self, position: Option<&Position>) -> bool {
        match position {
            None => self.head.is_none(),
            Some(position) => *position == self.position(),
        }
    }

    fn begin_answer(
        &mut self,
        requester: AgentId,
        request: CatchUpRequest,
        item: Next,
        draft: &mut Draft<'_>,
    ) {
        let reads = self.item_reads(item);
        self.answering.insert(
            requester,
            Answering {
                request,
                item,
                next: None,
            },
        );
        draft.effect(Effect::Read {
            read_id: ReadId {
                conversation_id: *self.membership.conversation_id(),
                requester,
            },
            reads,
        });
    }

    /// What must be read to show an item.
    pub(in crate::engine) fn item_reads(&self, item: Next) -> Vec<Read> {
        let id = self.membership.conversation_id().to_string();
        let key = Key::new([&id]);
        let anchor_read = |hash: &str| Read::Row(AnchorRow::TABLE, key.clone().with(hash));
        match item {
            Next::Anchor(place) => self
                .chain
                .anchors()
                .get(place)
                .map(|anchor| anchor_read(&anchor.hash().to_string()))
                .into_iter()
                .collect(),
            Next::Record(ordinal) => {
                let Some(link) = self.chain.link(ordinal) else {
                    return Vec::new();
                };
                let (record, action) = (link.record_hash.to_string(), link.action_hash.to_string());
                let evidence = |kind, subject: &str| {
                    Read::Prefix(EvidenceRow::TABLE, EvidenceRow::below(&id, kind, subject))
                };
                let mut reads = vec![
                    Read::Row(CertifiedRecordRow::TABLE, key.clone().with(ordinal)),
                    Read::Row(StagedRecordRow::TABLE, key.clone().with(&record)),
                    evidence(EvidenceKind::Action, &action),
                    evidence(EvidenceKind::Durability, &record),
                ];
                let anchor = self.chain.anchor_of(link);
                reads.extend(anchor.map(|anchor| anchor_read(&anchor.hash().to_string())));
                reads
            }
        }
    }

    /// The rows of an answer's item are there.
    pub(in crate::engine) fn on_rows(
        &mut self,
        requester: AgentId,
        rows: &Snapshot,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) {
        let Some(Answering { request, item, next }) = self.answering.remove(&requester) else {
            return;
        };
        let mut trust = Trust {
            registry: &shared.local.registry,
            history: &shared.local.history,
            memory: &mut shared.memory,
        };
        match self.load_item(rows, item, &mut trust) {
            // A store that cannot be trusted gives no answer, and no engine.
            Err(corruption) => return shared.fail(Fatal::OwnValue(corruption.to_string())),
            Ok(None) => {}
            Ok(Some(loaded)) => self.answer_page(requester, request, item, loaded, shared, draft),
        }
        if let Some(next) = next
            && let Err(reason) = self.on_catch_up_request(requester, next, shared, draft)
        {
            draft.ignore(reason);
        }
    }

    /// An item of the chain, read back and verified as start-up verifies it; none if the chain has no such item.
    pub(in crate::engine) fn load_item(
        &self,
        rows: &Snapshot,
        item: Next,
        trust: &mut Trust<'_>,
    ) -> Result<Option<CatchUpItem>, Corruption> {
        match item {
            Next::Record(ordinal) => {
                let Some(link) = self.chain.link(ordinal) else {
                    return Ok(None);
                };
                let record = load_certified(rows, ordinal, &link.record_hash, &self.membership, trust)?;
                Ok(Some(record.to_value().into()))
            }
            Next::Anchor(place) => {
                let Some(anchor) = self.chain.anchors().get(place) else {
                    return Ok(None);
                };
                let anchor = load_anchor_at(rows, anchor.hash(), place as u64, &self.membership, trust)?;
                Ok(match anchor.value() {
                    RouterAnchor::Genesis(_) => None,
                    RouterAnchor::Completed(completed) => Some((**completed).clone().into()),
                })
            }
        }
    }

    fn answer_page(
        &self,
        requester: AgentId,
        request: CatchUpRequest,
        next: Next,
        item: CatchUpItem,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) {
        let (item_kind, item_hash) = match &item {
            CatchUpItem::CertifiedRecord(record) => (
                CatchUpItemKind::CertifiedRecord,
                CatchUpItemHash::Record(record.action_certified_record.record_hash),
            ),
            CatchUpItem::CompletedReanchor(completed) => (
                CatchUpItemKind::CompletedReanchor,
                CatchUpItemHash::Anchor(completed.anchor_hash),
            ),
        };
        let after = self.chain.after(next);
        let has_more = after.is_some_and(|after| self.chain.next(Some(&after)).is_some());
        let answer = (item_kind, Some(item_hash), has_more);
        let Some(attestation) = attest(&request, answer, shared) else {
            return;
        };
        let packet: DirectPacket = CatchUpPage {
            sharness_version: shared.local.wire_version,
            kind: CatchUpPageKind,
            request,
            item,
            has_more,
            attestation: attestation.encoded().clone(),
        }
        .into();
        shared.enqueue_answer(&self.membership, &packet.encode(), requester, draft);
    }

    /// The own votes for re-anchors of other instances at the position, then that nothing can be supplied.
    fn answer_incomplete(
        &self,
        requester: AgentId,
        request: CatchUpRequest,
        position: Option<Position>,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) {
        if position.is_some() && self.is_at(position.as_ref()) {
            let earlier = self.candidates.iter().filter(|candidate| {
                self.is_here(&candidate.body) && Some(candidate.body.router_instance_id) != shared.instance
            });
            let votes: Vec<_> = earlier
                .filter_map(|candidate| candidate.votes.get(&shared.local_id))
                .map(|vote| message_text(vote.encoded()))
                .collect();
            for vote in votes {
                shared.enqueue_answer(&self.membership, vote.as_bytes(), requester, draft);
            }
        }
        let answer = (CatchUpItemKind::Incomplete, None, false);
        let Some(attestation) = attest(&request, answer, shared) else {
            return;
        };
        let packet: DirectPacket = CatchUpIncomplete {
            sharness_version: shared.local.wire_version,
            kind: CatchUpIncompleteKind,
            request,
            attestation: attestation.encoded().clone(),
        }
        .into();
        shared.enqueue_answer(&self.membership, &packet.encode(), requester, draft);
    }
}

/// The signed statement that this is the own answer to this request. It is never stored.
fn attest(
    request: &CatchUpRequest,
    (item_kind, item_hash, has_more): (CatchUpItemKind, Option<CatchUpItemHash>, bool),
    shared: &mut Shared,
) -> Option<VerifiedEvidence> {
    let statement = CatchUpAttestationStatement {
        sharness_version: shared.local.wire_version,
        kind: CatchUpAttestationKind,
        signer_agent_id: shared.local_id,
        request: request.clone(),
        item_kind,
        item_hash,
        has_more,
    };
    let signed = VerifiedEvidence::sign(statement.into(), &shared.local.card, &shared.local.key);
    if signed.is_none() {
        shared.fail(Fatal::OwnValue("an answer could not be signed".to_owned()));
    }
    signed
}

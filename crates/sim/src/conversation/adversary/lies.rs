//! What Byzantine members say.

use crate::conversation::world::World;
use conclave_conversation::certificates::quorum;
use conclave_conversation::values::{
    ActionCertificate, ActionCertificateKind, ActionCertifiedRecord, ActionCertifiedRecordKind, ActionCore,
    ActionHash, ActionProposal, ActionProposalKind, AnchorBody, CatchUpAttestationKind,
    CatchUpAttestationStatement, CatchUpIncomplete, CatchUpIncompleteKind, CatchUpItem, CatchUpItemHash,
    CatchUpItemKind, CatchUpPage, CatchUpPageKind, CatchUpRequest, CatchUpRequestKind, CertifiedRecord,
    CertifiedRecordKind, ClosedValue, Content, ConversationId, DirectPacket, DurabilityCertificate,
    DurabilityCertificateKind, DurabilityVoteKind, DurabilityVoteStatement, EvidenceMessages, PostActionCore,
    PostActionKind, PostId, PostIntent, PostIntentKind, ReanchorBody, ReanchorVoteKind,
    ReanchorVoteStatement, RecordCore, RecordHash,
};
use conclave_harness::WIRE_VERSION;
use std::collections::BTreeMap;

impl World {
    /// Two proposals at the head, each to everybody or to some; now and then two posts of one id.
    pub(super) fn equivocate(&mut self, member: usize, conversation: &ConversationId) {
        let Some((record, anchor)) = self.tips.get(conversation).copied() else {
            return;
        };
        let shares_id = self.random.chance(200);
        let first = PostId::from_bytes(self.bytes(member));
        let mut away = self.some_of(conversation);
        for number in 0..2 {
            let post = if shares_id {
                first
            } else {
                PostId::from_bytes(self.bytes(member))
            };
            let Some((_, packet)) = self.proposal(member, conversation, post, number, record, anchor) else {
                return;
            };
            self.tell_but(member, conversation, &packet.encode(), &away);
            // The other half gets the other one.
            let is_split = !away.is_empty();
            let others = self.honest_of(conversation).into_iter();
            away = others.filter(|other| is_split && !away.contains(other)).collect();
        }
    }

    pub(super) fn proposal(
        &mut self,
        member: usize,
        conversation: &ConversationId,
        post_id: PostId,
        number: usize,
        previous_record_hash: RecordHash,
        anchor_hash: conclave_conversation::values::AnchorHash,
    ) -> Option<(ActionHash, DirectPacket)> {
        let membership = self
            .conversations
            .iter()
            .find(|known| known.conversation_id() == conversation)?;
        let post_intent = PostIntent {
            sharness_version: WIRE_VERSION,
            kind: PostIntentKind,
            conversation_id: *conversation,
            membership_hash: *membership.hash(),
            author_agent_id: self.members[member].agent.id(),
            post_id,
            content: Content::text(format!("lie {number} {}", self.inputs)).ok()?,
        };
        let action = PostActionCore {
            sharness_version: WIRE_VERSION,
            kind: PostActionKind,
            conversation_id: *conversation,
            membership_hash: post_intent.membership_hash,
            anchor_hash,
            previous_record_hash,
            post_intent_hash: post_intent.hash(),
            post_intent,
        };
        let action = ActionCore::from(action);
        if let Some(pool) = self.pool() {
            pool.learn_action(&action);
        }
        let action_hash = action.hash();
        let proposal = ActionProposal {
            sharness_version: WIRE_VERSION,
            kind: ActionProposalKind,
            action,
        };
        Some((action_hash, proposal.into()))
    }

    /// Signs an action, votes for a record, votes for a re-anchor: whichever it finds, however it voted before.
    pub(super) fn sign_all(&mut self, member: usize, conversation: &ConversationId) {
        let signer_agent_id = self.members[member].agent.id();
        let Some(pool) = self.pool() else { return };
        let actions: Vec<ActionHash> = pool.actions.keys().copied().collect();
        let records: Vec<RecordHash> = pool.records.keys().copied().collect();
        let (last_action, last_record) = (pool.last_action, pool.last_record);
        let reanchors: Vec<ReanchorBody> = pool.reanchors.values().cloned().collect();
        if !actions.is_empty() {
            let action_hash = self.last_or_any(last_action, &actions);
            if let Some(signed) = self.sign_action(member, action_hash) {
                self.tell(member, conversation, &ClosedValue::encode(&signed));
            }
        }
        if !records.is_empty() {
            let record_hash = self.last_or_any(last_record, &records);
            self.state(member, conversation, self.vote(member, conversation, record_hash));
        }
        let body = if !reanchors.is_empty() && self.random.chance(700) {
            Some(self.random.pick(&reanchors).clone())
        } else {
            self.invented_reanchor(conversation, &records)
        };
        if let Some(reanchor) = body {
            let statement = ReanchorVoteStatement {
                sharness_version: reanchor.sharness_version,
                kind: ReanchorVoteKind,
                signer_agent_id,
                anchor_hash: reanchor.hash(),
                reanchor,
            };
            self.state(member, conversation, statement);
        }
    }

    /// What they learned last, which may still be open, or whichever.
    fn last_or_any<T: Copy>(&self, last: Option<T>, all: &[T]) -> T {
        let any = *self.random.pick(all);
        last.filter(|_| self.random.chance(600)).unwrap_or(any)
    }

    fn vote(
        &self,
        member: usize,
        conversation: &ConversationId,
        record_hash: RecordHash,
    ) -> DurabilityVoteStatement {
        let membership = self
            .conversations
            .iter()
            .find(|known| known.conversation_id() == conversation);
        DurabilityVoteStatement {
            sharness_version: WIRE_VERSION,
            kind: DurabilityVoteKind,
            signer_agent_id: self.members[member].agent.id(),
            conversation_id: *conversation,
            membership_hash: *membership.unwrap_or(&self.conversations[0]).hash(),
            record_hash,
        }
    }

    /// Away from the current anchor at some record that is not the head.
    fn invented_reanchor(
        &self,
        conversation: &ConversationId,
        records: &[RecordHash],
    ) -> Option<ReanchorBody> {
        let (_, previous_anchor_hash) = self.tips.get(conversation).copied()?;
        let membership = self
            .conversations
            .iter()
            .find(|known| known.conversation_id() == conversation)?;
        let selected_record_hash = *records.get(self.random.below(records.len()))?;
        Some(ReanchorBody {
            sharness_version: WIRE_VERSION,
            kind: conclave_conversation::values::ReanchorBodyKind,
            conversation_id: *conversation,
            membership_hash: *membership.hash(),
            previous_anchor_hash,
            selected_record_hash,
            router_instance_id: self.router.instance(),
        })
    }

    /// Something that was said before: as it was, whoever said it, or in an envelope of its own.
    pub(super) fn replay(&mut self, member: usize, conversation: &ConversationId) {
        let known = self.pool().map_or(0, |pool| pool.messages.len());
        for _ in 0..self.random.between(1, 6) {
            let place = self.random.below(known);
            let Some((of, message, plaintext)) =
                self.pool().and_then(|pool| pool.messages.get(place).cloned())
            else {
                return;
            };
            if self.random.chance(500) {
                self.say(&of, message);
            } else {
                self.tell(member, conversation, &plaintext);
            }
        }
    }

    /// An answer to somebody's question, with an item or without, whatever it holds.
    pub(super) fn answer_junk(&mut self, member: usize, conversation: &ConversationId) {
        let Some(pool) = self.pool() else { return };
        let (requests, certified) = (pool.requests.clone(), pool.certified.clone());
        let Some(request) = requests
            .get(requests.len().saturating_sub(1 + self.random.below(4)))
            .cloned()
        else {
            return;
        };
        let item: Option<CatchUpItem> = match self.random.below(3) {
            0 => None,
            _ if certified.is_empty() => None,
            _ => Some(self.random.pick(&certified).clone().into()),
        };
        let has_more = item.is_some() && self.random.chance(500);
        if let Some(packet) = self.answer(member, request, item, has_more) {
            self.tell(member, conversation, &packet.encode());
        }
    }

    /// Every Byzantine member says that it cannot supply what follows a position, whatever it has.
    pub(super) fn deny(&mut self, conversation: &ConversationId, request: &CatchUpRequest) {
        for member in self.colluders() {
            if let Some(packet) = self.answer(member, request.clone(), None, false) {
                self.tell_soon(member, conversation, packet.encode());
            }
        }
    }

    fn answer(
        &mut self,
        member: usize,
        request: CatchUpRequest,
        item: Option<CatchUpItem>,
        has_more: bool,
    ) -> Option<DirectPacket> {
        let (item_kind, item_hash) = match &item {
            Some(CatchUpItem::CertifiedRecord(record)) => {
                let hash = record.action_certified_record.record_hash;
                (
                    CatchUpItemKind::CertifiedRecord,
                    Some(CatchUpItemHash::Record(hash)),
                )
            }
            _ => (CatchUpItemKind::Incomplete, None),
        };
        let statement = CatchUpAttestationStatement {
            sharness_version: WIRE_VERSION,
            kind: CatchUpAttestationKind,
            signer_agent_id: self.members[member].agent.id(),
            request: request.clone(),
            item_kind,
            item_hash,
            has_more,
        };
        let attestation = self.sign(member, statement)?;
        Some(match item {
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
        })
    }

    /// A handful of questions, of votes for nothing and of bodies without meaning.
    pub(super) fn flood(&mut self, member: usize, conversation: &ConversationId) {
        for _ in 0..self.random.between(2, 10) {
            match self.random.below(3) {
                0 => {
                    let record = RecordHash::from_bytes(self.bytes(member));
                    self.state(member, conversation, self.vote(member, conversation, record));
                }
                1 => {
                    let known = self
                        .tips
                        .get(conversation)
                        .copied()
                        .filter(|_| self.random.chance(700));
                    let request: DirectPacket = CatchUpRequest {
                        sharness_version: WIRE_VERSION,
                        kind: CatchUpRequestKind,
                        conversation_id: *conversation,
                        membership_hash: *self.conversations[0].hash(),
                        requester_agent_id: self.members[member].agent.id(),
                        known_record_hash: known.map(|(record, _)| record),
                        known_anchor_hash: known.map(|(_, anchor)| anchor),
                    }
                    .into();
                    self.tell(member, conversation, &request.encode());
                }
                _ => {
                    let bytes: [u8; 40] = self.bytes(member);
                    self.tell(member, conversation, &bytes);
                }
            }
        }
    }

    /// A record with the signatures it knows and its own, with or without votes: most often one that a certificate can be
    /// made for and that no honest member certified.
    pub(super) fn show_late(&mut self, member: usize, conversation: &ConversationId) {
        let colluders = self.colluders();
        let (all, needed) = (self.members.len(), quorum(self.members.len()));
        let Some(pool) = self.pool() else { return };
        let actions: Vec<_> = pool
            .actions
            .values()
            .filter(|action| action.conversation_id() == conversation)
            .cloned()
            .collect();
        if actions.is_empty() {
            return;
        }
        let is_hidden = |action: &&ActionCore| {
            let signers = pool.signatures.get(&action.hash()).map_or(0, BTreeMap::len);
            let needed = match action {
                ActionCore::Genesis(_) => all,
                ActionCore::Post(_) => needed,
            };
            let is_certified = pool
                .certified
                .iter()
                .any(|known| *known.action_certified_record.record_core.action_hash() == action.hash());
            signers + colluders.len() >= needed && !is_certified
        };
        let hidden: Vec<_> = actions.iter().filter(is_hidden).cloned().collect();
        let action = if hidden.is_empty() || self.random.chance(200) {
            self.random.pick(&actions).clone()
        } else {
            self.random.pick(&hidden).clone()
        };
        let anchor = match &action {
            ActionCore::Genesis(genesis) => AnchorBody::from(genesis.anchor.clone()).hash(),
            ActionCore::Post(post) => post.anchor_hash,
        };
        let action_hash = action.hash();
        let record_core = RecordCore::of_action(action, anchor);
        let record_hash = record_core.hash();
        for colluder in colluders {
            let _ = self.sign_action(colluder, action_hash);
            let _ = self.sign(colluder, self.vote(colluder, conversation, record_hash));
        }
        let Some(pool) = self.pool() else { return };
        let signatures: Vec<_> = pool
            .signatures
            .get(&action_hash)
            .into_iter()
            .flat_map(|known| known.values().cloned())
            .collect();
        let votes: Vec<_> = pool
            .votes
            .get(&record_hash)
            .into_iter()
            .flat_map(|known| known.values().cloned())
            .collect();
        let anchor = pool.anchors.get(&anchor).cloned();
        let (Some(signatures), Some(router_anchor)) = (EvidenceMessages::new(signatures), anchor) else {
            return;
        };
        let sharness_version = record_core.sharness_version();
        let record = ActionCertifiedRecord {
            sharness_version,
            kind: ActionCertifiedRecordKind,
            record_hash,
            record_core,
            router_anchor,
            action_certificate: ActionCertificate {
                sharness_version,
                kind: ActionCertificateKind,
                action_hash,
                signatures,
            },
        };
        let packet: DirectPacket = match EvidenceMessages::new(votes).filter(|_| self.random.chance(600)) {
            None => record.into(),
            Some(votes) => CertifiedRecord {
                sharness_version,
                kind: CertifiedRecordKind,
                action_certified_record: record,
                durability_certificate: DurabilityCertificate {
                    sharness_version,
                    kind: DurabilityCertificateKind,
                    record_hash,
                    votes,
                },
            }
            .into(),
        };
        self.tell(member, conversation, &packet.encode());
    }
}

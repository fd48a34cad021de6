//! What Byzantine members know: everything any of them could open.

use std::collections::{BTreeMap, BTreeSet};

use conclave_conversation::{
    outer_message::OuterMessage,
    test_support::history,
    values::{
        ActionCertifiedRecord, ActionCore, ActionHash, AnchorBody, AnchorHash, CatchUpItem, CatchUpRequest,
        CertifiedRecord, ClosedValue, ConversationId, DirectPacket, EvidenceStatement, Plaintext,
        ReanchorBody, RecordCore, RecordHash, RouterAnchor,
    },
};
use conclave_harness::{AgentId, EncodedSignedMessage, MessageId};

use crate::conversation::agents::{AGENTS_MAX, agents};

/// Statements by their signers.
type Signed = BTreeMap<AgentId, EncodedSignedMessage>;

/// Messages that are remembered whole.
const REMEMBERED_MAX: usize = 300;

#[derive(Default)]
pub(super) struct Pool {
    seen: BTreeSet<MessageId>,
    /// Whole messages with their plaintexts, of every instance.
    pub(super) messages: Vec<(ConversationId, EncodedSignedMessage, Vec<u8>)>,
    pub(super) actions: BTreeMap<ActionHash, ActionCore>,
    pub(super) signatures: BTreeMap<ActionHash, Signed>,
    pub(super) records: BTreeMap<RecordHash, RecordCore>,
    pub(super) votes: BTreeMap<RecordHash, Signed>,
    pub(super) anchors: BTreeMap<AnchorHash, RouterAnchor>,
    pub(super) reanchors: BTreeMap<AnchorHash, ReanchorBody>,
    pub(super) certified: Vec<CertifiedRecord>,
    pub(super) requests: Vec<CatchUpRequest>,
    /// The action and the record they learned of last.
    pub(super) last_action: Option<ActionHash>,
    pub(super) last_record: Option<RecordHash>,
    /// Messages sent so far.
    pub(super) said: usize,
}

impl Pool {
    pub(super) fn has_seen(&self, message: &EncodedSignedMessage) -> bool {
        self.seen.contains(&message.message_id())
    }

    pub(super) fn learn(
        &mut self,
        conversation: ConversationId,
        message: &EncodedSignedMessage,
        outer: OuterMessage,
    ) {
        self.seen.insert(outer.message_id);
        if self.messages.len() < REMEMBERED_MAX {
            self.messages
                .push((conversation, message.clone(), outer.plaintext.encode()));
        }
        match outer.plaintext {
            Plaintext::Evidence(evidence) => self.learn_evidence(&evidence),
            Plaintext::Packet(DirectPacket::ActionProposal(proposal)) => self.learn_action(&proposal.action),
            Plaintext::Packet(DirectPacket::ActionCertifiedRecord(record)) => self.learn_record(&record),
            Plaintext::Packet(DirectPacket::CertifiedRecord(record)) => self.learn_certified(&record),
            Plaintext::Packet(DirectPacket::CatchUpPage(page)) => match page.item {
                CatchUpItem::CertifiedRecord(record) => self.learn_certified(&record),
                CatchUpItem::CompletedReanchor(completed) => {
                    self.anchors.insert(completed.anchor_hash, (*completed).into());
                }
            },
            Plaintext::Packet(DirectPacket::CompletedReanchor(completed)) => {
                self.anchors.insert(completed.anchor_hash, (*completed).into());
            }
            Plaintext::Packet(DirectPacket::CatchUpRequest(request)) => self.requests.push(*request),
            Plaintext::Packet(DirectPacket::CatchUpIncomplete(_)) => {}
        }
    }

    pub(super) fn learn_action(&mut self, action: &ActionCore) {
        if let ActionCore::Genesis(genesis) = action {
            let anchor = AnchorBody::from(genesis.anchor.clone());
            self.anchors.insert(anchor.hash(), genesis.anchor.clone().into());
        }
        let hash = action.hash();
        if self.actions.insert(hash, action.clone()).is_none() {
            self.last_action = Some(hash);
        }
    }

    fn learn_record(&mut self, record: &ActionCertifiedRecord) {
        self.learn_action(&record.record_core.to_action());
        let known = self
            .records
            .insert(record.record_hash, record.record_core.clone());
        if known.is_none() {
            self.last_record = Some(record.record_hash);
        }
        self.anchors
            .insert(*record.record_core.anchor_hash(), record.router_anchor.clone());
        record
            .action_certificate
            .signatures
            .iter()
            .for_each(|signature| self.learn_evidence(signature));
    }

    fn learn_certified(&mut self, record: &CertifiedRecord) {
        self.learn_record(&record.action_certified_record);
        record
            .durability_certificate
            .votes
            .iter()
            .for_each(|vote| self.learn_evidence(vote));
        if !self.certified.contains(record) {
            self.certified.push(record.clone());
        }
    }

    pub(super) fn learn_evidence(&mut self, message: &EncodedSignedMessage) {
        let known = agents(AGENTS_MAX);
        let Some(signer) = known.iter().find(|agent| agent.id() == message.sender()) else {
            return;
        };
        let Ok(signed) = message.verify(&signer.card, &history()) else {
            return;
        };
        match EvidenceStatement::decode(signed.body()) {
            Ok(EvidenceStatement::ActionSignature(statement)) => {
                let of_it = self.signatures.entry(statement.action_hash).or_default();
                of_it.insert(statement.signer_agent_id, message.clone());
            }
            Ok(EvidenceStatement::DurabilityVote(statement)) => {
                let of_it = self.votes.entry(statement.record_hash).or_default();
                of_it.insert(statement.signer_agent_id, message.clone());
            }
            Ok(EvidenceStatement::ReanchorVote(statement)) => {
                self.reanchors
                    .insert(statement.anchor_hash, statement.reanchor.clone());
            }
            _ => {}
        }
    }
}

//! What must hold whatever happens.

use std::collections::{BTreeMap, BTreeSet};

use conclave_conversation::membership::Membership;
use conclave_conversation::values::{
    ActionCore, ActionHash, AnchorBody, AnchorHash, DirectPacket, EvidenceStatement, Plaintext, RecordHash,
};
use conclave_harness::RouterInstanceId;

use super::World;
use super::seen::statement;

impl World {
    /// Safety of a conversation of honest members, from the Router's whole order and from every store.
    pub(crate) fn check(&self, membership: &Membership) {
        type Place = (Option<RecordHash>, AnchorHash);
        let mut predecessor: BTreeMap<ActionHash, Place> = BTreeMap::new();
        let mut record_predecessor: BTreeMap<RecordHash, Place> = BTreeMap::new();
        let mut signed: BTreeMap<(usize, Place), ActionHash> = BTreeMap::new();
        let mut voted: BTreeMap<(usize, Place), RecordHash> = BTreeMap::new();
        let mut reanchored: BTreeMap<(usize, AnchorHash, RouterInstanceId), AnchorHash> = BTreeMap::new();
        let mut copies: BTreeSet<(usize, RecordHash)> = BTreeSet::new();
        for (sender, plaintext) in self.opened(membership) {
            match plaintext {
                Plaintext::Packet(DirectPacket::ActionProposal(proposal)) => {
                    let previous = (
                        proposal.action.previous_record_hash().copied(),
                        anchor_of(&proposal.action),
                    );
                    predecessor.insert(proposal.action.hash(), previous);
                }
                Plaintext::Packet(DirectPacket::ActionCertifiedRecord(record)) => {
                    let previous = (
                        record.record_core.previous_record_hash().copied(),
                        *record.record_core.anchor_hash(),
                    );
                    record_predecessor.insert(record.record_hash, previous);
                    copies.insert((sender, record.record_hash));
                }
                Plaintext::Evidence(_) if self.deviants.contains(&sender) => {}
                Plaintext::Evidence(evidence) => match statement(&evidence) {
                    EvidenceStatement::ActionSignature(statement) => {
                        let place = (sender, predecessor[&statement.action_hash]);
                        let before = signed.insert(place, statement.action_hash);
                        assert!(
                            before.is_none_or(|before| before == statement.action_hash),
                            "two actions signed"
                        );
                    }
                    EvidenceStatement::DurabilityVote(statement) => {
                        assert!(
                            copies.contains(&(sender, statement.record_hash)),
                            "a vote before its copy"
                        );
                        let place = (sender, record_predecessor[&statement.record_hash]);
                        let before = voted.insert(place, statement.record_hash);
                        assert!(
                            before.is_none_or(|before| before == statement.record_hash),
                            "two records voted"
                        );
                    }
                    EvidenceStatement::ReanchorVote(statement) => {
                        let body = &statement.reanchor;
                        let place = (sender, body.previous_anchor_hash, body.router_instance_id);
                        let before = reanchored.insert(place, statement.anchor_hash);
                        assert!(
                            before.is_none_or(|before| before == statement.anchor_hash),
                            "two re-anchors voted"
                        );
                    }
                    EvidenceStatement::CatchUpAttestation(_) => {}
                },
                Plaintext::Packet(_) => {}
            }
        }
        let honest = |member: &usize| !self.deviants.contains(member);
        let chains: Vec<_> = (0..self.members.len())
            .filter(honest)
            .map(|member| self.chain(member, membership))
            .collect();
        let longest = chains.iter().max_by_key(|chain| chain.len()).expect("a member");
        for (member, chain) in (0..self.members.len()).filter(honest).zip(&chains) {
            assert_eq!(
                chain[..],
                longest[..chain.len()],
                "member {member} has another history"
            );
        }
        for member in &self.members {
            let mut tokens: BTreeMap<RecordHash, String> = BTreeMap::new();
            for delivery in &member.delivered {
                let token = delivery.delivery_token.to_string();
                let before = tokens.insert(delivery.record_hash, token.clone());
                assert!(
                    before.is_none_or(|before| before == token),
                    "one record, two tokens"
                );
            }
        }
    }
}

/// The anchor an action binds.
fn anchor_of(action: &ActionCore) -> AnchorHash {
    match action {
        ActionCore::Genesis(genesis) => AnchorBody::from(genesis.anchor.clone()).hash(),
        ActionCore::Post(post) => post.anchor_hash,
    }
}

//! Deterministic agents and artifacts for tests and the simulation.

use conclave_harness::agent_card::{AgentCard, AgentCardClaims};
use conclave_harness::identifiers::{AgentId, PrincipalId, RouterInstanceId};
use conclave_harness::issued_at::IssuedAt;
use conclave_harness::key::{AgentKey, PublicKey};
use conclave_harness::wire_version::{WIRE_VERSION, WireVersion, WireVersions};
use sha2::{Digest, Sha256};

use crate::certificates::{SignerMap, Subject, VerifiedEvidence};
use crate::membership::Membership;
use crate::values::*;
use crate::verification::{
    VerifiedAction, VerifiedActionCertifiedRecord, VerifiedCertifiedRecord, VerifiedCompletedReanchor,
    VerifiedRecordCore, VerifiedRouterAnchor,
};

/// A second version, invented for the tests, for what must not depend on the version of the build.
pub const SECOND_VERSION: WireVersion = WireVersion::new(2026, 1101, 1);

/// The history set of the tests: what this build knows and [`SECOND_VERSION`].
pub fn history() -> WireVersions {
    WireVersions::of(&[WIRE_VERSION, SECOND_VERSION])
}

/// The Registry's key.
pub fn registry_key() -> AgentKey {
    AgentKey::from_seed(seed("registry", 0))
}

/// The Registry's public key, as clients pin it.
pub fn registry() -> PublicKey {
    registry_key().public_key()
}

/// A Router instance.
pub fn router_instance(number: u8) -> RouterInstanceId {
    RouterInstanceId::from_bytes([number; 16])
}

fn seed(what: &str, number: usize) -> [u8; 32] {
    Sha256::digest(format!("{what} {number}")).into()
}

/// A registered agent.
#[derive(Debug)]
pub struct Agent {
    /// Its key.
    pub key: AgentKey,
    /// Its card.
    pub card: AgentCard,
}

impl Agent {
    /// Agent `number`, always the same, of the current version.
    pub fn new(number: usize) -> Self {
        Self::of_version(number, WIRE_VERSION)
    }

    /// Agent `number` with a card of another version.
    pub fn of_version(number: usize, version: WireVersion) -> Self {
        Self::named(number, &format!("agent-{number}"), version)
    }

    /// Agent `number` under another name.
    pub fn named(number: usize, name: &str, version: WireVersion) -> Self {
        let key = AgentKey::from_seed(seed("agent", number));
        let mut id = [0; 16];
        id.copy_from_slice(&seed("agent id", number)[..16]);
        let claims = AgentCardClaims {
            agent_id: AgentId::from_bytes(id),
            principal_id: PrincipalId::from_bytes([number as u8; 16]),
            agent_name: name.parse().expect("a name"),
            public_key: key.public_key(),
            issued_at: IssuedAt::from_unix_seconds(1_792_000_000).expect("an instant"),
            version,
        };
        Self {
            card: AgentCard::issue(&registry_key(), claims),
            key,
        }
    }

    /// The agent's id.
    pub fn id(&self) -> AgentId {
        self.card.agent_id()
    }

    /// Signs a statement as this agent.
    pub fn sign(&self, statement: impl Into<EvidenceStatement>) -> VerifiedEvidence {
        VerifiedEvidence::sign(statement.into(), &self.card, &self.key).expect("an own statement")
    }
}

/// A conversation of agents, with what an honest endpoint would derive.
#[derive(Debug)]
pub struct Conversation {
    /// The agents, ascending by id, as the membership has them.
    pub agents: Vec<Agent>,
    /// Their membership.
    pub membership: Membership,
}

impl Conversation {
    /// Agents `0..members`.
    pub fn new(members: usize) -> Self {
        Self::of((0..members).map(Agent::new).collect())
    }

    /// These agents.
    pub fn of(mut agents: Vec<Agent>) -> Self {
        agents.sort_by_key(Agent::id);
        let cards = agents.iter().map(|agent| agent.card.clone()).collect();
        let membership = Membership::from_cards(cards, &history()).expect("a membership");
        Self { agents, membership }
    }

    /// The agent at a place of the canonical order.
    pub fn agent(&self, index: usize) -> &Agent {
        &self.agents[index]
    }

    /// A post intent of an agent with one text; equal arguments give equal intents.
    pub fn intent(&self, author: usize, text: &str) -> PostIntent {
        self.intent_of_content(author, Content::text(text).expect("content"))
    }

    /// A post intent of an agent.
    pub fn intent_of_content(&self, author: usize, content: Content) -> PostIntent {
        PostIntent {
            sharness_version: WIRE_VERSION,
            kind: PostIntentKind,
            conversation_id: *self.membership.conversation_id(),
            membership_hash: *self.membership.hash(),
            author_agent_id: self.agent(author).id(),
            post_id: PostId::from_bytes(Sha256::digest(content.encode()).into()),
            content,
        }
    }

    /// The conversation's first anchor at [`router_instance`]`(0)`.
    pub fn genesis_anchor(&self) -> GenesisAnchorBody {
        self.membership.genesis_anchor(router_instance(0))
    }

    /// The GENESIS action of an intent.
    pub fn genesis(&self, intent: PostIntent) -> VerifiedAction {
        let core = GenesisActionCore {
            sharness_version: intent.sharness_version,
            kind: GenesisActionKind,
            conversation_id: *self.membership.conversation_id(),
            membership: self.membership.descriptor().clone(),
            anchor: self.genesis_anchor(),
            previous_record_hash: Null,
            post_intent_hash: intent.hash(),
            post_intent: intent,
        };
        VerifiedAction::verify(core.into(), &self.membership).expect("a GENESIS")
    }

    /// The POST action of an intent at a predecessor under an anchor.
    pub fn post(&self, intent: PostIntent, previous: RecordHash, anchor: AnchorHash) -> VerifiedAction {
        let core = PostActionCore {
            sharness_version: intent.sharness_version,
            kind: PostActionKind,
            conversation_id: *self.membership.conversation_id(),
            membership_hash: *self.membership.hash(),
            anchor_hash: anchor,
            previous_record_hash: previous,
            post_intent_hash: intent.hash(),
            post_intent: intent,
        };
        VerifiedAction::verify(core.into(), &self.membership).expect("a POST")
    }

    /// An agent's signature on an action.
    pub fn action_signature(&self, signer: usize, action: ActionHash) -> VerifiedEvidence {
        self.agent(signer).sign(ActionSignatureStatement {
            sharness_version: WIRE_VERSION,
            kind: ActionSignatureKind,
            signer_agent_id: self.agent(signer).id(),
            action_hash: action,
        })
    }

    /// An agent's vote for a record.
    pub fn durability_vote(&self, signer: usize, record: RecordHash) -> VerifiedEvidence {
        self.agent(signer).sign(DurabilityVoteStatement {
            sharness_version: WIRE_VERSION,
            kind: DurabilityVoteKind,
            signer_agent_id: self.agent(signer).id(),
            conversation_id: *self.membership.conversation_id(),
            membership_hash: *self.membership.hash(),
            record_hash: record,
        })
    }

    /// An agent's vote for a re-anchor.
    pub fn reanchor_vote(&self, signer: usize, body: &ReanchorBody) -> VerifiedEvidence {
        self.agent(signer).sign(ReanchorVoteStatement {
            sharness_version: body.sharness_version,
            kind: ReanchorVoteKind,
            signer_agent_id: self.agent(signer).id(),
            anchor_hash: body.hash(),
            reanchor: body.clone(),
        })
    }

    /// The signatures of some agents on an action.
    pub fn action_signatures(
        &self,
        signers: impl IntoIterator<Item = usize>,
        action: ActionHash,
    ) -> SignerMap {
        collect(
            Subject::Action(action),
            signers
                .into_iter()
                .map(|signer| self.action_signature(signer, action)),
        )
    }

    /// The votes of some agents for a record.
    pub fn durability_votes(
        &self,
        signers: impl IntoIterator<Item = usize>,
        record: RecordHash,
    ) -> SignerMap {
        let subject = Subject::Record {
            record_hash: record,
            conversation_id: *self.membership.conversation_id(),
            membership_hash: *self.membership.hash(),
        };
        collect(
            subject,
            signers
                .into_iter()
                .map(|signer| self.durability_vote(signer, record)),
        )
    }

    /// The votes of some agents for a re-anchor.
    pub fn reanchor_votes(&self, signers: impl IntoIterator<Item = usize>, body: &ReanchorBody) -> SignerMap {
        collect(
            Subject::Reanchor(body.hash()),
            signers.into_iter().map(|signer| self.reanchor_vote(signer, body)),
        )
    }

    /// A re-anchor body at a record.
    pub fn reanchor(&self, previous: AnchorHash, selected: RecordHash, instance: u8) -> ReanchorBody {
        ReanchorBody {
            sharness_version: WIRE_VERSION,
            kind: ReanchorBodyKind,
            conversation_id: *self.membership.conversation_id(),
            membership_hash: *self.membership.hash(),
            previous_anchor_hash: previous,
            selected_record_hash: selected,
            router_instance_id: router_instance(instance),
        }
    }

    /// A re-anchor that every agent voted for.
    pub fn completed_reanchor(&self, body: ReanchorBody) -> VerifiedCompletedReanchor {
        let votes = self.reanchor_votes(0..self.agents.len(), &body);
        VerifiedCompletedReanchor::assemble(body, votes, &self.membership).expect("a completed re-anchor")
    }

    /// An action signed by every agent, under an anchor.
    pub fn action_certified(
        &self,
        action: VerifiedAction,
        anchor: impl Into<RouterAnchor>,
    ) -> VerifiedActionCertifiedRecord {
        let mut memory = Default::default();
        let anchor =
            VerifiedRouterAnchor::verify(anchor.into(), &self.membership, &mut memory).expect("an anchor");
        let signatures = self.action_signatures(0..self.agents.len(), *action.hash());
        let record = VerifiedRecordCore::of_action(action);
        VerifiedActionCertifiedRecord::assemble(record, &anchor, signatures, &self.membership)
            .expect("a record")
    }

    /// An action signed and its record stored by every agent, under an anchor.
    pub fn certified(
        &self,
        action: VerifiedAction,
        anchor: impl Into<RouterAnchor>,
    ) -> VerifiedCertifiedRecord {
        let record = self.action_certified(action, anchor);
        let votes = self.durability_votes(0..self.agents.len(), *record.record().hash());
        VerifiedCertifiedRecord::assemble(record, votes, &self.membership).expect("a certified record")
    }

    /// A certified GENESIS with one text.
    pub fn certified_genesis(&self, author: usize, text: &str) -> VerifiedCertifiedRecord {
        self.certified(self.genesis(self.intent(author, text)), self.genesis_anchor())
    }

    /// An agent's attestation of an answer to a request.
    pub fn attestation(
        &self,
        signer: usize,
        request: &CatchUpRequest,
        item: Option<&CatchUpItem>,
        has_more: bool,
    ) -> VerifiedEvidence {
        let (item_kind, item_hash) = match item {
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
        self.agent(signer).sign(CatchUpAttestationStatement {
            sharness_version: WIRE_VERSION,
            kind: CatchUpAttestationKind,
            signer_agent_id: self.agent(signer).id(),
            request: request.clone(),
            item_kind,
            item_hash,
            has_more,
        })
    }

    /// An agent's request from a position.
    pub fn catch_up_request(
        &self,
        requester: usize,
        known: Option<(RecordHash, AnchorHash)>,
    ) -> CatchUpRequest {
        CatchUpRequest {
            sharness_version: WIRE_VERSION,
            kind: CatchUpRequestKind,
            conversation_id: *self.membership.conversation_id(),
            membership_hash: *self.membership.hash(),
            requester_agent_id: self.agent(requester).id(),
            known_record_hash: known.map(|(record, _)| record),
            known_anchor_hash: known.map(|(_, anchor)| anchor),
        }
    }

    /// An agent's page with an item.
    pub fn catch_up_page(&self, responder: usize, request: CatchUpRequest, item: CatchUpItem) -> CatchUpPage {
        CatchUpPage {
            sharness_version: WIRE_VERSION,
            kind: CatchUpPageKind,
            attestation: self
                .attestation(responder, &request, Some(&item), false)
                .encoded()
                .clone(),
            request,
            item,
            has_more: false,
        }
    }
}

fn collect(subject: Subject, evidence: impl Iterator<Item = VerifiedEvidence>) -> SignerMap {
    let mut signers = SignerMap::new(subject);
    for evidence in evidence {
        signers.merge(evidence).expect("evidence of the subject");
    }
    signers
}

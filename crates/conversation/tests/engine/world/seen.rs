//! What was sent and what is stored, opened for a test to look at; and messages that no engine made.

use conclave_conversation::engine::history;
use conclave_conversation::membership::Membership;
use conclave_conversation::outer_message::{open_outer_message, seal_outer_message};
use conclave_conversation::test_support::{self, Agent};
use conclave_conversation::values::{DirectPacket, EvidenceStatement, Plaintext, RecordHash};
use conclave_harness::{EncodedSignedMessage, SignedMessage, WireVersions};

use super::World;
use super::router::OrderedFeed;

impl World {
    /// Every ordered message of a conversation, opened as its sender, who is a recipient.
    pub(crate) fn opened(&self, membership: &Membership) -> Vec<(usize, Plaintext)> {
        let conversation = OrderedFeed::Conversation(*membership.conversation_id());
        self.router
            .log
            .iter()
            .filter(|ordered| ordered.feed == conversation)
            .filter_map(|ordered| {
                let sender = self
                    .members
                    .iter()
                    .position(|member| member.id() == ordered.message.sender())?;
                let agent = &self.members[sender].agent;
                let live = test_support::history();
                let outer =
                    open_outer_message(&ordered.message, membership, &agent.card, &agent.key, &live).ok()?;
                Some((sender, outer.plaintext))
            })
            .collect()
    }

    /// What each ordered message of a conversation is, for tests that count.
    pub(crate) fn kinds(&self, membership: &Membership) -> Vec<(usize, &'static str)> {
        self.opened(membership)
            .into_iter()
            .map(|(sender, plaintext)| (sender, kind_of(&plaintext)))
            .collect()
    }

    pub(crate) fn count(&self, membership: &Membership, kind: &str) -> usize {
        self.kinds(membership)
            .iter()
            .filter(|(_, found)| *found == kind)
            .count()
    }

    /// A member's verified history of a conversation.
    pub(crate) fn history(&self, member: usize, membership: &Membership) -> Vec<history::HistoryEntry> {
        history::read(
            &self.members[member].store.snapshot(),
            membership.conversation_id(),
            &test_support::registry(),
            &test_support::history(),
        )
        .expect("a verified history")
        .map_or_else(Vec::new, |history| history.entries)
    }

    pub(crate) fn chain(&self, member: usize, membership: &Membership) -> Vec<RecordHash> {
        self.history(member, membership)
            .iter()
            .map(|entry| entry.record_hash)
            .collect()
    }

    /// Puts a message into the Router's order, as a member that runs no engine of ours does.
    pub(crate) fn inject(&mut self, membership: &Membership, message: EncodedSignedMessage) {
        self.router
            .append(OrderedFeed::Conversation(*membership.conversation_id()), message);
    }

    /// A plaintext sealed to everyone by a member.
    pub(crate) fn outer(
        &mut self,
        sender: usize,
        membership: &Membership,
        plaintext: &[u8],
    ) -> EncodedSignedMessage {
        let this = &mut self.members[sender];
        let version = this.release.emits;
        let Agent { card, key } = &this.agent;
        seal_outer_message(plaintext, membership, card, key, version, &mut this.randomness)
            .expect("a sealed message")
            .into_encoded()
    }

    /// As [`outer`](Self::outer), but some members cannot open it.
    pub(crate) fn outer_sealed_away(
        &mut self,
        sender: usize,
        membership: &Membership,
        plaintext: &[u8],
        away: &[usize],
    ) -> EncodedSignedMessage {
        let whole = self.outer(sender, membership, plaintext);
        let Agent { card, key } = &self.members[sender].agent;
        let verified = whole.verify(card, &WireVersions::live()).expect("own message");
        let mut body: serde_json::Value = serde_json::from_slice(verified.body()).expect("a sealed body");
        for member in away {
            let id = self.members[*member].id();
            let place = membership
                .agent_ids()
                .iter()
                .position(|member| *member == id)
                .expect("a member");
            let key = body["recipients"][place]["encrypted_key"]
                .as_str()
                .expect("a key")
                .to_owned();
            let other = if key.starts_with('A') { "B" } else { "A" };
            body["recipients"][place]["encrypted_key"] = format!("{other}{}", &key[1..]).into();
        }
        let body = serde_jcs::to_vec(&body).expect("a body");
        SignedMessage::sign(
            card,
            key,
            &membership.agent_ids(),
            verified.message_id(),
            &body,
            verified.version(),
        )
        .expect("a signed message")
        .into_encoded()
    }
}

pub(crate) fn statement(message: &EncodedSignedMessage) -> EvidenceStatement {
    use conclave_conversation::values::ClosedValue;
    let card = (0..64)
        .map(Agent::new)
        .find(|agent| agent.id() == message.sender())
        .expect("an agent")
        .card;
    let message = message
        .verify(&card, &test_support::history())
        .expect("a signed statement");
    EvidenceStatement::decode_over(&test_support::history(), message.body()).expect("a statement")
}

pub(crate) fn kind_of(plaintext: &Plaintext) -> &'static str {
    match plaintext {
        Plaintext::Packet(DirectPacket::ActionProposal(_)) => "proposal",
        Plaintext::Packet(DirectPacket::ActionCertifiedRecord(_)) => "copy",
        Plaintext::Packet(DirectPacket::CertifiedRecord(_)) => "head",
        Plaintext::Packet(DirectPacket::CatchUpRequest(_)) => "request",
        Plaintext::Packet(DirectPacket::CatchUpPage(_)) => "page",
        Plaintext::Packet(DirectPacket::CatchUpIncomplete(_)) => "incomplete",
        Plaintext::Packet(DirectPacket::CompletedReanchor(_)) => "completed",
        Plaintext::Evidence(message) => match statement(message) {
            EvidenceStatement::ActionSignature(_) => "signature",
            EvidenceStatement::DurabilityVote(_) => "vote",
            EvidenceStatement::ReanchorVote(_) => "reanchor",
            EvidenceStatement::CatchUpAttestation(_) => "attestation",
        },
    }
}

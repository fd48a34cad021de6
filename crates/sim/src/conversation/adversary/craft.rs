//! How Byzantine members make and send messages.

use super::Pool;
use crate::conversation::{
    router::Topic,
    world::{Future, MS, SECOND, World},
};
use conclave_conversation::{
    certificates::VerifiedEvidence,
    engine::Transmit,
    outer_message::seal_outer_message,
    values::{ClosedValue, ConversationId, EvidenceStatement},
};
use conclave_harness::{
    EncodedSignedMessage, Randomness, SignedMessage, WIRE_VERSION, WireVersions, randomness::random_array,
};

impl World {
    pub(super) fn pool(&mut self) -> Option<&mut Pool> {
        self.adversary.as_mut().map(|adversary| &mut adversary.pool)
    }

    /// Some of the honest members of a conversation; often none.
    pub(super) fn some_of(&self, conversation: &ConversationId) -> Vec<usize> {
        let known = self
            .history
            .conversations
            .iter()
            .find(|known| known.id == *conversation);
        let members = known.map_or(&[][..], |known| &known.members);
        if self.random.chance(400) {
            return Vec::new();
        }
        let honest = members
            .iter()
            .copied()
            .filter(|member| self.history.honest[*member]);
        honest.filter(|_| self.random.chance(500)).collect()
    }

    /// Puts a message into the order of a conversation.
    pub(super) fn say(&mut self, conversation: &ConversationId, message: EncodedSignedMessage) {
        let topic = Topic::Conversation(*conversation);
        self.router.append(topic, Some(message));
        if let Some(pool) = self.pool() {
            pool.said += 1;
        }
        self.ordered(topic);
    }

    /// Seals a plaintext to all members but some, who cannot open it.
    pub(super) fn seal(
        &mut self,
        member: usize,
        conversation: &ConversationId,
        plaintext: &[u8],
        away: &[usize],
    ) -> Option<EncodedSignedMessage> {
        let membership = self
            .conversations
            .iter()
            .find(|known| known.conversation_id() == conversation)?
            .clone();
        let ids: Vec<_> = away
            .iter()
            .map(|member| self.members[*member].agent.id())
            .collect();
        let this = &mut self.members[member];
        let (card, key) = (&this.agent.card, &this.agent.key);
        let whole = seal_outer_message(
            plaintext,
            &membership,
            card,
            key,
            WIRE_VERSION,
            &mut this.randomness,
        )
        .ok()?;
        if ids.is_empty() {
            return Some(whole.into_encoded());
        }
        let mut body: serde_json::Value = serde_json::from_slice(whole.body()).ok()?;
        for id in ids {
            let place = membership.agent_ids().iter().position(|known| *known == id)?;
            let entry = &mut body["recipients"][place]["encrypted_key"];
            let known = entry.as_str()?.to_owned();
            let other = if known.starts_with('A') { "B" } else { "A" };
            *entry = format!("{other}{}", &known[1..]).into();
        }
        let body = conclave_harness::canonical_json::encode(&body);
        let recipients = membership.agent_ids();
        SignedMessage::sign(card, key, &recipients, whole.message_id(), &body, WIRE_VERSION)
            .ok()
            .map(SignedMessage::into_encoded)
    }

    /// The plaintext of its engine's message, in an envelope that some cannot open.
    pub(super) fn seal_again(
        &mut self,
        member: usize,
        transmit: &Transmit,
        away: &[usize],
    ) -> Option<EncodedSignedMessage> {
        let conversation = transmit.conversation_id;
        let membership = self
            .conversations
            .iter()
            .find(|known| *known.conversation_id() == conversation)?;
        let agent = &self.members[member].agent;
        let live = WireVersions::live();
        let outer = conclave_conversation::outer_message::open_outer_message(
            &transmit.message,
            membership,
            &agent.card,
            &agent.key,
            &live,
        )
        .ok()?;
        self.seal(member, &conversation, &outer.plaintext.encode(), away)
    }

    pub(super) fn tell(&mut self, member: usize, conversation: &ConversationId, plaintext: &[u8]) {
        let away = self.some_of(conversation);
        self.tell_but(member, conversation, plaintext, &away);
    }

    /// As [`tell`](Self::tell), in a while, unless they fell silent by then.
    pub(super) fn tell_soon(&mut self, member: usize, conversation: &ConversationId, plaintext: Vec<u8>) {
        let delay = self.random.between(MS, 2 * SECOND);
        let conversation = *conversation;
        self.schedule(
            delay,
            Future::Tell {
                member,
                conversation,
                plaintext,
            },
        );
    }

    pub(super) fn tell_but(
        &mut self,
        member: usize,
        conversation: &ConversationId,
        plaintext: &[u8],
        away: &[usize],
    ) {
        if let Some(message) = self.seal(member, conversation, plaintext, away) {
            self.say(conversation, message);
        }
    }

    pub(super) fn state(
        &mut self,
        member: usize,
        conversation: &ConversationId,
        statement: impl Into<EvidenceStatement>,
    ) {
        if let Some(signed) = self.sign(member, statement) {
            self.tell(member, conversation, &ClosedValue::encode(&signed));
        }
    }

    pub(super) fn sign(
        &mut self,
        member: usize,
        statement: impl Into<EvidenceStatement>,
    ) -> Option<EncodedSignedMessage> {
        let agent = &self.members[member].agent;
        let signed = VerifiedEvidence::sign(statement.into(), &agent.card, &agent.key)?
            .encoded()
            .clone();
        if let Some(pool) = self.pool() {
            pool.learn_evidence(&signed);
        }
        Some(signed)
    }

    pub(super) fn bytes<const N: usize>(&mut self, member: usize) -> [u8; N] {
        random_array(&mut self.members[member].randomness as &mut dyn Randomness)
    }
}

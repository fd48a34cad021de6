//! A head split on purpose: two candidates, each shown to its part of the honest members and signed by every Byzantine one,
//! so that one of them may be certified against the locks that the other holds.

use conclave_conversation::{
    certificates::quorum,
    values::{
        ActionHash, ActionSignatureKind, ActionSignatureStatement, ClosedValue, ConversationId, PostId,
    },
};
use conclave_harness::WIRE_VERSION;

use crate::conversation::world::World;

impl World {
    /// The honest members of a conversation.
    pub(super) fn honest_of(&self, conversation: &ConversationId) -> Vec<usize> {
        let known = self
            .history
            .conversations
            .iter()
            .find(|known| known.id == *conversation);
        let members = known.map_or(&[][..], |known| &known.members);
        members
            .iter()
            .copied()
            .filter(|member| self.history.honest[*member])
            .collect()
    }

    /// The Byzantine members, who are in the first conversation alone.
    pub(super) fn colluders(&self) -> Vec<usize> {
        (0..self.members.len())
            .filter(|member| !self.history.honest[*member])
            .collect()
    }

    /// Two candidates at the head. The greater part of the honest members is a quorum with the Byzantine ones.
    pub(super) fn split_locks(&mut self, member: usize, conversation: &ConversationId) {
        let Some((record, anchor)) = self.tips.get(conversation).copied() else {
            return;
        };
        let mut lesser = self.honest_of(conversation);
        let needed = quorum(self.members.len()).saturating_sub(self.colluders().len());
        let mut greater = Vec::new();
        while greater.len() < needed && !lesser.is_empty() {
            greater.push(lesser.swap_remove(self.random.below(lesser.len())));
        }
        // A certificate that only the Byzantine members can complete is theirs to show when they like.
        let holds_back = self.random.chance(300);
        let mut actions = Vec::new();
        for (number, away) in [lesser, greater].iter().enumerate() {
            let post = PostId::from_bytes(self.bytes(member));
            let Some((action, packet)) = self.proposal(member, conversation, post, number, record, anchor)
            else {
                return;
            };
            self.tell_but(member, conversation, &packet.encode(), away);
            actions.push(action);
        }
        for (number, action) in actions.into_iter().enumerate() {
            for colluder in self.colluders() {
                let Some(signed) = self.sign_action(colluder, action) else {
                    continue;
                };
                if number == 0 && holds_back {
                    continue;
                }
                self.tell_soon(colluder, conversation, ClosedValue::encode(&signed));
            }
        }
    }

    /// A Byzantine member's signature on an action. It is known to all of them, and said to nobody.
    pub(super) fn sign_action(
        &mut self,
        member: usize,
        action_hash: ActionHash,
    ) -> Option<conclave_harness::EncodedSignedMessage> {
        let (sharness_version, kind) = (WIRE_VERSION, ActionSignatureKind);
        let signer_agent_id = self.members[member].agent.id();
        self.sign(
            member,
            ActionSignatureStatement {
                sharness_version,
                kind,
                signer_agent_id,
                action_hash,
            },
        )
    }
}

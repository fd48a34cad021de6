//! T1 and T2: whose store this is, and the local posts with the foundations they bring.

use super::{Decision, Read, ReadSet, Refusal, Sequence, Table, Write, row_of, sequence_read, take_number};
use crate::store::rows::{AnchorRow, ConversationStateRow, IdentityBindingRow, MembershipRow, PostIntentRow};
use crate::store::{Key, Row};

/// T1: bind the store to an agent. A store bound to another agent, or to another card of it, is a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindIdentity {
    /// The agent and its card.
    pub identity: IdentityBindingRow,
}

impl BindIdentity {
    pub(super) fn reads(&self) -> Vec<Read> {
        vec![row_of(&self.identity)]
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        match reads.get::<IdentityBindingRow>(&self.identity.key())? {
            None => Ok(Decision::applied(vec![self.identity.put()])),
            Some(bound) if bound == self.identity => Ok(Decision::existing()),
            Some(_) => Err(Refusal::Conflict("the store is bound to another identity")),
        }
    }
}

/// What an empty conversation consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foundation {
    /// The verified membership.
    pub membership: MembershipRow,
    /// The genesis anchor.
    pub anchor: AnchorRow,
}

impl Foundation {
    /// The state of a conversation that has only its foundation.
    pub fn state(&self) -> ConversationStateRow {
        ConversationStateRow {
            conversation_id: self.membership.conversation_id.clone(),
            membership_hash: self.membership.membership_hash.clone(),
            current_anchor_hash: self.anchor.anchor_hash.clone(),
            head_record_hash: None,
            head_ordinal: -1,
        }
    }

    pub(super) fn reads(&self) -> Vec<Read> {
        vec![
            row_of(&self.membership),
            row_of(&self.anchor),
            row_of(&self.state()),
        ]
    }

    /// The writes that lay the foundation; none when exactly this foundation is there.
    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Vec<Write>, Refusal> {
        let genesis = self.anchor.previous_anchor_hash.is_none()
            && self.anchor.selected_record_hash.is_none()
            && self.anchor.position == 0;
        if !genesis || self.anchor.conversation_id != self.membership.conversation_id {
            return Err(Refusal::InvalidInput(
                "a foundation is one membership and its genesis anchor",
            ));
        }
        match reads.get::<MembershipRow>(&self.membership.key())? {
            None => Ok(vec![self.membership.put(), self.anchor.put(), self.state().put()]),
            Some(held) if held != self.membership => {
                Err(Refusal::Conflict("the conversation has another membership"))
            }
            Some(_) => match reads.get::<AnchorRow>(&self.anchor.key())? {
                Some(held) if held == self.anchor => Ok(Vec::new()),
                _ => Err(Refusal::Conflict("the conversation began with another anchor")),
            },
        }
    }
}

/// T2: bind a local post. Nothing about the post travels before this is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindPostIntent {
    /// The foundation, when the post is the first thing known of the conversation.
    pub foundation: Option<Foundation>,
    /// The post.
    pub intent: PostIntentRow,
}

impl BindPostIntent {
    pub(super) fn reads(&self) -> Vec<Read> {
        let mut reads = vec![
            Read::Row(Table::IdentityBinding, IdentityBindingRow::singleton_key()),
            Read::Row(Table::Memberships, Key::new([&self.intent.conversation_id])),
            row_of(&self.intent),
            sequence_read(Sequence::Intent),
        ];
        reads.extend(self.foundation.iter().flat_map(Foundation::reads));
        reads
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        let identity = reads.get::<IdentityBindingRow>(&IdentityBindingRow::singleton_key())?;
        if identity.is_none_or(|identity| identity.agent_id != self.intent.author_agent_id) {
            return Err(Refusal::InvalidInput(
                "a post intent is bound by its author alone",
            ));
        }
        if self.intent.completed_record_hash.is_some() {
            return Err(Refusal::InvalidInput("a post is not finished before it begins"));
        }
        let mut writes = match &self.foundation {
            Some(foundation) if foundation.membership.conversation_id != self.intent.conversation_id => {
                return Err(Refusal::InvalidInput("the foundation is of another conversation"));
            }
            Some(foundation) => foundation.decide(reads)?,
            None => Vec::new(),
        };
        let membership_hash = match &self.foundation {
            Some(foundation) => Some(foundation.membership.membership_hash.clone()),
            None => reads
                .get::<MembershipRow>(&Key::new([&self.intent.conversation_id]))?
                .map(|membership| membership.membership_hash),
        };
        match membership_hash {
            None => return Err(Refusal::InvalidInput("the conversation has no foundation")),
            Some(hash) if hash != self.intent.membership_hash => {
                return Err(Refusal::Conflict("the conversation has another membership"));
            }
            Some(_) => {}
        }
        match reads.get::<PostIntentRow>(&self.intent.key())? {
            Some(held) if held.canonical_intent == self.intent.canonical_intent => Ok(Decision::existing()),
            Some(_) => Err(Refusal::Conflict("the post was bound to another intent")),
            None => {
                writes.push(take_number(reads, Sequence::Intent, self.intent.intent_sequence)?);
                writes.push(self.intent.put());
                Ok(Decision::applied(writes))
            }
        }
    }
}

//! How far feeds were read, and which conversations are only watched.

use super::{Decision, Read, ReadSet, Refusal, Sequence, Table, row_of, sequence_read, take_number};
use crate::store::rows::{MembershipRow, TransportCursorRow, WatchedConversationRow};
use crate::store::{Key, Row};

/// A feed was read up to a position. Committed together with every effect of what lies below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvanceCursor {
    /// The new cursor.
    pub cursor: TransportCursorRow,
}

impl AdvanceCursor {
    pub(super) fn reads(&self) -> Vec<Read> {
        vec![row_of(&self.cursor)]
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        match reads.get::<TransportCursorRow>(&self.cursor.key())? {
            Some(held) if held == self.cursor => Ok(Decision::existing()),
            Some(held)
                if held.router_instance_id == self.cursor.router_instance_id
                    && held.position > self.cursor.position =>
            {
                Err(Refusal::Conflict("the feed was read further"))
            }
            _ => Ok(Decision::applied(vec![self.cursor.put()])),
        }
    }
}

/// An invitation was verified: its conversation is watched. Nothing else comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchConversation {
    /// What is watched.
    pub watched: WatchedConversationRow,
}

impl WatchConversation {
    pub(super) fn reads(&self) -> Vec<Read> {
        vec![
            row_of(&self.watched),
            Read::Row(Table::Memberships, Key::new([&self.watched.conversation_id])),
            sequence_read(Sequence::Watch),
        ]
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        if reads.get::<MembershipRow>(&self.watched.key())?.is_some() {
            return Err(Refusal::Conflict("the conversation is held"));
        }
        if reads
            .get::<WatchedConversationRow>(&self.watched.key())?
            .is_some()
        {
            return Ok(Decision::existing());
        }
        Ok(Decision::applied(vec![
            take_number(reads, Sequence::Watch, self.watched.watch_sequence)?,
            self.watched.put(),
        ]))
    }
}

/// A watched conversation became a held one, or was dropped for a newer invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwatchConversation {
    /// The conversation.
    pub conversation_id: String,
    /// Whether the cursor of its feed goes too.
    pub forget_cursor: bool,
}

impl UnwatchConversation {
    fn key(&self) -> Key {
        Key::new([&self.conversation_id])
    }

    pub(super) fn reads(&self) -> Vec<Read> {
        vec![
            Read::Row(Table::WatchedConversations, self.key()),
            Read::Row(Table::TransportCursors, self.key()),
        ]
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        let Some(watched) = reads.get::<WatchedConversationRow>(&self.key())? else {
            return Ok(Decision::existing());
        };
        let mut writes = vec![watched.delete()];
        if self.forget_cursor
            && let Some(cursor) = reads.get::<TransportCursorRow>(&self.key())?
        {
            writes.push(cursor.delete());
        }
        Ok(Decision::applied(writes))
    }
}

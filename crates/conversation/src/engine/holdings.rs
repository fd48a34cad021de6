//! How much an engine holds that others made it hold: what the limits bound, for operators and tests to look at.

use super::run::Engine;

/// Counts of what members and strangers made an engine hold in memory, beyond certified history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Conversations that are read and of which nothing is held.
    pub watched: usize,
    /// Held conversations that others began and in which the local agent never posted.
    pub unasked: usize,
    /// Actions with their signatures and votes.
    pub folds: usize,
    /// Votes and proposals that recovering conversations keep for later.
    pub kept_for_later: usize,
    /// Envelopes on their way.
    pub envelopes: usize,
    /// Answers that wait for their rows, with the question behind each.
    pub answers: usize,
    /// Statements remembered as verified.
    pub remembered: usize,
}

impl Engine {
    /// How much is held right now.
    pub fn holdings(&self) -> Holdings {
        let mut holdings = Holdings {
            watched: self.watched.len(),
            remembered: self.shared.memory.len(),
            ..Holdings::default()
        };
        for (conversation_id, conversation) in &self.conversations {
            holdings.unasked += usize::from(!conversation.is_asked_for);
            holdings.folds += conversation.folds.len();
            holdings.kept_for_later += conversation.run().map_or(0, |run| run.kept_for_later());
            holdings.envelopes += self.shared.outbox.pending(conversation_id);
            holdings.answers += conversation.answering.len();
        }
        holdings
    }
}

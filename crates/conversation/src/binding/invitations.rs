//! Invitations that wait until their senders are known. Pure: it says what to look up next and what is ready, in order.
//!
//! Anyone can write to an agent's welcome topic under any name. So what waits is bounded ([`WAITING_MAX`]), several senders
//! are looked up at once ([`LOOKUPS_MAX`]), and a sender the Registry does not know is not asked for again for a while
//! ([`UNKNOWN_FOR_MS`], [`UNKNOWN_MAX`]). What does not fit is refused, not lost: the feed is read again from the last
//! invitation that was taken.

use std::collections::VecDeque;

use conclave_harness::{AgentCard, AgentId};

/// Invitations that wait for their senders, in all.
pub const WAITING_MAX: usize = 256;

/// Senders that are looked up at the same time.
pub const LOOKUPS_MAX: usize = 8;

/// Senders that are remembered as unknown; the oldest are forgotten first.
pub const UNKNOWN_MAX: usize = 1_024;

/// Milliseconds for which a sender that the Registry does not know is not asked for again.
pub const UNKNOWN_FOR_MS: u64 = 300_000;

/// One that waits.
#[derive(Debug)]
struct Waiting<I> {
    invitation: I,
    /// None when it has no sender to be looked up.
    sender: Option<AgentId>,
    /// What the Registry said of the sender.
    found: Option<Option<AgentCard>>,
}

/// The queue. `I` is whatever the shell hands on together with the sender's card.
#[derive(Debug)]
pub struct InvitationQueue<I> {
    waiting: VecDeque<Waiting<I>>,
    under_way: Vec<AgentId>,
    /// Senders the Registry does not know, with the time up to which that is believed, oldest first.
    unknown: VecDeque<(AgentId, u64)>,
}

impl<I> Default for InvitationQueue<I> {
    fn default() -> Self {
        InvitationQueue {
            waiting: VecDeque::new(),
            under_way: Vec::new(),
            unknown: VecDeque::new(),
        }
    }
}

impl<I> InvitationQueue<I> {
    /// Takes an invitation with its sender; none when it is no message and has none.
    ///
    /// # Errors
    /// The invitation itself when the queue is full: it is to be read again once [`is_empty`](Self::is_empty).
    pub fn offer(&mut self, invitation: I, sender: Option<AgentId>, now_ms: u64) -> Result<(), I> {
        if self.waiting.len() >= WAITING_MAX {
            return Err(invitation);
        }
        self.unknown.retain(|(_, until_ms)| *until_ms > now_ms);
        let is_unknown = |sender: AgentId| self.unknown.iter().any(|(unknown, _)| *unknown == sender);
        let found = match sender {
            Some(sender) if !is_unknown(sender) => None,
            _ => Some(None),
        };
        self.waiting.push_back(Waiting {
            invitation,
            sender,
            found,
        });
        Ok(())
    }

    /// The next sender to look up, the one of the oldest invitation first; none when enough are, or there is none.
    pub fn next_lookup(&mut self) -> Option<AgentId> {
        if self.under_way.len() >= LOOKUPS_MAX {
            return None;
        }
        let sender = self
            .waiting
            .iter()
            .filter(|waiting| waiting.found.is_none())
            .filter_map(|waiting| waiting.sender)
            .find(|sender| !self.under_way.contains(sender))?;
        self.under_way.push(sender);
        Some(sender)
    }

    /// The Registry answered: with the sender's verified card, or that there is none.
    pub fn answered(&mut self, sender: AgentId, card: Option<AgentCard>, now_ms: u64) {
        self.under_way.retain(|under_way| *under_way != sender);
        if card.is_none() {
            if self.unknown.len() >= UNKNOWN_MAX {
                self.unknown.pop_front();
            }
            self.unknown.push_back((sender, now_ms + UNKNOWN_FOR_MS));
        }
        for waiting in &mut self.waiting {
            if waiting.sender == Some(sender) && waiting.found.is_none() {
                waiting.found = Some(card.clone());
            }
        }
    }

    /// The oldest invitation with its sender's card, once that is known. They come in the order they were taken.
    pub fn next_ready(&mut self) -> Option<(I, Option<AgentCard>)> {
        self.waiting.front()?.found.as_ref()?;
        let ready = self.waiting.pop_front()?;
        Some((ready.invitation, ready.found.flatten()))
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

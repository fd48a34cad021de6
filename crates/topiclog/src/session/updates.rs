//! What a client asked of its stream and has not been answered, in the order it came (API-252). Depends on `registrations`.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;

use super::registrations::RegistrationId;

/// Bytes of updates that may wait for earlier ones before the transport is asked to read no further.
pub(super) const WAITING_BYTES_LOW: usize = 1 << 20;

/// The most bytes of updates that wait for earlier ones, unless a single one is longer. They wait as they came: decoded, an
/// update of topics without a name is thirty times as long.
pub(super) const WAITING_BYTES_MAX: usize = 8 << 20;

/// Something that waits for the updates before it.
#[derive(Debug)]
pub(super) enum Waiting {
    /// The frame of an update, which was decoded once and is in order as far as that tells.
    Update(Bytes),
    /// The client sends nothing more.
    End,
}

/// What a registration is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Started,
    Applied(u64),
}

/// An update that waits for the heads of what it added.
#[derive(Debug)]
pub(super) struct Applying {
    pub(super) answer: Answer,
    /// What it newly registered, in the order of the request.
    pub(super) added: Vec<RegistrationId>,
    /// Places whose shards have not told their heads.
    pub(super) waits_for: BTreeSet<usize>,
}

/// The updates of a stream.
#[derive(Debug, Default)]
pub(super) struct Updates {
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    pub(super) applying: Option<Applying>,
    /// The id of the last update taken up.
    pub(super) last_id: u64,
    /// The client has ended its half; whatever comes after that is none of its requests.
    pub(super) is_ending: bool,
    /// It has, and every update before that is answered.
    pub(super) is_ended: bool,
}

impl Updates {
    /// Puts something behind what waits. Whether it found room.
    pub(super) fn push(&mut self, waiting: Waiting) -> bool {
        let length = waiting.length();
        if !self.waiting.is_empty() && self.waiting_bytes + length > WAITING_BYTES_MAX {
            return false;
        }
        self.waiting_bytes += length;
        self.is_ending |= matches!(waiting, Waiting::End);
        self.waiting.push_back(waiting);
        true
    }

    /// The next to take up, unless an earlier one is not answered yet.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        if self.applying.is_some() {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.waiting_bytes -= next.length();
        Some(next)
    }

    /// Whether an update that comes now can be taken up at once.
    pub(super) fn is_idle(&self) -> bool {
        self.applying.is_none() && self.waiting.is_empty()
    }

    /// Whether the transport should go on reading.
    pub(super) fn has_room(&self) -> bool {
        self.waiting_bytes < WAITING_BYTES_LOW
    }
}

impl Waiting {
    fn length(&self) -> usize {
        match self {
            Self::Update(frame) => frame.len(),
            Self::End => 0,
        }
    }
}

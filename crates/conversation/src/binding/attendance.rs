//! Whether messages can have been dropped while nobody read: the `feed_gap` of the design "conversation binding". Pure.
//!
//! The backend does not say that a cursor lies below what it kept. But it states with each envelope how long it keeps it, and
//! all envelopes of conversations are kept equally long: whoever has read within that time has missed nothing. So the client
//! remembers until when it has read, and takes a longer absence for a gap of every feed.

use conclave_harness::canonical_json;
use serde::{Deserialize, Serialize};

/// Milliseconds by which the remembered time may lag behind, so that it is not written with every message.
pub const SAVED_EVERY_MS: u64 = 600_000;

/// Nanoseconds of a millisecond.
const NS_OF_MS: u64 = 1_000_000;

/// Until when the feeds were read, and how long envelopes are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attendance {
    /// In milliseconds of the client's clock.
    followed_until_ms: u64,
    /// The shortest time any envelope was kept; none while that is unknown or without end.
    kept_for_ms: Option<u64>,
    /// What was saved last.
    #[serde(skip)]
    saved_ms: u64,
}

impl Attendance {
    /// What was saved; nothing is known where it does not decode.
    pub fn decode(bytes: &[u8]) -> Self {
        canonical_json::read(bytes).unwrap_or_default()
    }

    /// To be saved.
    pub fn encode(&self) -> Vec<u8> {
        // A struct of two numbers: its encoding cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// An envelope of a conversation, with the time the backend took it and the time up to which it is kept (0: without end).
    pub fn see_envelope(&mut self, server_ns: u64, expiry_ns: u64) {
        if expiry_ns > server_ns {
            let kept_ms = (expiry_ns - server_ns) / NS_OF_MS;
            self.kept_for_ms = Some(self.kept_for_ms.map_or(kept_ms, |before| before.min(kept_ms)));
        }
    }

    /// The feeds are read up to now. True when that is to be saved.
    pub fn follow(&mut self, now_ms: u64) -> bool {
        self.followed_until_ms = self.followed_until_ms.max(now_ms);
        let is_due = self.followed_until_ms >= self.saved_ms.saturating_add(SAVED_EVERY_MS);
        if is_due {
            self.saved_ms = self.followed_until_ms;
        }
        is_due
    }

    /// Whether an envelope may have been dropped between the last reading and now.
    pub fn may_have_missed(&self, now_ms: u64) -> bool {
        self.kept_for_ms
            .is_some_and(|kept_ms| now_ms.saturating_sub(self.followed_until_ms) >= kept_ms)
    }
}

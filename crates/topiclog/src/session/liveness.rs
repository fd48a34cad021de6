//! Whether the client is still there: keepalives, Pings and what has to answer them. Depends on nothing; the time comes in.

/// What to do when a stream may have been silent for its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// Break it, and look again after a whole interval.
    Break,
    /// Look again after so many milliseconds.
    Look(u32),
}

const NANOS_PER_MILLI: u64 = 1_000_000;

#[derive(Debug)]
pub(super) struct Liveness {
    interval_ms: u32,
    /// When the client took its last frame, in nanoseconds since the Unix epoch.
    taken_ns: u64,
    last_nonce: u64,
    ping: Option<Ping>,
    /// Looks in a row that found frames waiting and none taken since the look before.
    unread_looks: u32,
}

/// A Ping that is not answered.
#[derive(Clone, Copy, Debug)]
struct Ping {
    nonce: u64,
    /// It has left; before that nobody can answer.
    is_sent: bool,
}

impl Liveness {
    pub(super) fn new(interval_ms: u32, now_ns: u64) -> Self {
        Self {
            interval_ms,
            taken_ns: now_ns,
            last_nonce: 0,
            ping: None,
            unread_looks: 0,
        }
    }

    /// The client took a frame: a Ping with this nonce, if any.
    pub(super) fn took(&mut self, ping: Option<u64>, now_ns: u64) {
        self.taken_ns = now_ns;
        self.unread_looks = 0;
        if let Some(open) = self.ping.as_mut().filter(|open| Some(open.nonce) == ping) {
            open.is_sent = true;
        }
    }

    /// What to do about the silence since the client took its last frame, of which none waits (API-255).
    pub(super) fn silence(&self, now_ns: u64) -> Silence {
        let silent_ms = now_ns.saturating_sub(self.taken_ns) / NANOS_PER_MILLI;
        match u32::try_from(silent_ms) {
            Ok(silent_ms) if silent_ms < self.interval_ms => Silence::Look(self.interval_ms - silent_ms),
            _ => Silence::Break,
        }
    }

    /// The nonce of a new Ping, unless one is unanswered (API-257).
    pub(super) fn start_ping(&mut self) -> Option<u64> {
        if self.ping.is_some() {
            return None;
        }
        self.last_nonce += 1;
        self.ping = Some(Ping {
            nonce: self.last_nonce,
            is_sent: false,
        });
        Some(self.last_nonce)
    }

    /// The client answered a Ping.
    pub(super) fn answered(&mut self, nonce: u64) {
        self.ping.take_if(|ping| ping.nonce == nonce);
    }

    /// The nonce of the Ping that has left and was not answered.
    pub(super) fn awaited(&self) -> Option<u64> {
        self.ping.filter(|ping| ping.is_sent).map(|ping| ping.nonce)
    }

    /// A look at a stream with frames that wait, or without. How many in a row have found the client not reading.
    pub(super) fn look(&mut self, has_frame: bool) -> u32 {
        self.unread_looks = if has_frame { self.unread_looks + 1 } else { 0 };
        self.unread_looks
    }
}

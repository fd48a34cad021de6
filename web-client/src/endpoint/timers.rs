//! When the engine's timers are due. Pure.
//!
//! They are kept by deadline, and one timer of the browser stands for the earliest. A browser may be late by a minute in a
//! hidden page, and by hours when the computer slept: whatever is due then goes off, each timer once, and what the engine sets
//! in answer counts from then on. So throttling neither makes attempts faster nor loses one.

use conclave_conversation::engine::TimerId;

use crate::short_map::ShortMap;

/// How late the browser's timer may be, in milliseconds, before the lateness is taken for the computer's sleep. Browsers let
/// timers of hidden pages go off once a minute.
const SLEEP_MS: u64 = 90_000;

/// The timers that are set.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// Their deadlines, by the clock.
    set: ShortMap<TimerId, u64>,
    /// The latest time the clock showed.
    seen_ms: u64,
}

impl Timers {
    /// Sets a timer; it replaces the one of the same name.
    pub(super) fn set(&mut self, id: TimerId, at_ms: u64) {
        self.set.insert(id, at_ms);
    }

    /// Stops a timer.
    pub(super) fn cancel(&mut self, id: &TimerId) {
        self.set.remove(id);
    }

    /// The earliest deadline.
    pub(super) fn next_ms(&self) -> Option<u64> {
        self.set.iter().map(|(_, at_ms)| *at_ms).min()
    }

    /// Takes out what is due, the earliest first.
    pub(super) fn due(&mut self, now_ms: u64) -> Vec<TimerId> {
        // A clock that was put back takes the deadlines with it: they are as far away as they were.
        let back_ms = self.seen_ms.saturating_sub(now_ms);
        self.seen_ms = now_ms;
        for at_ms in self.set.values_mut() {
            *at_ms = at_ms.saturating_sub(back_ms);
        }
        let mut due: Vec<(u64, TimerId)> = Vec::new();
        self.set.retain(|id, at_ms| {
            let is_due = *at_ms <= now_ms;
            if is_due {
                due.push((*at_ms, *id));
            }
            !is_due
        });
        due.sort_by_key(|(at_ms, _)| *at_ms);
        due.into_iter().map(|(_, id)| id).collect()
    }
}

/// Whether a timer that was due at `at_ms` and goes off now slept with the computer.
pub(super) fn has_slept(at_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(at_ms) > SLEEP_MS
}

#[cfg(test)]
mod tests {
    use conclave_conversation::engine::RequestId;

    use super::*;

    fn id(number: u64) -> TimerId {
        TimerId::Attach(RequestId(number))
    }

    fn set(deadlines: &[u64]) -> Timers {
        let mut timers = Timers::default();
        for (number, at_ms) in (0..).zip(deadlines) {
            timers.set(id(number), *at_ms);
        }
        timers
    }

    // CONV-N02
    #[test]
    fn however_late_it_is_looked_at_a_timer_goes_off_once_and_in_its_turn() {
        let mut timers = set(&[3_000, 1_000, 2_000]);
        assert_eq!(timers.next_ms(), Some(1_000));
        assert_eq!(timers.due(999), []);
        assert_eq!(timers.due(3_600_000), [id(1), id(2), id(0)]);
        assert_eq!(timers.due(3_600_000), []);
        // What is set in answer counts from then on.
        timers.set(id(1), 3_602_000);
        assert_eq!(timers.due(3_601_999), []);
        assert_eq!(timers.due(3_602_000), [id(1)]);
        assert_eq!(timers.next_ms(), None);
    }

    // CONV-N02
    #[test]
    fn looking_early_or_often_makes_nothing_go_off_sooner() {
        let mut timers = set(&[1_000]);
        for now_ms in (0..1_000).step_by(10) {
            assert_eq!(timers.due(now_ms), []);
        }
        assert_eq!(timers.due(1_000), [id(0)]);
    }

    #[test]
    fn a_timer_that_is_set_again_or_stopped_has_one_deadline_or_none() {
        let mut timers = set(&[1_000, 1_500]);
        timers.set(id(0), 2_000);
        timers.cancel(&id(1));
        assert_eq!(timers.next_ms(), Some(2_000));
        assert_eq!(timers.due(1_999), []);
        assert_eq!(timers.due(2_000), [id(0)]);
    }

    // CONV-N02
    #[test]
    fn a_clock_that_is_put_back_keeps_nobody_waiting_longer() {
        let mut timers = Timers::default();
        assert_eq!(timers.due(10_000_000), []);
        timers.set(id(0), 10_001_000);
        assert_eq!(timers.due(4_000_000), []);
        assert_eq!(timers.next_ms(), Some(4_001_000));
        assert_eq!(timers.due(4_001_000), [id(0)]);
    }

    #[test]
    fn a_hidden_pages_slow_timers_are_no_sleep() {
        assert!(!has_slept(1_000, 61_000));
        assert!(has_slept(1_000, 3_600_000));
    }
}

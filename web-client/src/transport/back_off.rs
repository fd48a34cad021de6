//! How long to wait before the next attempt. Pure.

use std::time::Duration;

/// The delay after a first failure, before jitter.
const FIRST: Duration = Duration::from_millis(100);
/// The longest delay, before jitter.
pub(super) const LONGEST: Duration = Duration::from_secs(5);
/// Doublings after which [`LONGEST`] is reached.
const DOUBLINGS_MAX: u32 = 6;

/// Delays that double from 100 ms to 5 s, each spread by a fifth to either side so that clients do not come in step.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackOff {
    pub(super) failures: u32,
    /// Readings in a row that began and soon ended.
    brief: u32,
}

impl BackOff {
    /// The delay before the next attempt. `draw` is drawn evenly from `[0, 1)`.
    pub(crate) fn next_delay(&mut self, draw: f64) -> Duration {
        let delay = FIRST
            .saturating_mul(1 << self.failures.min(DOUBLINGS_MAX))
            .min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        delay.mul_f64(0.8 + 0.4 * draw)
    }

    /// How many attempts failed in a row before the next delay is asked for.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// An attempt succeeded. `is_brief`: what it began ended at once. A server may take every stream and end it; that counts
    /// as the failures of an attempt do.
    pub(crate) fn begun(&mut self, is_brief: bool) {
        self.failures = if is_brief { self.brief } else { 0 };
        self.brief = if is_brief { self.brief.saturating_add(1) } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_five_seconds_and_start_over_after_a_success() {
        let mut back_off = BackOff::default();
        let delays: Vec<u128> = (0..8).map(|_| back_off.next_delay(0.5).as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        back_off.begun(false);
        assert_eq!(back_off.next_delay(0.5), FIRST);
    }

    #[test]
    fn what_begins_and_ends_at_once_is_tried_again_less_and_less_often_and_forgets_earlier_failures() {
        let mut back_off = BackOff::default();
        let mut begun = |is_brief| {
            back_off.begun(is_brief);
            back_off.next_delay(0.5).as_millis()
        };
        let delays: Vec<u128> = (0..8).map(|_| begun(true)).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!([begun(false), begun(true), begun(true)], [100, 100, 200]);
        back_off.failures = 100;
        back_off.begun(true);
        assert_eq!(back_off.failures(), 2);
    }

    #[test]
    fn a_delay_is_spread_by_a_fifth_and_never_more() {
        let mut back_off = BackOff {
            failures: u32::MAX,
            brief: 0,
        };
        assert_eq!(back_off.next_delay(0.0), LONGEST.mul_f64(0.8));
        assert!(back_off.next_delay(0.999) < LONGEST.mul_f64(1.2));
    }
}

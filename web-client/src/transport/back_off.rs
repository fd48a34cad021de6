//! How long to wait before the next attempt. Pure.

use std::time::Duration;

/// The delay after a first failure, before jitter.
const FIRST: Duration = Duration::from_millis(100);
/// The longest delay, before jitter.
const LONGEST: Duration = Duration::from_secs(5);
/// Doublings after which [`LONGEST`] is reached.
const DOUBLINGS_MAX: u32 = 6;

/// Delays that double from 100 ms to 5 s, each spread by a fifth to either side so that clients do not come in step.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackOff {
    pub(super) failures: u32,
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

    /// An attempt succeeded.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
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
        back_off.reset();
        assert_eq!(back_off.next_delay(0.5), FIRST);
    }

    #[test]
    fn a_delay_is_spread_by_a_fifth_and_never_more() {
        let mut back_off = BackOff { failures: u32::MAX };
        assert_eq!(back_off.next_delay(0.0), LONGEST.mul_f64(0.8));
        assert!(back_off.next_delay(0.999) < LONGEST.mul_f64(1.2));
    }
}

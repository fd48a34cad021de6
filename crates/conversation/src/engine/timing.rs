//! The retry numbers of reference section 5. All times are milliseconds.

use conclave_harness::Randomness;
use conclave_harness::randomness::random_array;

/// Before the first resend of a proposal.
pub const RESEND_BASE_MS: u64 = 1_000;
/// How often a proposal is resent; each delay is twice the one before.
pub const RESENDS_MAX: u32 = 8;

/// Before the first retry of a catch-up request.
pub const CATCH_UP_BASE_MS: u64 = 1_000;
/// How often a catch-up request is repeated; each delay is twice the one before.
pub const CATCH_UP_RETRIES_MAX: u32 = 8;

/// How often one drain tries to send an envelope. Retries and lost retry identities share the count.
pub const SEND_ATTEMPTS_MAX: u32 = 3;
/// Between two attempts of one drain.
pub const SEND_ATTEMPT_SPACING_MS: u64 = 25;

/// Before the first drain after one that ran out of attempts; each delay is twice the one before.
pub const RECONNECT_BASE_MS: u64 = 100;
/// The longest delay between two drains, before jitter.
pub const RECONNECT_MAX_MS: u64 = 5_000;

/// How long a send waits for the Router.
pub const ATTACH_WAIT_MS: u64 = 45_000;

/// How long the caller of a send that is bound waits for the Router to take its envelopes. The post goes on without it.
pub const DELIVERY_WAIT_MS: u64 = 10_000;

/// How long a proposal or a locked action may be open before whoever watches is told that the conversation stands still. It
/// decides nothing else. Far longer than a post takes, and than a background page is slowed down by the usual second.
pub const STALL_WAIT_MS: u64 = 30_000;

/// `base_ms` doubled `doublings` times, times a uniform factor between 0.8 and 1.2.
pub(super) fn jittered(base_ms: u64, doublings: u32, randomness: &mut dyn Randomness) -> u64 {
    let delay = base_ms.saturating_mul(1 << doublings.min(20));
    let draw = u64::from(u16::from_be_bytes(random_array::<2>(randomness)));
    let factor_per_mille = 800 + draw * 400 / u64::from(u16::MAX);
    delay.saturating_mul(factor_per_mille) / 1_000
}

/// The delay before drain number `failures` after a failed one.
pub(super) fn reconnect_delay(failures: u32, randomness: &mut dyn Randomness) -> u64 {
    let doublings = failures.min(6);
    let capped = RECONNECT_BASE_MS
        .saturating_mul(1 << doublings)
        .min(RECONNECT_MAX_MS);
    jittered(capped, 0, randomness)
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_harness::randomness::SeededRandomness;

    #[test]
    fn delays_double_and_stay_within_a_fifth_of_their_nominal_length() {
        let mut randomness = SeededRandomness::new(1);
        for doublings in 0..RESENDS_MAX {
            let nominal = RESEND_BASE_MS << doublings;
            for _ in 0..100 {
                let delay = jittered(RESEND_BASE_MS, doublings, &mut randomness);
                assert!(
                    delay >= nominal * 4 / 5 && delay <= nominal * 6 / 5,
                    "{delay} of {nominal}"
                );
            }
        }
    }

    #[test]
    fn reconnecting_never_waits_longer_than_its_cap() {
        let mut randomness = SeededRandomness::new(2);
        for failures in 0..100 {
            assert!(reconnect_delay(failures, &mut randomness) <= RECONNECT_MAX_MS * 6 / 5);
        }
    }
}

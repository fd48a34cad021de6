//! When a key set is fetched, and how long it is good (AUTH-017 to AUTH-019, AUTH-034). Depends on [`crate::key_set`].
//!
//! A state machine. Whoever needs keys asks for the next [`Step`]; one asker at a time gets a [`Lease`] to fetch, and says
//! with [`KeySource::settle`] what came of it. A process of this deployment has no timers and sleeps between requests, so
//! what a long-lived server does at its start and on a clock is done by the requests that come:
//!
//! - the first request fetches, and all wait for it, up to 3 attempts 1 s apart; then the source is unavailable, and one
//!   attempt every 10 s may mend that;
//! - when a refresh is due one request fetches beside its own work. A process that made no attempt for longer than a refresh
//!   and its delay has slept: it fetches before it uses its set again;
//! - a failed refresh keeps the old set, until it is stale;
//! - a token that names an unknown key is refused, and may bring the next refresh forward, to at most one every 30 s.

use std::rc::Rc;

use crate::key_set::KeySet;

/// The time between refreshes unless configured otherwise, in seconds.
pub const DEFAULT_REFRESH_SECONDS: u32 = 300;
/// How long a set is used without a successful fetch unless configured otherwise, in seconds.
pub const DEFAULT_STALE_SECONDS_MAX: u32 = 3600;
/// How long one fetch may take, in milliseconds (AUTH-033).
pub const FETCH_DEADLINE_MS: u32 = 10_000;
/// How many attempts are made before a source without keys counts as unavailable (AUTH-017).
pub const FIRST_ATTEMPTS: u32 = 3;
/// The time between those attempts, in milliseconds.
pub const FIRST_RETRY_MS: u64 = 1_000;
/// The time after a failed fetch before the next, in milliseconds.
pub const RETRY_MS: u64 = 10_000;
/// The shortest time between a fetch and one for the sake of an unknown key, in milliseconds.
pub const UNKNOWN_KEY_REFRESH_MS: u64 = 30_000;
/// After how long a fetch that has not been settled counts as lost with whoever made it, in milliseconds.
pub const LEASE_MS: u64 = 2 * FETCH_DEADLINE_MS as u64;

const MS_PER_SECOND: u64 = 1_000;

/// How often a key set is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    refresh_seconds: u32,
    stale_seconds_max: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            refresh_seconds: DEFAULT_REFRESH_SECONDS,
            stale_seconds_max: DEFAULT_STALE_SECONDS_MAX,
        }
    }
}

/// Times in which a set would be stale before its refresh had a chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// Not even a second between refreshes.
    #[error("a key set is refreshed every second at most")]
    Refresh,
    /// Stale before the refresh, its random delay and one fetch are over.
    #[error("a key set that is refreshed every {refresh_seconds} s may not be stale before {at_least} s")]
    Stale {
        /// The time between refreshes.
        refresh_seconds: u32,
        /// The least that is accepted.
        at_least: u64,
    },
}

impl Timing {
    /// Refreshes every `refresh_seconds` and a random delay of up to a tenth; gives a set up after `stale_seconds_max`.
    ///
    /// # Errors
    /// The times contradict each other (AUTH-034).
    pub fn new(refresh_seconds: u32, stale_seconds_max: u32) -> Result<Self, TimingError> {
        if refresh_seconds == 0 {
            return Err(TimingError::Refresh);
        }
        let fetch_seconds = u64::from(FETCH_DEADLINE_MS) / MS_PER_SECOND;
        let at_least = u64::from(refresh_seconds) + u64::from(refresh_seconds.div_ceil(10)) + fetch_seconds;
        if u64::from(stale_seconds_max) < at_least {
            return Err(TimingError::Stale {
                refresh_seconds,
                at_least,
            });
        }
        Ok(Self {
            refresh_seconds,
            stale_seconds_max,
        })
    }

    fn refresh_ms(self) -> u64 {
        u64::from(self.refresh_seconds) * MS_PER_SECOND
    }

    fn delay_max_ms(self) -> u64 {
        self.refresh_ms() / 10
    }

    /// The part of the longest delay that `random` is of all numbers. The longest does not fit 32 bits.
    fn delay_ms(self, random: u32) -> u64 {
        let (whole, part) = (
            self.delay_max_ms() >> u32::BITS,
            self.delay_max_ms() & u64::from(u32::MAX),
        );
        whole * u64::from(random) + ((part * u64::from(random)) >> u32::BITS)
    }
}

/// The right, and the duty, to fetch once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a fetch that nobody makes holds everybody up until the lease ends"]
pub struct Lease(u64);

/// What a request is to do for its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Use these keys.
    Use(Rc<KeySet>),
    /// Use these keys, and fetch new ones beside that.
    UseAndFetch(Rc<KeySet>, Lease),
    /// Fetch, settle and ask again.
    Fetch(Lease),
    /// Somebody fetches, or an attempt is due soon: ask again in a moment.
    Wait,
    /// There are no keys, and none will come soon.
    Unavailable,
}

/// The keys of a deployment whose key set is fetched.
#[derive(Clone, Debug)]
pub struct KeySource {
    timing: Timing,
    keys: Option<Fetched>,
    /// The first set of this process, which the configuration publishes (CONF-068).
    first: Option<Rc<KeySet>>,
    /// Failed attempts since the last success.
    failures: u32,
    /// When the last attempt was over, whatever came of it.
    last_attempt_ms: u64,
    /// Before this no attempt is made.
    next_attempt_ms: u64,
    /// Before this none is made for the sake of an unknown key. Of its own, so that whoever sends made-up key ids does not put
    /// off the attempts that are due.
    next_unknown_key_ms: u64,
    flight: Option<Flight>,
    leases: u64,
}

#[derive(Clone, Debug)]
struct Fetched {
    keys: Rc<KeySet>,
    at_ms: u64,
    refresh_at_ms: u64,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    lease: Lease,
    since_ms: u64,
}

impl KeySource {
    /// A source that has fetched nothing yet.
    #[must_use]
    pub fn new(timing: Timing) -> Self {
        Self {
            timing,
            keys: None,
            first: None,
            failures: 0,
            last_attempt_ms: 0,
            next_attempt_ms: 0,
            next_unknown_key_ms: 0,
            flight: None,
            leases: 0,
        }
    }

    /// The keys of the first successful fetch, or `None` before it.
    #[must_use]
    pub fn first_keys(&self) -> Option<&Rc<KeySet>> {
        self.first.as_ref()
    }

    /// How many keys are in use.
    #[must_use]
    pub fn key_count(&self) -> usize {
        self.keys.as_ref().map_or(0, |fetched| fetched.keys.keys().len())
    }

    /// What a request does for its keys at `now_ms`, milliseconds since the Unix epoch.
    pub fn step(&mut self, now_ms: u64) -> Step {
        self.give_up_stale(now_ms);
        let Some(fetched) = self.keys.clone() else {
            return match self.lease(now_ms) {
                Some(lease) => Step::Fetch(lease),
                None if self.flight.is_some() || self.failures < FIRST_ATTEMPTS => Step::Wait,
                None => Step::Unavailable,
            };
        };
        if now_ms < fetched.refresh_at_ms {
            return Step::Use(fetched.keys);
        }
        let overslept_at_ms = self.last_attempt_ms
            + self.timing.refresh_ms()
            + self.timing.delay_max_ms()
            + u64::from(FETCH_DEADLINE_MS);
        let has_overslept = now_ms >= overslept_at_ms;
        match self.lease(now_ms) {
            Some(lease) if has_overslept => Step::Fetch(lease),
            Some(lease) => Step::UseAndFetch(fetched.keys, lease),
            None if has_overslept => Step::Wait,
            None => Step::Use(fetched.keys),
        }
    }

    /// A token named a key that is not in the set. A lease if a newer set may be asked for now.
    pub fn unknown_key(&mut self, now_ms: u64) -> Option<Lease> {
        let fetched_at_ms = self.keys.as_ref()?.at_ms;
        let earliest_ms = self
            .next_unknown_key_ms
            .max(fetched_at_ms + UNKNOWN_KEY_REFRESH_MS);
        if now_ms < earliest_ms {
            return None;
        }
        let lease = self.lease(now_ms)?;
        // Also if it fails: the next one waits as long.
        self.next_unknown_key_ms = now_ms + UNKNOWN_KEY_REFRESH_MS;
        Some(lease)
    }

    /// What came of a fetch. `random` spreads the refreshes of many processes; any value will do.
    ///
    /// A fetch that was given up for lost is not listened to any more.
    pub fn settle(&mut self, lease: Lease, fetched: Option<KeySet>, now_ms: u64, random: u32) {
        if self.flight.is_none_or(|flight| flight.lease != lease) {
            return;
        }
        self.flight = None;
        match fetched {
            Some(keys) => {
                let keys = Rc::new(keys);
                self.first.get_or_insert_with(|| Rc::clone(&keys));
                self.failures = 0;
                self.last_attempt_ms = now_ms;
                self.next_attempt_ms = now_ms;
                let delay_ms = self.timing.delay_ms(random);
                self.keys = Some(Fetched {
                    keys,
                    at_ms: now_ms,
                    refresh_at_ms: now_ms + self.timing.refresh_ms() + delay_ms,
                });
            }
            None => self.failed(now_ms),
        }
    }

    fn failed(&mut self, at_ms: u64) {
        self.failures = self.failures.saturating_add(1);
        self.last_attempt_ms = at_ms;
        let is_first = self.keys.is_none() && self.failures < FIRST_ATTEMPTS;
        let wait_ms = if is_first { FIRST_RETRY_MS } else { RETRY_MS };
        self.next_attempt_ms = at_ms + wait_ms;
    }

    /// A set nobody could renew is no longer believed; what follows is a start from nothing.
    fn give_up_stale(&mut self, now_ms: u64) {
        let stale_ms = u64::from(self.timing.stale_seconds_max) * MS_PER_SECOND;
        if self
            .keys
            .as_ref()
            .is_some_and(|fetched| now_ms > fetched.at_ms + stale_ms)
        {
            self.keys = None;
        }
    }

    /// The right to fetch, if nobody has it and an attempt is due.
    fn lease(&mut self, now_ms: u64) -> Option<Lease> {
        if let Some(flight) = self.flight {
            let lost_at_ms = flight.since_ms + LEASE_MS;
            if now_ms < lost_at_ms {
                return None;
            }
            self.flight = None;
            // Then, and not now: it may be long ago.
            self.failed(lost_at_ms);
        }
        if now_ms < self.next_attempt_ms {
            return None;
        }
        self.leases += 1;
        let lease = Lease(self.leases);
        self.flight = Some(Flight {
            lease,
            since_ms: now_ms,
        });
        Some(lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        algorithm::Algorithm,
        key_set::{KeyMaterial, SigningKey},
    };

    const START: u64 = 1_000_000_000;

    fn set(kid: &str) -> KeySet {
        KeySet::new(vec![SigningKey {
            kid: Some(kid.to_owned()),
            algorithm: Algorithm::EdDsa,
            material: KeyMaterial::Spki(Vec::new()),
        }])
        .expect("one key")
    }

    fn using(kid: &str) -> Step {
        Step::Use(Rc::new(set(kid)))
    }

    fn fetch(step: Step) -> Lease {
        match step {
            Step::Fetch(lease) | Step::UseAndFetch(_, lease) => lease,
            other => panic!("{other:?} is no fetch"),
        }
    }

    fn source_with(kid: &str) -> KeySource {
        let mut source = KeySource::new(Timing::default());
        let lease = fetch(source.step(START));
        source.settle(lease, Some(set(kid)), START, 0);
        source
    }

    // AUTH-034
    #[test]
    fn times_that_contradict_each_other_are_refused() {
        assert!(Timing::new(300, 340).is_ok());
        assert!(Timing::new(301, 342).is_ok());
        for (refresh, stale, at_least) in [
            (300, 339, 340),
            (301, 341, 342),
            (1, 11, 12),
            (u32::MAX, u32::MAX, 4_724_464_035),
        ] {
            let refused = Timing::new(refresh, stale);
            let error = TimingError::Stale {
                refresh_seconds: refresh,
                at_least,
            };
            assert_eq!(refused, Err(error), "{refresh} {stale}");
        }
        assert_eq!(Timing::new(0, 3600), Err(TimingError::Refresh));
    }

    #[test]
    fn one_request_fetches_and_the_others_wait_for_it() {
        let mut source = KeySource::new(Timing::default());
        let lease = fetch(source.step(START));
        assert_eq!(source.step(START), Step::Wait);
        assert_eq!(source.step(START + 9_999), Step::Wait);
        assert_eq!(source.key_count(), 0);
        source.settle(lease, Some(set("a")), START + 10, 0);
        assert_eq!(source.step(START + 11), using("a"));
        assert_eq!(source.key_count(), 1);
    }

    // AUTH-017
    #[test]
    fn a_source_that_cannot_be_fetched_is_unavailable_after_three_attempts_a_second_apart() {
        let mut source = KeySource::new(Timing::default());
        let mut now = START;
        for attempt in 1..=FIRST_ATTEMPTS {
            let lease = fetch(source.step(now));
            source.settle(lease, None, now, 0);
            if attempt < FIRST_ATTEMPTS {
                assert_eq!(source.step(now + FIRST_RETRY_MS - 1), Step::Wait);
                now += FIRST_RETRY_MS;
            }
        }
        assert_eq!(source.step(now), Step::Unavailable);
        assert_eq!(source.step(now + RETRY_MS - 1), Step::Unavailable);
        now += RETRY_MS;
        let lease = fetch(source.step(now));
        assert_eq!(source.step(now), Step::Wait, "an attempt may mend it");
        source.settle(lease, Some(set("a")), now, 0);
        assert_eq!(source.step(now), using("a"));
    }

    // AUTH-018
    #[test]
    fn a_refresh_is_due_after_its_time_and_a_random_tenth_and_replaces_the_whole_set() {
        for (random, due) in [(0, 300_000), (u32::MAX, 329_999), (1 << 31, 315_000)] {
            let mut source = KeySource::new(Timing::default());
            let lease = fetch(source.step(START));
            source.settle(lease, Some(set("a")), START, random);
            assert_eq!(source.step(START + due - 1), using("a"));
            let Step::UseAndFetch(keys, lease) = source.step(START + due) else {
                panic!("a refresh is due");
            };
            assert_eq!(*keys, set("a"));
            assert_eq!(
                source.step(START + due),
                using("a"),
                "one refreshes, all others use"
            );
            source.settle(lease, Some(set("b")), START + due, 0);
            assert_eq!(source.step(START + due), using("b"));
            assert_eq!(source.first_keys().map(|keys| (**keys).clone()), Some(set("a")));
        }
    }

    // AUTH-018, AUTH-019
    #[test]
    fn a_failed_refresh_keeps_the_old_set_until_it_is_stale() {
        let mut source = source_with("a");
        let mut now = START + 300_000;
        let mut attempts = 0;
        while now <= START + 3_600_000 {
            match source.step(now) {
                Step::Use(keys) => assert_eq!(*keys, set("a")),
                Step::UseAndFetch(keys, lease) => {
                    assert_eq!(*keys, set("a"));
                    source.settle(lease, None, now, 0);
                    attempts += 1;
                }
                other => panic!("{other:?} at {now}"),
            }
            now += 1_000;
        }
        assert_eq!(attempts, 331, "one every 10 s");
        now = START + 3_600_001;
        let step = source.step(now);
        assert!(matches!(step, Step::Unavailable | Step::Fetch(_)), "{step:?}");
        assert_eq!(source.key_count(), 0);
    }

    #[test]
    fn a_process_that_slept_fetches_before_it_uses_its_keys_again() {
        let mut source = source_with("a");
        let lease = fetch(source.step(START + 340_000));
        assert_eq!(source.step(START + 340_000), Step::Wait);
        source.settle(lease, Some(set("b")), START + 340_100, 0);
        assert_eq!(source.step(START + 340_100), using("b"));

        let mut source = source_with("a");
        let lease = fetch(source.step(START + 1_000_000));
        source.settle(lease, None, START + 1_000_000, 0);
        assert_eq!(
            source.step(START + 1_000_001),
            using("a"),
            "the old set is kept when it fails"
        );

        let mut source = source_with("a");
        assert!(
            matches!(source.step(START + 4_000_000), Step::Fetch(_)),
            "stale by sleeping"
        );
        assert_eq!(source.step(START + 4_000_000), Step::Wait);
    }

    #[test]
    fn an_unknown_key_brings_a_refresh_forward_once_in_thirty_seconds() {
        let mut source = KeySource::new(Timing::default());
        assert_eq!(source.unknown_key(START), None, "nothing was fetched yet");
        let mut source = source_with("a");
        assert_eq!(source.unknown_key(START + UNKNOWN_KEY_REFRESH_MS - 1), None);
        let now = START + UNKNOWN_KEY_REFRESH_MS;
        let lease = source.unknown_key(now).expect("a lease");
        assert_eq!(source.unknown_key(now), None, "one at a time");
        source.settle(lease, None, now + 5, 0);
        assert_eq!(source.step(now + 6), using("a"));
        assert_eq!(source.unknown_key(now + UNKNOWN_KEY_REFRESH_MS - 1), None);
        let now = now + UNKNOWN_KEY_REFRESH_MS;
        let lease = source.unknown_key(now).expect("another lease");
        source.settle(lease, Some(set("b")), now, 0);
        assert_eq!(source.step(now), using("b"));
        assert_eq!(source.unknown_key(now + UNKNOWN_KEY_REFRESH_MS - 1), None);
    }

    #[test]
    fn a_fetch_that_is_never_settled_is_made_by_another() {
        let mut source = KeySource::new(Timing::default());
        let lost = fetch(source.step(START));
        assert_eq!(source.step(START + LEASE_MS - 1), Step::Wait);
        assert_eq!(
            source.step(START + LEASE_MS),
            Step::Wait,
            "the next attempt is a second away"
        );
        let lease = fetch(source.step(START + LEASE_MS + FIRST_RETRY_MS));
        source.settle(lost, Some(set("late")), START + LEASE_MS + FIRST_RETRY_MS, 0);
        assert_eq!(source.key_count(), 0, "nobody waits for it any more");
        source.settle(lease, Some(set("a")), START + LEASE_MS + FIRST_RETRY_MS, 0);
        assert_eq!(source.step(START + LEASE_MS + FIRST_RETRY_MS), using("a"));
    }

    #[test]
    fn a_process_that_slept_after_a_failed_attempt_fetches_before_it_uses_its_keys_again() {
        let mut source = source_with("a");
        let due = START + 300_000;
        let lease = fetch(source.step(due));
        source.settle(lease, None, due, 0);
        assert_eq!(
            source.step(due + 9_999),
            using("a"),
            "awake, and the next attempt is to come"
        );
        let woken = due + 340_000;
        let step = source.step(woken);
        assert!(matches!(step, Step::Fetch(_)), "{step:?}");
        assert_eq!(source.step(woken), Step::Wait);
        source.settle(fetch(step), None, woken, 0);
        assert_eq!(
            source.step(woken),
            using("a"),
            "the old set is kept when it fails"
        );
    }

    #[test]
    fn a_process_that_slept_through_its_own_fetch_fetches_before_it_uses_its_keys_again() {
        let mut source = source_with("a");
        let lost = fetch(source.step(START + 300_000));
        let woken = START + 1_000_000;
        let step = source.step(woken);
        assert!(matches!(step, Step::Fetch(_)), "{step:?}");
        assert_eq!(source.step(woken + 25), Step::Wait);
        source.settle(lost, Some(set("late")), woken + 50, 0);
        assert_eq!(source.step(woken + 50), Step::Wait);
        source.settle(fetch(step), Some(set("b")), woken + 60, 0);
        assert_eq!(source.step(woken + 60), using("b"));
    }

    // AUTH-018
    #[test]
    fn an_unknown_key_does_not_put_off_the_attempts_that_are_due() {
        let mut source = source_with("a");
        let lease = source.unknown_key(START + 295_000).expect("a lease");
        source.settle(lease, None, START + 295_000, 0);
        assert_eq!(source.step(START + 304_999), using("a"));
        assert!(matches!(source.step(START + 305_000), Step::UseAndFetch(_, _)));
    }

    // AUTH-018
    #[test]
    fn the_longest_time_between_refreshes_has_a_delay_too() {
        let refresh_seconds = 3_900_000_000;
        let mut source = KeySource::new(Timing::new(refresh_seconds, u32::MAX).expect("times"));
        let lease = fetch(source.step(START));
        source.settle(lease, Some(set("a")), START, u32::MAX);
        let due = START + u64::from(refresh_seconds) * 1_100;
        assert_eq!(source.step(due - 1_000), using("a"));
        assert!(matches!(source.step(due), Step::UseAndFetch(_, _)));
    }
}

//! How often a client may send frames of one kind (API-258). Depends on nothing; the time comes in.

/// One token, in the unit the bucket counts in: what a rate of one a second adds in a nanosecond is one part.
const PARTS_PER_TOKEN: u64 = 1_000_000_000;

/// A bucket of tokens that fills at a rate, up to its burst. A frame takes one.
#[derive(Debug)]
pub(super) struct Bucket {
    per_second: u64,
    parts_max: u64,
    parts: u64,
    /// When it was last filled, in nanoseconds since the Unix epoch.
    filled_ns: u64,
}

impl Bucket {
    /// A full bucket of `burst` tokens that gets `per_second` back.
    pub(super) fn new(per_second: u32, burst: u32, now_ns: u64) -> Self {
        let parts_max = u64::from(burst) * PARTS_PER_TOKEN;
        Self {
            per_second: per_second.into(),
            parts_max,
            parts: parts_max,
            filled_ns: now_ns,
        }
    }

    /// Takes a token, if there is one. A clock that was set back adds nothing, and counts from there.
    pub(super) fn take(&mut self, now_ns: u64) -> bool {
        let passed_ns = now_ns.saturating_sub(self.filled_ns);
        self.filled_ns = now_ns;
        let filled = self
            .parts
            .saturating_add(passed_ns.saturating_mul(self.per_second));
        self.parts = filled.min(self.parts_max);
        let Some(left) = self.parts.checked_sub(PARTS_PER_TOKEN) else {
            return false;
        };
        self.parts = left;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn taken_at(bucket: &mut Bucket, now_ns: u64) -> usize {
        std::iter::repeat_with(|| bucket.take(now_ns))
            .take_while(|taken| *taken)
            .count()
    }

    // API-258
    #[test]
    fn a_bucket_gives_its_burst_at_once_and_then_what_its_rate_brings() {
        let mut bucket = Bucket::new(10, 100, 5);
        assert_eq!(taken_at(&mut bucket, 5), 100);
        assert_eq!(taken_at(&mut bucket, 5 + SECOND_NS / 10 - 1), 0);
        assert_eq!(taken_at(&mut bucket, 5 + SECOND_NS / 10), 1);
        assert_eq!(taken_at(&mut bucket, 5 + SECOND_NS / 10 + 2 * SECOND_NS), 20);
        assert_eq!(taken_at(&mut bucket, u64::MAX), 100, "never more than the burst");
    }

    #[test]
    fn a_clock_that_is_set_back_costs_no_more_than_the_time_it_stood() {
        let mut bucket = Bucket::new(10, 1, 100 * SECOND_NS);
        assert_eq!(taken_at(&mut bucket, 100 * SECOND_NS), 1);
        assert_eq!(taken_at(&mut bucket, SECOND_NS), 0);
        assert_eq!(taken_at(&mut bucket, SECOND_NS + SECOND_NS / 10), 1);
    }

    #[test]
    fn the_largest_numbers_are_counted_too() {
        let mut bucket = Bucket::new(u32::MAX, u32::MAX, 0);
        assert!((0..1_000).all(|n| bucket.take(n)));
    }
}

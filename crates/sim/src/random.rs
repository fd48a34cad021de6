//! Seeded randomness: the only source of chance in a simulation, so that a seed replays it. Depends on nothing.

use std::cell::Cell;

/// A SplitMix64 generator. Everything that draws from one must draw in a fixed order.
#[derive(Debug)]
pub struct Random(Cell<u64>);

impl Random {
    /// A generator whose whole sequence is fixed by `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // The first draw separates neighbouring seeds.
        let random = Self(Cell::new(seed ^ 0x5851_f42d_4c95_7f2d));
        random.next();
        random
    }

    /// Sixty-four random bits.
    pub fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 when the bound is 0.
    pub fn below(&self, bound: usize) -> usize {
        usize::try_from(self.next() >> 1).unwrap_or(0) % bound.max(1)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// True in `per_mille` of a thousand draws.
    pub fn chance(&self, per_mille: u64) -> bool {
        // Draws even at 0, so that a fault that is switched off changes nothing else.
        self.next() % 1000 < per_mille
    }

    /// One of `choices`, which is not empty.
    pub fn pick<'a, T>(&self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Fills `bytes`.
    pub fn fill(&self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.next().to_le_bytes()[0]);
    }
}

//! A seeded source of numbers and damage. Depends on nothing.

/// SplitMix64: the same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A source from a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        usize::try_from(self.draw() % bound).unwrap_or(0)
    }

    /// One of some items, of which there is at least one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Whether something with a chance of one in some number happens.
    pub fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    /// Bytes with up to three changes: one overwritten, put in, taken out, or the end cut off or continued. Small values
    /// are put in more often, because lengths, kinds and presence bytes are small.
    pub fn damage(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        for _ in 0..self.below(4) {
            let at = self.below(damaged.len() + 1);
            let value = if self.one_in(2) {
                self.below(5)
            } else {
                self.below(256)
            };
            let value = u8::try_from(value).unwrap_or(0);
            match self.below(8) {
                0 => damaged.insert(at, value),
                1 if at < damaged.len() => drop(damaged.remove(at)),
                2 if self.one_in(4) => damaged.truncate(at),
                3 if self.one_in(4) => damaged.push(value),
                _ => {
                    if let Some(byte) = damaged.get_mut(at) {
                        *byte = value;
                    }
                }
            }
        }
        damaged
    }
}

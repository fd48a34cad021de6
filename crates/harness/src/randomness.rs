//! Where random bytes come from: the caller. The browser, the Worker and the tests each bring their own source.

/// A source of bytes that nobody can predict.
pub trait Randomness {
    /// Overwrites all of `bytes`.
    fn fill(&mut self, bytes: &mut [u8]);
}

impl<R: Randomness + ?Sized> Randomness for &mut R {
    fn fill(&mut self, bytes: &mut [u8]) {
        (**self).fill(bytes);
    }
}

impl<R: Randomness + ?Sized> Randomness for Box<R> {
    fn fill(&mut self, bytes: &mut [u8]) {
        (**self).fill(bytes);
    }
}

/// Draws `N` bytes.
pub fn random_array<const N: usize>(randomness: &mut (impl Randomness + ?Sized)) -> [u8; N] {
    let mut bytes = [0; N];
    randomness.fill(&mut bytes);
    bytes
}

/// The same bytes for the same seed, for ever: SHA-256 of the seed and a counter. Anyone can predict it; it is for
/// tests and the simulation.
#[cfg(any(test, feature = "test-support"))]
#[derive(Clone, Debug)]
pub struct SeededRandomness {
    seed: [u8; 32],
    counter: u64,
    block: [u8; 32],
    used: usize,
}

#[cfg(any(test, feature = "test-support"))]
impl SeededRandomness {
    /// A source that `seed` alone determines.
    pub fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_be_bytes());
        Self {
            seed: bytes,
            counter: 0,
            block: [0; 32],
            used: 32,
        }
    }
}

#[cfg(any(test, feature = "test-support"))]
impl Randomness for SeededRandomness {
    fn fill(&mut self, bytes: &mut [u8]) {
        use sha2::{Digest, Sha256};
        for byte in bytes {
            if self.used == self.block.len() {
                let hash = Sha256::new()
                    .chain_update(self.seed)
                    .chain_update(self.counter.to_be_bytes());
                self.block = hash.finalize().into();
                self.counter += 1;
                self.used = 0;
            }
            *byte = self.block[self.used];
            self.used += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_bytes_however_they_are_drawn() {
        let whole: [u8; 100] = random_array(&mut SeededRandomness::new(7));
        let mut source = SeededRandomness::new(7);
        let mut pieces = Vec::new();
        for length in [1, 0, 31, 33, 35] {
            let mut piece = vec![0; length];
            source.fill(&mut piece);
            pieces.extend(piece);
        }
        assert_eq!(whole.as_slice(), pieces);
        assert_ne!(whole, random_array::<100>(&mut SeededRandomness::new(8)));
    }
}

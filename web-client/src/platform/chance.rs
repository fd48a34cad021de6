//! Randomness from the browser's generator.

use conclave_harness::Randomness;
use js_sys::Uint8Array;

use super::globals;

/// The most bytes `getRandomValues` gives at once.
const CHUNK_BYTES: usize = 65_536;

/// `crypto.getRandomValues`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BrowserRandomness;

impl Randomness for BrowserRandomness {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(CHUNK_BYTES) {
            let length = u32::try_from(chunk.len()).expect("a chunk is at most 65,536 bytes");
            globals::get_random_values(&Uint8Array::new_with_length(length)).copy_to(chunk);
        }
    }
}

/// A number drawn evenly from `[0, 1)`, for jitter.
pub(crate) fn unit_interval() -> f64 {
    js_sys::Math::random()
}

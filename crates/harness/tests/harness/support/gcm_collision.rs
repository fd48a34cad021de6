//! AES-GCM does not commit to its key: how a dishonest sender makes one ciphertext for two keys.

use aes_gcm::aes::{
    Aes256,
    cipher::{BlockEncrypt, KeyInit},
};

/// A ciphertext of four blocks, and the tag it has under both keys. The tags differ by a polynomial in the two hash
/// keys that is linear in the last block, which is chosen to make the difference vanish.
pub(crate) fn collision(keys: &[[u8; 32]; 2], iv: &[u8; 12], header: &[u8]) -> (Vec<u8>, [u8; 16]) {
    let mut ciphertext = vec![0x77; 64];
    ciphertext[48..].fill(0);
    let block = |key: &[u8; 32], input: u128| {
        let mut block = input.to_be_bytes().into();
        Aes256::new(key.into()).encrypt_block(&mut block);
        u128::from_be_bytes(block.into())
    };
    let mut counter = [0; 16];
    counter[..12].copy_from_slice(iv);
    counter[15] = 1;
    let counter = u128::from_be_bytes(counter);
    let tag = |key: &[u8; 32], ciphertext: &[u8]| {
        let hash_key = block(key, 0);
        let lengths = ((header.len() as u128 * 8) << 64) | (ciphertext.len() as u128 * 8);
        let blocks = header.chunks(16).chain(ciphertext.chunks(16)).map(|chunk| {
            let mut padded = [0; 16];
            padded[..chunk.len()].copy_from_slice(chunk);
            u128::from_be_bytes(padded)
        });
        let hash = blocks
            .chain([lengths])
            .fold(0, |hash, block| multiply(hash ^ block, hash_key));
        hash ^ block(key, counter)
    };
    let difference = tag(&keys[0], &ciphertext) ^ tag(&keys[1], &ciphertext);
    let square = |key: &[u8; 32]| multiply(block(key, 0), block(key, 0));
    let last = multiply(difference, invert(square(&keys[0]) ^ square(&keys[1])));
    ciphertext[48..].copy_from_slice(&last.to_be_bytes());
    let tags = keys.map(|key| tag(&key, &ciphertext));
    assert_eq!(tags[0], tags[1]);
    (ciphertext, tags[0].to_be_bytes())
}

/// Multiplication in GCM's field, whose bits run from the most significant.
fn multiply(left: u128, mut right: u128) -> u128 {
    const REDUCTION: u128 = 0xe1 << 120;
    let mut product = 0;
    for bit in (0..128).rev() {
        if (left >> bit) & 1 == 1 {
            product ^= right;
        }
        right = if right & 1 == 1 {
            (right >> 1) ^ REDUCTION
        } else {
            right >> 1
        };
    }
    product
}

/// `value` to the power `2^128 - 2`.
fn invert(value: u128) -> u128 {
    let mut power = value;
    let mut inverse = 1 << 127;
    for _ in 1..128 {
        power = multiply(power, power);
        inverse = multiply(inverse, power);
    }
    inverse
}

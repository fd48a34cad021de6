//! Verdicts that were reached before. Depends on `identity` for accounts.
//!
//! A verdict about the state of a block stays what it is, and the hash of the block names that state, so nothing here is
//! ever wrong: not after a reorganisation, not with another node. Belongs to one process; losing it costs time alone.

use std::{collections::HashMap, mem};

use conclave_identity::AccountId;
use sha2::{Digest as _, Sha256};

/// How many verdicts are kept at most.
pub const VERDICTS_MAX: usize = 10_000;

/// What a verdict is about, in 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VerdictKey([u8; 32]);

impl VerdictKey {
    /// The key of a signature of `hash` by an account at the block with this hash.
    #[must_use]
    pub fn new(account: AccountId, block_hash: &[u8; 32], hash: &[u8; 32], signature: &[u8]) -> VerdictKey {
        // Every part but the last has a fixed length, so no two questions give the same bytes.
        VerdictKey(
            Sha256::new()
                .chain_update(account.chain_id.to_be_bytes())
                .chain_update(account.address.as_bytes())
                .chain_update(block_hash)
                .chain_update(hash)
                .chain_update(signature)
                .finalize()
                .into(),
        )
    }
}

/// Verdicts in two generations: when the young one is full it becomes the old one, and the old one is forgotten. What is
/// used moves to the young one.
#[derive(Debug, Default)]
pub struct VerdictMemo {
    young: HashMap<VerdictKey, bool>,
    old: HashMap<VerdictKey, bool>,
}

impl VerdictMemo {
    /// The verdict, if it is remembered.
    pub fn get(&mut self, key: VerdictKey) -> Option<bool> {
        if let Some(verdict) = self.young.get(&key) {
            return Some(*verdict);
        }
        let verdict = self.old.remove(&key)?;
        self.put(key, verdict);
        Some(verdict)
    }

    /// Remembers a verdict.
    pub fn put(&mut self, key: VerdictKey, is_valid: bool) {
        if self.young.len() >= VERDICTS_MAX / 2 {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, is_valid);
    }

    /// How many verdicts are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> VerdictKey {
        let account =
            AccountId::parse("eip155:1:0x1111111111111111111111111111111111111111").expect("an account");
        VerdictKey::new(account, &[1; 32], &[2; 32], &number.to_be_bytes())
    }

    #[test]
    fn what_is_used_stays_and_no_more_than_the_bound_is_kept() {
        let mut memo = VerdictMemo::default();
        assert!(memo.is_empty());
        for number in 0..3 * VERDICTS_MAX {
            memo.put(key(number), number.is_multiple_of(2));
            assert_eq!(memo.get(key(0)), Some(true));
            assert!(memo.len() <= VERDICTS_MAX);
        }
        assert_eq!(memo.get(key(1)), None);
        assert_eq!(memo.get(key(3 * VERDICTS_MAX - 1)), Some(false));
    }

    #[test]
    fn a_verdict_is_about_one_chain_account_block_hash_and_signature() {
        let account = |text: &str| AccountId::parse(text).expect("an account");
        let here = account("eip155:1:0x1111111111111111111111111111111111111111");
        let keys = [
            VerdictKey::new(here, &[1; 32], &[2; 32], &[3]),
            VerdictKey::new(here, &[2; 32], &[2; 32], &[3]),
            VerdictKey::new(here, &[1; 32], &[1; 32], &[3]),
            VerdictKey::new(here, &[1; 32], &[2; 32], &[]),
            VerdictKey::new(
                account("eip155:2:0x1111111111111111111111111111111111111111"),
                &[1; 32],
                &[2; 32],
                &[3],
            ),
            VerdictKey::new(
                account("eip155:1:0x2111111111111111111111111111111111111111"),
                &[1; 32],
                &[2; 32],
                &[3],
            ),
        ];
        for (index, one) in keys.iter().enumerate() {
            assert!(keys[index + 1..].iter().all(|other| other != one));
        }
    }
}

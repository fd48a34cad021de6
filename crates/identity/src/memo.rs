//! What was verified before: association states by the hash of the log that led to them. Depends on states.
//!
//! A log grows at its end only, and verifying it needs nothing but its bytes. So a state that was reached once by
//! verifying a prefix is the state of that prefix for ever, and only what follows it is verified. Belongs to one process;
//! losing it costs time alone.

use std::{collections::HashMap, sync::Arc};

use sha2::{Digest as _, Sha256};

use crate::state::AssociationState;

/// The hash of a prefix of a log: each entry's message hash is chained to the hash of what precedes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrefixHash([u8; 32]);

impl PrefixHash {
    /// The hash of the empty prefix.
    pub const EMPTY: PrefixHash = PrefixHash([0; 32]);

    /// The hash of this prefix followed by an entry.
    #[must_use]
    pub fn then(&self, message_hash: &[u8; 32]) -> PrefixHash {
        PrefixHash(
            Sha256::new()
                .chain_update(self.0)
                .chain_update(message_hash)
                .finalize()
                .into(),
        )
    }
}

/// States by prefix, the least recently used forgotten first.
#[derive(Debug)]
pub struct StateMemo {
    budget_bytes: usize,
    used_bytes: usize,
    clock: u64,
    states: HashMap<PrefixHash, Remembered>,
}

#[derive(Debug)]
struct Remembered {
    state: Arc<AssociationState>,
    bytes: usize,
    used_at: u64,
}

/// About what an entry takes besides its state, in bytes.
const ENTRY_BYTES: usize = 256;

impl StateMemo {
    /// One that holds about this many bytes of states; 0 remembers nothing.
    #[must_use]
    pub fn new(budget_bytes: usize) -> StateMemo {
        StateMemo {
            budget_bytes,
            used_bytes: 0,
            clock: 0,
            states: HashMap::new(),
        }
    }

    /// The state after a prefix, if it was verified and is remembered.
    pub fn get(&mut self, prefix: &PrefixHash) -> Option<Arc<AssociationState>> {
        self.clock += 1;
        let remembered = self.states.get_mut(prefix)?;
        remembered.used_at = self.clock;
        Some(Arc::clone(&remembered.state))
    }

    /// Remembers the state after a prefix, which must have been verified.
    pub fn put(&mut self, prefix: PrefixHash, state: Arc<AssociationState>) {
        let bytes = ENTRY_BYTES + state.approximate_bytes();
        if bytes > self.budget_bytes {
            return;
        }
        self.clock += 1;
        let remembered = Remembered {
            state,
            bytes,
            used_at: self.clock,
        };
        self.used_bytes += bytes;
        if let Some(replaced) = self.states.insert(prefix, remembered) {
            self.used_bytes -= replaced.bytes;
        }
        while self.used_bytes > self.budget_bytes {
            self.forget_oldest();
        }
    }

    /// A scan: there are as many entries as fit the budget, and forgetting is rare beside verifying.
    fn forget_oldest(&mut self) {
        let oldest = self
            .states
            .iter()
            .min_by_key(|(_, remembered)| remembered.used_at)
            .map(|(prefix, _)| *prefix);
        match oldest.and_then(|prefix| self.states.remove(&prefix)) {
            Some(forgotten) => self.used_bytes -= forgotten.bytes,
            None => self.used_bytes = 0,
        }
    }
}

//! What was verified already, so that nothing is verified twice.

use std::collections::VecDeque;

use conclave_harness::identifiers::SignedMessageDigest;

use crate::ordered::OrderedMap;
use crate::values::EvidenceStatement;

/// A bounded memory of evidence messages whose every condition held, with the statement each makes.
///
/// The key is the digest of the complete signed message. The message names its sender's card by digest, so a
/// remembered message was verified under exactly that card.
#[derive(Debug, Clone)]
pub struct EvidenceMemory {
    capacity: usize,
    known: OrderedMap<SignedMessageDigest, EvidenceStatement>,
    oldest_first: VecDeque<SignedMessageDigest>,
}

impl EvidenceMemory {
    /// Enough for the evidence of some thirty posts among 32 members; under a megabyte when full.
    pub const CAPACITY_DEFAULT: usize = 2_048;

    /// A memory of at most `capacity` messages; the oldest are forgotten first. Zero remembers nothing.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            known: OrderedMap::new(),
            oldest_first: VecDeque::new(),
        }
    }

    /// How many messages are remembered.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether it remembers anything at all.
    pub(super) fn is_kept(&self) -> bool {
        self.capacity > 0
    }

    pub(super) fn statement(&self, message: &SignedMessageDigest) -> Option<&EvidenceStatement> {
        self.known.get(message)
    }

    pub(super) fn remember(&mut self, message: SignedMessageDigest, statement: &EvidenceStatement) {
        if !self.is_kept() || self.known.contains_key(&message) {
            return;
        }
        self.known.insert(message, statement.clone());
        self.oldest_first.push_back(message);
        if self.oldest_first.len() > self.capacity
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

impl Default for EvidenceMemory {
    fn default() -> Self {
        Self::new(Self::CAPACITY_DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use conclave_harness::identifiers::AgentId;
    use conclave_harness::wire_version::WIRE_VERSION;

    use super::*;
    use crate::values::{ActionHash, ActionSignatureKind, ActionSignatureStatement};

    fn remember(memory: &mut EvidenceMemory, byte: u8) {
        let statement = ActionSignatureStatement {
            sharness_version: WIRE_VERSION,
            kind: ActionSignatureKind,
            signer_agent_id: AgentId::from_bytes([byte; 16]),
            action_hash: ActionHash::from_bytes([byte; 32]),
        };
        memory.remember(SignedMessageDigest::from_bytes([byte; 32]), &statement.into());
    }

    #[test]
    fn a_full_memory_forgets_the_oldest_first() {
        let mut memory = EvidenceMemory::new(2);
        for byte in [1, 2, 2, 3] {
            remember(&mut memory, byte);
        }
        assert_eq!(memory.len(), 2);
        let knows = |byte: u8| {
            memory
                .statement(&SignedMessageDigest::from_bytes([byte; 32]))
                .is_some()
        };
        assert!(!knows(1) && knows(2) && knows(3));
    }

    #[test]
    fn a_memory_of_zero_remembers_nothing() {
        let mut memory = EvidenceMemory::new(0);
        remember(&mut memory, 1);
        assert!(memory.is_empty());
    }
}

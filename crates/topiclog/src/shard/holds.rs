//! Which topics and claims belong to a publish that is prepared and not yet decided. No I/O.

use std::collections::HashMap;

use bytes::Bytes;
use conclave_proto::conclave::internal::v1::TransactionId;

use crate::planted::{Bug, has};

/// What can be held.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Topic(Bytes),
    Claim(Bytes),
}

/// The form of a transaction id that is stored and compared: shard, incarnation, number, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Transaction {
    pub(super) shard: u32,
    pub(super) incarnation: u64,
    pub(super) number: u64,
}

impl Transaction {
    pub(super) fn to_bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&self.shard.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.incarnation.to_be_bytes());
        bytes[12..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; 20]) -> Self {
        let [s0, s1, s2, s3, rest @ ..] = bytes;
        let [i0, i1, i2, i3, i4, i5, i6, i7, number @ ..] = rest;
        Self {
            shard: u32::from_be_bytes([s0, s1, s2, s3]),
            incarnation: u64::from_be_bytes([i0, i1, i2, i3, i4, i5, i6, i7]),
            number: u64::from_be_bytes(number),
        }
    }

    pub(super) fn to_wire(self) -> TransactionId {
        TransactionId {
            shard: self.shard,
            incarnation: self.incarnation,
            number: self.number,
        }
    }

    pub(super) fn from_wire(wire: &TransactionId) -> Self {
        Self {
            shard: wire.shard,
            incarnation: wire.incarnation,
            number: wire.number,
        }
    }
}

/// The holds of a shard.
#[derive(Debug, Default)]
pub(super) struct Holds {
    holder_by_key: HashMap<Key, Transaction>,
}

impl Holds {
    pub(super) fn take(&mut self, transaction: Transaction, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            self.holder_by_key.insert(key, transaction);
        }
    }

    pub(super) fn release(&mut self, transaction: Transaction) {
        self.holder_by_key.retain(|_, holder| *holder != transaction);
    }

    pub(super) fn is_held(&self, key: &Key) -> bool {
        let is_forgotten = match key {
            Key::Topic(_) => has(Bug::TopicsNotHeld),
            Key::Claim(_) => has(Bug::ClaimsNotHeld),
        };
        self.holder_by_key.contains_key(key) && !is_forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_survives_storage_and_sorts_by_its_stored_form() {
        let one = Transaction {
            shard: 3,
            incarnation: 1 << 40,
            number: 7,
        };
        assert_eq!(Transaction::from_bytes(one.to_bytes()), one);
        assert_eq!(Transaction::from_wire(&one.to_wire()), one);
        let next = Transaction { number: 256, ..one };
        assert_eq!(one < next, one.to_bytes() < next.to_bytes());
    }

    #[test]
    fn releasing_frees_what_that_transaction_held_and_nothing_else() {
        let transaction = |number| Transaction {
            shard: 0,
            incarnation: 1,
            number,
        };
        let key = |name: &'static str| Key::Topic(Bytes::from_static(name.as_bytes()));
        let mut holds = Holds::default();
        holds.take(transaction(1), [key("a"), key("b")]);
        holds.take(transaction(2), [key("c"), Key::Claim(Bytes::from_static(b"a"))]);
        holds.release(transaction(1));
        assert!(!holds.is_held(&key("a")) && !holds.is_held(&key("b")));
        assert!(holds.is_held(&key("c")) && holds.is_held(&Key::Claim(Bytes::from_static(b"a"))));
    }
}

//! Which shard holds a topic: a topic hashes to one of 1024 slots, and a table gives each slot its shard, so that slots
//! can later move. Depends on nothing.

use sha2::{Digest as _, Sha256};

/// How many slots topics are spread over.
pub const SLOT_COUNT: u16 = 1024;

/// The largest shard count: one slot each.
pub const SHARD_COUNT_MAX: u32 = SLOT_COUNT as u32;

/// The slot of a topic: the first eight bytes of its SHA-256, big-endian, modulo [`SLOT_COUNT`].
#[must_use]
pub fn slot_of(topic: &[u8]) -> u16 {
    let digest = Sha256::digest(topic);
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    let slot = u64::from_be_bytes(first) % u64::from(SLOT_COUNT);
    u16::try_from(slot).unwrap_or_default()
}

/// Gives each slot its shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    slots: Vec<u16>,
}

impl Routing {
    /// The table a deployment of `shard_count` shards is born with: slot modulo shard count.
    #[must_use]
    pub fn at_birth(shard_count: u32) -> Self {
        let count = u16::try_from(shard_count.clamp(1, SHARD_COUNT_MAX)).unwrap_or(SLOT_COUNT);
        Self {
            slots: (0..SLOT_COUNT).map(|slot| slot % count).collect(),
        }
    }

    /// The shard that holds `topic`.
    #[must_use]
    pub fn shard_of(&self, topic: &[u8]) -> u32 {
        self.slots
            .get(usize::from(slot_of(topic)))
            .copied()
            .map_or(0, u32::from)
    }

    /// The table as it is stored: two bytes a slot, big-endian, in slot order.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.slots.iter().flat_map(|shard| shard.to_be_bytes()).collect()
    }

    /// The table from its stored form, or `None` when it is not one for `shard_count` shards.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], shard_count: u32) -> Option<Self> {
        if bytes.len() != usize::from(SLOT_COUNT) * 2 {
            return None;
        }
        let slots: Vec<u16> = bytes
            .chunks_exact(2)
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
            .collect();
        slots
            .iter()
            .all(|shard| u32::from(*shard) < shard_count)
            .then_some(Self { slots })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_is_the_head_of_the_hash_modulo_1024() {
        // SHA-256 of nothing begins e3b0c44298fc1c14.
        assert_eq!(u64::from(slot_of(b"")), 0xe3b0_c442_98fc_1c14 % 1024);
    }

    #[test]
    fn every_shard_count_spreads_topics_over_all_of_its_shards_and_no_other() {
        for count in [1, 2, 4, 16, SHARD_COUNT_MAX] {
            let routing = Routing::at_birth(count);
            let mut seen: Vec<u32> = (0..20_000u32)
                .map(|n| routing.shard_of(&n.to_be_bytes()))
                .collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_table_survives_storage_and_a_foreign_one_is_refused() {
        let routing = Routing::at_birth(4);
        let bytes = routing.to_bytes();
        assert_eq!(Routing::from_bytes(&bytes, 4), Some(routing));
        assert_eq!(Routing::from_bytes(&bytes, 3), None);
        assert_eq!(Routing::from_bytes(&bytes[1..], 4), None);
    }
}

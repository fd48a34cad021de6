//! One endpoint: an engine, its store, its host, its clock and its readings of feeds.

use std::{collections::BTreeMap, rc::Rc};

use conclave_conversation::{
    engine::{Engine, Feed, Local, TimerId},
    store::{MemoryStore, Snapshot, Transition},
    test_support::{self, Agent},
};
use conclave_harness::{Randomness, RouterInstanceId};

use crate::random::Random;

/// The engine's source of bytes.
pub(super) struct Bytes(Random);

impl Bytes {
    pub(super) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }
}

impl Randomness for Bytes {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.0.next().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// How far a feed was handed over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    pub(super) instance: RouterInstanceId,
    pub(super) last: u64,
    /// Whether the next delivery is on its way.
    pub(super) is_due: bool,
}

pub(super) struct Member {
    pub(super) agent: Rc<Agent>,
    pub(super) store: MemoryStore,
    pub(super) engine: Option<Engine>,
    /// How often it was opened. What was on its way to an earlier life never arrives.
    pub(super) life: u32,
    pub(super) randomness: Bytes,
    pub(super) is_online: bool,
    /// Its engine did what must never happen. One of a Byzantine member may: what is said in its name is not its own.
    pub(super) is_broken: bool,
    /// What its clock is ahead, in milliseconds.
    pub(super) clock_ms: i64,
    pub(super) readers: BTreeMap<Feed, Reader>,
    pub(super) timers: BTreeMap<TimerId, (u64, u64)>,
    /// Commits that a planted bug calls durable before they are, and the store without them.
    pub(super) unsynced: Vec<Vec<Transition>>,
    pub(super) synced: Option<Snapshot>,
    /// The last position of each feed handed over in any life: where a planted bug goes on.
    pub(super) handed: BTreeMap<Feed, (RouterInstanceId, u64)>,
}

/// Where every clock begins, in milliseconds: far enough from 0 for any jump back.
const CLOCK_START_MS: i64 = 1_000_000_000;

impl Member {
    pub(super) fn new(agent: Rc<Agent>, seed: u64) -> Self {
        Self {
            agent,
            store: MemoryStore::new(),
            engine: None,
            life: 0,
            randomness: Bytes::new(seed),
            is_online: true,
            is_broken: false,
            clock_ms: 0,
            readers: BTreeMap::new(),
            timers: BTreeMap::new(),
            unsynced: Vec::new(),
            synced: None,
            handed: BTreeMap::new(),
        }
    }

    pub(super) fn local(&self) -> Local {
        let Agent { card, key } = &*self.agent;
        Local::new(card.clone(), key.clone(), test_support::registry())
    }

    /// What its clock shows.
    pub(super) fn clock(&self, now_us: u64) -> u64 {
        let now_ms = i64::try_from(now_us / 1_000).unwrap_or(i64::MAX - CLOCK_START_MS);
        u64::try_from(CLOCK_START_MS + now_ms + self.clock_ms).unwrap_or(0)
    }

    /// How long until its clock shows a time, in microseconds of the simulation.
    pub(super) fn until(&self, at_ms: u64, now_us: u64) -> u64 {
        at_ms.saturating_sub(self.clock(now_us)) * 1_000
    }

    /// The instance its engine knows.
    pub(super) fn instance(&self) -> Option<RouterInstanceId> {
        self.engine.as_ref().and_then(Engine::router_instance)
    }
}

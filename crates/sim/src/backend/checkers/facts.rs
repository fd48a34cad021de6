//! What follows directly from a history, gathered once for all checkers.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use conclave_proto::xmtp::backend::v1::EnvelopeMeta;

use crate::backend::history::{Asked, Attempt, Came, History, Key, Moment, id_of, key_of, topic_of};

/// One time that an envelope's metadata was shown to somebody.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    pub(crate) moment: Moment,
    pub(crate) meta: EnvelopeMeta,
}

/// One page as it was asked for and answered.
#[derive(Clone, Debug)]
pub(crate) struct PageSeen<'a> {
    pub(crate) attempt: &'a Attempt,
    pub(crate) positions: &'a [(Bytes, u64)],
    pub(crate) limit: u32,
    pub(crate) metas: &'a [EnvelopeMeta],
    pub(crate) has_more: bool,
}

/// The facts.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// In the order of their moments.
    pub(crate) sightings: Vec<Sighting>,
    /// When an id was first shown.
    pub(crate) first_seen: BTreeMap<u64, Moment>,
    /// The whole of each topic.
    pub(crate) logs: BTreeMap<Bytes, Vec<EnvelopeMeta>>,
    /// Every envelope that is stored in the end, by its key.
    pub(crate) stored: HashMap<Key, EnvelopeMeta>,
    /// When an envelope was first sent.
    pub(crate) first_sent: HashMap<Key, Moment>,
    /// How many publishes carry an envelope.
    pub(crate) carriers: HashMap<Key, usize>,
}

impl Facts {
    pub(crate) fn of(history: &History) -> Self {
        let mut facts = Self::default();
        for attempt in &history.attempts {
            facts.take_attempt(history, attempt);
        }
        for stream in &history.streams {
            for (moment, metas) in &stream.frames {
                facts.see(*moment, metas);
            }
        }
        for subscription in &history.subscriptions {
            for (moment, metas) in subscription.frames() {
                facts.see(moment, metas);
            }
        }
        for publish in &history.publishes {
            let mut keys = publish.keys.clone();
            keys.sort();
            keys.dedup();
            for key in keys {
                *facts.carriers.entry(key).or_default() += 1;
            }
        }
        for (topic, log) in &history.logs {
            for meta in log {
                facts.stored.insert(key_of(meta), meta.clone());
            }
            facts.logs.insert(topic.clone(), log.clone());
        }
        facts.sightings.sort_by_key(|sighting| sighting.moment);
        for sighting in &facts.sightings {
            facts
                .first_seen
                .entry(id_of(&sighting.meta))
                .or_insert(sighting.moment);
        }
        facts
    }

    fn take_attempt(&mut self, history: &History, attempt: &Attempt) {
        if let Asked::Publish(number) = attempt.asked {
            for key in &history.publishes[number].keys {
                let sent = self.first_sent.entry(key.clone()).or_insert(attempt.invoked);
                *sent = (*sent).min(attempt.invoked);
            }
        }
        let Some(moment) = attempt.returned else { return };
        if let Some(Came::Receipts(metas) | Came::Newest(metas) | Came::Page { metas, .. }) = &attempt.came {
            self.see(moment, metas);
        }
    }

    fn see(&mut self, moment: Moment, metas: &[EnvelopeMeta]) {
        let sightings = metas.iter().map(|meta| Sighting {
            moment,
            meta: meta.clone(),
        });
        self.sightings.extend(sightings);
    }

    /// The ids of a topic above one and up to another.
    pub(crate) fn ids_between(&self, topic: &Bytes, after: u64, through: u64) -> Vec<u64> {
        let log = self.logs.get(topic).map_or(&[][..], Vec::as_slice);
        let ids = log.iter().map(id_of);
        ids.filter(|id| (after + 1..=through).contains(id)).collect()
    }
}

/// Every page that was answered.
pub(crate) fn pages(history: &History) -> impl Iterator<Item = PageSeen<'_>> {
    history.attempts.iter().filter_map(|attempt| {
        let (Asked::Query { positions, limit }, Some(Came::Page { metas, has_more })) =
            (&attempt.asked, &attempt.came)
        else {
            return None;
        };
        Some(PageSeen {
            attempt,
            positions,
            limit: *limit,
            metas,
            has_more: *has_more,
        })
    })
}

impl PageSeen<'_> {
    /// The ids the page shows of one topic, in its order.
    pub(crate) fn ids_of(&self, topic: &Bytes) -> Vec<u64> {
        let metas = self.metas.iter().filter(|meta| topic_of(meta) == *topic);
        metas.map(id_of).collect()
    }

    /// How far the page says everything about a topic: through its last envelope there, or to the end.
    pub(crate) fn reaches(&self, topic: &Bytes, after: u64) -> u64 {
        if !self.has_more {
            return u64::MAX;
        }
        self.ids_of(topic).last().copied().unwrap_or(after)
    }
}

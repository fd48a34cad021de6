//! The certified chain as it is kept in memory: which records and anchors follow each other. Their contents are in the store.

use std::collections::BTreeMap;

use crate::values::{ActionHash, AnchorHash, RecordHash, RouterAnchor};
use crate::verification::{Position, VerifiedRouterAnchor};

/// One certified record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) record_hash: RecordHash,
    pub(super) action_hash: ActionHash,
    anchor_hash: AnchorHash,
}

/// What follows a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The record at this ordinal.
    Record(u64),
    /// The anchor at this place, which a re-anchor completed.
    Anchor(usize),
}

/// Records and anchors, each in order.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    links: Vec<Link>,
    ordinals: BTreeMap<RecordHash, u64>,
    anchors: Vec<VerifiedRouterAnchor>,
}

impl Chain {
    pub(super) fn new(genesis: VerifiedRouterAnchor) -> Self {
        Chain {
            links: Vec::new(),
            ordinals: BTreeMap::new(),
            anchors: vec![genesis],
        }
    }

    pub(super) fn push_record(&mut self, link: Position, record_hash: RecordHash, action_hash: ActionHash) {
        self.ordinals.insert(record_hash, self.links.len() as u64);
        self.links.push(Link {
            record_hash,
            action_hash,
            anchor_hash: link.anchor_hash,
        });
    }

    pub(super) fn push_anchor(&mut self, anchor: VerifiedRouterAnchor) {
        self.anchors.push(anchor);
    }

    pub(super) fn link(&self, ordinal: u64) -> Option<&Link> {
        self.links.get(usize::try_from(ordinal).ok()?)
    }

    pub(super) fn anchors(&self) -> &[VerifiedRouterAnchor] {
        &self.anchors
    }

    /// The anchor of a hash.
    pub(super) fn anchor(&self, hash: &AnchorHash) -> Option<&VerifiedRouterAnchor> {
        self.anchors.iter().find(|anchor| anchor.hash() == hash)
    }

    /// The anchor a record was certified under.
    pub(super) fn anchor_of(&self, link: &Link) -> Option<&VerifiedRouterAnchor> {
        self.anchor(&link.anchor_hash)
    }

    /// The place of the anchor a record was certified under.
    pub(super) fn place_of_anchor(&self, link: &Link) -> Option<u64> {
        let place = self
            .anchors
            .iter()
            .position(|anchor| *anchor.hash() == link.anchor_hash)?;
        Some(place as u64)
    }

    /// Where a record stands.
    pub(super) fn ordinal(&self, record: &RecordHash) -> Option<u64> {
        self.ordinals.get(record).copied()
    }

    /// Whether a record is certified here.
    pub(super) fn holds(&self, record: &RecordHash) -> bool {
        self.ordinals.contains_key(record)
    }

    /// What follows a position (none: before GENESIS). Nothing follows the end, nor a position that is not on this chain.
    pub(super) fn next(&self, position: Option<&Position>) -> Option<Next> {
        let Some(position) = position else {
            return (!self.links.is_empty()).then_some(Next::Record(0));
        };
        let record = position.record_hash.as_ref()?;
        let ordinal = *self.ordinals.get(record)?;
        let place = self
            .anchors
            .iter()
            .position(|anchor| *anchor.hash() == position.anchor_hash)?;
        if self.selected(place).is_some_and(|selected| selected > ordinal) {
            return None;
        }
        match self.selected(place + 1) {
            Some(selected) if selected == ordinal => return Some(Next::Anchor(place + 1)),
            Some(selected) if selected < ordinal => return None,
            _ => {}
        }
        (ordinal + 1 < self.links.len() as u64).then_some(Next::Record(ordinal + 1))
    }

    /// How many records and anchors of this chain stand before a position (none: before GENESIS); none for one that is not on
    /// it.
    pub(super) fn items_before(&self, position: Option<&Position>) -> Option<u64> {
        let Some(position) = position else { return Some(0) };
        let ordinal = *self.ordinals.get(position.record_hash.as_ref()?)?;
        let place = self
            .anchors
            .iter()
            .position(|anchor| *anchor.hash() == position.anchor_hash)?;
        Some(ordinal + 1 + place as u64)
    }

    /// The position after an item.
    pub(super) fn after(&self, next: Next) -> Option<Position> {
        Some(match next {
            Next::Record(ordinal) => {
                let link = self.link(ordinal)?;
                Position {
                    record_hash: Some(link.record_hash),
                    anchor_hash: link.anchor_hash,
                }
            }
            Next::Anchor(place) => Position {
                record_hash: self
                    .selected(place)
                    .and_then(|ordinal| self.link(ordinal))
                    .map(|link| link.record_hash),
                anchor_hash: *self.anchors.get(place)?.hash(),
            },
        })
    }

    /// The ordinal of the record that an anchor selects; none for the genesis anchor, and where there is no anchor.
    fn selected(&self, place: usize) -> Option<u64> {
        match self.anchors.get(place)?.value() {
            RouterAnchor::Genesis(_) => None,
            RouterAnchor::Completed(completed) => self
                .ordinals
                .get(&completed.reanchor.selected_record_hash)
                .copied(),
        }
    }
}

//! What a session has registered: topics with their positions, and the shards that hold them. Depends on nothing here.
//!
//! A registration is known by a number that is never used again, so that what a shard answers for one that was removed
//! meanwhile cannot be taken for an answer to the next registration of the same topic.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use bytes::Bytes;

use crate::{
    planted::{self, Bug},
    routing::Routing,
};

/// The number of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RegistrationId(u64);

/// One topic of a stream, from when an update names it until another removes it.
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) topic: Bytes,
    pub(super) place: usize,
    /// Everything up to this sequence id was queued for the client, or is below its cursor.
    pub(super) delivered: u64,
    /// The highest sequence id known to exist, or one more than `delivered` when something above it does.
    pub(super) wanted: u64,
    /// Catch-up target: the head when the topic was registered, once its shard has told it.
    pub(super) target: u64,
    /// Whether its target is queued for the client; nothing is delivered before.
    pub(super) is_live: bool,
    /// Whether it waits for a turn to read history, or is having one.
    has_turn: bool,
    /// Whether it has had one.
    had_turn: bool,
}

impl Registration {
    /// Whether something is known to exist that may be delivered and was not.
    pub(super) fn is_behind(&self) -> bool {
        self.is_live && self.wanted > self.delivered
    }
}

/// A registration that a shard has not answered, and its topics. A later one takes its place.
#[derive(Debug)]
pub(super) struct PendingRegister {
    pub(super) id: u64,
    pub(super) asked: Vec<RegistrationId>,
    pub(super) has_waited: bool,
}

/// One shard of a stream.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) shard: u32,
    pub(super) members: BTreeSet<RegistrationId>,
    pub(super) register: Option<PendingRegister>,
    /// The number of the last Register sent; 0 before the first.
    pub(super) last_register: u64,
}

/// Everything a session has registered.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    by_id: BTreeMap<RegistrationId, Registration>,
    by_topic: HashMap<Bytes, RegistrationId>,
    places: Vec<Place>,
    place_by_shard: HashMap<u32, usize>,
    last_id: u64,
    /// Who waits for its first turn to read history, before anyone gets another. Some may be gone, or have caught up
    /// otherwise.
    first_turns: VecDeque<RegistrationId>,
    /// Who waits for another turn. So may some of these.
    turns: VecDeque<RegistrationId>,
    /// Where removed registrations were, for the planted bug that goes on from there.
    #[cfg(feature = "planted-bugs")]
    removed: HashMap<Bytes, u64>,
}

impl Registrations {
    /// How many topics are registered.
    pub(super) fn count(&self) -> usize {
        self.by_topic.len()
    }

    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    pub(super) fn places_mut(&mut self) -> &mut [Place] {
        &mut self.places
    }

    /// The shard at a place, if there is one.
    pub(super) fn place_mut(&mut self, place: usize) -> Option<&mut Place> {
        self.places.get_mut(place)
    }

    pub(super) fn get(&self, id: RegistrationId) -> Option<&Registration> {
        self.by_id.get(&id)
    }

    pub(super) fn find(&self, topic: &[u8]) -> Option<RegistrationId> {
        self.by_topic.get(topic).copied()
    }

    /// Registers a topic that is not registered. Its place comes with it, and whether that is a new one.
    pub(super) fn add(
        &mut self,
        topic: Bytes,
        cursor: u64,
        routing: &Routing,
    ) -> (RegistrationId, usize, bool) {
        #[cfg(feature = "planted-bugs")]
        let cursor = self.removed.remove(&topic).unwrap_or(cursor);
        let shard = routing.shard_of(&topic);
        let known = self.place_by_shard.get(&shard).copied();
        let place = known.unwrap_or_else(|| self.add_place(shard));
        self.last_id += 1;
        let id = RegistrationId(self.last_id);
        self.places[place].members.insert(id);
        let registration = Registration {
            topic: topic.clone(),
            place,
            delivered: cursor,
            wanted: 0,
            target: 0,
            is_live: false,
            has_turn: false,
            had_turn: false,
        };
        self.by_topic.insert(topic, id);
        self.by_id.insert(id, registration);
        (id, place, known.is_none())
    }

    fn add_place(&mut self, shard: u32) -> usize {
        self.places.push(Place {
            shard,
            members: BTreeSet::new(),
            register: None,
            last_register: 0,
        });
        let place = self.places.len() - 1;
        self.place_by_shard.insert(shard, place);
        place
    }

    /// Ends the registration of a topic, if there is one.
    pub(super) fn remove(&mut self, topic: &[u8]) -> Option<Registration> {
        let id = self.by_topic.remove(topic)?;
        let registration = self.by_id.remove(&id)?;
        let place = &mut self.places[registration.place];
        place.members.remove(&id);
        #[cfg(feature = "planted-bugs")]
        if planted::has(Bug::CursorOfTheRemoved) {
            self.removed
                .insert(registration.topic.clone(), registration.delivered);
        }
        Some(registration)
    }

    /// Lets a registration be delivered, from now on: its target is queued for the client.
    pub(super) fn go_live(&mut self, id: RegistrationId) {
        if let Some(registration) = self.by_id.get_mut(&id) {
            registration.is_live = true;
        }
        self.queue(id);
    }

    /// Takes in that a topic holds an envelope of this id.
    pub(super) fn want(&mut self, id: RegistrationId, sequence_id: u64) {
        if let Some(registration) = self.by_id.get_mut(&id) {
            registration.wanted = registration.wanted.max(sequence_id);
        }
        self.queue(id);
    }

    /// Takes in the head of a topic that a shard read after it had registered it.
    pub(super) fn take_head(&mut self, id: RegistrationId, head: u64) {
        if let Some(registration) = self.by_id.get_mut(&id).filter(|known| !known.is_live) {
            registration.target = head;
        }
        self.want(id, head);
    }

    /// Takes in that everything up to this id is queued for the client.
    pub(super) fn deliver(&mut self, id: RegistrationId, sequence_id: u64) {
        if let Some(registration) = self.by_id.get_mut(&id) {
            registration.delivered = sequence_id;
            registration.wanted = registration.wanted.max(sequence_id);
        }
        self.queue(id);
    }

    /// The next whose turn it is, which has it from now on.
    pub(super) fn next_turn(&mut self) -> Option<RegistrationId> {
        loop {
            let id = self.first_turns.pop_front().or_else(|| self.turns.pop_front())?;
            match self.by_id.get_mut(&id) {
                Some(registration) if registration.is_behind() => return Some(id),
                Some(registration) => registration.has_turn = false,
                None => {}
            }
        }
    }

    /// Gives back a turn that came to nothing: it is the next one.
    pub(super) fn return_turn(&mut self, id: RegistrationId) {
        match self.by_id.get(&id) {
            Some(registration) if registration.had_turn => self.turns.push_front(id),
            _ => self.first_turns.push_front(id),
        }
    }

    /// A turn is over.
    pub(super) fn end_turn(&mut self, id: RegistrationId) {
        if let Some(registration) = self.by_id.get_mut(&id) {
            registration.has_turn = false;
            registration.had_turn = true;
        }
        self.queue(id);
    }

    /// Lets a registration that is behind wait for a turn, behind everyone who waits already but those who had one when it
    /// had none (API-261).
    fn queue(&mut self, id: RegistrationId) {
        let registration = self.by_id.get_mut(&id);
        let Some(registration) = registration.filter(|known| known.is_behind() && !known.has_turn) else {
            return;
        };
        registration.has_turn = true;
        // Of those that are there each stands here once: the others are what a client that reads slowly and changes its
        // topics often leaves behind.
        for turns in [&mut self.first_turns, &mut self.turns] {
            if turns.len() > 2 * self.by_id.len() {
                turns.retain(|id| self.by_id.contains_key(id));
            }
        }
        if planted::has(Bug::CatchUpUnfair) {
            self.turns.push_front(id);
        } else if self.by_id.get(&id).is_some_and(|known| known.had_turn) {
            self.turns.push_back(id);
        } else {
            self.first_turns.push_back(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_that_come_and_go_leave_no_turns_behind() {
        let (mut registrations, routing) = (Registrations::default(), Routing::at_birth(1));
        let (lasting, _, _) = registrations.add(Bytes::from_static(b"lasting"), 0, &routing);
        for _ in 0..1_000 {
            let (id, _, _) = registrations.add(Bytes::from_static(b"passing"), 0, &routing);
            registrations.take_head(id, 5);
            registrations.go_live(id);
            registrations.remove(b"passing");
        }
        let waiting = registrations.turns.len() + registrations.first_turns.len();
        assert!(waiting <= 8, "{waiting} turns wait for two topics");
        registrations.take_head(lasting, 5);
        registrations.go_live(lasting);
        assert_eq!(registrations.next_turn(), Some(lasting));
    }
}

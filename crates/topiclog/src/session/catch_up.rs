//! How a session delivers: history in pages, what is stored now by pushes, and every envelope once. Depends on `machine`,
//! whose state it works on.
//!
//! Per registration the session knows the sequence id everything up to which is queued for the client (`delivered`) and
//! the highest id it heard of (`wanted`). A live push names the id before it on its topic, so the session delivers it only
//! where it continues the chain; otherwise, and for history, it reads from `delivered` on. So a push that is lost,
//! repeated or late, and a shard that sleeps or restarts, can neither skip nor repeat an envelope (API-254).
//!
//! History is read in rounds: every registration that is behind gets one turn before any gets its next, one that was
//! registered while the round runs included (API-261).

use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{
    StoredEnvelope, TopicPosition,
    from_shard::{Link, Page, Run},
    to_shard::{Message as Outgoing, Read},
};

use super::{
    machine::Session,
    registrations::{PendingRead, RegistrationId},
};
use crate::{
    planted::{self, Bug},
    sequencer::SEQUENCE_ID_MAX,
};

/// Topics read by one request to a shard.
const READ_TOPICS: usize = 64;
/// Envelopes of one topic in one turn.
const TURN_ENVELOPES: u32 = 256;
/// Bodies of one topic in one turn, in bytes.
const TURN_BYTES: u64 = 256 << 10;
/// Bodies read by one request to a shard, in bytes, after which it stops at the next topic.
const READ_BYTES: u64 = 1 << 20;
/// What an answer to such a request may come to, in bytes: it stops behind an envelope, and not within one.
const PAGE_BYTES: usize = 2 << 20;

impl Session {
    pub(super) fn take_page(&mut self, place: usize, page: Page) -> Result<(), Status> {
        let Some(known) = self.registrations.place_mut(place) else {
            return Ok(());
        };
        // An answer to a read that was given up, or a second copy of one: what it holds is read again or was taken in.
        let Some(read) = known.read.take_if(|read| read.id == page.id) else {
            return Ok(());
        };
        if self.updates.is_ended {
            return Ok(());
        }
        let reached = page.runs.len();
        if reached == 0 || reached > read.asked.len() {
            return Err(Status::internal(
                "a shard answered another number of runs than of topics",
            ));
        }
        for (id, _) in read.asked.iter().skip(reached).rev() {
            known.round.push_front(*id);
        }
        for ((id, wanted), run) in read.asked.into_iter().zip(page.runs) {
            self.take_run(id, wanted, run)?;
        }
        Ok(())
    }

    fn take_run(&mut self, id: RegistrationId, wanted_then: u64, run: Run) -> Result<(), Status> {
        // A registration that was removed while it was read gets nothing any more (API-253).
        let Some(registration) = self.registrations.get(id) else {
            if planted::has(Bug::DeliveredAfterRemove) {
                self.output.push_history(run.envelopes)?;
            }
            return Ok(());
        };
        let delivered = registration.delivered;
        let fresh: Vec<StoredEnvelope> = run
            .envelopes
            .into_iter()
            .skip_while(|stored| sequence_id_of(stored) <= delivered)
            .collect();
        if !fresh.is_sorted_by(|one, next| sequence_id_of(one) < sequence_id_of(next)) {
            return Err(Status::internal("a shard answered envelopes out of order"));
        }
        let ids: Vec<u64> = fresh.iter().map(sequence_id_of).collect();
        let taken = self.output.push_history(fresh)?;
        let delivered = ids[..taken].last().map_or(delivered, |last| *last);
        self.registrations.deliver(id, delivered);
        let has_more = run.has_more || taken < ids.len();
        if has_more {
            self.registrations.want(id, delivered + 1);
        } else if delivered < wanted_then {
            return Err(Status::internal("a stored envelope has gone missing"));
        }
        Ok(())
    }

    pub(super) fn take_link(&mut self, link: Link) -> Result<(), Status> {
        let stored = link.stored.unwrap_or_default();
        let Some(id) = self.registrations.find(topic_of(&stored)) else {
            return Ok(());
        };
        let Some(registration) = self.registrations.get(id) else {
            return Ok(());
        };
        let sequence_id = sequence_id_of(&stored);
        if sequence_id <= registration.delivered || self.updates.is_ended {
            return Ok(());
        }
        let is_next = !registration.is_behind() && link.previous <= registration.delivered;
        if registration.is_live && (is_next || planted::has(Bug::ChainUnchecked)) {
            self.output.push_live(stored)?;
            self.registrations.deliver(id, sequence_id);
        } else {
            self.registrations.want(id, sequence_id);
        }
        Ok(())
    }

    /// What a shard has not answered is asked again, before anything else.
    pub(super) fn give_read_up(&mut self, place: usize) {
        if let Some(known) = self.registrations.place_mut(place) {
            for (id, _) in known.read.take().into_iter().flat_map(|read| read.asked).rev() {
                known.round.push_front(id);
            }
        }
    }

    /// Asks the shards for the next turns, where the client keeps up and the round has any left.
    pub(super) fn plan_reads(&mut self) {
        let is_behind = |session: &Self| {
            let mut places = session.registrations.places().iter();
            places.any(|place| !place.behind.is_empty())
        };
        while !self.updates.is_ended && is_behind(self) {
            let is_new = self.registrations.is_round_over();
            if is_new {
                self.registrations.start_round();
            }
            self.plan_round();
            // What was left of a round may have been of registrations that are gone.
            if is_new || !self.registrations.is_round_over() {
                return;
            }
        }
    }

    fn plan_round(&mut self) {
        let places = self.registrations.places().iter();
        let mut asked = places.filter(|place| place.read.is_some()).count() * PAGE_BYTES;
        for place in 0..self.registrations.places().len() {
            if !self.output.has_room_for_history(asked, PAGE_BYTES) {
                return;
            }
            if self.plan_read(place) {
                asked += PAGE_BYTES;
            }
        }
    }

    /// Asks one shard for the next turns. Whether there were any.
    fn plan_read(&mut self, place: usize) -> bool {
        let Some(known) = self.registrations.place_mut(place) else {
            return false;
        };
        if known.read.is_some() {
            return false;
        }
        let mut round = std::mem::take(&mut known.round);
        let (mut asked, mut positions) = (Vec::new(), Vec::new());
        while asked.len() < READ_TOPICS {
            let Some(id) = round.pop_front() else { break };
            // One that was removed, or has caught up otherwise, gives its turn away.
            let Some(registration) = self.registrations.get(id).filter(|known| known.is_behind()) else {
                continue;
            };
            positions.push(TopicPosition {
                topic: registration.topic.clone(),
                after: registration.delivered.min(SEQUENCE_ID_MAX),
            });
            asked.push((id, registration.wanted));
        }
        self.last_read += 1;
        let id = self.last_read;
        let Some(known) = self.registrations.place_mut(place) else {
            return false;
        };
        known.round = round;
        if asked.is_empty() {
            return false;
        }
        known.read = Some(PendingRead {
            id,
            asked,
            has_waited: false,
        });
        self.send(
            place,
            Outgoing::Read(Read {
                id,
                positions,
                max_envelopes: TURN_ENVELOPES,
                max_topic_bytes: TURN_BYTES,
                max_bytes: READ_BYTES,
            }),
        );
        true
    }
}

fn sequence_id_of(stored: &StoredEnvelope) -> u64 {
    let meta = stored.meta.as_ref();
    meta.and_then(|meta| meta.cursor.as_ref())
        .map_or(0, |cursor| cursor.sequence_id)
}

fn topic_of(stored: &StoredEnvelope) -> &[u8] {
    let meta = stored.meta.as_ref();
    meta.and_then(|meta| meta.topic.as_ref())
        .map_or(&[], |topic| &topic.topic)
}

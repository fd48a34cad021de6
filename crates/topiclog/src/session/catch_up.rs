//! How a session delivers: history in pages, what is stored now by pushes, and every envelope once. Depends on `machine`,
//! whose state it works on.
//!
//! Per registration the session knows the sequence id everything up to which is queued for the client (`delivered`) and
//! the highest id it heard of (`wanted`). A live push names the id before it on its topic, so the session delivers it only
//! where it continues the chain; otherwise, and for history, it reads from `delivered` on. So a push that is lost,
//! repeated or late, and a shard that sleeps or restarts, can neither skip nor repeat an envelope (API-254).
//!
//! Who is behind waits for a turn, and after it waits again behind everyone else. One read is on its way at a time, over all
//! shards, so that frames come in the order of the turns: between two frames of one registration's history every other that
//! has some gets one (API-261).

use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{
    StoredEnvelope, TopicPosition,
    from_shard::{Link, Page, Run},
    to_shard::{Message as Outgoing, Read},
};

use super::{machine::Session, registrations::RegistrationId};
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

/// A read that a shard has not answered: its topics, and what was wanted of each when it was asked.
#[derive(Debug)]
pub(super) struct PendingRead {
    id: u64,
    place: usize,
    asked: Vec<(RegistrationId, u64)>,
    pub(super) has_waited: bool,
}

impl Session {
    pub(super) fn take_page(&mut self, place: usize, page: Page) -> Result<(), Status> {
        // An answer to a read that was given up, or a second copy of one: what it holds is read again or was taken in.
        let is_answer = |read: &mut PendingRead| (read.id, read.place) == (page.id, place);
        let Some(read) = self.read.take_if(is_answer) else {
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
            self.registrations.return_turn(*id);
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
        self.registrations.end_turn(id);
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
        let read = self.read.take_if(|read| read.place == place);
        for (id, _) in read.into_iter().flat_map(|read| read.asked).rev() {
            self.registrations.return_turn(id);
        }
    }

    /// Asks for the next turns, where the client keeps up: of one shard, as many as stand together in the queue.
    pub(super) fn plan_reads(&mut self) {
        if self.read.is_some() || self.updates.is_ended || !self.output.has_room_for_history(PAGE_BYTES) {
            return;
        }
        let (mut place, mut asked, mut positions) = (None, Vec::new(), Vec::new());
        while asked.len() < READ_TOPICS
            && let Some(id) = self.registrations.next_turn()
        {
            let Some(registration) = self.registrations.get(id) else {
                continue;
            };
            if *place.get_or_insert(registration.place) != registration.place {
                self.registrations.return_turn(id);
                break;
            }
            positions.push(TopicPosition {
                topic: registration.topic.clone(),
                after: registration.delivered.min(SEQUENCE_ID_MAX),
            });
            asked.push((id, registration.wanted));
        }
        let Some(place) = place else { return };
        self.last_read += 1;
        let id = self.last_read;
        self.read = Some(PendingRead {
            id,
            place,
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

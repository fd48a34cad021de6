//! A SubscribeStatic stream as a pure state machine: messages of shards in, messages to shards and frames out.
//!
//! Per topic the session knows the sequence id everything up to which is queued for the client (`delivered`) and the
//! highest id it heard of (`wanted`). A live push names the id before it on its topic, so the session delivers it only
//! where it continues the chain; otherwise, and for history, it reads from `delivered` on. So a push that is lost,
//! repeated or late, and a shard that sleeps or restarts, can neither skip nor repeat an envelope (API-254).
//!
//! History is read in rounds: every topic that is behind gets one turn before any gets its next (API-261).

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use conclave_envelope::request::StaticPlan;
use conclave_grpc_web::Status;
use conclave_proto::{
    conclave::internal::v1::{
        FromShard, StoredEnvelope, ToShard, TopicPosition,
        from_shard::{Link, Message as Incoming, Page, Registered, Run},
        to_shard::{Message as Outgoing, Read, Register},
    },
    xmtp::backend::v1 as wire,
};
use prost::Message as _;

use super::{
    output::Output,
    state::{PendingRead, ShardState, TopicState},
};
use crate::{answer, routing::Routing, sequencer::SEQUENCE_ID_MAX};

/// Topics read by one request to a shard.
const READ_TOPICS: usize = 64;
/// Envelopes of one topic in one turn.
const TURN_ENVELOPES: u32 = 256;
/// Bodies of one topic in one turn, in bytes.
const TURN_BYTES: u64 = 256 << 10;
/// Bodies read by one request to a shard, in bytes, after which it stops at the next topic.
const READ_BYTES: u64 = 1 << 20;

/// The machine.
#[derive(Debug)]
pub(super) struct StaticSession {
    topics: Vec<TopicState>,
    index_by_topic: HashMap<Bytes, usize>,
    shards: Vec<ShardState>,
    /// Topics that are behind, by index.
    behind: BTreeSet<usize>,
    is_started: bool,
    next_read: u64,
    outbox: Vec<(usize, Vec<u8>)>,
    output: Output,
    max_response_bytes: u64,
    keepalive_interval_ms: u32,
    router_instance: Option<String>,
}

impl StaticSession {
    /// A session over the shards that hold the plan's topics. Its first messages register them.
    pub(super) fn new(
        plan: &StaticPlan,
        routing: &Routing,
        max_response_bytes: u64,
        keepalive_interval_ms: u32,
    ) -> Self {
        let mut session = Self {
            topics: Vec::with_capacity(plan.positions.len()),
            index_by_topic: HashMap::new(),
            shards: Vec::new(),
            behind: BTreeSet::new(),
            is_started: false,
            next_read: 1,
            outbox: Vec::new(),
            output: Output::new(max_response_bytes),
            max_response_bytes,
            keepalive_interval_ms,
            router_instance: None,
        };
        let mut place_by_shard = HashMap::new();
        for position in &plan.positions {
            let topic = Bytes::copy_from_slice(position.topic.as_bytes());
            let shard = routing.shard_of(&topic);
            let shards = &mut session.shards;
            let place = *place_by_shard.entry(shard).or_insert_with(|| {
                shards.push(ShardState::new(shard));
                shards.len() - 1
            });
            let index = session.topics.len();
            session.shards[place].topics.push(index);
            session.index_by_topic.insert(topic.clone(), index);
            session.topics.push(TopicState {
                topic,
                delivered: position.cursor,
                wanted: 0,
                target: 0,
            });
        }
        (0..session.shards.len()).for_each(|place| session.send_register(place));
        session
    }

    /// The shards to connect to. A shard's place in this list names it from here on.
    pub(super) fn shards(&self) -> Vec<u32> {
        self.shards.iter().map(|shard| shard.shard).collect()
    }

    /// Whether Started was queued.
    pub(super) fn is_started(&self) -> bool {
        self.is_started
    }

    /// The Router instance a shard named, if one did.
    pub(super) fn router_instance(&self) -> Option<&str> {
        self.router_instance.as_deref()
    }

    /// Takes the messages to send, with the place of the shard each is for.
    pub(super) fn take_outbox(&mut self) -> Vec<(usize, Vec<u8>)> {
        std::mem::take(&mut self.outbox)
    }

    /// Whether a frame waits.
    pub(super) fn has_frame(&self) -> bool {
        !self.output.is_empty()
    }

    /// Takes the next frame, which may make room to read more history.
    pub(super) fn pop_frame(&mut self) -> Option<Vec<u8>> {
        let frame = self.output.pop_frame();
        self.plan_reads();
        frame
    }

    /// Queues a Keepalive (API-255).
    pub(super) fn push_keepalive(&mut self) {
        let response = wire::subscribe_static_response::Response::Keepalive(
            wire::subscribe_static_response::Keepalive {},
        );
        self.output.push_frame(
            wire::SubscribeStaticResponse {
                response: Some(response),
            }
            .encode_to_vec(),
        );
    }

    /// Called from time to time, seconds apart.
    ///
    /// # Errors
    /// UNAVAILABLE when a shard has left a read unanswered since the call before.
    pub(super) fn check_waiting(&mut self) -> Result<(), Status> {
        for read in self.shards.iter_mut().filter_map(|shard| shard.read.as_mut()) {
            if std::mem::replace(&mut read.has_waited, true) {
                return Err(Status::unavailable("a shard does not answer"));
            }
        }
        Ok(())
    }

    /// Takes in a message of the shard at `place`.
    ///
    /// # Errors
    /// The status the stream fails with.
    pub(super) fn receive(&mut self, place: usize, message: Vec<u8>) -> Result<(), Status> {
        let message = FromShard::decode(Bytes::from(message))
            .ok()
            .and_then(|message| message.message)
            .ok_or_else(|| Status::internal("a message of a shard does not decode"))?;
        match message {
            Incoming::Registered(registered) => self.take_heads(place, registered)?,
            Incoming::Page(page) => self.take_page(place, page)?,
            Incoming::Push(push) => {
                push.links.into_iter().try_for_each(|link| self.take_link(link))?;
            }
            Incoming::Reintroduce(_) => self.reintroduce(place),
            Incoming::Failure(failure) => return Err(answer::from_failure(failure)),
        }
        self.plan_reads();
        Ok(())
    }

    fn take_heads(&mut self, place: usize, registered: Registered) -> Result<(), Status> {
        let shard = &mut self.shards[place];
        if registered.heads.len() != shard.topics.len() {
            return Err(Status::internal(
                "a shard answered another number of heads than of topics",
            ));
        }
        shard.is_registered = true;
        self.router_instance = Some(registered.router_instance);
        for (index, head) in shard.topics.clone().into_iter().zip(registered.heads) {
            if !self.is_started {
                self.topics[index].target = head;
            }
            self.want(index, head);
        }
        if !self.is_started && self.shards.iter().all(|shard| shard.is_registered) {
            self.start()?;
        }
        Ok(())
    }

    /// Queues Started, with a target for each topic in request order (API-260).
    fn start(&mut self) -> Result<(), Status> {
        let targets = self.topics.iter().map(|state| wire::CatchupTarget {
            topic: Some(wire::Topic {
                topic: state.topic.clone(),
            }),
            through_sequence_id: state.target,
        });
        let started = wire::subscribe_static_response::Started {
            keepalive_interval_ms: self.keepalive_interval_ms,
            targets: targets.collect(),
        };
        let response = wire::subscribe_static_response::Response::Started(started);
        let frame = wire::SubscribeStaticResponse {
            response: Some(response),
        }
        .encode_to_vec();
        if frame.len() as u64 > self.max_response_bytes {
            return Err(Status::resource_exhausted(
                "the Started frame is longer than max_response_bytes",
            ));
        }
        self.output.push_frame(frame);
        self.is_started = true;
        Ok(())
    }

    fn take_page(&mut self, place: usize, page: Page) -> Result<(), Status> {
        let shard = &mut self.shards[place];
        // An answer to a read that was given up, or a second copy of one: what it holds is read again or was taken in.
        let Some(read) = shard.read.take_if(|read| read.id == page.id) else {
            return Ok(());
        };
        let reached = page.runs.len();
        if reached == 0 || reached > read.asked.len() {
            return Err(Status::internal(
                "a shard answered another number of runs than of topics",
            ));
        }
        for (index, _) in read.asked.iter().skip(reached).rev() {
            shard.round.push_front(*index);
        }
        for ((index, wanted), run) in read.asked.into_iter().zip(page.runs) {
            self.take_run(index, wanted, run)?;
        }
        Ok(())
    }

    fn take_run(&mut self, index: usize, wanted_then: u64, run: Run) -> Result<(), Status> {
        let state = &mut self.topics[index];
        let fresh: Vec<StoredEnvelope> = run
            .envelopes
            .into_iter()
            .skip_while(|stored| sequence_id_of(stored) <= state.delivered)
            .collect();
        if !fresh.is_sorted_by(|one, next| sequence_id_of(one) < sequence_id_of(next)) {
            return Err(Status::internal("a shard answered envelopes out of order"));
        }
        let ids: Vec<u64> = fresh.iter().map(sequence_id_of).collect();
        let taken = self.output.push_history(fresh)?;
        if let Some(last) = ids[..taken].last() {
            state.delivered = *last;
        }
        let has_more = run.has_more || taken < ids.len();
        if has_more {
            state.wanted = state.wanted.max(state.delivered + 1);
        } else if state.delivered < wanted_then {
            return Err(Status::internal("a stored envelope has gone missing"));
        }
        if !state.is_behind() {
            self.behind.remove(&index);
        }
        Ok(())
    }

    fn take_link(&mut self, link: Link) -> Result<(), Status> {
        let stored = link.stored.unwrap_or_default();
        let Some(&index) = self.index_by_topic.get(topic_of(&stored)) else {
            return Ok(());
        };
        let sequence_id = sequence_id_of(&stored);
        let state = &mut self.topics[index];
        if sequence_id <= state.delivered {
            return Ok(());
        }
        let continues = self.is_started && !state.is_behind() && link.previous <= state.delivered;
        if continues {
            self.output.push_live(stored)?;
            state.delivered = sequence_id;
            state.wanted = sequence_id;
        } else {
            self.want(index, sequence_id);
        }
        Ok(())
    }

    /// Answers a shard that has restarted. A read it has not answered may be lost with its former self.
    fn reintroduce(&mut self, place: usize) {
        let shard = &mut self.shards[place];
        for (index, _) in shard.read.take().into_iter().flat_map(|read| read.asked).rev() {
            shard.round.push_front(index);
        }
        self.send_register(place);
    }

    fn want(&mut self, index: usize, sequence_id: u64) {
        let state = &mut self.topics[index];
        state.wanted = state.wanted.max(sequence_id);
        if state.is_behind() {
            self.behind.insert(index);
        }
    }

    /// Asks the shards for the next turns, where the client keeps up and the round has any left.
    fn plan_reads(&mut self) {
        if !self.is_started || !self.output.has_room_for_history() || self.behind.is_empty() {
            return;
        }
        let round_is_over = self
            .shards
            .iter()
            .all(|shard| shard.round.is_empty() && shard.read.is_none());
        if round_is_over {
            for shard in &mut self.shards {
                shard
                    .round
                    .extend(shard.topics.iter().filter(|index| self.behind.contains(index)));
            }
        }
        for place in 0..self.shards.len() {
            self.plan_read(place);
        }
    }

    fn plan_read(&mut self, place: usize) {
        let shard = &mut self.shards[place];
        if shard.read.is_some() || shard.round.is_empty() {
            return;
        }
        let count = shard.round.len().min(READ_TOPICS);
        let asked: Vec<(usize, u64)> = shard
            .round
            .drain(..count)
            .map(|index| (index, self.topics[index].wanted))
            .collect();
        let positions = asked
            .iter()
            .map(|(index, _)| TopicPosition {
                topic: self.topics[*index].topic.clone(),
                after: self.topics[*index].delivered.min(SEQUENCE_ID_MAX),
            })
            .collect();
        let id = self.next_read;
        self.next_read += 1;
        shard.read = Some(PendingRead {
            id,
            asked,
            has_waited: false,
        });
        let read = Read {
            id,
            positions,
            max_envelopes: TURN_ENVELOPES,
            max_topic_bytes: TURN_BYTES,
            max_bytes: READ_BYTES,
        };
        self.send(place, Outgoing::Read(read));
    }

    fn send_register(&mut self, place: usize) {
        let topics = self.shards[place]
            .topics
            .iter()
            .map(|index| self.topics[*index].topic.clone())
            .collect();
        self.send(place, Outgoing::Register(Register { topics }));
    }

    fn send(&mut self, place: usize, message: Outgoing) {
        self.outbox.push((
            place,
            ToShard {
                message: Some(message),
            }
            .encode_to_vec(),
        ));
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

#[cfg(test)]
#[path = "static_session_tests.rs"]
mod tests;

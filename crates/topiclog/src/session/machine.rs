//! A client's stream as a pure state machine: messages of shards and of the client in, messages to shards and frames out.
//! One machine for Subscribe and SubscribeStatic; a static stream is one that applies a single update, acknowledged by
//! Started. No I/O, no clock: the time comes with what happens.
//!
//! Updates are applied one after another: the topics an update adds are registered with their shards, and it is
//! acknowledged when every shard has told the heads it read after that (API-252). What is delivered then, and how, is
//! `catch_up`'s.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use conclave_envelope::{
    Limits, Topic,
    request::{StaticPlan, TopicPosition, decode_frame, parse_update},
};
use conclave_grpc_web::Status;
use conclave_proto::{
    conclave::internal::v1::{
        FromShard, ToShard,
        from_shard::{Message as Incoming, Registered},
        to_shard::{Message as Outgoing, Register},
    },
    xmtp::backend::v1::{
        self as wire,
        subscribe_request::{Request, Update},
    },
};
use prost::Message as _;

use super::{
    bucket::Bucket,
    catch_up::PendingRead,
    frames,
    liveness::{Liveness, Silence},
    output::{Kind, Output},
    registrations::{PendingRegister, RegistrationId, Registrations},
    updates::{Answer, Applying, Updates, Waiting},
};
use crate::{
    Configuration, answer,
    planted::{self, Bug},
    routing::Routing,
};

/// How often [`Session::check_waiting`] is called, in milliseconds.
pub(super) const PATIENCE_MS: u32 = 15_000;

/// The machine.
#[derive(Debug)]
pub(super) struct Session {
    limits: Limits,
    keepalive_interval_ms: u32,
    /// Looks in a row that may find the client not reading.
    unread_looks_max: u32,
    routing: Routing,
    pub(super) registrations: Registrations,
    pub(super) updates: Updates,
    update_bucket: Bucket,
    ping_bucket: Bucket,
    liveness: Liveness,
    pub(super) output: Output,
    /// Messages for shards, with the place of each.
    outbox: Vec<(usize, Vec<u8>)>,
    /// Shards to connect to, in the order of their places.
    connects: Vec<u32>,
    pub(super) read: Option<PendingRead>,
    pub(super) last_read: u64,
    is_started: bool,
    router_instance: Option<String>,
}

impl Session {
    fn new(kind: Kind, configuration: &Configuration, routing: &Routing, now_ns: u64) -> Self {
        let limits = configuration.limits;
        Self {
            keepalive_interval_ms: configuration.keepalive_interval_ms,
            unread_looks_max: configuration.max_pong_wait_ms / PATIENCE_MS + 2,
            routing: routing.clone(),
            registrations: Registrations::default(),
            updates: Updates::default(),
            update_bucket: Bucket::new(
                limits.max_update_frames_per_second,
                limits.max_update_burst,
                now_ns,
            ),
            ping_bucket: Bucket::new(limits.max_ping_frames_per_second, limits.max_ping_burst, now_ns),
            liveness: Liveness::new(configuration.keepalive_interval_ms, now_ns),
            output: Output::new(
                kind,
                configuration.stream_output_bytes_max,
                limits.max_response_bytes,
            ),
            outbox: Vec::new(),
            connects: Vec::new(),
            read: None,
            last_read: 0,
            is_started: false,
            router_instance: None,
            limits,
        }
    }

    /// A SubscribeStatic stream. Its first messages register the plan's topics.
    pub(super) fn new_static(
        plan: StaticPlan,
        configuration: &Configuration,
        routing: &Routing,
        now_ns: u64,
    ) -> Result<Self, Status> {
        let mut session = Self::new(Kind::Static, configuration, routing, now_ns);
        session.register(Answer::Started, plan.positions, BTreeMap::new())?;
        Ok(session)
    }

    /// A Subscribe stream. Started is queued (API-250).
    pub(super) fn new_bidirectional(
        configuration: &Configuration,
        routing: &Routing,
        now_ns: u64,
    ) -> Result<Self, Status> {
        let mut session = Self::new(Kind::Bidirectional, configuration, routing, now_ns);
        session
            .output
            .push_frame(frames::started(session.keepalive_interval_ms))?;
        session.is_started = true;
        Ok(session)
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

    /// Takes the shards to connect to. The first one ever has place 0, and so on.
    pub(super) fn take_connects(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.connects)
    }

    /// Whether a frame waits.
    pub(super) fn has_frame(&self) -> bool {
        !self.output.is_empty()
    }

    /// Whether the client has ended its half and got everything it is going to get (API-259).
    pub(super) fn is_finished(&self) -> bool {
        self.updates.is_ended && self.output.is_empty()
    }

    /// Whether the transport should go on reading what the client sends.
    pub(super) fn has_room_for_requests(&self) -> bool {
        self.updates.has_room()
    }

    /// Takes the next frame, which may make room to read more history.
    pub(super) fn pop_frame(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        let frame = self.output.pop_frame();
        if let Some(frame) = &frame {
            self.liveness.took(frame.ping, now_ns);
        }
        self.plan_reads();
        frame.map(|frame| frame.bytes)
    }

    /// Takes in a request frame of the client.
    ///
    /// # Errors
    /// The status the stream fails with.
    pub(super) fn receive_client(&mut self, message: Bytes, now_ns: u64) -> Result<(), Status> {
        match request_of(message.clone(), &self.limits)? {
            Request::Update(_) | Request::Ping(_) if self.updates.is_ending => Ok(()),
            Request::Update(update) => {
                take_token(&mut self.update_bucket, "Update", now_ns)?;
                if self.updates.is_idle() {
                    self.apply(&update)?;
                } else if !self.updates.push(Waiting::Update(message)) {
                    return Err(Status::resource_exhausted("too many updates wait to be applied"));
                }
                self.advance()
            }
            Request::Ping(ping) => {
                take_token(&mut self.ping_bucket, "Ping", now_ns)?;
                self.output.push_frame(frames::pong(ping.nonce))
            }
            Request::Pong(pong) => {
                if planted::has(Bug::PongCounted) {
                    take_token(&mut self.ping_bucket, "Pong", now_ns)?;
                }
                self.liveness.answered(pong.nonce);
                Ok(())
            }
        }
    }

    /// The client sends nothing more. The stream ends once its updates are applied (API-259).
    ///
    /// # Errors
    /// The status the stream fails with.
    pub(super) fn end_requests(&mut self) -> Result<(), Status> {
        self.updates.push(Waiting::End);
        self.advance()
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
            Incoming::Registered(registered) => self.take_registered(place, registered)?,
            Incoming::Page(page) => self.take_page(place, page)?,
            Incoming::Push(push) => {
                push.links.into_iter().try_for_each(|link| self.take_link(link))?;
            }
            Incoming::Reintroduce(_) if planted::has(Bug::ReintroduceIgnored) => {}
            Incoming::Reintroduce(_) => self.reintroduce(place),
            Incoming::Failure(failure) => return Err(answer::from_failure(failure)),
        }
        self.plan_reads();
        Ok(())
    }

    /// Called when the stream may have been silent for its interval. How long to wait for the next call, in milliseconds.
    ///
    /// # Errors
    /// The status the stream fails with.
    pub(super) fn check_silence(&mut self, now_ns: u64) -> Result<u32, Status> {
        if self.has_frame() || !self.is_started || self.updates.is_ending {
            // The client does not read, or sends nothing any more that could answer.
            return Ok(self.keepalive_interval_ms);
        }
        match self.liveness.silence(now_ns) {
            Silence::Look(wait_ms) => return Ok(wait_ms),
            Silence::Break => match self.output.kind() {
                Kind::Static => self.output.push_frame(frames::keepalive())?,
                Kind::Bidirectional => {
                    if let Some(nonce) = self.liveness.start_ping() {
                        self.output.push_ping(frames::ping(nonce), nonce)?;
                    }
                }
            },
        }
        Ok(self.keepalive_interval_ms)
    }

    /// The nonce of the Ping that the client has to answer.
    pub(super) fn awaited_pong(&self) -> Option<u64> {
        self.liveness.awaited()
    }

    /// Called when the Ping with this nonce has been on its way for as long as it may go unanswered. Whether to wait once
    /// more: the Pong may lie where nothing is read now, or the client have ended its half.
    ///
    /// # Errors
    /// DEADLINE_EXCEEDED when it is unanswered still (API-257).
    pub(super) fn check_pong(&self, nonce: u64) -> Result<bool, Status> {
        if self.liveness.awaited() != Some(nonce) {
            return Ok(false);
        }
        if !self.has_room_for_requests() || self.updates.is_ending {
            return Ok(true);
        }
        Err(Status::deadline_exceeded("the client does not answer a Ping"))
    }

    /// Called every [`PATIENCE_MS`].
    ///
    /// # Errors
    /// UNAVAILABLE when a shard has left something unanswered since the call before; RESOURCE_EXHAUSTED when the client
    /// has taken no frame for as long as a Ping may go unanswered, though some wait.
    pub(super) fn check_waiting(&mut self) -> Result<(), Status> {
        let places = self.registrations.places_mut().iter_mut();
        let registers = places.filter_map(|place| place.register.as_mut());
        let waits = registers.map(|register| &mut register.has_waited);
        let waits = waits.chain(self.read.as_mut().map(|read| &mut read.has_waited));
        // Every one of them is looked at, so that all have been when the next call comes.
        let overdue = waits
            .filter_map(|has_waited| std::mem::replace(has_waited, true).then_some(()))
            .count();
        if overdue > 0 {
            return Err(Status::unavailable("a shard does not answer"));
        }
        self.check_unread()
    }

    /// Called every [`PATIENCE_MS`], also when the stream has failed and its client has not taken what was queued before.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when the client has taken no frame for as long as a Ping may go unanswered. Nothing waits then.
    pub(super) fn check_unread(&mut self) -> Result<(), Status> {
        let has_frame = self.has_frame();
        if self.liveness.look(has_frame) > self.unread_looks_max {
            return Err(self.output.give_up());
        }
        Ok(())
    }

    /// Forgets the frames that wait: the client has gone.
    pub(super) fn forget_frames(&mut self) {
        self.output.clear();
    }

    /// Forgets everything but the frames that wait: the stream has failed, and its client may be slow to take them.
    pub(super) fn retire(&mut self) {
        self.registrations = Registrations::default();
        self.updates = Updates::default();
        self.read = None;
        self.outbox.clear();
        self.connects.clear();
    }

    /// Takes up what waits, as far as nothing before it has to be answered first.
    fn advance(&mut self) -> Result<(), Status> {
        while let Some(waiting) = self.updates.pop() {
            match waiting {
                Waiting::Update(frame) => {
                    if let Request::Update(update) = request_of(frame, &self.limits)? {
                        self.apply(&update)?;
                    }
                }
                Waiting::End => self.updates.is_ended = true,
            }
        }
        self.plan_reads();
        Ok(())
    }

    fn apply(&mut self, update: &Update) -> Result<(), Status> {
        let plan = parse_update(update, self.updates.last_id, &self.limits)
            .map_err(|failure| Status::invalid_argument(failure.to_string()))?;
        self.updates.last_id = plan.id;
        let is_known = |topic: &Topic| self.registrations.find(topic.as_bytes()).is_some();
        let leaving = plan.removes.iter().filter(|topic| is_known(topic)).count();
        let adds: Vec<TopicPosition> = plan
            .adds
            .into_iter()
            .filter(|position| !is_known(&position.topic))
            .collect();
        let count = self.registrations.count() - leaving + adds.len();
        let max = self.limits.max_stream_topics;
        if count as u64 > u64::from(max) {
            return Err(Status::invalid_argument(format!(
                "the update makes {count} topics, and max_stream_topics is {max}"
            )));
        }
        let mut removes: BTreeMap<usize, Vec<Bytes>> = BTreeMap::new();
        for topic in &plan.removes {
            if let Some(removed) = self.registrations.remove(topic.as_bytes()) {
                removes.entry(removed.place).or_default().push(removed.topic);
            }
        }
        self.register(Answer::Applied(plan.id), adds, removes)
    }

    /// Registers topics that are not registered, and tells the shards of them and of what was removed.
    fn register(
        &mut self,
        answer: Answer,
        adds: Vec<TopicPosition>,
        mut removes: BTreeMap<usize, Vec<Bytes>>,
    ) -> Result<(), Status> {
        let mut added = Vec::with_capacity(adds.len());
        let mut added_by_place: BTreeMap<usize, Vec<RegistrationId>> = BTreeMap::new();
        for position in adds {
            let topic = Bytes::copy_from_slice(position.topic.as_bytes());
            let (id, place, is_new) = self.registrations.add(topic, position.cursor, &self.routing);
            if is_new {
                self.connects.push(self.registrations.places()[place].shard);
            }
            added.push(id);
            added_by_place.entry(place).or_default().push(id);
        }
        let waits_for: BTreeSet<usize> = added_by_place.keys().copied().collect();
        self.updates.applying = Some(Applying {
            answer,
            added,
            waits_for: waits_for.clone(),
        });
        for place in waits_for {
            let left = removes.remove(&place).unwrap_or_default();
            self.send_change(place, added_by_place.remove(&place).unwrap_or_default(), left);
        }
        for (place, left) in removes {
            self.send_change(place, Vec::new(), left);
        }
        self.finish_applying()
    }

    fn take_registered(&mut self, place: usize, registered: Registered) -> Result<(), Status> {
        self.router_instance = Some(registered.router_instance);
        let register = self
            .registrations
            .place_mut(place)
            .and_then(|place| place.register.take_if(|register| register.id == registered.id));
        // Of one that was overtaken by another, or that only removed: nobody waits for it.
        let Some(register) = register else {
            return Ok(());
        };
        if registered.heads.len() != register.asked.len() {
            return Err(Status::internal(
                "a shard answered another number of heads than of topics",
            ));
        }
        for (id, head) in register.asked.into_iter().zip(registered.heads) {
            self.registrations.take_head(id, head);
        }
        if let Some(applying) = &mut self.updates.applying {
            applying.waits_for.remove(&place);
        }
        self.finish_applying()?;
        self.advance()
    }

    /// Acknowledges the update that is being applied, if every shard has told its heads.
    fn finish_applying(&mut self) -> Result<(), Status> {
        let applied = self
            .updates
            .applying
            .take_if(|applying| applying.waits_for.is_empty());
        let Some(Applying { answer, added, .. }) = applied else {
            return Ok(());
        };
        let targets = added
            .iter()
            .filter_map(|id| self.registrations.get(*id))
            .map(|registration| wire::CatchupTarget {
                topic: Some(wire::Topic {
                    topic: registration.topic.clone(),
                }),
                through_sequence_id: registration.target,
            })
            .collect();
        self.output.push_frame(match answer {
            Answer::Started => frames::static_started(self.keepalive_interval_ms, targets),
            Answer::Applied(id) => frames::applied(id, targets),
        })?;
        self.is_started = true;
        added.into_iter().for_each(|id| self.registrations.go_live(id));
        Ok(())
    }

    /// Answers a shard that does not know the stream's topics. A read it has not answered may be lost with its former
    /// self.
    fn reintroduce(&mut self, place: usize) {
        self.give_read_up(place);
        self.send_whole(place);
    }

    /// Tells a shard what joins and what leaves, or everything where that is due.
    fn send_change(&mut self, place: usize, adds: Vec<RegistrationId>, removes: Vec<Bytes>) {
        let Some(known) = self.registrations.place_mut(place) else {
            return;
        };
        // A whole set is on its way: its heads count, so the next one has to tell them again.
        let is_overtaking = known.register.is_some() && !adds.is_empty();
        if known.last_register == 0 || is_overtaking {
            return self.send_whole(place);
        }
        self.send_register(place, adds, removes, false);
    }

    fn send_whole(&mut self, place: usize) {
        if let Some(known) = self.registrations.place_mut(place) {
            let members = known.members.iter().copied().collect();
            self.send_register(place, members, Vec::new(), true);
        }
    }

    fn send_register(
        &mut self,
        place: usize,
        asked: Vec<RegistrationId>,
        removes: Vec<Bytes>,
        is_whole: bool,
    ) {
        let topics = asked
            .iter()
            .filter_map(|id| self.registrations.get(*id))
            .map(|registration| registration.topic.clone())
            .collect();
        let Some(known) = self.registrations.place_mut(place) else {
            return;
        };
        known.last_register += 1;
        let id = known.last_register;
        if is_whole || !asked.is_empty() {
            known.register = Some(PendingRegister {
                id,
                asked,
                has_waited: false,
            });
        }
        self.send(
            place,
            Outgoing::Register(Register {
                id,
                topics,
                removes,
                is_whole,
            }),
        );
    }

    pub(super) fn send(&mut self, place: usize, message: Outgoing) {
        self.outbox.push((
            place,
            ToShard {
                message: Some(message),
            }
            .encode_to_vec(),
        ));
    }
}

/// What a frame of the client asks.
fn request_of(frame: Bytes, limits: &Limits) -> Result<Request, Status> {
    decode_frame(frame, limits)
        .map_err(|failure| Status::invalid_argument(failure.to_string()))?
        .request
        .ok_or_else(|| Status::invalid_argument("the frame holds no request"))
}

fn take_token(bucket: &mut Bucket, kind: &str, now_ns: u64) -> Result<(), Status> {
    if bucket.take(now_ns) {
        return Ok(());
    }
    Err(Status::resource_exhausted(format!(
        "more {kind} frames came than the stream may get"
    )))
}

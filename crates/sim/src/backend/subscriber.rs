//! A client that holds a Subscribe stream open, adds and removes topics on it as it likes, and opens another from where it
//! was when that one ends.

use std::{cell::RefCell, collections::BTreeMap, pin::pin, rc::Rc};

use bytes::Bytes;
use conclave_grpc_web::{Code, Status};
use conclave_proto::{
    Rpc as _,
    xmtp::backend::v1::{
        Ping, Pong, SubscribeRequest, SubscribeResponse, Topic,
        subscribe_request::{Request, Update},
        subscribe_response::Response,
        subscription_service::Subscribe,
    },
};
use conclave_topiclog::{CallContext, Requests};
use futures_util::future::{Either, select};
use prost::Message as _;

use super::{
    client::{Client, meta_of, to_query},
    edge::Worker,
    faults::Fault,
    history::{id_of, topic_of},
    subscription::{Asked, Event, Manner, Subscription},
    world::MILLI_NS,
};

/// How far apart a client's own Pings are at least, in virtual nanoseconds: its bucket fills much faster.
const PING_EVERY_NS: u64 = 3_000 * MILLI_NS;

/// What a client knows.
struct Subscriber {
    client: Client,
    /// Every topic it may be interested in, and how far it has read.
    positions: BTreeMap<Bytes, u64>,
    manner: Manner,
    pinged_ns: u64,
}

/// Runs for as long as the simulation does.
pub(super) async fn run(client: Client, topics: Vec<Bytes>, manner: Manner) {
    let mut subscriber = Subscriber {
        positions: topics.into_iter().map(|topic| (topic, 0)).collect(),
        manner,
        pinged_ns: 0,
        client,
    };
    loop {
        let status = subscriber.follow().await;
        let is_fair = matches!(
            status.code,
            Code::Ok
                | Code::Unavailable
                | Code::ResourceExhausted
                | Code::DeadlineExceeded
                | Code::InvalidArgument
        );
        if !is_fair {
            let text = format!("a Subscribe stream ended with {status}");
            subscriber.client.history.borrow_mut().unended.push(text);
            return;
        }
        subscriber.client.back_off().await;
    }
}

/// One stream as its client has it.
struct Held {
    requests: Requests<Worker>,
    /// Its number in the history.
    number: usize,
    last_update: u64,
    has_ended_its_half: bool,
}

impl Subscriber {
    /// Follows one stream to its end.
    async fn follow(&mut self) -> Status {
        let world = Rc::clone(&self.client.world);
        let edge = world.random.below(self.client.edges.len());
        let (life, backend) = self.client.edges[edge].current();
        world.travel().await;
        let context = CallContext::default();
        let opening = backend.duplex(Subscribe::PATH, &context);
        let (mut session, requests) = match life.clone().limit(opening).await {
            None => return Status::unavailable("the Worker was lost"),
            Some(Err(status)) => return status,
            Some(Ok(opened)) => opened,
        };
        let number = {
            let mut history = self.client.history.borrow_mut();
            history
                .subscriptions
                .push(Subscription::new(self.client.index, self.manner));
            history.subscriptions.len() - 1
        };
        let mut held = Held {
            requests,
            number,
            last_update: 0,
            has_ended_its_half: false,
        };
        self.update(&mut held, 700, 0);
        let status = loop {
            let pause_ms = world.random.between(20, 600);
            let next = {
                let frame = pin!(life.clone().limit(session.next()));
                let pause = pin!(world.sleep_ms(pause_ms));
                match select(frame, pause).await {
                    Either::Left((frame, _)) => Some(frame),
                    Either::Right(_) => None,
                }
            };
            match next {
                None => self.act(&mut held).await,
                Some(None) => break Status::unavailable("the Worker was lost"),
                Some(Some(None)) => break Status::ok(),
                Some(Some(Some(Err(status)))) => break status,
                Some(Some(Some(Ok(frame)))) => self.take(&held, &frame),
            }
            if world.strikes(Fault::Edge) {
                let mut history = self.client.history.borrow_mut();
                history.subscriptions[number].is_open = false;
                return Status::new(Code::Unavailable, "the client leaves");
            }
        };
        let mut history = self.client.history.borrow_mut();
        let subscription = &mut history.subscriptions[number];
        subscription.is_open = false;
        subscription.ended = Some(status.code);
        status
    }

    /// Takes a frame in.
    fn take(&mut self, held: &Held, frame: &[u8]) {
        let frame = SubscribeResponse::decode(frame).expect("a frame decodes");
        let event = match frame.response.expect("a response") {
            Response::Started(_) => Event::Started,
            Response::Applied(applied) => {
                let targets = applied.added_targets.into_iter().map(|target| {
                    let topic = target.topic.map(|topic| topic.topic).unwrap_or_default();
                    (topic, target.through_sequence_id)
                });
                Event::Applied(applied.id, targets.collect())
            }
            Response::Messages(messages) => {
                let metas: Vec<_> = messages.envelopes.iter().map(meta_of).collect();
                for meta in &metas {
                    if let Some(position) = self.positions.get_mut(&topic_of(meta)) {
                        *position = (*position).max(id_of(meta));
                    }
                }
                Event::Messages(metas)
            }
            Response::Ping(ping) => Event::Pinged(ping.nonce),
            Response::Pong(pong) => Event::Ponged(pong.nonce),
        };
        let pinged = match &event {
            Event::Pinged(nonce) => Some(*nonce),
            _ => None,
        };
        self.record(held, event);
        if let Some(nonce) = pinged.filter(|_| self.manner.answers_pings) {
            self.send(held, Request::Pong(Pong { nonce }), Event::SentPong(nonce));
        }
    }

    /// Does something of its own accord, or waits without reading.
    async fn act(&mut self, held: &mut Held) {
        let world = Rc::clone(&self.client.world);
        if !world.are_faults_on() || held.has_ended_its_half {
            return;
        }
        match world.random.below(24) {
            0..=7 => self.update(held, 350, 350),
            8..=11 => self.ping(held),
            12..=14 => {
                let pause_ms = world.random.between(50, 1_500);
                world.sleep_ms(pause_ms).await;
            }
            15 if world.random.chance(300) => {
                held.has_ended_its_half = true;
                self.record(held, Event::EndedItsHalf);
                held.requests.end();
            }
            16 if world.random.chance(200) => {
                let asked = Asked {
                    id: held.last_update,
                    ..Asked::default()
                };
                self.client.history.borrow_mut().subscriptions[held.number].breaks_rules = true;
                self.send_update(held, asked);
            }
            _ => {}
        }
    }

    /// Adds some topics and removes some, with these chances in thousandths. An add starts where the client is, or anywhere
    /// below.
    fn update(&mut self, held: &mut Held, adds: u64, removes: u64) {
        let random = &self.client.world.random;
        held.last_update += random.between(1, 3);
        let mut asked = Asked {
            id: held.last_update,
            ..Asked::default()
        };
        for (topic, position) in &self.positions {
            if random.chance(adds) {
                let cursor = match random.below(3) {
                    0 => random.between(0, *position),
                    _ => *position,
                };
                asked.adds.push((topic.clone(), cursor));
            } else if random.chance(removes) {
                asked.removes.push(topic.clone());
            }
        }
        self.send_update(held, asked);
    }

    fn send_update(&self, held: &Held, asked: Asked) {
        let update = Update {
            id: asked.id,
            adds: asked.adds.iter().map(to_query).collect(),
            removes: asked
                .removes
                .iter()
                .map(|topic| Topic { topic: topic.clone() })
                .collect(),
        };
        self.send(held, Request::Update(update), Event::Sent(asked));
    }

    fn ping(&mut self, held: &Held) {
        let now_ns = self.client.world.executor.now_ns();
        if now_ns < self.pinged_ns + PING_EVERY_NS {
            return;
        }
        self.pinged_ns = now_ns;
        let nonce = self.client.world.random.next();
        self.send(held, Request::Ping(Ping { nonce }), Event::SentPing(nonce));
    }

    fn send(&self, held: &Held, request: Request, event: Event) {
        self.record(held, event);
        let frame = SubscribeRequest {
            request: Some(request),
        };
        held.requests.push(frame.encode_to_vec().into());
    }

    fn record(&self, held: &Held, event: Event) {
        let at_ns = self.client.world.executor.now_ns();
        let history: &RefCell<_> = &self.client.history;
        let mut history = history.borrow_mut();
        let moment = history.now();
        history.subscriptions[held.number]
            .events
            .push((moment, at_ns, event));
    }
}

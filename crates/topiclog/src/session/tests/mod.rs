//! The state machine alone: what a shard and a client say goes in, what it would send and what it shows is compared.

mod liveness;
mod static_streams;
mod updates;

use bytes::Bytes;
use conclave_envelope::{
    Topic,
    request::{StaticPlan, TopicPosition as Position},
};
use conclave_grpc_web::{Code, Status};
use conclave_proto::{
    conclave::internal::v1::{
        FromShard, StoredEnvelope, ToShard,
        from_shard::{Link, Message as Incoming, Page, Push, Registered, Reintroduce, Run},
        to_shard::Message as Outgoing,
    },
    xmtp::backend::v1 as wire,
};
use prost::Message as _;

use super::machine::Session;
use crate::{Configuration, routing::Routing};

/// An encoded ClientEnvelope with an empty group message.
const EMPTY_GROUP_MESSAGE: &[u8] = &[0x0a, 0];

/// A message to a shard; topics by their number.
#[derive(Debug, PartialEq, Eq)]
enum Sent {
    /// The whole set.
    Whole(Vec<u8>),
    /// What joins, and what leaves.
    Change(Vec<u8>, Vec<u8>),
    /// The id of a read, and its positions.
    Read(u64, Vec<(u8, u64)>),
}

/// A frame; topics by their number, with a target or a sequence id.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shown {
    Started(u32),
    StaticStarted(Vec<(u8, u64)>),
    Applied(u64, Vec<(u8, u64)>),
    Messages(Vec<(u8, u64)>),
    Keepalive,
    Ping(u64),
    Pong(u64),
}

fn topic(n: u8) -> Topic {
    let mut bytes = [n; 17];
    bytes[0] = 0;
    Topic::parse(&bytes).expect("a topic")
}

fn number_of(topic: &[u8]) -> u8 {
    topic[1]
}

fn stored(n: u8, sequence_id: u64) -> StoredEnvelope {
    let meta = wire::EnvelopeMeta {
        cursor: Some(wire::Cursor { sequence_id }),
        topic: Some(topic(n).to_wire()),
        ..Default::default()
    };
    StoredEnvelope {
        meta: Some(meta),
        envelope: Bytes::from_static(EMPTY_GROUP_MESSAGE),
    }
}

fn push(n: u8, previous: u64, sequence_id: u64) -> Incoming {
    Incoming::Push(Push {
        links: vec![Link {
            stored: Some(stored(n, sequence_id)),
            previous,
        }],
    })
}

fn page(id: u64, runs: &[(u8, &[u64], bool)]) -> Incoming {
    let runs = runs.iter().map(|(n, ids, has_more)| Run {
        envelopes: ids.iter().map(|id| stored(*n, *id)).collect(),
        has_more: *has_more,
    });
    Incoming::Page(Page {
        id,
        runs: runs.collect(),
    })
}

fn configuration() -> Configuration {
    let mut configuration = Configuration {
        keepalive_interval_ms: 1_000,
        max_pong_wait_ms: 3_000,
        shard_count: 1,
        ..Configuration::default()
    };
    configuration.limits.max_envelope_bytes = 50_000;
    configuration.limits.max_response_bytes = 100_000;
    configuration
}

/// A stream, and the time.
struct Stream {
    session: Session,
    now_ns: u64,
}

impl Stream {
    /// A Subscribe stream, its Started frame taken.
    fn open() -> Self {
        Self::open_with(&configuration())
    }

    fn open_with(configuration: &Configuration) -> Self {
        let routing = Routing::at_birth(configuration.shard_count);
        let session = Session::new_bidirectional(configuration, &routing, 0).expect("opens");
        let mut stream = Self { session, now_ns: 0 };
        assert_eq!(
            stream.frames(),
            [Shown::Started(configuration.keepalive_interval_ms)]
        );
        stream
    }

    /// A static stream over topics 1, 2, … on one shard, from these cursors.
    fn open_static(cursors: &[u64]) -> Self {
        let positions = (1u8..).zip(cursors).map(|(n, cursor)| Position {
            topic: topic(n),
            cursor: *cursor,
        });
        let plan = StaticPlan {
            positions: positions.collect(),
        };
        let session = Session::new_static(plan, &configuration(), &Routing::at_birth(1), 0).expect("opens");
        Self { session, now_ns: 0 }
    }

    fn request(&mut self, request: wire::subscribe_request::Request) -> Result<(), Status> {
        let frame = wire::SubscribeRequest {
            request: Some(request),
        };
        self.session
            .receive_client(frame.encode_to_vec().into(), self.now_ns)
    }

    fn update(&mut self, id: u64, adds: &[(u8, u64)], removes: &[u8]) -> Result<(), Status> {
        let adds = adds.iter().map(|(n, cursor)| wire::TopicQuery {
            topic: Some(topic(*n).to_wire()),
            cursor: Some(wire::Cursor { sequence_id: *cursor }),
        });
        let update = wire::subscribe_request::Update {
            id,
            adds: adds.collect(),
            removes: removes.iter().map(|n| topic(*n).to_wire()).collect(),
        };
        self.request(wire::subscribe_request::Request::Update(update))
    }

    fn ping(&mut self, nonce: u64) -> Result<(), Status> {
        self.request(wire::subscribe_request::Request::Ping(wire::Ping { nonce }))
    }

    fn pong(&mut self, nonce: u64) -> Result<(), Status> {
        self.request(wire::subscribe_request::Request::Pong(wire::Pong { nonce }))
    }

    /// Tells it a message of its first shard.
    fn tell(&mut self, message: Incoming) -> Result<(), Status> {
        let message = FromShard {
            message: Some(message),
        };
        self.session.receive(0, message.encode_to_vec())
    }

    /// Tells it a message of its shard at a place.
    fn tell_at(&mut self, place: usize, message: Incoming) {
        let message = FromShard {
            message: Some(message),
        };
        self.session
            .receive(place, message.encode_to_vec())
            .expect("taken");
    }

    /// Answers the last registration with its first shard.
    fn heads(&mut self, heads: &[u64]) -> Result<(), Status> {
        let id = self.session.registrations.places()[0].last_register;
        self.answer_register(id, heads)
    }

    fn answer_register(&mut self, id: u64, heads: &[u64]) -> Result<(), Status> {
        self.tell(Incoming::Registered(Registered {
            id,
            heads: heads.to_vec(),
            router_instance: "rti_x".to_owned(),
        }))
    }

    fn reintroduce(&mut self) -> Result<(), Status> {
        self.tell(Incoming::Reintroduce(Reintroduce {}))
    }

    /// What was sent to its shards since it was last asked.
    fn sent(&mut self) -> Vec<Sent> {
        let numbers = |topics: Vec<Bytes>| topics.iter().map(|topic| number_of(topic)).collect();
        let decode = |(_, bytes): (usize, Vec<u8>)| match ToShard::decode(&bytes[..])
            .expect("decodes")
            .message
        {
            Some(Outgoing::Register(register)) if register.is_whole => Sent::Whole(numbers(register.topics)),
            Some(Outgoing::Register(register)) => {
                Sent::Change(numbers(register.topics), numbers(register.removes))
            }
            Some(Outgoing::Read(read)) => {
                let positions = read.positions.iter();
                let positions = positions.map(|position| (number_of(&position.topic), position.after));
                Sent::Read(read.id, positions.collect())
            }
            None => panic!("an empty message"),
        };
        self.session.take_outbox().into_iter().map(decode).collect()
    }

    /// The frames that wait, in order.
    fn frames(&mut self) -> Vec<Shown> {
        let mut frames = Vec::new();
        while let Some(frame) = self.session.pop_frame(self.now_ns) {
            frames.push(match self.session.output.kind() {
                super::output::Kind::Static => show_static(&frame),
                super::output::Kind::Bidirectional => show(&frame),
            });
        }
        frames
    }

    /// What the frames that wait deliver, in order.
    fn delivered(&mut self) -> Vec<(u8, u64)> {
        let messages = self.frames().into_iter().filter_map(|frame| match frame {
            Shown::Messages(ids) => Some(ids),
            _ => None,
        });
        messages.flatten().collect()
    }

    /// Lets time pass.
    fn pass_ms(&mut self, milliseconds: u64) {
        self.now_ns += milliseconds * 1_000_000;
    }
}

fn targets(targets: Vec<wire::CatchupTarget>) -> Vec<(u8, u64)> {
    let target = |target: wire::CatchupTarget| {
        let topic = target.topic.expect("a topic").topic;
        (number_of(&topic), target.through_sequence_id)
    };
    targets.into_iter().map(target).collect()
}

fn ids(envelopes: Vec<wire::ServerEnvelope>) -> Vec<(u8, u64)> {
    let id = |stored: wire::ServerEnvelope| {
        let meta = stored.meta.expect("metadata");
        let sequence_id = meta.cursor.expect("a cursor").sequence_id;
        (number_of(&meta.topic.expect("a topic").topic), sequence_id)
    };
    envelopes.into_iter().map(id).collect()
}

fn show_static(frame: &[u8]) -> Shown {
    use wire::subscribe_static_response::Response;
    match wire::SubscribeStaticResponse::decode(frame)
        .expect("decodes")
        .response
    {
        Some(Response::Started(started)) => Shown::StaticStarted(targets(started.targets)),
        Some(Response::Messages(messages)) => Shown::Messages(ids(messages.envelopes)),
        Some(Response::Keepalive(_)) => Shown::Keepalive,
        None => panic!("an empty frame"),
    }
}

fn show(frame: &[u8]) -> Shown {
    use wire::subscribe_response::Response;
    match wire::SubscribeResponse::decode(frame).expect("decodes").response {
        Some(Response::Started(started)) => Shown::Started(started.keepalive_interval_ms),
        Some(Response::Applied(applied)) => Shown::Applied(applied.id, targets(applied.added_targets)),
        Some(Response::Messages(messages)) => Shown::Messages(ids(messages.envelopes)),
        Some(Response::Ping(ping)) => Shown::Ping(ping.nonce),
        Some(Response::Pong(pong)) => Shown::Pong(pong.nonce),
        None => panic!("an empty frame"),
    }
}

fn code(outcome: Result<(), Status>) -> Option<Code> {
    outcome.err().map(|status| status.code)
}

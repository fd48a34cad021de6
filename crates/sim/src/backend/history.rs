//! What clients asked and what they were answered, in the order it happened. The checkers know nothing else.

use std::fmt;

use bytes::Bytes;
use conclave_grpc_web::Code;
use conclave_proto::xmtp::backend::v1::{EnvelopeMeta, message_hash::Hash};

use super::{subscription::Subscription, world::Note};

/// A place in the one order of everything recorded: what has a smaller moment happened before.
pub(super) type Moment = u64;

/// The idempotency key of an envelope: topic and hash.
pub(super) type Key = (Bytes, Bytes);

/// What clients saw.
#[derive(Debug, Default)]
pub(super) struct History {
    next_moment: Moment,
    pub(super) publishes: Vec<Publish>,
    pub(super) attempts: Vec<Attempt>,
    pub(super) streams: Vec<Stream>,
    pub(super) subscriptions: Vec<Subscription>,
    /// So little may wait for a client that one which reads can lose its stream.
    pub(super) is_output_short: bool,
    /// The whole of each topic, read when everything was over.
    pub(super) logs: Vec<(Bytes, Vec<EnvelopeMeta>)>,
    /// What was left of each topic when everything had expired, if that happened.
    pub(super) swept: Option<Swept>,
    /// What did not end although it had to.
    pub(super) unended: Vec<String>,
    pub(super) notes: Vec<Note>,
}

/// The topics after deletion.
#[derive(Debug)]
pub(super) struct Swept {
    /// When they were read, in nanoseconds since the Unix epoch.
    pub(super) at_ns: u64,
    pub(super) logs: Vec<(Bytes, Vec<EnvelopeMeta>)>,
    /// The last id that was ever seen of each by then.
    pub(super) newest: Vec<u64>,
}

/// One publish request; every attempt of it carries the same bytes.
#[derive(Debug, Default)]
pub(super) struct Publish {
    /// The key of each envelope, in the order of the request.
    pub(super) keys: Vec<Key>,
    /// The Router instance it expects is not the one there is: nothing may be stored.
    pub(super) is_misdirected: bool,
    /// What it was to be stored under.
    pub(super) conditions: Vec<Condition>,
}

/// What must hold for a publish with a new envelope of an identity topic to be stored.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) topic: Bytes,
    /// The id its envelope there must follow.
    pub(super) expected_head: u64,
    /// The most envelopes the topic may hold afterwards.
    pub(super) entries_max: u32,
    /// What it claims for the inbox of this topic.
    pub(super) handle: Option<Bytes>,
}

/// One request and its answer.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) client: usize,
    pub(super) edge: usize,
    pub(super) invoked_ns: u64,
    pub(super) invoked: Moment,
    pub(super) returned: Option<Moment>,
    pub(super) asked: Asked,
    pub(super) came: Option<Came>,
}

/// What was asked.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    /// The number of the publish.
    Publish(usize),
    Query {
        positions: Vec<(Bytes, u64)>,
        limit: u32,
    },
    Newest(Vec<Bytes>),
    Status,
}

/// What was answered.
#[derive(Clone, Debug)]
pub(super) enum Came {
    Receipts(Vec<EnvelopeMeta>),
    Page {
        metas: Vec<EnvelopeMeta>,
        has_more: bool,
    },
    Newest(Vec<EnvelopeMeta>),
    Status {
        boundary: Option<u64>,
        last_allocated: u64,
    },
    Failure(Code, String),
}

/// One stream from its opening to its end.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) client: usize,
    pub(super) positions: Vec<(Bytes, u64)>,
    pub(super) targets: Vec<u64>,
    pub(super) frames: Vec<(Moment, Vec<EnvelopeMeta>)>,
    /// Open to the end of the simulation.
    pub(super) is_open: bool,
    pub(super) ended: Option<Code>,
}

impl History {
    pub(super) fn now(&mut self) -> Moment {
        self.next_moment += 1;
        self.next_moment
    }

    /// A request leaves its client. The number of the attempt.
    pub(super) fn invoke(&mut self, client: usize, edge: usize, invoked_ns: u64, asked: Asked) -> usize {
        let invoked = self.now();
        self.attempts.push(Attempt {
            client,
            edge,
            invoked_ns,
            invoked,
            returned: None,
            asked,
            came: None,
        });
        self.attempts.len() - 1
    }

    /// Its answer arrives.
    pub(super) fn conclude(&mut self, attempt: usize, came: Came) {
        let now = self.now();
        let attempt = &mut self.attempts[attempt];
        attempt.returned = Some(now);
        attempt.came = Some(came);
    }
}

/// The sequence id of an envelope; 0 when its metadata has none, which no check accepts.
pub(super) fn id_of(meta: &EnvelopeMeta) -> u64 {
    meta.cursor.as_ref().map_or(0, |cursor| cursor.sequence_id)
}

/// The topic of an envelope.
pub(super) fn topic_of(meta: &EnvelopeMeta) -> Bytes {
    meta.topic
        .as_ref()
        .map(|topic| topic.topic.clone())
        .unwrap_or_default()
}

/// The key of an envelope.
pub(super) fn key_of(meta: &EnvelopeMeta) -> Key {
    let hash = match meta.message_hash.as_ref().and_then(|hash| hash.hash.clone()) {
        Some(Hash::Sha256(hash)) => hash,
        None => Bytes::new(),
    };
    (topic_of(meta), hash)
}

/// The first bytes of a topic or hash, enough to tell it from others in a report.
pub(super) fn short(bytes: &[u8]) -> String {
    let shown = bytes.iter().take(5);
    shown.map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn list_ids(metas: &[EnvelopeMeta]) -> String {
    let shown = metas
        .iter()
        .map(|meta| format!("{}:{}", short(&topic_of(meta)), id_of(meta)));
    shown.collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Attempt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "[{} to {}] client {} by edge {} ",
            self.invoked,
            self.returned.map_or("?".to_owned(), |moment| moment.to_string()),
            self.client,
            self.edge
        )?;
        match &self.asked {
            Asked::Publish(number) => write!(out, "publishes #{number}")?,
            Asked::Query { positions, limit } => {
                write!(out, "queries, limit {limit},")?;
                for (topic, after) in positions {
                    write!(out, " {}>{after}", short(topic))?;
                }
            }
            Asked::Newest(topics) => write!(out, "asks the newest of {} topics", topics.len())?,
            Asked::Status => write!(out, "asks the status")?,
        }
        match &self.came {
            None => write!(out, ": no answer"),
            Some(Came::Receipts(metas) | Came::Newest(metas)) => write!(out, ": {}", list_ids(metas)),
            Some(Came::Page { metas, has_more }) => {
                let more = if *has_more { ", and more" } else { "" };
                write!(out, ": {}{more}", list_ids(metas))
            }
            Some(Came::Status {
                boundary,
                last_allocated,
            }) => write!(out, ": boundary {boundary:?} of {last_allocated}"),
            Some(Came::Failure(code, message)) => write!(out, ": {code}, {message}"),
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "stream of client {} over", self.client)?;
        for ((topic, after), target) in self.positions.iter().zip(&self.targets) {
            write!(out, " {}>{after} to {target}", short(topic))?;
        }
        for (moment, metas) in &self.frames {
            write!(out, "; [{moment}] {}", list_ids(metas))?;
        }
        match self.ended {
            Some(code) => write!(out, "; ended {code}"),
            None if self.is_open => write!(out, "; open"),
            None => write!(out, "; left"),
        }
    }
}

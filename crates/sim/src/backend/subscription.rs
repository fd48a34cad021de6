//! A Subscribe stream as its client saw it: part of the history.

use std::fmt;

use bytes::Bytes;
use conclave_grpc_web::Code;
use conclave_proto::xmtp::backend::v1::EnvelopeMeta;

use super::history::{Moment, list_ids, short};

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manner {
    /// It answers Pings, as it has to.
    pub(super) answers_pings: bool,
}

/// An update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) id: u64,
    pub(super) adds: Vec<(Bytes, u64)>,
    pub(super) removes: Vec<Bytes>,
}

/// One thing that happened on a stream.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Started,
    Sent(Asked),
    Applied(u64, Vec<(Bytes, u64)>),
    Messages(Vec<EnvelopeMeta>),
    /// A Ping came, and a Pong went.
    Pinged(u64),
    SentPong(u64),
    /// A Ping went, and a Pong came.
    SentPing(u64),
    Ponged(u64),
    EndedItsHalf,
}

/// One stream from its opening to its end.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) client: usize,
    pub(super) manner: Manner,
    /// With their moments, and the virtual time in nanoseconds.
    pub(super) events: Vec<(Moment, u64, Event)>,
    /// Its client sent something that it may not send.
    pub(super) breaks_rules: bool,
    /// Open to the end of the simulation.
    pub(super) is_open: bool,
    /// What the stream ended with, unless its client left.
    pub(super) ended: Option<Code>,
}

impl Subscription {
    pub(super) fn new(client: usize, manner: Manner) -> Self {
        Self {
            client,
            manner,
            events: Vec::new(),
            breaks_rules: false,
            is_open: true,
            ended: None,
        }
    }

    /// Every frame of envelopes, with its moment.
    pub(super) fn frames(&self) -> impl Iterator<Item = (Moment, &[EnvelopeMeta])> {
        self.events.iter().filter_map(|(moment, _, event)| match event {
            Event::Messages(metas) => Some((*moment, &metas[..])),
            _ => None,
        })
    }
}

fn list_positions(positions: &[(Bytes, u64)]) -> String {
    let shown = positions
        .iter()
        .map(|(topic, number)| format!("{}>{number}", short(topic)));
    shown.collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started => write!(out, "started"),
            Self::Sent(asked) => {
                let removes: Vec<_> = asked.removes.iter().map(|topic| short(topic)).collect();
                let adds = list_positions(&asked.adds);
                write!(
                    out,
                    "update {} adds {adds} removes {}",
                    asked.id,
                    removes.join(" ")
                )
            }
            Self::Applied(id, targets) => write!(out, "applied {id} {}", list_positions(targets)),
            Self::Messages(metas) => write!(out, "{}", list_ids(metas)),
            Self::Pinged(nonce) => write!(out, "pinged {nonce}"),
            Self::SentPong(nonce) => write!(out, "pongs {nonce}"),
            Self::SentPing(nonce) => write!(out, "pings {nonce}"),
            Self::Ponged(nonce) => write!(out, "ponged {nonce}"),
            Self::EndedItsHalf => write!(out, "ends its half"),
        }
    }
}

impl fmt::Display for Subscription {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "subscription of client {}", self.client)?;
        for (moment, at_ns, event) in &self.events {
            let at_ms = at_ns / super::world::MILLI_NS;
            write!(out, "\n    [{moment}, {at_ms} ms] {event}")?;
        }
        match self.ended {
            Some(code) => write!(out, "\n    ended {code}"),
            None if self.is_open => write!(out, "\n    open"),
            None => write!(out, "\n    left"),
        }
    }
}

//! Who is told of what: the streams open to a shard and the topics each registered.
//!
//! All of it is in memory. A shard that slept or restarted still has its streams but not their topics; the first publish
//! after that asks every stream it does not know to register again, and the session heals whatever it missed from the
//! heads it is told then. So does a shard that takes up what an earlier run left unfinished: that run may have stored
//! envelopes and pushed none of them (docs/decisions/0003-stream-registration.md).

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap, HashSet},
};

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::{
    conclave::internal::v1::{
        FromShard, StoredEnvelope, ToShard,
        from_shard::{Link, Message as Outgoing, Page, Push, Registered, Reintroduce, Run},
        to_shard::{self, Message as Incoming},
    },
    xmtp::backend::v1 as wire,
};
use conclave_sql::SqlError;
use prost::Message as _;

use super::{
    batch::Fresh,
    read::{self, PageBounds},
};
use crate::{
    answer,
    planted::{self, Bug},
    platform::{ObjectPlatform, SocketId},
    status,
};

/// Bodies in one push message, in bytes, unless a single envelope has more.
const PUSH_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Subscribers {
    sockets_by_topic: RefCell<HashMap<Bytes, Vec<SocketId>>>,
    topics_by_socket: RefCell<HashMap<SocketId, HashSet<Bytes>>>,
    has_reintroduced: Cell<bool>,
    /// Registrations that come too late, for the planted bug that reads the heads before them.
    #[cfg(feature = "planted-bugs")]
    late: RefCell<Vec<(SocketId, Vec<Bytes>)>>,
}

impl Subscribers {
    /// A stream was accepted; it registers with its first message.
    pub(super) fn opened(&self, socket: SocketId) {
        self.topics_by_socket.borrow_mut().entry(socket).or_default();
    }

    /// A stream ended.
    pub(super) fn closed(&self, socket: SocketId) {
        let topics = self.topics_by_socket.borrow_mut().remove(&socket);
        for topic in topics.iter().flatten() {
            self.leave(socket, topic);
        }
    }

    /// Tells a stream of nothing more on a topic.
    fn leave(&self, socket: SocketId, topic: &Bytes) {
        let mut by_topic = self.sockets_by_topic.borrow_mut();
        if let Some(sockets) = by_topic.get_mut(topic) {
            sockets.retain(|known| *known != socket);
            if sockets.is_empty() {
                by_topic.remove(topic);
            }
        }
    }

    /// Tells a stream of everything on these topics, beside those it has.
    fn join(&self, socket: SocketId, topics: &[Bytes]) {
        let mut by_socket = self.topics_by_socket.borrow_mut();
        let (known, mut by_topic) = (
            by_socket.entry(socket).or_default(),
            self.sockets_by_topic.borrow_mut(),
        );
        for topic in topics {
            if known.insert(topic.clone()) {
                by_topic.entry(topic.clone()).or_default().push(socket);
            }
        }
    }

    /// Answers a message of a stream. What does not decode ends the stream.
    pub(super) fn message<P: ObjectPlatform>(
        &self,
        platform: &P,
        socket: SocketId,
        message: &[u8],
        router_instance: &str,
    ) {
        let Ok(ToShard {
            message: Some(message),
        }) = ToShard::decode(Bytes::copy_from_slice(message))
        else {
            platform.close(socket, "a message does not decode");
            return;
        };
        let answer = match message {
            Incoming::Register(register) => self.register(platform, socket, register, router_instance),
            Incoming::Read(request) => read_runs(platform, &request),
        };
        let outgoing = answer
            .unwrap_or_else(|error| Outgoing::Failure(answer::to_failure(status::from_sql_error(&error))));
        send(platform, socket, outgoing);
    }

    /// Tells a stream why it cannot be served, and ends it.
    pub(super) fn refuse<P: ObjectPlatform>(platform: &P, socket: SocketId, refusal: Status) {
        send(platform, socket, Outgoing::Failure(answer::to_failure(refusal)));
    }

    /// Asks every stream this run does not know to register again; once a run.
    pub(super) fn reintroduce<P: ObjectPlatform>(&self, platform: &P) {
        if self.has_reintroduced.replace(true) {
            return;
        }
        let unknown: Vec<SocketId> = {
            let known = self.topics_by_socket.borrow();
            platform
                .sockets()
                .into_iter()
                .filter(|socket| !known.contains_key(socket))
                .collect()
        };
        for socket in unknown {
            send(platform, socket, Outgoing::Reintroduce(Reintroduce {}));
        }
    }

    /// Pushes what a batch stored to the streams that registered its topics. It is durable.
    ///
    /// A failure to read only loses the push: the session sees the missing link with the next one.
    pub(super) fn announce<P: ObjectPlatform>(&self, platform: &P, fresh: &[Fresh]) {
        self.reintroduce(platform);
        self.push(platform, fresh);
        #[cfg(feature = "planted-bugs")]
        for (socket, topics) in self.late.take() {
            self.join(socket, &topics);
        }
    }

    fn push<P: ObjectPlatform>(&self, platform: &P, fresh: &[Fresh]) {
        let by_topic = self.sockets_by_topic.borrow();
        if by_topic.is_empty() {
            return;
        }
        let Ok(links) = links_of(platform, fresh, |topic| by_topic.contains_key(topic)) else {
            return;
        };
        let mut places_by_socket: HashMap<SocketId, Vec<usize>> = HashMap::new();
        for (place, link) in links.iter().enumerate() {
            for socket in by_topic.get(topic_of(link)).into_iter().flatten() {
                places_by_socket.entry(*socket).or_default().push(place);
            }
        }
        // Streams that get the same envelopes get the same bytes, encoded once.
        let mut sockets_by_places: BTreeMap<Vec<usize>, Vec<SocketId>> = BTreeMap::new();
        for (socket, places) in places_by_socket {
            sockets_by_places.entry(places).or_default().push(socket);
        }
        for (places, mut sockets) in sockets_by_places {
            sockets.sort_unstable();
            let messages = encode_pushes(places.iter().filter_map(|place| links.get(*place)));
            messages
                .iter()
                .for_each(|message| platform.send_to_all(&sockets, message));
        }
    }

    /// Changes what a stream is told of, and answers the heads of what joined.
    fn register<P: ObjectPlatform>(
        &self,
        platform: &P,
        socket: SocketId,
        register: to_shard::Register,
        router_instance: &str,
    ) -> Result<Outgoing, SqlError> {
        if register.is_whole {
            self.closed(socket);
        } else if !self.topics_by_socket.borrow().contains_key(&socket) {
            return Ok(Outgoing::Reintroduce(Reintroduce {}));
        }
        if let Some(known) = self.topics_by_socket.borrow_mut().get_mut(&socket) {
            register.removes.iter().for_each(|topic| {
                known.remove(topic);
            });
        }
        register
            .removes
            .iter()
            .for_each(|topic| self.leave(socket, topic));
        if planted::has(Bug::TargetBeforeRegistration) {
            self.join(socket, &[]);
            #[cfg(feature = "planted-bugs")]
            self.late.borrow_mut().push((socket, register.topics.clone()));
        } else {
            self.join(socket, &register.topics);
        }
        Ok(Outgoing::Registered(Registered {
            id: register.id,
            heads: read::heads(platform.sql(), &register.topics)?,
            router_instance: router_instance.to_owned(),
        }))
    }
}

/// The chain link of each fresh envelope on a topic that interests somebody.
fn links_of<P: ObjectPlatform>(
    platform: &P,
    fresh: &[Fresh],
    interests: impl Fn(&Bytes) -> bool,
) -> Result<Vec<Link>, SqlError> {
    let mut heads: HashMap<i64, u64> = HashMap::new();
    let mut links = Vec::new();
    for stored in fresh.iter().filter(|stored| interests(&stored.envelope.topic)) {
        let sequence_id = stored.receipt.sequence_id;
        let previous = match heads.insert(stored.topic_id, sequence_id) {
            Some(previous) => previous,
            None => read::previous(platform.sql(), stored.topic_id, sequence_id)?,
        };
        links.push(Link {
            stored: Some(to_stored(stored)),
            previous,
        });
    }
    Ok(links)
}

fn to_stored(fresh: &Fresh) -> StoredEnvelope {
    let Fresh {
        envelope, receipt, ..
    } = fresh;
    StoredEnvelope {
        meta: Some(wire::EnvelopeMeta {
            cursor: Some(wire::Cursor {
                sequence_id: receipt.sequence_id,
            }),
            server_ns: receipt.server_ns,
            message_hash: Some(wire::MessageHash {
                hash: Some(wire::message_hash::Hash::Sha256(envelope.hash.clone())),
            }),
            topic: Some(wire::Topic {
                topic: envelope.topic.clone(),
            }),
            expiry_ns: receipt.expiry_ns,
            is_commit_or_proposal: envelope.is_commit_or_proposal,
        }),
        envelope: envelope.body.clone(),
    }
}

fn topic_of(link: &Link) -> &[u8] {
    let meta = link.stored.as_ref().and_then(|stored| stored.meta.as_ref());
    meta.and_then(|meta| meta.topic.as_ref())
        .map_or(&[], |topic| &topic.topic)
}

fn encode_pushes<'a>(links: impl Iterator<Item = &'a Link>) -> Vec<Vec<u8>> {
    let (mut pushes, mut bytes) = (vec![Push::default()], 0);
    for link in links {
        let length = link.stored.as_ref().map_or(0, |stored| stored.envelope.len());
        if bytes + length > PUSH_BYTES_MAX && bytes > 0 {
            pushes.push(Push::default());
            bytes = 0;
        }
        bytes += length;
        if let Some(push) = pushes.last_mut() {
            push.links.push(link.clone());
        }
    }
    let encode = |push| {
        FromShard {
            message: Some(Outgoing::Push(push)),
        }
        .encode_to_vec()
    };
    pushes.into_iter().map(encode).collect()
}

fn read_runs<P: ObjectPlatform>(platform: &P, request: &to_shard::Read) -> Result<Outgoing, SqlError> {
    let bounds = PageBounds {
        limit: request.max_envelopes.max(1),
        max_bytes: request.max_topic_bytes,
        at_least_one: true,
    };
    let (mut runs, mut bytes) = (Vec::new(), 0_u64);
    for position in &request.positions {
        if bytes >= request.max_bytes && !runs.is_empty() {
            break;
        }
        let page = read::page(platform.sql(), std::slice::from_ref(position), bounds)?;
        bytes += page
            .envelopes
            .iter()
            .map(|stored| stored.envelope.len() as u64)
            .sum::<u64>();
        runs.push(Run {
            has_more: page.has_more || page.cut_by_bytes,
            envelopes: page.envelopes,
        });
    }
    Ok(Outgoing::Page(Page { id: request.id, runs }))
}

fn send<P: ObjectPlatform>(platform: &P, socket: SocketId, message: Outgoing) {
    platform.send(
        socket,
        FromShard {
            message: Some(message),
        }
        .encode_to_vec(),
    );
}

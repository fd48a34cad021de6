//! What is to be read, and from where. Pure.

use bytes::Bytes;
use conclave_conversation::engine::Feed;
use conclave_harness::RouterInstanceId;
use conclave_proto::xmtp::backend::v1::{
    Cursor, ServerEnvelope, SubscribeStaticRequest, Topic, TopicQuery, client_envelope,
    subscribe_request::Update,
};

use super::feed::{FeedCommand, FeedEnvelope};
use crate::short_map::ShortMap;

/// The feeds, their positions, and what the open stream was told of them.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) instance: Option<RouterInstanceId>,
    /// By topic.
    feeds: ShortMap<Vec<u8>, Place>,
    /// Topics that are read no longer, which the open stream has not been told.
    removed: Vec<Vec<u8>>,
    /// Feeds ever added.
    added: u64,
    /// The last update that the open stream was sent, and the last it acknowledged.
    asked: u64,
    applied: u64,
}

#[derive(Debug)]
struct Place {
    feed: Feed,
    after: u64,
    /// Number of its adding.
    reading: u64,
    registration: Registration,
}

/// What the open stream knows of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registration {
    /// Nothing.
    Wanted,
    /// It is to be read, says the update of this number. What comes before its acknowledgement is of an earlier reading.
    Asked(u64),
    /// It is read.
    Live,
}

impl Plan {
    /// Whether there is nothing to read.
    pub(super) fn is_empty(&self) -> bool {
        self.feeds.is_empty()
    }

    /// Takes a command. True when the open stream is of another instance: it will never bring what this one orders.
    pub(super) fn take(&mut self, command: FeedCommand) -> bool {
        match command {
            FeedCommand::Instance(instance) => {
                return self.instance.is_some_and(|known| known != instance);
            }
            // A feed that is read goes on from where it is.
            FeedCommand::Watch { topic, .. } if self.feeds.get(&topic).is_some() => {}
            FeedCommand::Watch { feed, topic, after } => {
                self.added += 1;
                let place = Place {
                    feed,
                    after,
                    reading: self.added,
                    registration: Registration::Wanted,
                };
                self.feeds.insert(topic, place);
            }
            FeedCommand::Unwatch { feed } => {
                let removed = &mut self.removed;
                self.feeds.retain(|topic, place| {
                    if place.feed == feed && place.registration != Registration::Wanted {
                        removed.push(topic.clone());
                    }
                    place.feed != feed
                });
            }
        }
        false
    }

    /// Whether there is a feed that the open stream knows nothing of.
    pub(super) fn has_unread(&self) -> bool {
        let mut feeds = self.feeds.iter();
        feeds.any(|(_, place)| place.registration == Registration::Wanted)
    }

    /// The Router is this instance. True when it was another: all positions then start over.
    pub(super) fn attach(&mut self, instance: RouterInstanceId) -> bool {
        let changed = self
            .instance
            .replace(instance)
            .is_some_and(|before| before != instance);
        if changed {
            self.feeds.values_mut().for_each(|place| place.after = 0);
        }
        changed
    }

    /// Everything, for a stream that is told once.
    pub(super) fn whole(&mut self) -> SubscribeStaticRequest {
        self.begin(Registration::Live);
        let topics = self.feeds.iter().map(|(topic, place)| query(topic, place));
        SubscribeStaticRequest {
            topics: topics.collect(),
        }
    }

    /// A stream begins that is told by updates.
    pub(super) fn begin_updates(&mut self) {
        self.begin(Registration::Wanted);
    }

    fn begin(&mut self, registration: Registration) {
        (self.asked, self.applied) = (0, 0);
        self.removed.clear();
        for place in self.feeds.values_mut() {
            place.registration = registration;
        }
    }

    /// What the open stream is to be told next; nothing while an update is not acknowledged, so that updates stay few.
    pub(super) fn next_update(&mut self) -> Option<Update> {
        if self.applied < self.asked {
            return None;
        }
        let removed = std::mem::take(&mut self.removed);
        let id = self.asked + 1;
        let mut adds = Vec::new();
        for (topic, place) in self.feeds.entries_mut() {
            // A topic that is read from elsewhere is removed first: an update names it once.
            if place.registration == Registration::Wanted && !removed.contains(topic) {
                place.registration = Registration::Asked(id);
                adds.push(query(topic, place));
            }
        }
        if adds.is_empty() && removed.is_empty() {
            return None;
        }
        self.asked = id;
        Some(Update {
            id,
            adds,
            removes: removed.into_iter().map(topic).collect(),
        })
    }

    /// The open stream acknowledged an update.
    pub(super) fn applied(&mut self, id: u64) {
        self.applied = id;
        for place in self.feeds.values_mut() {
            if matches!(place.registration, Registration::Asked(asked) if asked <= id) {
                place.registration = Registration::Live;
            }
        }
    }

    /// The envelopes that are of a feed and new to it; the feeds are then read up to them.
    pub(super) fn accept(
        &mut self,
        envelopes: Vec<ServerEnvelope>,
        instance: RouterInstanceId,
    ) -> Vec<FeedEnvelope> {
        envelopes
            .into_iter()
            .filter_map(|envelope| self.accept_one(envelope, instance))
            .collect()
    }

    fn accept_one(&mut self, envelope: ServerEnvelope, instance: RouterInstanceId) -> Option<FeedEnvelope> {
        let meta = envelope.meta?;
        let position = meta.cursor?.sequence_id;
        let place = self.feeds.get_mut(&meta.topic?.topic.to_vec())?;
        if position <= place.after || place.registration != Registration::Live {
            return None;
        }
        place.after = position;
        let payload = envelope.envelope.and_then(|envelope| envelope.payload);
        Some(FeedEnvelope {
            kept: (meta.server_ns, meta.expiry_ns),
            reading: place.reading,
            feed: place.feed,
            position,
            router_instance_id: instance,
            payload: bytes_of(place.feed, payload),
        })
    }
}

fn topic(bytes: Vec<u8>) -> Topic {
    Topic { topic: bytes.into() }
}

fn query(bytes: &[u8], place: &Place) -> TopicQuery {
    TopicQuery {
        topic: Some(topic(bytes.to_vec())),
        cursor: Some(Cursor {
            sequence_id: place.after,
        }),
    }
}

/// The bytes a feed is about, where the envelope is of the feed's kind.
fn bytes_of(feed: Feed, payload: Option<client_envelope::Payload>) -> Option<Bytes> {
    use conclave_proto::xmtp::backend::v1::welcome_message::Version;
    match (feed, payload?) {
        (Feed::Conversation(_), client_envelope::Payload::GroupMessage(message)) => Some(message.data),
        (Feed::Invitations, client_envelope::Payload::WelcomeMessage(welcome)) => match welcome.version? {
            Version::V1(welcome) => Some(welcome.data),
            Version::WelcomePointer(_) => None,
        },
        _ => None,
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

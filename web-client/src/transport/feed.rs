//! What an endpoint reads: one stream over all of its feeds, from where each was read up to, for as long as the endpoint
//! lives.
//!
//! A stream that breaks is opened again from the last positions, so that nothing is skipped; so is one whose set of feeds
//! grows. When the Router's instance changes every position starts over.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use conclave_conversation::engine::Feed;
use conclave_grpc_web::{Code, Status};
use conclave_harness::RouterInstanceId;
use conclave_proto::conclave::router::v1::{GetInstanceRequest, router_service::GetInstance};
use conclave_proto::xmtp::backend::v1::{
    Cursor, ServerEnvelope, SubscribeStaticRequest, SubscribeStaticResponse, Topic, TopicQuery,
    client_envelope, subscribe_static_response::Response, subscription_service::SubscribeStatic,
};
use futures_util::future::{Either, select};

use super::BackOff;
use super::call::{CallError, Deployment, MessageStream};
use crate::platform::{chance, queue, timer::Delay};
use crate::short_map::ShortMap;

/// How long a stream may be silent before its server has said how often it gives a sign of life.
const SILENCE_BEFORE_START: Duration = Duration::from_secs(30);
/// A stream is given up after this many signs of life that did not come.
const KEEPALIVES_MISSED_MAX: u32 = 3;

/// Passing failures in a row that nobody is told of.
const BLIPS_MAX: u32 = 3;

/// What the endpoint asks of its feed.
#[derive(Debug)]
pub(crate) enum FeedCommand {
    /// Read a feed from after a position. A feed that is read already goes on from where it is.
    Watch {
        /// The feed.
        feed: Feed,
        /// Its topic.
        topic: Vec<u8>,
        /// The last position that needs no reading.
        after: u64,
    },
    /// Read a feed no longer.
    Unwatch {
        /// The feed.
        feed: Feed,
    },
    /// The Router was seen to be this instance.
    Instance(RouterInstanceId),
}

/// One envelope of a feed.
#[derive(Debug)]
pub(crate) struct FeedEnvelope {
    /// The feed.
    pub(crate) feed: Feed,
    /// Its place in the feed.
    pub(crate) position: u64,
    /// The Router instance whose order the place counts in.
    pub(crate) router_instance_id: RouterInstanceId,
    /// The reading that brought it. A feed that is given up and read again gets a greater one.
    pub(crate) reading: u64,
    /// When the backend took it, and up to when it is kept, in nanoseconds (0: without end).
    pub(crate) kept: (u64, u64),
    /// What it carries; nothing when it is not what its topic's kind carries.
    pub(crate) payload: Option<Bytes>,
}

/// What the endpoint hears from its feed.
#[derive(Debug)]
pub(crate) enum FeedEvent {
    /// The Router was reached.
    Online {
        /// Its instance.
        router_instance_id: RouterInstanceId,
    },
    /// The connection was lost, or could not be made, and was not there again soon. The feed tries again by itself.
    Offline {
        /// Why.
        detail: String,
    },
    /// The deployment refuses to be read, and trying again would not help. The feed has ended.
    Refused {
        /// Why.
        detail: String,
    },
    /// Envelopes, in the order of each feed.
    Envelopes(Vec<FeedEnvelope>),
}

/// Reads until the sender of commands is dropped.
pub(crate) async fn run_feed(
    deployment: Deployment,
    mut commands: queue::Receiver<FeedCommand>,
    tell: impl Fn(FeedEvent),
) {
    let (mut plan, mut back_off) = (Plan::default(), BackOff::default());
    loop {
        match read(&deployment, &mut commands, &mut plan, &mut back_off, &tell).await {
            Ended::Closed => return,
            Ended::Replanned => {}
            Ended::Failed(error) => {
                let detail = error.to_string();
                match judge(&error, &back_off) {
                    Verdict::Blip => {}
                    Verdict::Outage => tell(FeedEvent::Offline { detail }),
                    Verdict::Refusal => return tell(FeedEvent::Refused { detail }),
                }
                let mut delay = Delay::new(back_off.next_delay(chance::unit_interval()));
                loop {
                    match select(pin!(commands.next()), &mut delay).await {
                        Either::Left((Some(command), _)) => drop(plan.take(command)),
                        Either::Left((None, _)) => return,
                        Either::Right(_) => break,
                    }
                }
            }
        }
    }
}

/// What a failed reading means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is tried again before anyone hears of it.
    Blip,
    /// It is tried again, and whoever watches is told.
    Outage,
    /// It is not tried again.
    Refusal,
}

/// Judges a failed reading. `back_off` tells how many failed before it in a row.
fn judge(error: &CallError, back_off: &BackOff) -> Verdict {
    let is_refused = matches!(
        error.status.code,
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented
    );
    if error.is_stated && is_refused {
        Verdict::Refusal
    } else if error.is_transient() && back_off.failures() < BLIPS_MAX {
        Verdict::Blip
    } else {
        Verdict::Outage
    }
}

/// Why a reading ended.
enum Ended {
    /// The endpoint needs no feed any more.
    Closed,
    /// What is to be read has changed.
    Replanned,
    /// The connection failed.
    Failed(CallError),
}

/// One connection, from asking for it to its end.
async fn read(
    deployment: &Deployment,
    commands: &mut queue::Receiver<FeedCommand>,
    plan: &mut Plan,
    back_off: &mut BackOff,
    tell: &impl Fn(FeedEvent),
) -> Ended {
    // Which feeds there are to read follows from the instance, so it is asked for before the first stream.
    if plan.instance.is_none() {
        match ask_for_instance(deployment).await {
            Ok(instance) => {
                plan.attach(instance);
                tell(FeedEvent::Online {
                    router_instance_id: instance,
                });
            }
            Err(error) => return Ended::Failed(error),
        }
    }
    while plan.feeds.is_empty() {
        match commands.next().await {
            Some(command) => drop(plan.take(command)),
            None => return Ended::Closed,
        }
    }
    while let Some(command) = commands.try_next() {
        plan.take(command);
    }
    let mut stream = match deployment.server_stream::<SubscribeStatic>(&plan.request()).await {
        Ok(stream) => stream,
        Err(error) => return Ended::Failed(error),
    };
    let instance = match stream.router_instance() {
        Some(instance) => *instance,
        None => match ask_for_instance(deployment).await {
            Ok(instance) => instance,
            Err(error) => return Ended::Failed(error),
        },
    };
    let changed = plan.attach(instance);
    tell(FeedEvent::Online {
        router_instance_id: instance,
    });
    if changed {
        return Ended::Replanned;
    }
    follow(&mut stream, commands, plan, back_off, instance, tell).await
}

/// Reads an open stream to its end, or until something else is to be read.
async fn follow(
    stream: &mut MessageStream<SubscribeStatic>,
    commands: &mut queue::Receiver<FeedCommand>,
    plan: &mut Plan,
    back_off: &mut BackOff,
    instance: RouterInstanceId,
    tell: &impl Fn(FeedEvent),
) -> Ended {
    let mut silence = SILENCE_BEFORE_START;
    loop {
        let (next, command) = (pin!(stream.next()), pin!(commands.next()));
        let event = select(select(next, command), Delay::new(silence)).await;
        match event {
            Either::Left((Either::Left((Ok(message), _)), _)) => {
                back_off.reset();
                let SubscribeStaticResponse { response } = message;
                match response {
                    Some(Response::Started(started)) if started.keepalive_interval_ms > 0 => {
                        silence = Duration::from_millis(started.keepalive_interval_ms.into())
                            * KEEPALIVES_MISSED_MAX;
                    }
                    Some(Response::Messages(messages)) => {
                        tell(FeedEvent::Envelopes(plan.accept(messages.envelopes, instance)));
                    }
                    _ => {}
                }
            }
            Either::Left((Either::Left((Err(error), _)), _)) => return Ended::Failed(error),
            Either::Left((Either::Right((Some(command), _)), _)) => {
                if plan.take(command) {
                    return Ended::Replanned;
                }
            }
            Either::Left((Either::Right((None, _)), _)) => return Ended::Closed,
            Either::Right(_) => {
                return Ended::Failed(CallError::drawn(Status::unavailable(
                    "the stream gave no sign of life",
                )));
            }
        }
    }
}

async fn ask_for_instance(deployment: &Deployment) -> Result<RouterInstanceId, CallError> {
    let answer = deployment.unary::<GetInstance>(&GetInstanceRequest {}).await?;
    answer.message.router_instance_id.parse().map_err(|_| {
        CallError::drawn(Status::internal(
            "the deployment's Router instance id is malformed",
        ))
    })
}

/// What is to be read, and from where. Pure.
#[derive(Debug, Default)]
struct Plan {
    instance: Option<RouterInstanceId>,
    /// By topic.
    feeds: ShortMap<Vec<u8>, Place>,
    /// Feeds ever added.
    added: u64,
}

#[derive(Debug)]
struct Place {
    feed: Feed,
    after: u64,
    /// Number of its adding.
    reading: u64,
}

impl Plan {
    /// Takes a command. True when an open stream no longer reads what is wanted.
    fn take(&mut self, command: FeedCommand) -> bool {
        match command {
            FeedCommand::Watch { topic, .. } if self.feeds.get(&topic).is_some() => false,
            FeedCommand::Watch { feed, topic, after } => {
                self.added += 1;
                let reading = self.added;
                self.feeds.insert(topic, Place { feed, after, reading });
                true
            }
            FeedCommand::Unwatch { feed } => {
                // The open stream may bring more of it; that is then of no feed.
                self.feeds.retain(|_, place| place.feed != feed);
                false
            }
            // The stream of another instance will never bring what this one orders.
            FeedCommand::Instance(instance) => self.instance.is_some_and(|known| known != instance),
        }
    }

    /// The Router is this instance. True when it was another: all positions then start over.
    fn attach(&mut self, instance: RouterInstanceId) -> bool {
        let changed = self
            .instance
            .replace(instance)
            .is_some_and(|before| before != instance);
        if changed {
            self.feeds.values_mut().for_each(|place| place.after = 0);
        }
        changed
    }

    fn request(&self) -> SubscribeStaticRequest {
        let topics = self.feeds.iter().map(|(topic, place)| TopicQuery {
            topic: Some(Topic {
                topic: topic.clone().into(),
            }),
            cursor: Some(Cursor {
                sequence_id: place.after,
            }),
        });
        SubscribeStaticRequest {
            topics: topics.collect(),
        }
    }

    /// The envelopes that are of a feed and new to it; the feeds are then read up to them.
    fn accept(&mut self, envelopes: Vec<ServerEnvelope>, instance: RouterInstanceId) -> Vec<FeedEnvelope> {
        envelopes
            .into_iter()
            .filter_map(|envelope| self.accept_one(envelope, instance))
            .collect()
    }

    fn accept_one(&mut self, envelope: ServerEnvelope, instance: RouterInstanceId) -> Option<FeedEnvelope> {
        let meta = envelope.meta?;
        let position = meta.cursor?.sequence_id;
        let place = self.feeds.get_mut(&meta.topic?.topic.to_vec())?;
        if position <= place.after {
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
#[path = "feed_tests.rs"]
mod tests;

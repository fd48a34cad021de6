//! What an endpoint reads: one stream over all of its feeds, from where each was read up to, for as long as the endpoint
//! lives.
//!
//! A stream that breaks is opened again from the last positions, so that nothing is skipped. Over a WebSocket feeds come and go
//! while it is open; where none gets through, a stream whose set of feeds grows is opened again. When the Router's instance
//! changes every position starts over.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use conclave_conversation::engine::Feed;
use conclave_grpc_web::{Code, Status};
use conclave_harness::RouterInstanceId;
use conclave_proto::conclave::router::v1::{GetInstanceRequest, router_service::GetInstance};
use futures_util::future::{Either, select};

use super::back_off::{BackOff, LONGEST};
use super::call::{CallError, Deployment};
use super::plan::Plan;
use super::reading::{Arrived, Reading};
use crate::platform::{chance, queue, timer};

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
        /// How long it waits before it does.
        retry_in: Duration,
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
                let verdict = judge(&error, &back_off);
                let retry_in = back_off.next_delay(chance::unit_interval());
                match verdict {
                    Verdict::Blip => {}
                    Verdict::Outage => tell(FeedEvent::Offline { detail, retry_in }),
                    Verdict::Refusal => return tell(FeedEvent::Refused { detail }),
                }
                let mut delay = deployment.pause(retry_in);
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
    while plan.is_empty() {
        match commands.next().await {
            Some(command) => drop(plan.take(command)),
            None => return Ended::Closed,
        }
    }
    while let Some(command) = commands.try_next() {
        plan.take(command);
    }
    let mut reading = Reading::open(deployment, plan);
    match reading.next().await {
        Ok(Arrived::Started) => {}
        Ok(_) => return Ended::Failed(CallError::drawn(Status::internal("the stream has no beginning"))),
        Err(error) => return Ended::Failed(error),
    }
    let (begun_ms, mut has_news) = (timer::now_ms(), false);
    let ended = follow(deployment, &mut reading, commands, plan, &mut has_news, tell).await;
    let lasted = Duration::from_millis(timer::now_ms().saturating_sub(begun_ms));
    back_off.begun(matches!(ended, Ended::Failed(_)) && !has_news && lasted < LONGEST);
    ended
}

/// Reads an open stream to its end, or until something else is to be read. `has_news` becomes whether it brought anything.
async fn follow(
    deployment: &Deployment,
    reading: &mut Reading,
    commands: &mut queue::Receiver<FeedCommand>,
    plan: &mut Plan,
    has_news: &mut bool,
    tell: &impl Fn(FeedEvent),
) -> Ended {
    // Asked for after the stream began: one of an earlier instance would not have.
    let instance = match ask_for_instance(deployment).await {
        Ok(instance) => instance,
        Err(error) => return Ended::Failed(error),
    };
    let changed = plan.attach(instance);
    tell(FeedEvent::Online {
        router_instance_id: instance,
    });
    if changed {
        return Ended::Replanned;
    }
    loop {
        match next_of(reading, commands).await {
            Next::Arrived(Ok(Arrived::Envelopes(envelopes))) => {
                *has_news = true;
                tell(FeedEvent::Envelopes(plan.accept(envelopes, instance)));
            }
            Next::Arrived(Ok(Arrived::Applied(id))) => {
                plan.applied(id);
                reading.update(plan);
            }
            Next::Arrived(Ok(Arrived::Started | Arrived::Alive)) => {}
            Next::Arrived(Err(error)) => return Ended::Failed(error),
            Next::Command(Some(command)) => {
                let mut is_foreign = plan.take(command);
                while let Some(command) = commands.try_next() {
                    is_foreign |= plan.take(command);
                }
                if is_foreign || !reading.update(plan) {
                    return Ended::Replanned;
                }
            }
            Next::Command(None) => return Ended::Closed,
        }
    }
}

/// What comes first.
enum Next {
    Arrived(Result<Arrived, CallError>),
    Command(Option<FeedCommand>),
}

async fn next_of(reading: &mut Reading, commands: &mut queue::Receiver<FeedCommand>) -> Next {
    match select(pin!(reading.next()), pin!(commands.next())).await {
        Either::Left((arrived, _)) => Next::Arrived(arrived),
        Either::Right((command, _)) => Next::Command(command),
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

#[cfg(test)]
#[path = "feed_tests.rs"]
mod tests;

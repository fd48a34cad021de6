//! One open stream over the feeds: Subscribe over a WebSocket, or SubscribeStatic where none gets through.

use std::time::Duration;

use conclave_proto::xmtp::backend::v1::{
    Ping, Pong, ServerEnvelope, SubscribeRequest, SubscribeStaticRequest, subscribe_request,
    subscribe_response, subscribe_static_response,
    subscription_service::{Subscribe, SubscribeStatic},
};

use super::call::{CallError, Deployment, MessageStream};
use super::plan::Plan;

/// A stream is given up after this many signs of life that did not come.
const KEEPALIVES_MISSED_MAX: u32 = 3;

/// What a stream brings.
pub(super) enum Arrived {
    /// It begins.
    Started,
    /// An update of this number is acknowledged.
    Applied(u64),
    /// Envelopes.
    Envelopes(Vec<ServerEnvelope>),
    /// A sign of life.
    Alive,
}

/// An open stream.
pub(super) enum Reading {
    /// Told by updates.
    Duplex(MessageStream<Subscribe>),
    /// Told once.
    Fixed(MessageStream<SubscribeStatic>),
}

impl Reading {
    /// Opens a stream over everything that is planned.
    pub(super) fn open(deployment: &Deployment, plan: &mut Plan) -> Self {
        if !deployment.can_duplex() {
            return Reading::Fixed(deployment.server_stream(&plan.whole()));
        }
        plan.begin_updates();
        let reading = Reading::Duplex(deployment.duplex());
        reading.update(plan);
        reading
    }

    /// Tells the stream what has changed in the plan. False when it can not be told.
    pub(super) fn update(&self, plan: &mut Plan) -> bool {
        let Reading::Duplex(stream) = self else {
            return !plan.has_unread();
        };
        if let Some(update) = plan.next_update() {
            stream.send(&request(subscribe_request::Request::Update(update)));
        }
        true
    }

    /// What comes next. The end of a stream is an error. May be dropped and called again.
    pub(super) async fn next(&mut self) -> Result<Arrived, CallError> {
        match self {
            Reading::Duplex(stream) => {
                use subscribe_response::Response;
                Ok(match stream.next().await?.response {
                    Some(Response::Started(started)) => {
                        let probe = request(subscribe_request::Request::Ping(Ping { nonce: 1 }));
                        if let Some(silence) = silence(started.keepalive_interval_ms) {
                            stream.expect(silence, &probe);
                        }
                        Arrived::Started
                    }
                    Some(Response::Applied(applied)) => Arrived::Applied(applied.id),
                    Some(Response::Messages(messages)) => Arrived::Envelopes(messages.envelopes),
                    Some(Response::Ping(ping)) => {
                        stream.send(&request(subscribe_request::Request::Pong(Pong {
                            nonce: ping.nonce,
                        })));
                        Arrived::Alive
                    }
                    _ => Arrived::Alive,
                })
            }
            Reading::Fixed(stream) => {
                use subscribe_static_response::Response;
                Ok(match stream.next().await?.response {
                    Some(Response::Started(started)) => {
                        if let Some(silence) = silence(started.keepalive_interval_ms) {
                            stream.expect(silence, &SubscribeStaticRequest::default());
                        }
                        Arrived::Started
                    }
                    Some(Response::Messages(messages)) => Arrived::Envelopes(messages.envelopes),
                    _ => Arrived::Alive,
                })
            }
        }
    }
}

fn request(request: subscribe_request::Request) -> SubscribeRequest {
    SubscribeRequest {
        request: Some(request),
    }
}

/// How long a stream may be silent.
fn silence(keepalive_interval_ms: u32) -> Option<Duration> {
    let interval = Duration::from_millis(keepalive_interval_ms.into());
    (!interval.is_zero()).then_some(interval * KEEPALIVES_MISSED_MAX)
}

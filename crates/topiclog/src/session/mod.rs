//! A client's stream, Subscribe or SubscribeStatic, run by the Worker over message streams to the shards.
//!
//! - `machine`: the stream as a pure state machine: what its client asks and how that is acknowledged;
//! - `catch_up`: how it delivers; `registrations`, `updates`, `liveness`, `bucket`: what it knows;
//! - `output`: what waits for the client, bounded, and the frames made of it; `frames`: the others;
//! - `driver`: carries messages between the machine, the shards and the client.

mod bucket;
mod catch_up;
mod driver;
mod frames;
mod liveness;
mod machine;
pub mod output;
mod registrations;
#[cfg(test)]
mod tests;
mod updates;

use std::{fmt, future::poll_fn, pin::Pin};

use conclave_grpc_web::Status;
use futures_util::stream::{Stream, StreamExt as _};

use crate::platform::Platform;
pub use driver::Requests;
pub(crate) use driver::{open_bidirectional, open_static};

/// Frames that come from anything but shards.
pub(crate) type Frames = Pin<Box<dyn Stream<Item = Result<Vec<u8>, Status>>>>;

/// A running stream. Dropping it closes every message stream it holds to a shard, at once.
pub struct StreamSession<P: Platform> {
    source: Source<P>,
    router_instance: Option<String>,
}

enum Source<P: Platform> {
    Shards(driver::Driver<P>),
    Frames(Frames),
}

impl<P: Platform> StreamSession<P> {
    fn over_shards(driver: driver::Driver<P>, router_instance: Option<String>) -> Self {
        Self {
            source: Source::Shards(driver),
            router_instance,
        }
    }

    pub(crate) fn over_frames(frames: Frames, router_instance: Option<String>) -> Self {
        Self {
            source: Source::Frames(frames),
            router_instance,
        }
    }

    /// The value of the response header `conclave-router-instance`, where one is known.
    #[must_use]
    pub fn router_instance(&self) -> Option<&str> {
        self.router_instance.as_deref()
    }

    /// Whether nothing is left but the status the stream ends with, so that [`StreamSession::next`] need not wait for room.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        match &self.source {
            Source::Shards(driver) => driver.is_spent(),
            Source::Frames(_) => false,
        }
    }

    /// The next encoded response message, then the status the stream ends with, then `None`. May be dropped and called
    /// again without losing a frame.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, Status>> {
        match &mut self.source {
            Source::Shards(driver) => poll_fn(|context| driver.poll_next(context)).await,
            Source::Frames(frames) => frames.next().await,
        }
    }
}

impl<P: Platform> fmt::Debug for StreamSession<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("StreamSession")
            .field("router_instance", &self.router_instance)
            .finish_non_exhaustive()
    }
}

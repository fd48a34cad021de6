//! What `topiclog` needs of the machine it runs on: calls between objects, time, randomness, storage, sockets.
//!
//! `edge` implements it on Workers and Durable Objects, the tests and the simulation natively. Everything here is
//! single-threaded: futures are not `Send`, and state lives in cells.

use std::{
    future::Future,
    task::{Context, Poll},
};

use bytes::Bytes;
use conclave_sql::Sql;

use crate::answer::{self, Answered};

/// The objects of a deployment, by role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectName {
    /// Hands out sequence ids. With one shard its role runs inside [`ObjectName::Shard`] 0.
    Sequencer,
    /// Stores the topics of one shard; the number is below the shard count.
    Shard(u32),
    /// Registers agents.
    Registry,
}

/// Why a call to another object has no answer. Errors of the application travel inside the answer instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The answer did not come in time. The call may have run.
    #[error("the call did not answer within {deadline_ms} ms")]
    DeadlineExceeded {
        /// The deadline that passed, in milliseconds.
        deadline_ms: u32,
    },
    /// The platform lost the call. It may have run.
    #[error("the outcome of the call is unknown: {reason}")]
    OutcomeUnknown {
        /// The platform's own words.
        reason: String,
    },
}

/// The machine beneath stateless code (the Worker) and beneath every object.
#[allow(
    async_fn_in_trait,
    reason = "everything here runs on one thread; no caller needs Send futures"
)]
pub trait Platform: Clone + 'static {
    /// An open message stream to a shard.
    type Upstream: Upstream;

    /// Whether the machine has what requests need beside the objects, such as keys that credentials are checked with
    /// (OPS-005). Only health asks.
    async fn is_ready(&self) -> bool {
        true
    }

    /// Nanoseconds since the Unix epoch. May jump in both directions.
    fn now_ns(&self) -> u64;

    /// Fills `bytes` with unpredictable randomness.
    fn random(&self, bytes: &mut [u8]);

    /// Calls `method` of another object and returns its encoded answer, a `conclave.internal.v1.Answer`.
    ///
    /// Never answered by the platform with a retry of its own making: a lost call is an error, and every method
    /// tolerates being run twice.
    ///
    /// # Errors
    /// [`CallError`]: the call may or may not have run.
    async fn call(
        &self,
        to: ObjectName,
        method: &str,
        request: Vec<u8>,
        deadline_ms: u32,
    ) -> Result<Vec<u8>, CallError>;

    /// A response that is passed on as it is.
    type Passed: Passed;

    /// As [`Platform::call`], for a response that nothing here reads: it may stay where the platform received it.
    ///
    /// # Errors
    /// [`CallError`]: the call may or may not have run.
    async fn call_passing(
        &self,
        to: ObjectName,
        method: &str,
        request: Vec<u8>,
        deadline_ms: u32,
    ) -> Result<Answered<Self::Passed>, CallError> {
        let answered = answer::decode(self.call(to, method, request, deadline_ms).await?);
        Ok(Answered {
            result: answered.result.map(Self::Passed::from),
            router_instance: answered.router_instance,
        })
    }

    /// Opens a message stream to a shard (a WebSocket on Workers).
    ///
    /// # Errors
    /// [`CallError`] when the shard cannot be reached.
    async fn connect(&self, shard: u32) -> Result<Self::Upstream, CallError>;

    /// Resolves after `milliseconds`. Never used inside a shard, which must be able to sleep.
    async fn delay(&self, milliseconds: u32);

    /// Runs `task` beside the caller; it goes on when the caller's request ends.
    fn spawn(&self, task: impl Future<Output = ()> + 'static);
}

/// An encoded response message, wherever it is kept.
pub trait Passed: From<Bytes> {
    /// Its length in bytes.
    fn length(&self) -> usize;
}

impl Passed for Bytes {
    fn length(&self) -> usize {
        self.len()
    }
}

/// The Worker's end of a message stream to a shard. Dropping it closes it at once, without being polled again.
pub trait Upstream: 'static {
    /// Queues one message. Sending on a broken stream is silent: its end is reported by [`Upstream::poll_receive`].
    fn send(&self, message: Vec<u8>);

    /// The next message, or `None` when the stream has ended for whatever reason. Until then the waker of the latest
    /// poll is woken when there is more. Polling takes a message only by returning it, so nothing is ever lost.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>>;
}

/// A shard's end of a message stream. Stays valid while the stream lives, across the object's sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(pub u64);

/// The machine beneath an object, which alone has storage.
///
/// Everything that leaves an object (answers, calls, messages on streams) is held until every write before it is durable
/// (a Durable Object's output gate), and lost with those writes when the object breaks before.
#[allow(async_fn_in_trait, reason = "as for Platform")]
pub trait ObjectPlatform: Platform {
    /// The object's database.
    type Sql: Sql;

    /// The object's database.
    fn sql(&self) -> &Self::Sql;

    /// Resolves when everything written so far is durable.
    ///
    /// # Errors
    /// When the writes were lost; the object is about to be restarted.
    async fn sync(&self) -> Result<(), CallError>;

    /// Asks for [`crate::Shard::alarm`] (or the Sequencer's) to be run at `at_ms` since the Unix epoch, or earlier if an
    /// alarm is already set for before that. At least once, possibly late, possibly more than once.
    fn set_alarm(&self, at_ms: u64);

    /// Sends a message on a stream to this object. Silent if it has ended.
    fn send(&self, socket: SocketId, message: Vec<u8>);

    /// Sends one message on several streams. Silent about those that have ended.
    fn send_to_all(&self, sockets: &[SocketId], message: &[u8]) {
        sockets
            .iter()
            .for_each(|socket| self.send(*socket, message.to_vec()));
    }

    /// Every stream open to this object now, those accepted before it slept included.
    fn sockets(&self) -> Vec<SocketId>;

    /// Closes a stream, with a reason for its other end's log.
    fn close(&self, socket: SocketId, reason: &str);
}

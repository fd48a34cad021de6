//! The shard object.

use std::rc::Rc;

use conclave_grpc_web::Status;

use crate::platform::SocketId;
use crate::{Configuration, answer, platform::ObjectPlatform};

/// Why an object cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The database failed or holds what it should not.
    #[error("the object's storage cannot be opened: {0}")]
    Storage(#[from] conclave_sql::SqlError),
}

impl OpenError {
    /// The encoded answer to every call to an object that cannot be opened: UNAVAILABLE, with the reason.
    #[must_use]
    pub fn answer(&self) -> Vec<u8> {
        answer::encode(Err(Status::unavailable(self.to_string())), None)
    }
}

/// One shard.
#[derive(Debug)]
pub struct Shard<P: ObjectPlatform> {
    _platform: P,
}

impl<P: ObjectPlatform> Shard<P> {
    /// Opens shard `index` on its storage. A birth mismatch is not an error here: every call then answers it.
    ///
    /// # Errors
    /// [`OpenError`]; the object may be opened again later.
    pub fn open(platform: P, _index: u32, _configuration: Rc<Configuration>) -> Result<Rc<Self>, OpenError> {
        Ok(Rc::new(Self { _platform: platform }))
    }

    /// Runs a method called by [`crate::platform::Platform::call`] and returns its encoded answer.
    pub async fn handle(self: Rc<Self>, _method: &str, _request: &[u8]) -> Vec<u8> {
        answer::encode(Err(Status::unimplemented("not served yet")), None)
    }

    /// A message stream was accepted.
    pub fn opened(&self, _socket: SocketId) {}

    /// A message arrived on a stream.
    pub fn message(&self, _socket: SocketId, _message: &[u8]) {}

    /// A stream ended.
    pub fn closed(&self, _socket: SocketId) {}

    /// The alarm went off.
    pub async fn alarm(self: Rc<Self>) {}
}

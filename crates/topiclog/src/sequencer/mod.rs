//! The sequencer object.

use std::rc::Rc;

use conclave_grpc_web::Status;

use crate::shard::OpenError;
use crate::{Configuration, answer, platform::ObjectPlatform};

/// The Sequencer, where it is an object of its own: with more than one shard.
#[derive(Debug)]
pub struct Sequencer<P: ObjectPlatform> {
    _platform: P,
}

impl<P: ObjectPlatform> Sequencer<P> {
    /// Opens the Sequencer on its storage. A birth mismatch is not an error here: every call then answers it.
    ///
    /// # Errors
    /// [`OpenError`]; the object may be opened again later.
    pub fn open(platform: P, _configuration: Rc<Configuration>) -> Result<Rc<Self>, OpenError> {
        Ok(Rc::new(Self { _platform: platform }))
    }

    /// Runs a method called by [`crate::platform::Platform::call`] and returns its encoded answer.
    pub async fn handle(self: Rc<Self>, _method: &str, _request: &[u8]) -> Vec<u8> {
        answer::encode(Err(Status::unimplemented("not served yet")), None)
    }

    /// The alarm went off.
    pub async fn alarm(self: Rc<Self>) {}
}

//! A client's stream, run by the Worker.

use std::marker::PhantomData;

use conclave_grpc_web::Status;

use crate::platform::Platform;

/// A running stream. Dropping it closes every message stream it holds to a shard, at once.
#[derive(Debug)]
pub struct StreamSession<P: Platform> {
    _platform: PhantomData<P>,
}

impl<P: Platform> StreamSession<P> {
    /// The value of the response header `conclave-router-instance`, where one is known.
    #[must_use]
    pub fn router_instance(&self) -> Option<&str> {
        None
    }

    /// The next encoded response message, then the status the stream ends with, then `None`. May be dropped and called
    /// again without losing a frame.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, Status>> {
        None
    }
}

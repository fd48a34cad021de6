//! The stateless half of the backend: decodes and checks a request, calls the objects, answers.

use std::rc::Rc;

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::RpcKind;

use crate::{Configuration, platform::Platform, session::StreamSession};

/// What came with a call besides its message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallContext {
    /// Time the caller allows, in milliseconds from now (`grpc-timeout`).
    pub deadline_ms: Option<u32>,
    /// The header `conclave-expected-router-instance`.
    pub expected_router_instance: Option<String>,
}

/// What a unary RPC came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The encoded response message, or the status.
    pub result: Result<Vec<u8>, Status>,
    /// The value of the response header `conclave-router-instance`, where one is known.
    pub router_instance: Option<String>,
}

/// The RPCs of a deployment. Holds no state that matters: any number may run at once, anywhere.
#[derive(Debug)]
pub struct Backend<P: Platform> {
    _platform: P,
    _configuration: Rc<Configuration>,
}

impl<P: Platform> Backend<P> {
    /// A backend on this platform.
    pub fn new(platform: P, configuration: Rc<Configuration>) -> Self {
        Self {
            _platform: platform,
            _configuration: configuration,
        }
    }

    /// How messages travel for the RPC at `path`, or `None` when nothing is known there. Server streams go to
    /// [`Backend::stream`], everything else to [`Backend::unary`].
    #[must_use]
    pub fn kind(_path: &str) -> Option<RpcKind> {
        None
    }

    /// Runs the unary RPC at `path`. `wire_length` is the request message's length in bytes as the client encoded it.
    pub async fn unary(
        &self,
        _path: &str,
        _message: Bytes,
        _wire_length: usize,
        _context: &CallContext,
    ) -> Reply {
        Reply {
            result: Err(Status::unimplemented("not served yet")),
            router_instance: None,
        }
    }

    /// Opens the server stream at `path`. Resolves when its first frame is ready.
    ///
    /// # Errors
    /// The status the stream fails with before its first frame.
    pub async fn stream(
        &self,
        _path: &str,
        _message: Bytes,
        _wire_length: usize,
        _context: &CallContext,
    ) -> Result<StreamSession<P>, Status> {
        Err(Status::unimplemented("not served yet"))
    }
}

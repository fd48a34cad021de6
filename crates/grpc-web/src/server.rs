//! The serving half of a call. Depends on the parts of this crate.
//!
//! 1. [`RequestHead::check`] decides on method, content type and encoding before anything else;
//! 2. [`UnaryRequest`] reads a body of one message (a stream of requests is read by [`crate::FrameDecoder`]);
//! 3. [`unary_response`], or [`FrameJoiner`] for a stream, writes the answer.
//!
//! Two rules for whoever owns the connection. A request body is read to its end before an early error is answered:
//! a client that still uploads sees a failed network call instead. And a response never has a `content-length`;
//! its last frame always carries the status, also where nothing came before it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use prost::Message;

use crate::{
    ContentType, Encoding, Frame, FrameDecoder, FrameError, Status, Trailers, cors, deadline, frame,
};

/// Ready frames of a stream are joined into one chunk up to this many bytes before base64. A chunk costs far more
/// than the bytes in it.
pub const JOINED_CHUNK_BYTES: usize = 32 * 1024;

/// The HTTP status of every response that runs, or would have run, an RPC.
pub const RESPONSE_HTTP_STATUS: u16 = 200;

/// The parts of an HTTP request that decide whether it is a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestHead<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The `content-type` header.
    pub content_type: Option<&'a str>,
    /// The `grpc-encoding` header.
    pub grpc_encoding: Option<&'a str>,
    /// The `content-encoding` header, with which HTTP says that a whole body is compressed.
    pub content_encoding: Option<&'a str>,
    /// The `grpc-timeout` header.
    pub grpc_timeout: Option<&'a str>,
}

/// A request that is a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// How the body is written, and how the response is to be.
    pub encoding: Encoding,
    /// How long the caller waits.
    pub timeout: Option<Duration>,
}

/// A request that is not a call, or one no method needs to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Answer with this HTTP status and the CORS headers, without a body: the peer does not speak gRPC-Web.
    Http {
        /// 405 or 415.
        status: u16,
    },
    /// Answer with a trailer frame.
    Call {
        /// How the response is to be written.
        encoding: Encoding,
        /// What is wrong.
        status: Status,
    },
}

impl RequestHead<'_> {
    /// Decides whether a request is a call.
    ///
    /// # Errors
    /// [`Refusal::Http`] 405 for a method other than POST and 415 for a content type that is not gRPC-Web;
    /// [`Refusal::Call`] UNIMPLEMENTED for a `grpc-encoding` or `content-encoding` other than identity (API-281) and
    /// INTERNAL for a `grpc-timeout` that cannot be read, as for any other broken framing.
    pub fn check(&self) -> Result<Accepted, Refusal> {
        if self.method != "POST" {
            return Err(Refusal::Http { status: 405 });
        }
        let content_type = self
            .content_type
            .and_then(ContentType::parse)
            .ok_or(Refusal::Http { status: 415 })?;
        let encoding = content_type.encoding();
        let named = [self.grpc_encoding, self.content_encoding].into_iter().flatten();
        if named.map(str::trim).any(is_compression) {
            let status = Status::unimplemented("compressed requests are not supported");
            return Err(Refusal::Call { encoding, status });
        }
        let timeout = self
            .grpc_timeout
            .map(deadline::parse)
            .transpose()
            .map_err(|error| Refusal::Call {
                encoding,
                status: Status::internal(error.to_string()),
            })?;
        Ok(Accepted { encoding, timeout })
    }
}

/// Whether an encoding a header names is one.
fn is_compression(name: &str) -> bool {
    !name.is_empty() && !name.eq_ignore_ascii_case("identity")
}

/// Reads the one message of a request body that arrives in pieces.
///
/// It takes in the whole body whatever is wrong with it and holds no more than the message: the verdict comes at the
/// end, when it may be answered.
#[derive(Debug)]
pub struct UnaryRequest {
    decoder: FrameDecoder,
    message: Option<Bytes>,
    failure: Option<Status>,
}

impl UnaryRequest {
    /// A reader that refuses a message longer than `max_request_bytes` on the wire.
    #[must_use]
    pub fn new(encoding: Encoding, max_request_bytes: usize) -> UnaryRequest {
        UnaryRequest {
            decoder: FrameDecoder::new(encoding, max_request_bytes),
            message: None,
            failure: None,
        }
    }

    /// Takes in the next piece of the body, of any length.
    pub fn push(&mut self, piece: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        self.decoder.push(piece);
        loop {
            match self.decoder.next_frame() {
                Ok(None) => return,
                Ok(Some(Frame::Message(message))) if self.message.is_none() => {
                    self.message = Some(message);
                    // A second message is refused by its header and never held beside the first.
                    self.decoder.refuse_messages();
                }
                Ok(Some(Frame::Message(_))) => return self.fail(several_messages()),
                Err(FrameError::TooLong { .. }) if self.message.is_some() => {
                    return self.fail(several_messages());
                }
                Ok(Some(Frame::Trailers(_))) => {
                    return self.fail(Status::internal("a request has no trailers"));
                }
                Err(error) => return self.fail(error.to_request_status()),
            }
        }
    }

    /// The message, encoded, once the body has ended. Its length is the wire length of the request.
    ///
    /// # Errors
    /// OUT_OF_RANGE for a message over the bound; UNIMPLEMENTED for a compressed message, several messages or none;
    /// INTERNAL for a body that is not frames.
    pub fn finish(mut self) -> Result<Bytes, Status> {
        if self.failure.is_none()
            && let Err(error) = self.decoder.finish()
        {
            self.fail(error.to_request_status());
        }
        match (self.failure, self.message) {
            (Some(failure), _) => Err(failure),
            (None, Some(message)) => Ok(message),
            (None, None) => Err(Status::unimplemented(
                "the method takes exactly one message, not none",
            )),
        }
    }

    fn fail(&mut self, status: Status) {
        self.message = None;
        self.failure = Some(status);
    }
}

fn several_messages() -> Status {
    Status::unimplemented("the method takes exactly one message, not several")
}

/// Decodes a request message.
///
/// # Errors
/// INVALID_ARGUMENT when the bytes are not that message. A publish adds its own detail.
pub fn decode_message<M: Message + Default>(encoded: Bytes) -> Result<M, Status> {
    M::decode(encoded)
        .map_err(|error| Status::invalid_argument(format!("the request does not decode: {error}")))
}

/// The header fields of a response to a call, errors included: the content type and what CORS needs. The caller adds
/// its own and no `content-length`.
#[must_use]
pub fn response_headers(encoding: Encoding) -> [(&'static str, &'static str); 3] {
    let [origin, exposed] = cors::RESPONSE_HEADERS;
    [("content-type", encoding.content_type()), origin, exposed]
}

/// The whole body of a unary response in one chunk: the encoded message and OK, or a trailer frame with the error.
///
/// A message longer than `max_response_bytes` becomes OUT_OF_RANGE; it is never cut (API-282, API-283).
///
/// # Panics
/// Never, for a `max_response_bytes` below 4 GiB.
#[must_use]
pub fn unary_response(
    encoding: Encoding,
    result: &Result<impl AsRef<[u8]>, Status>,
    max_response_bytes: usize,
) -> Bytes {
    let mut joiner = FrameJoiner::new(encoding, max_response_bytes);
    let pushed = match result {
        Ok(message) => {
            let message = message.as_ref();
            // Or a long message would be moved to make room for its trailers.
            joiner.frames.reserve(message.len() + AROUND_BYTES);
            joiner.push(message).map_err(MessageTooLong::out_of_range)
        }
        Err(status) => Err(status.clone()),
    };
    joiner.finish(&pushed.err().unwrap_or_else(Status::ok))
}

/// Room for what stands around the message of a successful unary response.
const AROUND_BYTES: usize = 64;

/// What stands before and after an encoded message of `length` bytes in a [`unary_response`], for a message that is kept
/// elsewhere. Not for [`Encoding::Text`], whose characters know no frames.
///
/// # Errors
/// [`MessageTooLong`] over `max_response_bytes`.
///
/// # Panics
/// Never, for a `max_response_bytes` below 4 GiB.
pub fn unary_response_around(
    length: usize,
    max_response_bytes: usize,
) -> Result<(Bytes, Bytes), MessageTooLong> {
    if length > max_response_bytes {
        return Err(MessageTooLong {
            length,
            max_message_bytes: max_response_bytes,
        });
    }
    let (mut before, mut after) = (BytesMut::new(), BytesMut::new());
    frame::put_message_header(&mut before, length);
    frame::put_trailers(&mut after, &Trailers::from_status(&Status::ok()));
    Ok((before.freeze(), after.freeze()))
}

/// A body that is a trailer frame alone.
#[must_use]
pub fn error_response(encoding: Encoding, status: &Status) -> Bytes {
    let mut frames = BytesMut::new();
    frame::put_trailers(&mut frames, &Trailers::from_status(status));
    frame::seal(frames, encoding)
}

/// A message of a response that is longer than a response may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a response message of {length} bytes is longer than {max_message_bytes} bytes")]
pub struct MessageTooLong {
    /// Its length in bytes.
    pub length: usize,
    /// The most bytes a message may have.
    pub max_message_bytes: usize,
}

impl MessageTooLong {
    /// What the client reads of it where asking for less would have helped (API-282, API-283).
    #[must_use]
    pub fn out_of_range(self) -> Status {
        Status::out_of_range(self.to_string())
    }
}

/// Joins the ready messages of a response, each encoded already, into chunks of about [`JOINED_CHUNK_BYTES`].
///
/// Push what is ready while [`is_full`](Self::is_full) is false, then send [`take`](Self::take). A frame longer than a
/// chunk travels in one piece.
#[derive(Debug)]
pub struct FrameJoiner {
    encoding: Encoding,
    max_message_bytes: usize,
    frames: BytesMut,
}

impl FrameJoiner {
    /// A joiner with nothing in it, for messages of at most `max_message_bytes`.
    #[must_use]
    pub fn new(encoding: Encoding, max_message_bytes: usize) -> FrameJoiner {
        FrameJoiner {
            encoding,
            max_message_bytes,
            frames: BytesMut::new(),
        }
    }

    /// Adds an encoded message.
    ///
    /// # Errors
    /// [`MessageTooLong`], and nothing added, when it is longer than a message may be.
    pub fn push(&mut self, encoded: &[u8]) -> Result<(), MessageTooLong> {
        if encoded.len() > self.max_message_bytes {
            return Err(MessageTooLong {
                length: encoded.len(),
                max_message_bytes: self.max_message_bytes,
            });
        }
        frame::put_encoded(&mut self.frames, encoded);
        Ok(())
    }

    /// Whether a chunk's worth is waiting to be taken.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.frames.len() >= JOINED_CHUNK_BYTES
    }

    /// What is waiting, as one chunk, or `None`.
    pub fn take(&mut self) -> Option<Bytes> {
        (!self.frames.is_empty()).then(|| frame::seal(self.frames.split(), self.encoding))
    }

    /// The last chunk: what is waiting, and the trailers.
    #[must_use]
    pub fn finish(mut self, status: &Status) -> Bytes {
        frame::put_trailers(&mut self.frames, &Trailers::from_status(status));
        frame::seal(self.frames, self.encoding)
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;

//! The calling half of a call. Depends on the parts of this crate.
//!
//! 1. [`request_headers`] and [`request_body`] make the request;
//! 2. [`ResponseDecoder`] reads a response that arrives in pieces: messages, then one [`End`];
//! 3. [`read_unary`] does the same for a body that has arrived whole.
//!
//! A response is successful when its trailers say so, and in no other way. One that ends without them is UNAVAILABLE
//! and not [`stated`](End::is_stated): what became of the call is unknown.

use std::{borrow::Cow, time::Duration};

use bytes::{Bytes, BytesMut};
use prost::Message;

use crate::{
    Code, ContentType, Encoding, Frame, FrameDecoder, FrameError, Status, Trailers, deadline, frame,
};

/// The header fields of a request in binary frames.
#[must_use]
pub fn request_headers(timeout: Option<Duration>) -> Vec<(&'static str, Cow<'static, str>)> {
    let content_type = Encoding::Binary.content_type();
    let mut headers = vec![
        ("content-type", content_type.into()),
        ("accept", content_type.into()),
        ("x-grpc-web", "1".into()),
    ];
    headers.extend(timeout.map(|timeout| ("grpc-timeout", deadline::format(timeout).into())));
    headers
}

/// The body of a request of one message, in binary frames.
///
/// # Panics
/// When the message is longer than 2^32 - 1 bytes; the backend carries at most 25 MiB (API-282).
#[must_use]
pub fn request_body(message: &impl Message) -> Bytes {
    let mut frames = BytesMut::new();
    frame::put_message(&mut frames, message);
    frames.freeze()
}

/// The parts of an HTTP response that decide how its body is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseHead<'a> {
    /// The HTTP status.
    pub http_status: u16,
    /// The `content-type` header.
    pub content_type: Option<&'a str>,
    /// The `grpc-status` header, where a server answers in headers alone.
    pub grpc_status: Option<&'a str>,
    /// The `grpc-message` header.
    pub grpc_message: Option<&'a str>,
    /// The `grpc-status-details-bin` header.
    pub grpc_status_details: Option<&'a str>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The outcome.
    pub status: Status,
    /// The trailers, empty where none arrived.
    pub trailers: Trailers,
    /// Whether the server stated this outcome. When not, the client drew it from a response that is broken or not
    /// gRPC-Web, and the call may have had its effect.
    pub is_stated: bool,
}

impl End {
    /// An outcome the client draws itself.
    #[must_use]
    pub fn assumed(status: Status) -> End {
        End {
            status,
            trailers: Trailers::default(),
            is_stated: false,
        }
    }

    fn stated(status: Status, trailers: Trailers) -> End {
        End {
            status,
            trailers,
            is_stated: true,
        }
    }
}

/// What a response brings next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An encoded message.
    Message(Bytes),
    /// The end; every later event repeats it.
    End(End),
}

/// Reads a response that arrives in pieces. Total, and the same for every way to cut the body.
///
/// Feed each piece with [`push`](Self::push), take events with [`next_event`](Self::next_event) until there are none,
/// and call [`finish`](Self::finish) when the body has ended. Read the body to its end even after [`Event::End`]: a
/// connection whose response was dropped is not used again.
#[derive(Debug)]
pub struct ResponseDecoder {
    decoder: FrameDecoder,
    end: Option<End>,
}

impl ResponseDecoder {
    /// Looks at the head of a response. One that is not gRPC-Web has ended at once.
    #[must_use]
    pub fn new(head: &ResponseHead<'_>, max_message_bytes: usize) -> ResponseDecoder {
        let content_type = head.content_type.and_then(ContentType::parse);
        let encoding = content_type.map_or(Encoding::Binary, ContentType::encoding);
        ResponseDecoder {
            decoder: FrameDecoder::new(encoding, max_message_bytes),
            end: end_by_head(head, content_type),
        }
    }

    /// Takes in the next piece of the body, of any length.
    pub fn push(&mut self, piece: &[u8]) {
        if self.end.is_none() {
            self.decoder.push(piece);
        }
    }

    /// The next event, or `None` until more is pushed.
    pub fn next_event(&mut self) -> Option<Event> {
        if self.end.is_none() {
            match self.decoder.next_frame() {
                Ok(None) => return None,
                Ok(Some(Frame::Message(message))) => return Some(Event::Message(message)),
                Ok(Some(Frame::Trailers(trailers))) => self.end = Some(end_by_trailers(trailers)),
                Err(error) => self.end = Some(End::assumed(error.to_response_status())),
            }
        }
        self.end.clone().map(Event::End)
    }

    /// How the call ended, once the body has ended and its events are taken.
    #[must_use]
    pub fn finish(mut self) -> End {
        if let Some(end) = self.end {
            return end;
        }
        let error = self
            .decoder
            .finish()
            .err()
            .filter(|error| *error != FrameError::Truncated);
        End::assumed(error.map_or_else(
            || Status::unavailable("the response ended without a status: the outcome of the call is unknown"),
            FrameError::to_response_status,
        ))
    }
}

/// Reads a unary response whose body has arrived whole: its message, and the trailers beside it.
///
/// # Errors
/// The [`End`] of a call that failed; INTERNAL, not stated, when a successful response has not exactly one message or
/// the message does not decode.
pub fn read_unary<M: Message + Default>(
    head: &ResponseHead<'_>,
    body: &[u8],
    max_message_bytes: usize,
) -> Result<(M, Trailers), End> {
    let mut decoder = ResponseDecoder::new(head, max_message_bytes);
    decoder.push(body);
    let (mut messages, mut message) = (0u32, Bytes::new());
    while let Some(Event::Message(next)) = decoder.next_event() {
        messages = messages.saturating_add(1);
        message = next;
    }
    let end = decoder.finish();
    if !end.status.is_ok() {
        return Err(end);
    }
    if messages != 1 {
        return Err(End::assumed(Status::internal(format!(
            "a unary response of {messages} messages"
        ))));
    }
    match M::decode(message) {
        Ok(message) => Ok((message, end.trailers)),
        Err(error) => Err(End::assumed(Status::internal(format!(
            "the response does not decode: {error}"
        )))),
    }
}

/// How a response ended if its head says all: the server answered in headers, or it is no gRPC-Web response.
fn end_by_head(head: &ResponseHead<'_>, content_type: Option<ContentType>) -> Option<End> {
    let trailers = Trailers::from_headers(head.grpc_status, head.grpc_message, head.grpc_status_details);
    match (trailers.status(), head.http_status) {
        // OK in the headers promises nothing: the message is still to come, and so is the real end.
        (Some(status), _) if !status.is_ok() => Some(End::stated(status, trailers)),
        (_, 200) if content_type.is_some() => None,
        (_, 200) => Some(End::assumed(Status::unknown(
            "the response is not gRPC-Web: check the address",
        ))),
        (_, other) => Some(End::assumed(Status::new(
            Code::from_http_status(other),
            format!("HTTP status {other}"),
        ))),
    }
}

/// How a response ended by its trailer frame.
fn end_by_trailers(trailers: Trailers) -> End {
    match trailers.status() {
        Some(status) => End::stated(status, trailers),
        None => End {
            trailers,
            ..End::assumed(Status::unavailable(
                "the trailers have no status: the outcome of the call is unknown",
            ))
        },
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

//! The frames of a gRPC-Web body. Depends on [`crate::text`] and [`crate::trailers`].
//!
//! A frame is one flag byte, a length of four bytes, and that many bytes of payload. Flag `0x80` marks the trailers,
//! which end a response; bit `0x01` marks a compressed payload, which nobody here reads.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use prost::Message;

use crate::{
    Encoding, Status, Trailers,
    text::{self, TextDecoder},
};

/// Flag and length before every payload, in bytes.
pub const HEADER_BYTES: usize = 5;
/// The longest payload of a trailer frame that is read, in bytes. Messages have the caller's own bound.
pub const MAX_TRAILER_BYTES: usize = 64 * 1024;

const FLAG_COMPRESSED: u8 = 0x01;
const FLAG_TRAILERS: u8 = 0x80;

/// One frame of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// An encoded message.
    Message(Bytes),
    /// The trailers; nothing may follow them.
    Trailers(Trailers),
}

/// A body that is not a sequence of frames, or exceeds a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame has its compressed flag set.
    #[error("a message is compressed, and no compression is supported")]
    Compressed,
    /// A flag byte has bits that mean nothing.
    #[error("a frame has the unknown flags {0:#04x}")]
    UnknownFlags(u8),
    /// A payload is longer than its bound.
    #[error("a message of {length} bytes is longer than {max} bytes")]
    TooLong {
        /// The declared length, in bytes.
        length: u64,
        /// The bound, in bytes.
        max: u64,
    },
    /// The body ended within a frame.
    #[error("the body ends within a frame")]
    Truncated,
    /// Something follows the trailers.
    #[error("the body goes on after its trailers")]
    AfterTrailers,
    /// A text body is not base64.
    #[error("the body is not base64")]
    NotBase64,
}

impl FrameError {
    /// The status a server fails a call with. A message that is too long is OUT_OF_RANGE and a compressed one
    /// UNIMPLEMENTED (API-281). What else is wrong with a body is INTERNAL, as gRPC has it for broken framing: the
    /// contract keeps INVALID_ARGUMENT for what it names itself, and on a publish it would owe a detail (API-223).
    #[must_use]
    pub fn to_request_status(self) -> Status {
        match self {
            FrameError::Compressed => Status::unimplemented(self.to_string()),
            FrameError::TooLong { .. } => Status::out_of_range(self.to_string()),
            FrameError::UnknownFlags(_)
            | FrameError::Truncated
            | FrameError::AfterTrailers
            | FrameError::NotBase64 => Status::internal(self.to_string()),
        }
    }

    /// The status a client reports for a response it cannot read. One that was cut off is UNAVAILABLE, because the
    /// connection failed and not the server.
    #[must_use]
    pub fn to_response_status(self) -> Status {
        match self {
            FrameError::Truncated => Status::unavailable(self.to_string()),
            FrameError::TooLong { .. } => Status::out_of_range(self.to_string()),
            _ => Status::internal(format!("unreadable response: {self}")),
        }
    }
}

/// Appends the frame of a message.
///
/// # Panics
/// When the encoded message is longer than 2^32 - 1 bytes, which no caller's bound allows.
pub fn put_message(out: &mut BytesMut, message: &impl Message) {
    let length = message.encoded_len();
    out.reserve(HEADER_BYTES + length);
    put_header(out, 0, length);
    message.encode(out).expect("a BytesMut grows as needed");
}

/// Appends the frame of a message that is encoded already.
///
/// # Panics
/// When it is longer than 2^32 - 1 bytes.
pub fn put_encoded(out: &mut BytesMut, encoded: &[u8]) {
    out.reserve(HEADER_BYTES + encoded.len());
    put_header(out, 0, encoded.len());
    out.put_slice(encoded);
}

/// Appends what stands before a message of `length` bytes.
pub(crate) fn put_message_header(out: &mut BytesMut, length: usize) {
    put_header(out, 0, length);
}

/// Appends the frame of the trailers.
///
/// # Panics
/// When they are longer than 2^32 - 1 bytes.
pub fn put_trailers(out: &mut BytesMut, trailers: &Trailers) {
    let payload = trailers.encode();
    out.reserve(HEADER_BYTES + payload.len());
    put_header(out, FLAG_TRAILERS, payload.len());
    out.put_slice(payload.as_bytes());
}

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Message,
    Trailers,
}

impl Kind {
    /// The kind that the flag byte names. A message may be compressed, trailers may not.
    pub(crate) fn of(flags: u8) -> Result<Kind, FrameError> {
        match flags {
            0 | FLAG_COMPRESSED => Ok(Kind::Message),
            FLAG_TRAILERS => Ok(Kind::Trailers),
            _ if flags == FLAG_COMPRESSED | FLAG_TRAILERS => Err(FrameError::Compressed),
            _ => Err(FrameError::UnknownFlags(flags)),
        }
    }
}

/// Reads a frame header: what the frame holds, and how many bytes, if no more than a message or trailers may be long.
pub(crate) fn kind_and_length(
    header: [u8; HEADER_BYTES],
    max_message_bytes: usize,
) -> Result<(Kind, usize), FrameError> {
    let [flags, length @ ..] = header;
    let kind = Kind::of(flags)?;
    let max = match kind {
        Kind::Message => max_message_bytes,
        Kind::Trailers => MAX_TRAILER_BYTES,
    };
    let length = u32::from_be_bytes(length);
    usize::try_from(length)
        .ok()
        .filter(|length| *length <= max)
        .map(|length| (kind, length))
        .ok_or(FrameError::TooLong {
            length: u64::from(length),
            max: max as u64,
        })
}

fn put_header(out: &mut BytesMut, flags: u8, length: usize) {
    out.put_u8(flags);
    out.put_u32(u32::try_from(length).expect("bounded far below 4 GiB"));
}

/// Writes whole frames in an encoding: as they are, or as one padded base64 text.
#[must_use]
pub fn seal(frames: BytesMut, encoding: Encoding) -> Bytes {
    match encoding {
        Encoding::Binary => frames.freeze(),
        Encoding::Text => text::encode(&frames).into(),
    }
}

/// Reads frames from a body that arrives in pieces. Total, and the same for every way to cut the body.
///
/// Feed each piece with [`push`](Self::push) and then take frames with [`next_frame`](Self::next_frame) until it has
/// none: no more than one incomplete frame is then held, and that one is within its bound. At the end of the body
/// call [`finish`](Self::finish). After an error every call repeats it and nothing more is held.
#[derive(Debug)]
pub struct FrameDecoder {
    max_message_bytes: usize,
    text: Option<TextDecoder>,
    buffer: BytesMut,
    /// The text layer failed; it counts once the frames before that place are taken.
    text_failed: bool,
    ended: bool,
    failure: Option<FrameError>,
}

impl FrameDecoder {
    /// A decoder that refuses a message longer than `max_message_bytes` by its header, before it is received.
    #[must_use]
    pub fn new(encoding: Encoding, max_message_bytes: usize) -> FrameDecoder {
        FrameDecoder {
            max_message_bytes,
            text: (encoding == Encoding::Text).then(TextDecoder::default),
            buffer: BytesMut::new(),
            text_failed: false,
            ended: false,
            failure: None,
        }
    }

    /// From here on every message that is not empty is [`FrameError::TooLong`], by its header alone.
    pub(crate) fn refuse_messages(&mut self) {
        self.max_message_bytes = 0;
    }

    /// Takes in the next piece of the body, of any length.
    pub fn push(&mut self, piece: &[u8]) {
        if self.failure.is_some() || self.text_failed {
            return;
        }
        match &mut self.text {
            None => self.buffer.put_slice(piece),
            Some(text) => self.text_failed = text.push(piece, &mut self.buffer).is_err(),
        }
    }

    /// The next whole frame, or `None` until more is pushed.
    ///
    /// # Errors
    /// [`FrameError`] at the first frame that cannot be read.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        match self.take_frame() {
            Ok(None) if self.text_failed => self.fail(FrameError::NotBase64),
            Ok(frame) => Ok(frame),
            Err(error) => self.fail(error),
        }
    }

    /// Checks that the body ended where a frame ends. Frames still to be taken count as an unfinished body.
    ///
    /// # Errors
    /// The error met before, or [`FrameError::Truncated`].
    pub fn finish(&mut self) -> Result<(), FrameError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if self.text_failed {
            return self.fail(FrameError::NotBase64);
        }
        if !self.buffer.is_empty() || self.text.as_ref().is_some_and(|text| !text.is_at_boundary()) {
            return self.fail(FrameError::Truncated);
        }
        Ok(())
    }

    fn take_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if self.ended && !self.buffer.is_empty() {
            return Err(FrameError::AfterTrailers);
        }
        let Some(header) = self.buffer.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        if header[0] & FLAG_COMPRESSED != 0 && Kind::of(header[0]).is_ok() {
            return Err(FrameError::Compressed);
        }
        let (kind, length) = kind_and_length(*header, self.max_message_bytes)?;
        if self.buffer.len() - HEADER_BYTES < length {
            return Ok(None);
        }
        self.buffer.advance(HEADER_BYTES);
        let payload = self.buffer.split_to(length).freeze();
        Ok(Some(if kind == Kind::Trailers {
            self.ended = true;
            Frame::Trailers(Trailers::decode(&payload))
        } else {
            Frame::Message(payload)
        }))
    }

    fn fail<T>(&mut self, error: FrameError) -> Result<T, FrameError> {
        self.failure = Some(error);
        self.buffer = BytesMut::new();
        Err(error)
    }
}

/// Reads bytes that are exactly one frame, as a WebSocket message is.
///
/// # Errors
/// [`FrameError`] when they are not; several frames are [`FrameError::AfterTrailers`] or unread bytes
/// ([`FrameError::Truncated`]).
pub fn decode_single(bytes: &[u8], max_message_bytes: usize) -> Result<Frame, FrameError> {
    let mut decoder = FrameDecoder::new(Encoding::Binary, max_message_bytes);
    decoder.push(bytes);
    let frame = decoder.next_frame()?.ok_or(FrameError::Truncated)?;
    decoder.finish()?;
    Ok(frame)
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;

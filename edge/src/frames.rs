//! Response bodies of messages that are already encoded. Depends on `grpc-web`.

use bytes::{Bytes, BytesMut};
use conclave_grpc_web::{Encoding, Status, Trailers, frame, server};

/// Frames that wait to leave in one chunk.
#[derive(Debug)]
pub(crate) struct Frames {
    encoding: Encoding,
    max_message_bytes: usize,
    waiting: BytesMut,
}

impl Frames {
    /// None yet. A message longer than `max_message_bytes` is refused.
    pub(crate) fn new(encoding: Encoding, max_message_bytes: usize) -> Self {
        Self {
            encoding,
            max_message_bytes,
            waiting: BytesMut::new(),
        }
    }

    /// Adds an encoded message.
    ///
    /// # Errors
    /// OUT_OF_RANGE, and nothing added, when it is too long (API-282, API-283).
    pub(crate) fn push(&mut self, message: &[u8]) -> Result<(), Status> {
        if message.len() > self.max_message_bytes {
            return Err(Status::out_of_range(format!(
                "a response of {} bytes is longer than {} bytes",
                message.len(),
                self.max_message_bytes
            )));
        }
        frame::put_encoded(&mut self.waiting, message);
        Ok(())
    }

    /// Whether a chunk's worth waits.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= server::JOINED_CHUNK_BYTES
    }

    /// What waits, as one chunk.
    pub(crate) fn take(&mut self) -> Bytes {
        frame::seal(self.waiting.split(), self.encoding)
    }

    /// The last chunk: what waits, and the trailers.
    pub(crate) fn end(mut self, status: &Status) -> Bytes {
        frame::put_trailers(&mut self.waiting, &Trailers::from_status(status));
        self.take()
    }
}

/// The whole body of a unary answer, in one chunk.
pub(crate) fn unary(encoding: Encoding, result: &Result<Vec<u8>, Status>, max_message_bytes: usize) -> Bytes {
    let mut frames = Frames::new(encoding, max_message_bytes);
    match result
        .as_deref()
        .map_err(Status::clone)
        .and_then(|message| frames.push(message))
    {
        Ok(()) => frames.end(&Status::ok()),
        Err(status) => frames.end(&status),
    }
}

#[cfg(test)]
mod tests {
    use conclave_grpc_web::{Code, Frame, FrameDecoder};

    use super::*;

    fn read(body: &[u8], encoding: Encoding) -> Vec<Frame> {
        let mut decoder = FrameDecoder::new(encoding, 1 << 20);
        decoder.push(body);
        std::iter::from_fn(|| decoder.next_frame().expect("frames")).collect()
    }

    fn code(frames: &[Frame]) -> Option<Code> {
        match frames.last() {
            Some(Frame::Trailers(trailers)) => trailers.status().map(|status| status.code),
            _ => None,
        }
    }

    #[test]
    fn an_answer_is_its_message_and_its_status_in_one_chunk() {
        for encoding in [Encoding::Binary, Encoding::Text] {
            let frames = read(&unary(encoding, &Ok(b"message".to_vec()), 7), encoding);
            assert!(matches!(&frames[..], [Frame::Message(message), _] if message.as_ref() == b"message"));
            assert_eq!(code(&frames), Some(Code::Ok));
        }
    }

    // API-282, API-283
    #[test]
    fn a_message_over_the_bound_is_out_of_range_and_never_cut() {
        let frames = read(
            &unary(Encoding::Binary, &Ok(b"message".to_vec()), 6),
            Encoding::Binary,
        );
        assert_eq!(frames.len(), 1);
        assert_eq!(code(&frames), Some(Code::OutOfRange));
    }
}

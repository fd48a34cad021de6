//! What a stream has yet to send: bounded, and packed into frames at the moment one is taken. No I/O.
//!
//! A *turn* is a run of envelopes of one topic that never spans two frames; several turns share a frame as far as they
//! fit. Turns leave in the order they came, so the fairness of their order is the fairness of the frames (API-261).

use std::collections::VecDeque;

use conclave_envelope::limits::STREAM_FRAME_BYTES;
use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{
    StoredEnvelope, StoredMessages, StoredMessagesFrame, stored_messages_frame::Response,
};
use prost::{Message as _, encoding::encoded_len_varint};

/// The most bytes that wait in a stream for its client unless configured otherwise: above what the sockets between hold.
pub const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// History is read only while it would fill no more than this part of the above, so that live envelopes find room
/// beside it.
const HISTORY_PART: usize = 2;

/// What a frame adds around its envelopes, in bytes: two tags and two lengths.
const FRAME_OVERHEAD_BYTES: usize = 12;

/// Which stream the frames are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// SubscribeStatic.
    Static,
    /// Subscribe.
    Bidirectional,
}

/// A frame that leaves.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) bytes: Vec<u8>,
    /// Set for a Ping: its nonce.
    pub(super) ping: Option<u64>,
}

#[derive(Debug)]
enum Item {
    /// A frame that is ready.
    Frame(Frame),
    /// One turn and its length inside a frame.
    Turn(Vec<StoredEnvelope>, usize),
}

/// The output of one stream.
#[derive(Debug)]
pub(super) struct Output {
    kind: Kind,
    items: VecDeque<Item>,
    bytes: usize,
    bytes_max: usize,
    frame_bytes_max: usize,
    max_response_bytes: usize,
}

impl Output {
    /// An empty output that holds at most `bytes_max`, and whose frames of envelopes stay within the frame budget and
    /// `max_response_bytes`.
    pub(super) fn new(kind: Kind, bytes_max: usize, max_response_bytes: u64) -> Self {
        let to_length = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            kind,
            items: VecDeque::new(),
            bytes: 0,
            bytes_max,
            frame_bytes_max: to_length(max_response_bytes.min(STREAM_FRAME_BYTES)),
            max_response_bytes: to_length(max_response_bytes),
        }
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether `more` bytes of history may be read. A read of any length may be made when nothing waits.
    pub(super) fn has_room_for_history(&self, more: usize) -> bool {
        self.bytes == 0 || self.bytes.saturating_add(more) <= self.bytes_max / HISTORY_PART
    }

    /// Queues a frame that is not made of envelopes.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when it is longer than a response may be, or the client does not read and too much waits.
    pub(super) fn push_frame(&mut self, bytes: Vec<u8>) -> Result<(), Status> {
        self.push_ready(Frame { bytes, ping: None })
    }

    /// Queues a Ping.
    ///
    /// # Errors
    /// As [`Output::push_frame`].
    pub(super) fn push_ping(&mut self, bytes: Vec<u8>, nonce: u64) -> Result<(), Status> {
        self.push_ready(Frame {
            bytes,
            ping: Some(nonce),
        })
    }

    fn push_ready(&mut self, frame: Frame) -> Result<(), Status> {
        if frame.bytes.len() > self.max_response_bytes {
            return Err(Status::resource_exhausted(format!(
                "a frame of {} bytes is longer than max_response_bytes",
                frame.bytes.len()
            )));
        }
        if self.bytes > self.bytes_max {
            return Err(self.give_up());
        }
        self.bytes += frame.bytes.len();
        self.items.push_back(Item::Frame(frame));
        Ok(())
    }

    /// Forgets what waits.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.bytes = 0;
    }

    /// Forgets what waits: nobody reads it.
    pub(super) fn give_up(&mut self) -> Status {
        self.clear();
        Status::resource_exhausted("the client does not read what is delivered")
    }

    /// Queues as many of a topic's envelopes as fit one frame, and tells how many those are.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when the first of them fits no frame.
    pub(super) fn push_history(&mut self, mut envelopes: Vec<StoredEnvelope>) -> Result<usize, Status> {
        let mut length = 0;
        let fitting = envelopes
            .iter()
            .take_while(|envelope| {
                length += length_in_frame(envelope);
                length + FRAME_OVERHEAD_BYTES <= self.frame_bytes_max
            })
            .count();
        if fitting == 0 && !envelopes.is_empty() {
            return Err(Status::resource_exhausted(
                "a stored envelope does not fit a frame",
            ));
        }
        envelopes.truncate(fitting);
        self.push_turn(envelopes);
        Ok(fitting)
    }

    /// Queues one envelope that was just stored.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when it fits no frame, or the client does not read and too much waits.
    pub(super) fn push_live(&mut self, envelope: StoredEnvelope) -> Result<(), Status> {
        let length = length_in_frame(&envelope);
        if length + FRAME_OVERHEAD_BYTES > self.frame_bytes_max {
            return Err(Status::resource_exhausted(
                "a stored envelope does not fit a frame",
            ));
        }
        if self.bytes + length > self.bytes_max {
            return Err(self.give_up());
        }
        self.push_turn(vec![envelope]);
        Ok(())
    }

    /// Takes the next frame, encoded.
    pub(super) fn pop_frame(&mut self) -> Option<Frame> {
        let (mut envelopes, mut length) = (Vec::new(), FRAME_OVERHEAD_BYTES);
        while let Some(item) = self.items.pop_front() {
            match item {
                Item::Frame(frame) if envelopes.is_empty() => {
                    self.bytes -= frame.bytes.len();
                    return Some(frame);
                }
                Item::Turn(turn, turn_length)
                    if envelopes.is_empty() || length + turn_length <= self.frame_bytes_max =>
                {
                    self.bytes -= turn_length;
                    length += turn_length;
                    envelopes.extend(turn);
                }
                other => {
                    self.items.push_front(other);
                    break;
                }
            }
        }
        if envelopes.is_empty() {
            return None;
        }
        let messages = StoredMessages { envelopes };
        let response = match self.kind {
            Kind::Static => Response::OfStaticStream(messages),
            Kind::Bidirectional => Response::Messages(messages),
        };
        let bytes = StoredMessagesFrame {
            response: Some(response),
        }
        .encode_to_vec();
        debug_assert!(
            bytes.len() <= self.frame_bytes_max,
            "a frame is within its budget"
        );
        Some(Frame { bytes, ping: None })
    }

    fn push_turn(&mut self, envelopes: Vec<StoredEnvelope>) {
        if envelopes.is_empty() {
            return;
        }
        let length = envelopes.iter().map(length_in_frame).sum();
        self.bytes += length;
        self.items.push_back(Item::Turn(envelopes, length));
    }
}

/// How many bytes an envelope takes inside a frame, its tag and length included.
fn length_in_frame(envelope: &StoredEnvelope) -> usize {
    let length = envelope.encoded_len();
    1 + encoded_len_varint(length as u64) + length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(bytes: usize) -> StoredEnvelope {
        StoredEnvelope {
            meta: None,
            envelope: vec![7; bytes].into(),
        }
    }

    fn sizes(frame: &Frame) -> Vec<usize> {
        let frame = StoredMessagesFrame::decode(&frame.bytes[..]).expect("a frame");
        let Some(Response::OfStaticStream(messages)) = frame.response else {
            panic!("no messages")
        };
        messages
            .envelopes
            .iter()
            .map(|stored| stored.envelope.len())
            .collect()
    }

    // API-261
    #[test]
    fn a_turn_never_spans_two_frames_and_turns_share_one_while_they_fit() {
        let mut output = Output::new(Kind::Static, OUTPUT_BYTES_MAX, 1_000);
        assert_eq!(output.push_history(vec![envelope(300), envelope(300)]), Ok(2));
        assert_eq!(output.push_history(vec![envelope(200)]), Ok(1));
        assert_eq!(output.push_history(vec![envelope(200), envelope(10)]), Ok(2));
        assert_eq!(
            output.pop_frame().map(|frame| sizes(&frame)),
            Some(vec![300, 300, 200])
        );
        assert_eq!(output.pop_frame().map(|frame| sizes(&frame)), Some(vec![200, 10]));
        assert_eq!((output.pop_frame(), output.bytes), (None, 0));
    }

    // API-254
    #[test]
    fn history_beyond_a_frame_is_left_for_a_later_turn() {
        let mut output = Output::new(Kind::Static, OUTPUT_BYTES_MAX, 1_000);
        assert_eq!(output.push_history(vec![envelope(600), envelope(600)]), Ok(1));
        assert!(output.push_history(vec![envelope(1_000)]).is_err());
        assert_eq!(output.pop_frame().map(|frame| sizes(&frame)), Some(vec![600]));
    }

    // API-281
    #[test]
    fn a_client_that_does_not_read_is_not_waited_for() {
        let mut output = Output::new(Kind::Static, OUTPUT_BYTES_MAX, u64::MAX);
        let refused = std::iter::repeat_with(|| output.push_live(envelope(1 << 20))).find_map(Result::err);
        assert_eq!(
            refused.map(|status| status.code),
            Some(conclave_grpc_web::Code::ResourceExhausted)
        );
        assert!(output.is_empty(), "what nobody reads is not kept");
    }

    // API-281
    #[test]
    fn frames_without_envelopes_are_bounded_too() {
        let mut output = Output::new(Kind::Bidirectional, OUTPUT_BYTES_MAX, 1 << 20);
        let too_long = output.push_frame(vec![0; (1 << 20) + 1]).expect_err("refused");
        assert_eq!(too_long.code, conclave_grpc_web::Code::ResourceExhausted);
        let refused = std::iter::repeat_with(|| output.push_frame(vec![0; 1 << 20])).find_map(Result::err);
        assert_eq!(
            refused.map(|status| status.code),
            Some(conclave_grpc_web::Code::ResourceExhausted)
        );
    }

    #[test]
    fn history_is_read_only_while_there_is_room_for_it() {
        let mut output = Output::new(Kind::Static, OUTPUT_BYTES_MAX, u64::MAX);
        assert!(output.has_room_for_history(usize::MAX));
        output.push_live(envelope(100)).expect("fits");
        assert!(output.has_room_for_history(OUTPUT_BYTES_MAX / HISTORY_PART - output.bytes));
        assert!(!output.has_room_for_history(OUTPUT_BYTES_MAX / HISTORY_PART - output.bytes + 1));
    }

    #[test]
    fn every_frame_stays_within_its_budget() {
        for budget in [300_u64, 1_000, 5_000] {
            let mut output = Output::new(Kind::Static, OUTPUT_BYTES_MAX, budget);
            for length in 1..200 {
                output.push_live(envelope(length)).expect("fits");
            }
            while let Some(frame) = output.pop_frame() {
                assert!(frame.bytes.len() as u64 <= budget);
            }
        }
    }
}

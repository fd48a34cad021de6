//! What a stream has yet to send: bounded, and packed into frames at the moment one is taken. No I/O.
//!
//! A *turn* is a run of envelopes of one topic that never spans two frames; several turns share a frame as far as they
//! fit. Turns leave in the order they came, so the fairness of their order is the fairness of the frames (API-261).

use std::collections::VecDeque;

use conclave_envelope::limits::STREAM_FRAME_BYTES;
use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{StoredEnvelope, StoredMessages, StoredMessagesFrame};
use prost::{Message as _, encoding::encoded_len_varint};

/// The most bytes that wait in a stream for its client, in live envelopes: above what the sockets between hold.
pub const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// History is read only while less than this waits, in bytes.
pub const HISTORY_BYTES_LOW: usize = 1 << 20;

/// What a frame adds around its envelopes, in bytes: two tags and two lengths.
const FRAME_OVERHEAD_BYTES: usize = 12;

#[derive(Debug)]
enum Item {
    /// A frame that is ready.
    Frame(Vec<u8>),
    /// One turn and its length inside a frame.
    Turn(Vec<StoredEnvelope>, usize),
}

/// The output of one stream.
#[derive(Debug)]
pub(super) struct Output {
    items: VecDeque<Item>,
    bytes: usize,
    frame_bytes_max: usize,
}

impl Output {
    /// An empty output whose frames stay within the frame budget and `max_response_bytes`.
    pub(super) fn new(max_response_bytes: u64) -> Self {
        let frame_bytes_max =
            usize::try_from(max_response_bytes.min(STREAM_FRAME_BYTES)).unwrap_or(usize::MAX);
        Self {
            items: VecDeque::new(),
            bytes: 0,
            frame_bytes_max,
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether more history may be read.
    pub(super) fn has_room_for_history(&self) -> bool {
        self.bytes < HISTORY_BYTES_LOW
    }

    /// Queues a frame that is not made of envelopes.
    pub(super) fn push_frame(&mut self, frame: Vec<u8>) {
        self.bytes += frame.len();
        self.items.push_back(Item::Frame(frame));
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
        if self.bytes + length > OUTPUT_BYTES_MAX {
            return Err(Status::resource_exhausted(
                "the client does not read what is delivered",
            ));
        }
        self.push_turn(vec![envelope]);
        Ok(())
    }

    /// Takes the next frame, encoded.
    pub(super) fn pop_frame(&mut self) -> Option<Vec<u8>> {
        let (mut envelopes, mut length) = (Vec::new(), FRAME_OVERHEAD_BYTES);
        while let Some(item) = self.items.pop_front() {
            match item {
                Item::Frame(frame) if envelopes.is_empty() => {
                    self.bytes -= frame.len();
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
        let frame = StoredMessagesFrame {
            messages: Some(StoredMessages { envelopes }),
        }
        .encode_to_vec();
        debug_assert!(
            frame.len() <= self.frame_bytes_max,
            "a frame is within its budget"
        );
        Some(frame)
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

    fn sizes(frame: &[u8]) -> Vec<usize> {
        let frame = StoredMessagesFrame::decode(frame).expect("a frame");
        frame
            .messages
            .expect("messages")
            .envelopes
            .iter()
            .map(|stored| stored.envelope.len())
            .collect()
    }

    // API-261
    #[test]
    fn a_turn_never_spans_two_frames_and_turns_share_one_while_they_fit() {
        let mut output = Output::new(1_000);
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
        let mut output = Output::new(1_000);
        assert_eq!(output.push_history(vec![envelope(600), envelope(600)]), Ok(1));
        assert!(output.push_history(vec![envelope(1_000)]).is_err());
        assert_eq!(output.pop_frame().map(|frame| sizes(&frame)), Some(vec![600]));
    }

    #[test]
    fn a_client_that_does_not_read_is_not_waited_for() {
        let mut output = Output::new(u64::MAX);
        let refused = std::iter::repeat_with(|| output.push_live(envelope(1 << 20))).find_map(Result::err);
        assert_eq!(
            refused.map(|status| status.code),
            Some(conclave_grpc_web::Code::ResourceExhausted)
        );
        assert!(output.bytes <= OUTPUT_BYTES_MAX);
    }

    #[test]
    fn every_frame_stays_within_its_budget() {
        for budget in [300_u64, 1_000, 5_000] {
            let mut output = Output::new(budget);
            for length in 1..200 {
                output.push_live(envelope(length)).expect("fits");
            }
            while let Some(frame) = output.pop_frame() {
                assert!(frame.len() as u64 <= budget);
            }
        }
    }
}

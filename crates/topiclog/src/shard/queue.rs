//! Publishes that wait for the commit loop: bounded in number and bytes, taken out in batches. No I/O.

use std::collections::VecDeque;

use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{NewEnvelope, StoreResponse};
use futures_channel::oneshot;

/// The most envelopes of one batch, unless a single publish has more.
pub const BATCH_ENVELOPES_MAX: usize = 1_000;
/// The most bytes of one batch, unless a single publish has more.
pub const BATCH_BYTES_MAX: usize = 8 << 20;
/// The most publishes that wait.
pub const QUEUE_PUBLISHES_MAX: usize = 4_096;
/// The most bytes that wait, unless a single publish has more.
pub const QUEUE_BYTES_MAX: usize = 32 << 20;

/// One publish that waits for its commit.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) envelopes: Vec<NewEnvelope>,
    pub(super) expected_router_instance: Option<String>,
    pub(super) reply: oneshot::Sender<Result<StoreResponse, Status>>,
}

impl Waiting {
    fn bytes(&self) -> usize {
        self.envelopes.iter().map(|envelope| envelope.body.len()).sum()
    }
}

/// The queue, first in, first out.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

impl Queue {
    /// Adds a publish, or gives it back when there is no room.
    pub(super) fn push(&mut self, publish: Waiting) -> Result<(), Waiting> {
        let bytes = publish.bytes();
        let is_full = self.waiting.len() >= QUEUE_PUBLISHES_MAX || self.bytes + bytes > QUEUE_BYTES_MAX;
        if is_full && !self.waiting.is_empty() {
            return Err(publish);
        }
        self.bytes += bytes;
        self.waiting.push_back(publish);
        Ok(())
    }

    /// The publishes that are committed together next; empty when none wait.
    pub(super) fn take_batch(&mut self) -> Vec<Waiting> {
        let (mut batch, mut envelopes, mut bytes) = (Vec::new(), 0, 0);
        while let Some(next) = self.waiting.front() {
            let (next_envelopes, next_bytes) = (next.envelopes.len(), next.bytes());
            let fits =
                envelopes + next_envelopes <= BATCH_ENVELOPES_MAX && bytes + next_bytes <= BATCH_BYTES_MAX;
            if !fits && !batch.is_empty() {
                break;
            }
            envelopes += next_envelopes;
            bytes += next_bytes;
            self.bytes -= next_bytes;
            batch.extend(self.waiting.pop_front());
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(envelopes: usize, bytes: usize) -> Waiting {
        let body = vec![0; bytes].into();
        let envelopes = (0..envelopes)
            .map(|_| NewEnvelope {
                body: Clone::clone(&body),
                ..Default::default()
            })
            .collect();
        Waiting {
            envelopes,
            expected_router_instance: None,
            reply: oneshot::channel().0,
        }
    }

    #[test]
    fn a_batch_is_bounded_in_count_and_bytes_and_holds_at_least_one() {
        let mut queue = Queue::default();
        for (envelopes, bytes) in [
            (1, 9 << 20),
            (600, 1),
            (400, 1),
            (1, 1),
            (1, 7 << 20),
            (1, 2 << 20),
        ] {
            assert!(queue.push(publish(envelopes, bytes)).is_ok());
        }
        let sizes: Vec<usize> = std::iter::repeat_with(|| queue.take_batch().len())
            .take_while(|size| *size > 0)
            .collect();
        assert_eq!(sizes, [1, 2, 2, 1]);
        assert_eq!(queue.bytes, 0);
    }

    #[test]
    fn a_full_queue_gives_the_publish_back() {
        let mut queue = Queue::default();
        assert!(
            queue.push(publish(1, 40 << 20)).is_ok(),
            "an empty queue takes anything"
        );
        assert!(queue.push(publish(1, 1)).is_err());
        queue.take_batch();
        for _ in 0..QUEUE_PUBLISHES_MAX {
            assert!(queue.push(publish(1, 1)).is_ok());
        }
        assert!(queue.push(publish(1, 1)).is_err());
    }
}

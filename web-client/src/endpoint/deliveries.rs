//! What the host has not acknowledged, and the one subscriber that reads it. Pure, but for its wakers.
//!
//! Deliveries come from the engine in the order of local commits and stay until they are acknowledged. A subscriber reads
//! them from the first on, so that a new one gets the backlog, then what is new, without a gap or a repetition.

use std::collections::VecDeque;
use std::task::{Poll, Waker};

use conclave_conversation::engine::Delivery;
use conclave_conversation::values::DeliveryToken;

/// Messages are already being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("messages are already being read: an endpoint has one subscriber")]
pub(crate) struct AlreadyListening;

/// Names one subscription among those there have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubscriptionId(pub(crate) u64);

/// Unacknowledged deliveries and their reader.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    /// Ascending by sequence.
    unacknowledged: VecDeque<Delivery>,
    reader: Option<Reader>,
    subscriptions: u64,
    is_closed: bool,
}

#[derive(Debug)]
struct Reader {
    id: SubscriptionId,
    /// The sequence of the next delivery, at least.
    next: u64,
    waker: Option<Waker>,
}

impl Deliveries {
    /// Takes the one subscription.
    pub(crate) fn subscribe(&mut self) -> Result<SubscriptionId, AlreadyListening> {
        if self.reader.is_some() {
            return Err(AlreadyListening);
        }
        self.subscriptions += 1;
        let id = SubscriptionId(self.subscriptions);
        self.reader = Some(Reader {
            id,
            next: 0,
            waker: None,
        });
        Ok(id)
    }

    /// Gives the subscription back; whoever waits for it hears that it has ended.
    pub(crate) fn cancel(&mut self, id: SubscriptionId) {
        if let Some(reader) = self.reader.take_if(|reader| reader.id == id)
            && let Some(waker) = reader.waker
        {
            waker.wake();
        }
    }

    /// The subscription's next delivery; none when it has ended.
    pub(crate) fn poll_next(&mut self, id: SubscriptionId, waker: &Waker) -> Poll<Option<Delivery>> {
        let Some(reader) = self.reader.as_mut().filter(|reader| reader.id == id) else {
            return Poll::Ready(None);
        };
        let next = self
            .unacknowledged
            .partition_point(|delivery| delivery.delivery_sequence < reader.next);
        if let Some(delivery) = self.unacknowledged.get(next) {
            reader.next = delivery.delivery_sequence + 1;
            return Poll::Ready(Some(delivery.clone()));
        }
        if self.is_closed {
            return Poll::Ready(None);
        }
        reader.waker = Some(waker.clone());
        Poll::Pending
    }

    /// A remote post is there.
    pub(crate) fn add(&mut self, delivery: Delivery) {
        let sequence = delivery.delivery_sequence;
        // The engine gives them in this order; one it gives again is here already.
        if self
            .unacknowledged
            .back()
            .is_none_or(|last| last.delivery_sequence < sequence)
        {
            self.unacknowledged.push_back(delivery);
        }
        self.wake();
    }

    /// The host accepted a delivery.
    pub(crate) fn acknowledged(&mut self, token: &DeliveryToken) {
        self.unacknowledged
            .retain(|delivery| delivery.delivery_token != *token);
    }

    /// No more will come. What is there is still read.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.reader.as_mut().and_then(|reader| reader.waker.take()) {
            waker.wake();
        }
    }
}

#[cfg(test)]
#[path = "deliveries_tests.rs"]
mod tests;
